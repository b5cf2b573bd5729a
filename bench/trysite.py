"""What remedies for a user's command need to know of the host."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.host import facts
from bench.hostfacts import Thp
from bench.resources import read_resources
from bench.sysfs import keyed_kib, read_text
from bench.topology import Topology

_OLDEST_HUGETLB = (2, 35)  # glibc that has malloc.hugetlb


@dataclass(frozen=True)
class Site:
    """What remedies need to know of the host."""

    thp: Thp
    topology: Topology
    allowed: tuple[int, ...]
    nodes: tuple[int, ...] = (0,)
    """Memory nodes this process may use."""
    pools: Mapping[int, int] = field(default_factory=dict)
    """Free huge pages by size, those to be reserved among them."""
    default_pool: int = 0
    """Page size that a program gets which names none."""
    glibc: tuple[int, ...] = ()
    """Version; empty: this is another C library."""

    @property
    def may_advise(self) -> str:
        """Why malloc cannot ask for transparent huge pages; empty where it can."""
        if self.thp.allowed_here is False:
            return "transparent huge pages are switched off for this process"
        return self.no_glibc

    @property
    def no_glibc(self) -> str:
        """Why malloc cannot be told about huge pages."""
        if self.glibc and self.glibc >= _OLDEST_HUGETLB:
            return ""
        have = f"this is {'.'.join(map(str, self.glibc))}" if self.glibc else "none is here"
        return f"takes glibc {'.'.join(map(str, _OLDEST_HUGETLB))} or newer, and {have}"


def read_site(reserved: Mapping[int, int] | None = None, root: Path = Path("/")) -> Site:
    """Site of this host; ``reserved``: huge pages that will be added, by size."""
    resources, host = read_resources(root), facts(root)
    pools = {size: free or 0 for (size, node), free in resources.pools.items() if node is None}
    for size, pages in (reserved or {}).items():
        pools[size] = pools.get(size, 0) + pages
    mems = host.limits.mems
    return Site(
        host.thp,
        resources.topology,
        resources.allowed,
        tuple(
            node.id
            for node in resources.topology.nodes
            if node.memory_bytes != 0 and (mems is None or node.id in mems)
        ),
        pools,
        keyed_kib(read_text(root / "proc/meminfo"), "Hugepagesize") or 0,
        _glibc_version(os.confstr("CS_GNU_LIBC_VERSION") if hasattr(os, "confstr") else None),
    )


def _glibc_version(text: str | None) -> tuple[int, ...]:
    match = re.match(r"glibc (\d+)\.(\d+)", text or "")
    return (int(match[1]), int(match[2])) if match else ()
