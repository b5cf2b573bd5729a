"""How large arenas must be to show memory rather than caches, and page sizes rather than noise."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bench.topology import Topology

# With a random or a streaming pattern, data of four times a cache still hits it for a quarter of
# the accesses at most; the same rule for what a TLB reaches.
BEYOND = 4
# Where the topology shows no third level: virtual machines hide caches, and system-level caches of
# Arm chips are not in sysfs. Above what most hosts have, and said in a note.
ASSUMED_LLC_BYTES = 256 << 20
# Second-level data TLBs of current cores have 1024 to 3072 entries; used until it is measured.
ASSUMED_TLB_ENTRIES = 2048


@dataclass(frozen=True)
class Probe:
    """What was measured on this host since it booted; None or missing: not measured."""

    llc_bytes: int | None = None
    """Effective capacity of one last-level cache, as one thread finds it."""
    reach_bytes: Mapping[int, int] = field(default_factory=dict)
    """Memory that the TLB reaches, by page size."""
    small_host_pages: bool | None = None
    """A hypervisor backs large guest pages with small ones."""
    costs: Mapping[str, float] = field(default_factory=dict)
    """Values for fields of ``bench.costs.Costs``."""


@dataclass(frozen=True)
class LastLevel:
    """Data that the caches of some CPUs may hold together."""

    bytes: int
    source: str
    """Where the last level's share is from: ``measured``, ``sysfs`` or ``assumed``."""


def last_level(topology: Topology, cpus: Iterable[int], probe: Probe) -> LastLevel:
    """Sum over the last-level caches of these CPUs, or over their second levels if that is more.

    The larger of what is reported and what one thread measured: an arena that is too large costs
    time, one that is too small shows a cache. What is measured may be less than what many threads
    find together, and virtual machines report both too much and too little.
    """
    used = {cpu for cpu in cpus if cpu in topology.by_id}
    found = {topology.by_id[cpu].llc for cpu in used}
    caches = [topology.llcs[index] for index in sorted(llc for llc in found if llc is not None)]
    total = sum(cache.size_bytes or 0 for cache in caches)
    shown = caches and None not in found and all(c.size_bytes and c.level >= 3 for c in caches)
    private = sum(
        cache.size_bytes or 0
        for cache in topology.caches
        if cache.level == 2 and cache not in topology.llcs and used & set(cache.cpus)
    )
    total = max(total, private)
    measured = (probe.llc_bytes or 0) * max(1, len(caches))
    if measured and measured >= total:
        return LastLevel(measured, "measured")
    if not shown and not measured:
        return LastLevel(max(total, ASSUMED_LLC_BYTES), "assumed")
    return LastLevel(total, "sysfs")


def reach(page_bytes: int, probe: Probe) -> int:
    """Bytes that one core reaches without walking page tables; measured where it was."""
    return probe.reach_bytes.get(page_bytes, ASSUMED_TLB_ENTRIES * page_bytes)


def telling(page_bytes: int, probe: Probe) -> int:
    """Bytes that each thread must walk for a verdict on pages larger than these."""
    return BEYOND * reach(page_bytes, probe)


def power_of_two(at_least: int) -> int:
    """Smallest power of two that is not below this."""
    return 1 << max(0, at_least - 1).bit_length()


def bandwidth_size(llc: LastLevel, page_bytes: int, probe: Probe) -> int:
    """Arena of bandwidth kernels: beyond the caches, and beyond the TLB's reach at base pages."""
    return power_of_two(BEYOND * max(llc.bytes, reach(page_bytes, probe)))
