"""What is known of one process from the looks taken at it: sums and extremes, no list of samples.

A window of any length and any number of threads takes bounded memory.
"""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.observe.mappings import Memory, Status
from bench.procfs import ProcessStat, Schedule

PAGE = os.sysconf("SC_PAGESIZE")
_CPUS = os.cpu_count() or 1
COUNTER_SLACK_PAGES = _CPUS * max(32, 2 * _CPUS)
"""What ``stat`` says of resident pages is a sum that CPUs add to late: each may hold back 32 pages,
or twice as many as there are CPUs (since 6.2). A smaller step down is no release."""


@dataclass(frozen=True)
class ThreadLook:
    """One thread at one moment."""

    tid: int
    started: int
    running: bool
    cpu: int
    schedule: Schedule | None
    cpus: frozenset[int] | None = None
    """That it may use; None where it was not asked this time."""


@dataclass
class _Thread:
    first: Schedule | None
    last: ThreadLook
    ran: bool
    cpus: frozenset[int] | None


@dataclass
class Track:
    """One process over the window. ``whole``: it began inside, so that its counters began at 0."""

    first: ProcessStat
    at: float
    whole: bool = False
    last: ProcessStat = field(init=False)
    last_at: float = field(init=False)
    ended: bool = False
    looks: int = 0
    released_bytes: int = 0
    """Sum of what resident memory fell by between looks: at least so much was given back."""
    unmapped_bytes: int = 0
    mapped_bytes: int = 0
    """The same of the address space, down and up."""
    resident_min: int = field(init=False)
    resident_max: int = field(init=False)
    threads_max: int = 0
    threads_unseen: int = 0
    """Most threads that one look left out."""
    running_sum: int = 0
    cpus: Counter[int] = field(default_factory=Counter)
    """Looks at which a running thread was on that CPU."""
    moves: int = 0
    mappings: tuple[int, int] | None = None
    """Number at the first and at the last look that counted them."""
    mapping_changes: int = 0
    read_written: tuple[int, int] | None = None
    """Bytes moved by read, write and their like until the first and the last look."""
    status: Status | None = None
    memory: Memory | None = None
    memory_at: float | None = None
    nodes: dict[int, int] = field(default_factory=dict)
    """Resident bytes by node; empty: not looked at."""
    walk_s: float = 0.0
    walked_at: float | None = None
    scheduled: bool = False
    """Whether the kernel counts how long threads wait for a CPU."""
    _threads: dict[tuple[int, int], _Thread] = field(default_factory=dict)
    _past: list[int] = field(default_factory=lambda: [0, 0, 0])
    _ran_cpus: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.last, self.last_at = self.first, self.at
        self.resident_min = self.resident_max = self.first.resident_pages * PAGE

    def add(self, stat: ProcessStat, at: float, threads: Sequence[ThreadLook]) -> None:
        """Take in one look; ``threads`` may be a part of them."""
        change = stat.resident_pages - self.last.resident_pages
        if -change > COUNTER_SLACK_PAGES:
            self.released_bytes += -change * PAGE
        grown = stat.virtual_bytes - self.last.virtual_bytes
        self.mapped_bytes += max(0, grown)
        self.unmapped_bytes += max(0, -grown)
        resident = stat.resident_pages * PAGE
        self.resident_min = min(self.resident_min, resident)
        self.resident_max = max(self.resident_max, resident)
        self.threads_max = max(self.threads_max, stat.threads)
        self.threads_unseen = max(self.threads_unseen, stat.threads - len(threads))
        self.looks += 1
        self.last, self.last_at = stat, at
        self._take_threads(threads)

    def knows(self, tid: int, started: int) -> bool:
        """Whether this thread was there at the last look."""
        return (tid, started) in self._threads

    def _take_threads(self, threads: Sequence[ThreadLook]) -> None:
        seen = set()
        for look in threads:
            key = look.tid, look.started
            seen.add(key)
            known = self._threads.get(key)
            if look.schedule is not None and look.schedule.times:
                self.scheduled = True
            if known is None:
                # What a thread did before the window is not part of it; one that began inside
                # began at zero.
                new = self.looks > 1 or self.whole
                first = Schedule(0, 0, 0) if new and look.schedule else look.schedule
                known = self._threads[key] = _Thread(first, look, look.running, look.cpus)
            elif known.last.cpu != look.cpu:
                self.moves += 1
            known.cpus = look.cpus or known.cpus
            known.last, known.ran = look, known.ran or look.running
            if look.running:
                self.running_sum += 1
                self.cpus[look.cpu] += 1
        for key in self._threads.keys() - seen:
            self._fold(self._threads.pop(key))

    def _fold(self, thread: _Thread) -> None:
        first, last = thread.first, thread.last.schedule
        if first and last:
            gained = (
                last.ran_ns - first.ran_ns,
                last.waited_ns - first.waited_ns,
                last.times - first.times,
            )
            self._past = [a + max(0, b) for a, b in zip(self._past, gained, strict=True)]
        if thread.ran and thread.cpus:
            self._ran_cpus |= thread.cpus

    def count_mappings(self, number: int) -> None:
        """Take in how many mappings there are."""
        if self.mappings is None:
            self.mappings = number, number
            return
        self.mapping_changes += number != self.mappings[1]
        self.mappings = self.mappings[0], number

    def count_moved(self, number: int) -> None:
        """Take in how much system calls have read and written."""
        first = (0 if self.whole else number) if self.read_written is None else self.read_written[0]
        self.read_written = first, number

    def finish(self) -> None:
        """Close the books of threads that are still there."""
        for thread in self._threads.values():
            self._fold(thread)
        self._threads.clear()

    # ---- over the window; after ``finish`` ----------------------------------------------------

    @property
    def seconds(self) -> float:
        """Time between the first look and the last."""
        return self.last_at - self.at

    def gained(self, name: str) -> int:
        """What a counter of ``ProcessStat`` grew by."""
        before: int = 0 if self.whole else getattr(self.first, name)
        after: int = getattr(self.last, name)
        return max(0, after - before)

    @property
    def ran_s(self) -> float:
        """Time on a CPU of the threads that were looked at."""
        return self._past[0] / 1e9

    @property
    def waited_s(self) -> float:
        """Time those threads were ready and had no CPU."""
        return self._past[1] / 1e9

    @property
    def switches(self) -> int:
        """How often those threads were put on a CPU."""
        return self._past[2]

    @property
    def allowed(self) -> frozenset[int]:
        """CPUs that threads seen running may use."""
        return frozenset(self._ran_cpus)
