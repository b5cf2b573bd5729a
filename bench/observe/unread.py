"""What could not be read, why, and what would allow it."""

from collections.abc import Iterator

from bench.blocks import Skip
from bench.observe.figures import Observation, ProcessFigures
from bench.observe.sampler import LAST_WALK_BYTES, MOST_PROCESSES, MOST_THREADS
from bench.units import about

_REFUSED = {
    "smaps": "which pages its memory is on",
    "smaps_rollup": "which pages its memory is on",
    "maps": "number of mappings",
    "io": "bytes moved by read and write",
    "numa_maps": "memory by node",
}


def unread(seen: Observation, walk: bool, target_is_group: bool) -> list[Skip]:
    """Everything that is missing, in the order of its worth."""
    return [
        *_refused(seen),
        *_walks(seen, walk),
        *_group(seen, target_is_group),
        *_host(seen),
        *_processes(seen),
    ]


def processes(n: int) -> str:
    """``1 process``, ``2 processes``."""
    return "1 process" if n == 1 else f"{n} processes"


def _refused(seen: Observation) -> Iterator[Skip]:
    users = {process.pid: process.uid for process in seen.processes}
    for name, pids in seen.unread.items():
        owners = {users.get(pid) for pid in pids}
        others = sorted(f"user {uid}" for uid in owners if uid)
        who = [*(others or (["its user"] if None in owners else [])), "root (CAP_SYS_PTRACE)"]
        yield Skip(
            _REFUSED.get(name, name),
            f"/proc/PID/{name} was refused for {processes(len(pids))}",
            f"run as {', or as '.join(who)}",
        )


def _walks(seen: Observation, walk: bool) -> Iterator[Skip]:
    what = _REFUSED["smaps"]
    if not walk:
        yield Skip(what, "--no-page-walk was given")
    elif seen.unwalked:
        yield Skip(
            f"{what}, of {', '.join(map(str, seen.unwalked[:8]))}",
            f"a walk takes in the {MOST_PROCESSES} largest and {about(LAST_WALK_BYTES)}, no more:"
            " meanwhile a process's mmap calls may wait",
            "" if seen.group.huge is not None else "--cgroup PATH: a group's memory.stat has a sum",
        )
    gone = [p for p in seen.processes if p.memory.huge is None and p.ended and p.pid not in
            {pid for pids in seen.unread.values() for pid in pids}]  # fmt: skip
    if walk and gone:
        yield Skip(what, f"{processes(len(gone))} ended before that was looked at")


def _group(seen: Observation, target_is_group: bool) -> Iterator[Skip]:
    group = seen.group
    if not group.cpu_readable:
        why = "cpu.stat of its control group is not there"
        yield Skip("CPU throttling", why, _other_hierarchy(target_is_group))
    if not group.memory_readable:
        yield Skip(
            "limits hit and reclaim of its control group",
            "memory.stat of its control group is not there",
            _other_hierarchy(target_is_group),
        )
    if not group.pressure:
        why = "stalls are counted by version 2 groups with PSI, and none shows here"
        told = "" if seen.host.pressure else "; the host shows none either"
        yield Skip("stalls of its control group", why + told, "boot with psi=1")


def _other_hierarchy(target_is_group: bool) -> str:
    if target_is_group:
        return "its processes are in several groups of that controller (version 1): give --pid"
    return "in a container: mount the host's control groups read-only"


def _host(seen: Observation) -> Iterator[Skip]:
    if seen.host.shootdowns is None:
        yield Skip(
            "TLB interrupts",
            "/proc/interrupts has no TLB row: masked, or a processor that needs none (arm64)",
        )
    if seen.bandwidth is None:
        yield Skip(
            "memory bandwidth",
            "resctrl is not mounted, or no group of it holds all threads of the target",
            "`host` says whether this host has it, and the command",
        )
    if any(seen.host.mthp_there.values()):
        yield Skip(
            "pages between small and huge (mTHP)",
            "the kernel counts them for the host only; this host has some",
        )


def _processes(seen: Observation) -> Iterator[Skip]:
    if seen.waiting is None:
        unknown = [process for process in seen.processes if process.waiting is None]
        why = f"schedstat of {processes(len(unknown))} was not read, or has zeros only: a kernel"
        yield Skip("time waiting for a CPU", why + " without CONFIG_SCHED_INFO has them")
    unseen = sum(process.threads_unseen for process in seen.processes)
    if unseen:
        yield Skip(
            "threads",
            f"up to {unseen} were not looked at: {MOST_THREADS} are, in each of the"
            f" {MOST_PROCESSES} busiest processes",
        )
    ended = [process for process in seen.processes if process.ended]
    if ended:
        why = "what they did after the last look at them is in no figure"
        yield Skip(f"{processes(len(ended))} that ended", why)
    yield from _short_lived(seen, ended)


def _short_lived(seen: Observation, ended: list[ProcessFigures]) -> Iterator[Skip]:
    """What accounts of CPU time hold that no process seen explains."""
    what, way = "processes too short-lived to be seen", "a shorter --interval"
    used = seen.group.cpus_used
    whole = seen.target.startswith("control group")
    if whole and used is not None and used > 1.25 * seen.cpus_used + LEAST_CPUS:
        told = f"the control group used {used:.2g} CPUs, those seen {seen.cpus_used:.2g}"
        yield Skip(what, told, way)
        return
    waited = sum(process.children_cpus for process in seen.processes)
    missing = waited - sum(process.cpus_used for process in ended)
    if missing > LEAST_CPUS:
        told = f"children that ended in the window had used up to {missing:.2g} CPUs over it"
        yield Skip(what, told, way if whole else f"--children, and {way}")


LEAST_CPUS = 0.05
"""Used by processes that nobody saw, to be worth a line."""
