"""Pools of explicit huge pages (hugetlb): what they hold, and how much of it this process may use.

Read-only; ``bench.reservation`` is the module that changes a pool.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.cgroup import Limits, read_limits
from bench.sysfs import entries, is_folder, read_cpulist, read_int, read_text
from bench.units import format_size

_POOL_FOLDER = re.compile(r"hugepages-(\d+)kB$")


@dataclass(frozen=True)
class HugePool:
    """Pages of one size, of the whole host (``node`` None) or on one node. None is unknown."""

    size_bytes: int
    node: int | None
    pages: int | None
    free: int | None
    surplus: int | None
    reserved: int | None  # promised to mappings not yet touched; counted host-wide only
    overcommit: int | None  # host-wide only

    @property
    def persistent(self) -> int | None:
        """Pages that stay in the pool when they are released: what writing the file sets."""
        return None if self.pages is None else self.pages - (self.surplus or 0)


def pool_folder(root: Path, size_bytes: int, node: int | None) -> Path:
    """Folder of one pool in sysfs."""
    name = f"hugepages-{size_bytes // 1024}kB"
    if node is None:
        return root / "sys/kernel/mm/hugepages" / name
    return root / f"sys/devices/system/node/node{node}/hugepages" / name


def read_pool(root: Path, size_bytes: int, node: int | None) -> HugePool:
    """One pool as sysfs shows it now."""
    folder = pool_folder(root, size_bytes, node)
    return HugePool(
        size_bytes,
        node,
        pages=read_int(folder / "nr_hugepages"),
        free=read_int(folder / "free_hugepages"),
        surplus=read_int(folder / "surplus_hugepages"),
        reserved=read_int(folder / "resv_hugepages"),
        overcommit=read_int(folder / "nr_overcommit_hugepages"),
    )


def pool_nodes(root: Path, size_bytes: int) -> tuple[int, ...]:
    """Nodes that have a pool of this size; empty on a kernel without NUMA."""
    nodes = read_cpulist(root / "sys/devices/system/node/online") or ()
    return tuple(node for node in nodes if is_folder(pool_folder(root, size_bytes, node)))


def read_pools(root: Path = Path("/")) -> tuple[HugePool, ...]:
    """Every pool: by size, the host's first and then each node's. Empty without hugetlb support."""
    sizes = []
    for entry in entries(root / "sys/kernel/mm/hugepages", "hugepages-*kB"):
        match = _POOL_FOLDER.match(entry.name)
        if match:
            sizes.append(int(match[1]) * 1024)
    return tuple(
        read_pool(root, size, node)
        for size in sorted(sizes)
        for node in (None, *pool_nodes(root, size))
    )


def pool_available(
    size_bytes: int,
    node: int | None = None,
    root: Path = Path("/"),
    limits: Limits | None = None,
) -> int | None:
    """Free pages this process could map and touch now; None where the kernel does not say.

    Pages promised to other mappings, pages on nodes outside the cpuset and pages above a
    control group's hugetlb limit do not count, nor does overcommit, which may fail at any time.
    0 where the size does not exist.
    """
    if not is_folder(root / "sys/kernel/mm"):
        return None
    if not is_folder(pool_folder(root, size_bytes, node)):
        return 0
    limits = read_limits(root) if limits is None else limits
    whole = read_pool(root, size_bytes, None)
    if whole.free is None:
        return None
    bounds = [whole.free - (whole.reserved or 0)]
    nodes = pool_nodes(root, size_bytes) if node is None else (node,)
    on_nodes = [
        free
        for each in nodes
        if (limits.mems is None or each in limits.mems)
        and (free := read_pool(root, size_bytes, each).free) is not None
    ]
    if nodes:
        bounds.append(sum(on_nodes))
    headroom = limits.hugetlb_headroom(size_bytes)
    if headroom is not None:
        bounds.append(headroom // size_bytes)
    return max(0, min(bounds))


def shortfall(
    wanted: Mapping[int, int], node: int | None = None, root: Path = Path("/")
) -> dict[int, int]:
    """Pages missing by size: what a reservation would have to add to ``{size_bytes: pages}``."""
    missing = {
        size: pages - (pool_available(size, node, root) or 0) for size, pages in wanted.items()
    }
    return {size: pages for size, pages in missing.items() if pages > 0}


def parse_buddyinfo(text: str) -> list[tuple[int, tuple[int, ...]]]:
    """(node, free blocks by order) of each zone in /proc/buddyinfo."""
    zones = []
    for line in text.splitlines():
        words = line.replace(",", " ").split()
        if len(words) > 4 and words[0] == "Node" and words[2] == "zone":
            zones.append((int(words[1]), tuple(int(word) for word in words[4:])))
    return zones


def compaction_hint(
    size_bytes: int,
    pages: int,
    node: int | None = None,
    root: Path = Path("/"),
    page_bytes: int | None = None,
) -> str | None:
    """Say what keeps free memory from being huge pages; None where enough is contiguous.

    The buddy lists end at a few MiB, so for larger pages this only says how much free memory is
    in the longest blocks; the kernel then has to join such blocks by moving what is in between.
    """
    text = read_text(root / "proc/buddyinfo")
    if text is None:
        return None
    base = page_bytes or os.sysconf("SC_PAGESIZE")
    zones = [blocks for zone, blocks in parse_buddyinfo(text) if node is None or zone == node]
    longest = max((base << (len(blocks) - 1) for blocks in zones), default=base)
    block = min(size_bytes, longest)
    free = sum(
        count * (base << order)
        for blocks in zones
        for order, count in enumerate(blocks)
        if base << order >= block
    )
    if size_bytes <= longest and free >= pages * size_bytes:
        return None
    return (
        f"{format_size(free // 1024**2 * 1024**2)} of free memory is in blocks of"
        f" {format_size(block)} or more, {format_size(pages * size_bytes)} is wanted:"
        " echo 1 > /proc/sys/vm/compact_memory (root) joins free blocks first"
    )
