"""A recording as rates, shares and sizes: plain dataclasses, which ``--json`` prints."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.observe.groupfiles import GroupCounts
from bench.observe.hostfiles import HostFigures, host_figures, pressure_shares
from bench.observe.mappings import Memory
from bench.observe.sampler import Recording
from bench.observe.tracks import PAGE, Track

UNKNOWN_SHARE = 0.1
"""Of the CPU time: so much may be of processes whose waiting is not known."""


@dataclass(frozen=True)
class MemoryFigures:
    """Where a process's memory is, in bytes."""

    resident: int
    """With hugetlb pages, which the kernel does not count as resident."""
    resident_min: int
    resident_max: int
    """Over the window, without hugetlb pages."""
    swapped: int | None
    shared_fairly: int | None
    huge: int | None
    """Of ``resident``, on huge pages; None: page tables were not walked."""
    kinds: Mapping[str, tuple[int, int]]
    """Resident bytes, and of these on huge pages, by kind of mapping. Empty: not walked."""
    hints: Mapping[str, int]
    nodes: Mapping[int, int]

    @property
    def small(self) -> int:
        """Resident bytes that may be on small pages: all, where that is not known."""
        return self.resident - (self.huge or 0)


@dataclass(frozen=True)
class ProcessFigures:
    """One process. Rates are over the target's whole window, also of one that lived shorter."""

    pid: int
    name: str
    seconds: float
    """Between its first look and its last."""
    ended: bool
    cpus_used: float
    children_cpus: float
    """By children that it waited for in the window: what these used since they began."""
    system_share: float | None
    """Of its CPU time, spent in the kernel; None: it used none."""
    minor_per_s: float
    major_per_s: float
    untraced_per_s: float
    """Minor faults less the pages that resident memory grew by: faults whose pages were given back
    since, or that brought none (copies after a fork, NUMA hints)."""
    released_per_s: float
    """Bytes that resident memory fell by between looks: a lower bound."""
    mapped_per_s: float
    unmapped_per_s: float
    """Bytes that the address space grew and shrank by between looks: lower bounds."""
    mappings: tuple[int, int] | None
    mapping_changes: int
    moved_per_s: float | None
    """Bytes that read, write and their like moved."""
    threads: int
    threads_unseen: int
    running: float
    """Threads on a CPU or ready for one, on average over all looks."""
    on_cpus: Mapping[int, int]
    """Looks at which a running thread was on that CPU."""
    allowed: tuple[int, ...]
    """CPUs that its running threads may use."""
    moves_seen: int
    switches_per_s: float | None
    waiting: float | None
    """Threads that were ready and had no CPU, on average; None: the kernel does not say."""
    thp_allowed: bool | None
    uid: int | None
    memory: MemoryFigures


@dataclass(frozen=True)
class GroupFigures:
    """The control group over the window."""

    own: bool
    """Whether nobody else is in it: then its stalls are the target's."""
    cpus_used: float | None
    quota: float | None
    throttled: Mapping[str, Mapping[str, float]]
    """By group on the way up: periods, throttled periods, seconds."""
    events: Mapping[str, int]
    memory_per_s: Mapping[str, float]
    huge: int | None
    """Bytes on huge pages now."""
    pressure: Mapping[str, Mapping[str, float]]
    nodes: Mapping[int, int]
    cpu_readable: bool
    memory_readable: bool


@dataclass(frozen=True)
class Bandwidth:
    """What resctrl counted."""

    group: str
    own: bool
    """Whether it counts nobody else."""
    bytes_per_s: float


@dataclass(frozen=True)
class Cost:
    """What observing cost."""

    cpu_s: float
    share: float
    """Of one CPU."""
    look_s: float
    walks_s: float
    """Walking page tables; a process's own mmap and munmap may wait while its are walked."""
    interval_s: float
    asked_s: float
    """Between looks: as it was, on average, and as it was asked for."""
    looks: int


@dataclass(frozen=True)
class Observation:
    """Everything that was found out."""

    target: str
    seconds: float
    ended: str
    processes: tuple[ProcessFigures, ...]
    """Busiest first."""
    group: GroupFigures
    host: HostFigures
    bandwidth: Bandwidth | None
    cost: Cost
    unread: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    unwalked: tuple[int, ...] = ()

    @property
    def cpus_used(self) -> float:
        """By all processes seen."""
        return sum(process.cpus_used for process in self.processes)

    @property
    def cpus(self) -> tuple[int, ...]:
        """CPUs that a thread was seen running on."""
        return tuple(sorted({cpu for process in self.processes for cpu in process.on_cpus}))

    @property
    def waiting(self) -> float | None:
        """Threads that waited for a CPU, on average; None: not known of most that worked."""
        unknown = sum(p.cpus_used for p in self.processes if p.waiting is None)
        if unknown > UNKNOWN_SHARE * self.cpus_used:
            return None
        return sum(p.waiting or 0.0 for p in self.processes)


def summarise(recording: Recording) -> Observation:
    """Figures of a recording."""
    seconds = max(recording.seconds, 1e-9)
    processes = [process_figures(track, seconds, recording.looks) for track in recording.tracks]
    processes.sort(key=lambda p: (-p.cpus_used, -p.memory.resident, p.pid))
    cpus = {cpu for process in processes for cpu in process.on_cpus}
    before, after = recording.host
    bandwidth = None
    if recording.bandwidth_group is not None:
        name, own = recording.bandwidth_group
        gained = after.bandwidth.get(name, 0) - before.bandwidth.get(name, 0)
        bandwidth = Bandwidth(name, own, gained / (after.at - before.at))
    return Observation(
        recording.target.name,
        recording.seconds,
        recording.ended,
        tuple(processes),
        group_figures(*recording.group, recording.group_own, seconds),
        host_figures(before, after, cpus),
        bandwidth,
        Cost(
            recording.own_cpu_s,
            recording.own_cpu_s / seconds,
            recording.look_s,
            sum(track.walk_s for track in recording.tracks),
            recording.interval_s,
            recording.settings.interval_s,
            recording.looks,
        ),
        {name: tuple(sorted(pids)) for name, pids in sorted(recording.unread.items())},
        tuple(recording.unwalked),
    )


def process_figures(track: Track, seconds: float, looks: int) -> ProcessFigures:
    """Figures of one process over a window of ``seconds`` with so many looks."""
    tick = os.sysconf("SC_CLK_TCK")
    user, system = track.gained("user_ticks") / tick, track.gained("system_ticks") / tick
    grown = track.last.resident_pages - (0 if track.whole else track.first.resident_pages)
    minor, status = track.gained("minor_faults"), track.status
    moved = track.read_written
    return ProcessFigures(
        pid=track.first.pid,
        name=track.last.name,
        seconds=track.seconds,
        ended=track.ended,
        cpus_used=(user + system) / seconds,
        children_cpus=track.gained("children_ticks") / tick / seconds,
        system_share=system / (user + system) if user + system > 0 else None,
        minor_per_s=minor / seconds,
        major_per_s=track.gained("major_faults") / seconds,
        untraced_per_s=max(0, minor - max(0, grown)) / seconds,
        released_per_s=track.released_bytes / seconds,
        mapped_per_s=track.mapped_bytes / seconds,
        unmapped_per_s=track.unmapped_bytes / seconds,
        mappings=track.mappings,
        mapping_changes=track.mapping_changes,
        moved_per_s=None if moved is None else (moved[1] - moved[0]) / seconds,
        threads=track.threads_max,
        threads_unseen=track.threads_unseen,
        running=track.running_sum / max(1, looks),
        on_cpus=dict(sorted(track.cpus.items())),
        allowed=tuple(sorted(track.allowed)),
        moves_seen=track.moves,
        switches_per_s=track.switches / seconds if track.scheduled else None,
        waiting=track.waited_s / seconds if track.scheduled else None,
        thp_allowed=None if status is None else status.thp_allowed,
        uid=None if status is None else status.uid,
        memory=_memory(track),
    )


def _memory(track: Track) -> MemoryFigures:
    walked, status = track.memory, track.status
    hugetlb = (status.hugetlb if status else None) or 0
    found = walked or Memory()
    return MemoryFigures(
        resident=walked.resident if walked else track.last.resident_pages * PAGE + hugetlb,
        resident_min=track.resident_min,
        resident_max=track.resident_max,
        swapped=status.swapped if status else None,
        shared_fairly=found.shared_fairly,
        huge=walked.huge if walked else None,
        kinds={kind: (pages.resident, pages.huge) for kind, pages in found.kinds.items()},
        hints=found.hints,
        nodes=track.nodes,
    )


def group_figures(
    before: GroupCounts, after: GroupCounts, own: bool, seconds: float
) -> GroupFigures:
    """Differences of a group's counters."""
    gauges = ("anon", "anon_thp", "file_thp", "shmem_thp", "rss", "rss_huge")
    huge = [after.memory[k] for k in ("anon_thp", "file_thp", "shmem_thp", "rss_huge")
            if k in after.memory]  # fmt: skip
    used = None
    if before.cpu_s is not None and after.cpu_s is not None:
        used = (after.cpu_s - before.cpu_s) / seconds
    return GroupFigures(
        own,
        used,
        after.quota,
        {
            name: _gained(before.throttled[name], rows)
            for name, rows in after.throttled.items()
            if name in before.throttled
        },
        {k: v - before.events[k] for k, v in after.events.items() if k in before.events},
        {
            k: (v - before.memory[k]) / seconds
            for k, v in after.memory.items()
            if k in before.memory and k not in gauges
        },
        sum(huge) if huge else None,
        pressure_shares(before.pressure, after.pressure, seconds),
        after.nodes,
        after.cpu_readable,
        after.memory_readable,
    )


def _gained(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    return {key: value - before.get(key, 0) for key, value in after.items()}


def busy(processes: Sequence[ProcessFigures], least: float) -> list[ProcessFigures]:
    """Those that used at least so many CPUs."""
    return [process for process in processes if process.cpus_used >= least]
