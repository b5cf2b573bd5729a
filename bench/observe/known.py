"""What a verdict needs to know of the host: nodes, caches, huge-page settings, measured costs."""

import os
from dataclasses import dataclass
from pathlib import Path

from bench.costs import Costs
from bench.cpuinfo import parse_cpuinfo
from bench.sizes import Probe, reach
from bench.sysfs import bracketed, keyed_kib, read_int, read_text
from bench.topology import read_topology


@dataclass(frozen=True)
class Known:
    """Of the host, with what ``bench host --probe`` measured since it booted."""

    page_bytes: int
    huge_bytes: int
    thp: str | None
    """``always``, ``madvise`` or ``never``; None: this kernel has no transparent huge pages."""
    nodes: int
    cpus: int
    node_of: dict[int, int]
    """Node of each CPU."""
    invlpgb: bool
    """TLBs may be flushed without interrupts: those counted are too few."""
    available_bytes: int | None
    """Memory that new programs could have."""
    small_cache_bytes: int
    """That is surely cached: measured, or the smallest second-level cache that is reported."""
    probe: Probe
    shootdown_s: float | None = None
    """What one shootdown added to a munmap; None: not measured."""

    @property
    def reach_bytes(self) -> int:
        """Memory that the TLB reaches on base pages."""
        return reach(self.page_bytes, self.probe)

    @property
    def reach_measured(self) -> bool:
        """Whether that was measured, or is what cores commonly have."""
        return self.page_bytes in self.probe.reach_bytes

    @property
    def fault_s(self) -> float:
        """First touch of a base page."""
        return self.probe.costs.get("fault_s", Costs().fault_s)

    @property
    def fault_measured(self) -> bool:
        """Whether that was measured on this host."""
        return "fault_s" in self.probe.costs


def read_known(
    root: Path = Path("/"), probe: Probe | None = None, shootdown_s: float | None = None
) -> Known:
    """Read it from ``root``; measured values come from the caller."""
    topology = read_topology(root / "sys")
    probe = probe or Probe()
    thp = root / "sys/kernel/mm/transparent_hugepage"
    second = [cache.size_bytes for cache in topology.caches if cache.level == 2]
    smallest = min((size for size in second if size), default=0)
    flags = parse_cpuinfo(read_text(root / "proc/cpuinfo") or "").flags
    return Known(
        page_bytes=os.sysconf("SC_PAGESIZE"),
        huge_bytes=read_int(thp / "hpage_pmd_size") or 2 << 20,
        thp=bracketed(read_text(thp / "enabled")),
        nodes=max(1, len(topology.nodes)),
        cpus=len(topology.cpus),
        node_of={cpu.id: cpu.node for cpu in topology.cpus if cpu.node is not None},
        invlpgb="invlpgb" in flags,
        available_bytes=keyed_kib(read_text(root / "proc/meminfo"), "MemAvailable"),
        small_cache_bytes=probe.llc_bytes or smallest,
        probe=probe,
        shootdown_s=shootdown_s,
    )
