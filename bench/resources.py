"""What a plan may use of a host: CPUs, memory, huge pages. Of this host, or of a stored tree."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.cgroup import read_limits
from bench.cpuinfo import parse_cpuinfo
from bench.hugepages import pool_available, read_pools
from bench.sysfs import bracketed, keyed_kib, parse_cpulist, read_int, read_text
from bench.topology import Topology, read_topology, usable_threads

Pools = Mapping[tuple[int, int | None], int | None]
"""Pages that can be taken now, by page size and node (None: of all nodes); None: not known."""


@dataclass(frozen=True)
class Resources:
    """What may be used now."""

    topology: Topology
    allowed: tuple[int, ...]
    """CPUs that this process may use, rising."""
    threads: int
    """That can run at once: a CPU quota may be below the CPUs allowed."""
    memory_bytes: int | None
    """Available within the control group's headroom; None where it is not known."""
    page_bytes: int
    """Of the system's base page."""
    pools: Pools = field(default_factory=dict)
    """Page sizes without an entry do not exist here."""
    reserved: Mapping[int, int] = field(default_factory=dict)
    """Pages each whole pool holds now, taken or free."""
    virtual: bool = False
    """A hypervisor shows itself: it may take freed memory back."""
    stored: bool = False
    """A copy of another host's files: of what they do not say, the best is assumed."""
    transparent_bytes: int = 0
    """Of a stored host: page that transparent huge pages would have; 0: they are off."""
    notes: tuple[str, ...] = ()


def read_resources(root: Path = Path("/")) -> Resources:
    """Read what may be used on this host, or on the host of a stored tree.

    A stored tree may hold no more than ``sys``. What it does not say is taken at its best, and the
    notes say so.
    """
    live = root == Path("/")
    topology = read_topology(root / "sys")
    limits = read_limits(root)
    online = set(topology.by_id)
    affinity = os.sched_getaffinity(0) if live else _stored_affinity(root, online)
    allowed = affinity & online
    if limits.cpuset is not None:
        allowed &= set(limits.cpuset)
    memory, notes = _memory(root, topology, limits.memory_headroom, live)
    pools = read_pools(root)
    return Resources(
        topology,
        tuple(sorted(allowed)),
        usable_threads(affinity & online, limits.cpuset, limits.cpu_quota),
        memory,
        os.sysconf("SC_PAGESIZE") if live else _stored_page(root),
        {
            (pool.size_bytes, pool.node): pool_available(pool.size_bytes, pool.node, root, limits)
            for pool in pools
        },
        {pool.size_bytes: pool.persistent or 0 for pool in pools if pool.node is None},
        virtual=bool(parse_cpuinfo(read_text(root / "proc/cpuinfo") or "").hypervisor),
        stored=not live,
        transparent_bytes=0 if live else _stored_transparent(root),
        notes=notes,
    )


def _stored_page(root: Path) -> int:
    return keyed_kib(read_text(root / "proc/self/smaps"), "KernelPageSize") or 4096


def _stored_transparent(root: Path) -> int:
    """Largest size that is on: a fault takes the largest it may."""
    folder = root / "sys/kernel/mm/transparent_hugepage"
    whole = bracketed(read_text(folder / "enabled"))
    if whole is None:
        return 2 << 20
    on = []
    for entry in folder.glob("hugepages-*kB"):
        word = bracketed(read_text(entry / "enabled"))
        if (whole if word == "inherit" else word) in ("always", "madvise"):
            on.append(int(entry.name.removeprefix("hugepages-").removesuffix("kB")) * 1024)
    if whole in ("always", "madvise"):
        on.append(read_int(folder / "hpage_pmd_size") or 2 << 20)
    return max(on, default=0)


def _stored_affinity(root: Path, online: set[int]) -> set[int]:
    for line in (read_text(root / "proc/self/status") or "").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return set(parse_cpulist(line.partition(":")[2]))
    return online


def _memory(
    root: Path, topology: Topology, headroom: int | None, live: bool
) -> tuple[int | None, tuple[str, ...]]:
    available = keyed_kib(read_text(root / "proc/meminfo"), "MemAvailable")
    notes: tuple[str, ...] = () if live else ("planned from stored files, not from this host",)
    on_nodes = sum(node.memory_bytes or 0 for node in topology.nodes)
    if available is None and not live and on_nodes:
        available = on_nodes
        notes += ("the stored files do not say what memory is free: all of it is assumed",)
    known = [value for value in (available, headroom) if value is not None]
    return min(known, default=None), notes
