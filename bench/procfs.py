"""Files of /proc that belong to one process. Parsers take text; what does not parse is None."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.sysfs import entries, exists, read_text

# From the kernel's sched.h: a thread of the kernel, without memory of its own.
_KERNEL_THREAD = 0x00200000


@dataclass(frozen=True)
class ProcessStat:
    """One ``stat`` file, of a process (sums over its threads) or of a thread."""

    pid: int
    name: str
    state: str
    parent: int
    flags: int
    minor_faults: int
    major_faults: int
    user_ticks: int
    system_ticks: int
    children_ticks: int
    """CPU time of children that ended and were waited for, with theirs."""
    threads: int
    started: int
    """Clock ticks since boot: tells a reused pid."""
    virtual_bytes: int
    resident_pages: int
    cpu: int
    """That it runs on, or ran on last."""

    @property
    def kernel_thread(self) -> bool:
        """Whether it is a thread of the kernel."""
        return bool(self.flags & _KERNEL_THREAD)

    @property
    def ended(self) -> bool:
        """Whether it is a zombie, or gone already."""
        return self.state in "ZX"


def parse_process_stat(text: str) -> ProcessStat | None:
    """Read ``/proc/PID/stat``; the name, in brackets, may hold spaces and brackets itself."""
    before, bracket, after = text.rpartition(")")
    pid, _, name = before.partition(" (")
    fields = after.split()
    if not bracket or not pid.isdigit() or len(fields) < 37:
        return None
    try:
        number = [int(field) for field in fields[1:37]]
    except ValueError:
        return None
    return ProcessStat(
        pid=int(pid),
        name=name,
        state=fields[0],
        parent=number[0],
        flags=number[5],
        minor_faults=number[6],
        major_faults=number[8],
        user_ticks=number[10],
        system_ticks=number[11],
        children_ticks=number[12] + number[13],
        threads=number[16],
        started=number[18],
        virtual_bytes=number[19],
        resident_pages=number[20],
        cpu=number[35],
    )


@dataclass(frozen=True)
class Schedule:
    """One thread's ``schedstat``: on a CPU, ready but waiting for one, and how often it ran."""

    ran_ns: int
    waited_ns: int
    times: int


def parse_schedstat(text: str | None) -> Schedule | None:
    """Read ``/proc/PID/task/TID/schedstat``; a kernel that does not count writes zeros."""
    words = (text or "").split()
    if len(words) != 3 or not all(word.isdigit() for word in words):
        return None
    return Schedule(*(int(word) for word in words))


def parse_rows(text: str) -> dict[str, str]:
    """``Key:   value`` rows, as in ``status``; of several with one key, the first."""
    rows: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            rows.setdefault(key.strip(), value.strip())
    return rows


def parse_pairs(text: str | None) -> dict[str, int]:
    """``key value`` lines, as in ``cpu.stat``, ``memory.stat`` and ``/proc/vmstat``."""
    pairs = (line.split() for line in (text or "").splitlines())
    return {p[0]: int(p[1]) for p in pairs if len(p) == 2 and p[1].isdigit()}


def parse_pressure(text: str | None) -> dict[str, int] | None:
    """Microseconds stalled in all, ``some`` and ``full``; None where the kernel does not count."""
    found = {}
    for line in (text or "").splitlines():
        words = line.split()
        total = words[-1].removeprefix("total=") if words else ""
        if total.isdigit():
            found[words[0]] = int(total)
    return found or None


def descendants(roots: Iterable[int], proc: Path = Path("/proc")) -> list[int]:
    """Processes with everything they started that still has its parent."""
    found, left = set(roots), list(roots)
    by_parent: dict[int, list[int]] | None = None
    while left:
        pid = left.pop()
        tasks = entries(proc / str(pid) / "task", "[0-9]*")
        if tasks and exists(tasks[0] / "children"):
            texts = (read_text(task / "children") or "" for task in tasks)
            started = [int(word) for text in texts for word in text.split()]
        else:  # a kernel without CONFIG_PROC_CHILDREN
            by_parent = _children(proc) if by_parent is None else by_parent
            started = by_parent.get(pid, [])
        new = set(started) - found
        found |= new
        left += new
    return sorted(found)


def _children(proc: Path) -> dict[int, list[int]]:
    by_parent: dict[int, list[int]] = {}
    for entry in entries(proc, "[0-9]*"):
        stat = parse_process_stat(read_text(entry / "stat") or "")
        if stat is not None:
            by_parent.setdefault(stat.parent, []).append(stat.pid)
    return by_parent
