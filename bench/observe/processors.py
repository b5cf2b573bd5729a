"""Verdicts on what looks like slow memory and is not: throttling, reclaim, too few CPUs."""

from collections.abc import Mapping

from bench.observe.figures import Observation
from bench.observe.finding import CANNOT, COULD, MATTERS, UNKNOWN, Finding, rate, share
from bench.observe.known import Known
from bench.units import about, counted

THROTTLING, RECLAIM = "CPU throttling", "reclaim and swap"
OVERSUBSCRIPTION, OTHERS = "more threads than CPUs", "CPUs taken by others"

MAJOR_FAULT_S = 1e-4
"""A page read from a good solid-state disk; slower disks make the same rate matter more."""
ALLOCATING_FAULTS_PER_S = 100.0
"""Below, a program takes so little new memory that others' shortage of it is not its own."""
HALF_A_THREAD = 0.5
"""Runnable threads beyond the CPUs, on average: fewer are chance meetings."""


def throttling(seen: Observation, known: Known) -> Finding:
    """Whether a quota stops the target; the kernel counts it."""
    group = seen.group
    if not group.cpu_readable:
        return Finding(THROTTLING, UNKNOWN, ("no control group of the target shows cpu.stat",))
    worst = max(group.throttled.items(), key=lambda item: item[1]["throttled"], default=None)
    quota = "no CPU quota" if group.quota is None else f"a quota of {group.quota:g} CPUs"
    if worst is None or worst[1]["throttled"] <= 0:
        return Finding(THROTTLING, CANNOT, (f"{quota}, throttled in no period",))
    name, found = worst
    of = max(found["periods"], found["throttled"])
    stopped = found["throttled_s"] / seen.seconds
    told = f"{quota}, stopped in {found['throttled']:.0f} of {counted(int(of), 'period')}"
    told += f" ({found['throttled_s']:.2g} s), counted by {name}"
    if max(found["throttled"] / of, stopped) < MATTERS:
        return Finding(THROTTLING, CANNOT, (told,))
    fewer = max(1, int(group.quota or 1))
    return Finding(
        THROTTLING,
        COULD,
        (told, "raise the quota, or give whole CPUs (cpuset) instead"),
        (f"try --remedies cap:{fewer},threads:{fewer} -- {{command}}",),
    )


def reclaim(seen: Observation, known: Known) -> Finding:
    """Whether memory is short: the target waits for pages to be freed or read back."""
    group, host = seen.group, seen.host
    major = sum(process.major_per_s for process in seen.processes)
    minor = sum(process.minor_per_s for process in seen.processes)
    swapped = sum(process.memory.swapped or 0 for process in seen.processes)
    told = [f"{rate(major)} major faults/s, {about(swapped)} swapped out"]
    stalled = group.pressure.get("memory", {}).get("some") if group.own else None
    own = stalled is not None
    if stalled is None:
        stalled = host.pressure.get("memory", {}).get("some")
    if stalled is not None:
        whose = "of its control group" if own else "on the host"
        told.append(f"tasks {whose} stalled for memory {share(stalled)} of the time")
    events = {k: n for k, n in group.events.items() if n > 0 and k != "low"}
    if events:
        shared = "" if group.own else " (shared with others)"
        limits = ", ".join(f"{k} {n}" for k, n in sorted(events.items()))
        told.append(f"limits hit in its control group{shared}: {limits}")
    refaults = group.memory_per_s.get("workingset_refault_anon", 0.0) if group.own else 0.0
    if refaults > 0:
        told.append(f"{rate(refaults)} pages/s came back that had been swapped out")
    way = "give it more memory, or a smaller working set: no page size helps here"
    if (major + refaults) * MAJOR_FAULT_S >= MATTERS:
        return Finding(RECLAIM, COULD, (*told, way))
    short = bool(events) or (stalled is not None and stalled >= MATTERS)
    if short and own_evidence(group.own, events, stalled if own else None):
        return Finding(RECLAIM, COULD, (*told, way))
    if short and minor >= ALLOCATING_FAULTS_PER_S:
        return Finding(RECLAIM, UNKNOWN, (*told, f"it took {rate(minor)} faults/s meanwhile"))
    if short:
        told.append(f"{rate(minor)} minor faults/s: it asked for too little memory to wait for it")
    return Finding(RECLAIM, CANNOT, tuple(told))


def own_evidence(own_group: bool, events: Mapping[str, int], stalled: float | None) -> bool:
    """Whether what shows a shortage of memory is the target's."""
    return own_group and (bool(events) or (stalled or 0.0) >= MATTERS)


def capacity(seen: Observation) -> int:
    """CPUs that the threads seen running may use."""
    return len({cpu for process in seen.processes for cpu in process.allowed})


def oversubscription(seen: Observation, known: Known) -> Finding:
    """Whether the target's own threads take turns on its CPUs."""
    runnable = sum(process.running for process in seen.processes)
    cpus = capacity(seen)
    told = f"runnable threads: {runnable:.2g} on average, for {counted(cpus, 'CPU')}"
    if not cpus:
        return Finding(OVERSUBSCRIPTION, CANNOT, ("no thread was seen runnable",))
    unseen = sum(process.threads_unseen for process in seen.processes)
    if unseen:
        told += f" ({unseen} threads not looked at)"
    if runnable < cpus + HALF_A_THREAD:
        return Finding(OVERSUBSCRIPTION, UNKNOWN if unseen else CANNOT, (told,))
    if seen.waiting is not None:
        told += f"; {seen.waiting:.2g} of them waiting"
        if seen.waiting < MATTERS * runnable:
            return Finding(OVERSUBSCRIPTION, CANNOT, (told,))
    return Finding(
        OVERSUBSCRIPTION,
        COULD,
        (told,),
        (f"try --remedies cap:{cpus},threads:{cpus} -- {{command}}",),
    )


def others(seen: Observation, known: Known) -> Finding:
    """Whether the target waits for CPUs that somebody else uses."""
    if seen.waiting is None:
        why = "how long its threads wait for a CPU is not known of all (schedstat)"
        return Finding(OTHERS, UNKNOWN, (why,))
    wanted = seen.waiting + seen.cpus_used
    if wanted <= 0:
        return Finding(OTHERS, CANNOT, ("no thread wanted a CPU",))
    told = f"its threads waited {share(seen.waiting / wanted)} of the time they wanted a CPU"
    steal = seen.host.steal or 0.0
    taken = f"; a hypervisor took {share(steal)} of its CPUs' time" if steal > 0 else ""
    # Of an idle program's time the wait may be most, and is still next to nothing.
    little = seen.waiting < MATTERS * max(1.0, wanted)
    if little and steal * min(1.0, wanted) < MATTERS:
        return Finding(OTHERS, CANNOT, (told + taken,))
    if throttling(seen, known).verdict == COULD and steal < MATTERS:
        return Finding(OTHERS, UNKNOWN, (told, "time in which it is throttled may be part of it"))
    if oversubscription(seen, known).verdict == COULD and steal < MATTERS:
        return Finding(OTHERS, UNKNOWN, (told, "its own threads are enough to explain it"))
    busy = seen.host.busy_cpus
    if busy is not None:
        taken += f"; {max(0.0, busy - seen.cpus_used):.2g} CPUs at work for others"
    return Finding(OTHERS, COULD, (told + taken,), ("aa",))
