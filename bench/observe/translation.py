"""Verdicts on what depends on pages: TLB reach, shootdowns, first-touch faults."""

from bench.observe.figures import Observation, ProcessFigures, busy
from bench.observe.finding import (
    CANNOT,
    COULD,
    IDLE_CPUS,
    MATTERS,
    PROBE,
    UNKNOWN,
    Finding,
    rate,
    share,
    strongest,
)
from bench.observe.hostfiles import HostFigures
from bench.observe.known import Known
from bench.sizes import BEYOND
from bench.units import about, counted

TLB, SHOOTDOWNS, FAULTS = "TLB reach", "TLB shootdowns", "first-touch faults"

ON_HUGE = 0.95
"""Of resident memory on huge pages: the rest is too little for a change of page size to show."""
CHURN_FAULTS_PER_S = 1000.0
"""Faults whose pages did not stay. Page tables, copies after a fork and signal stacks make dozens;
a program that releases and touches again makes thousands."""
CHURN_BYTES_PER_S = 16e6
"""Resident memory seen to fall between looks: a page of this rate is as many as those faults."""
SHOOTDOWN_WORST_S = 20e-6
"""Where it was not measured: an interrupt between processors costs 1 to 3 us on bare metal, 14 us
were seen in a virtual machine."""
FAULT_WORST_S = 15e-6
"""First touch of a base page whose memory a hypervisor must bring first; 13.5 us were seen."""


# ---- TLB ----------------------------------------------------------------------------------------


def tlb(seen: Observation, known: Known) -> Finding:
    """Whether address translation could cost time: memory on small pages beyond the TLB's reach."""
    processes = busy(seen.processes, IDLE_CPUS)
    if not processes:
        return Finding(TLB, UNKNOWN, ("its CPU time is that of many short processes",))
    return strongest([_tlb(process, seen.host, known) for process in processes])


def _tlb(process: ProcessFigures, host: HostFigures, known: Known) -> Finding:
    memory = process.memory
    who = f"{process.name} ({process.pid})"
    reach = f"the TLB reaches {about(known.reach_bytes)} on small pages ({_source(known)})"
    # Pages are looked at once or twice: there may have been more of them between.
    unseen = max(0, memory.resident_max - memory.resident)
    most = memory.resident + unseen
    if most <= known.reach_bytes:
        return Finding(TLB, CANNOT, (f"{who}: {about(most)} resident; {reach}",))
    if memory.huge is None:
        return Finding(
            TLB,
            UNKNOWN,
            (
                f"{who}: {about(memory.resident)} resident, not known on which pages; {reach}",
                "how much of it is in use at a time cannot be seen from outside",
            ),
        )
    told = f"{who}: {share(memory.huge / memory.resident)} of {about(memory.resident)} resident"
    told += " is on huge pages"
    if memory.small <= known.reach_bytes or memory.huge >= ON_HUGE * memory.resident:
        if memory.small + unseen > known.reach_bytes and unseen > (1 - ON_HUGE) * memory.resident:
            why = f"{about(most)} were resident at another time, not known on which pages"
            return Finding(TLB, UNKNOWN, (f"{told}; {reach}", why))
        return Finding(TLB, CANNOT, (f"{told}, {about(memory.small)} on small ones; {reach}",))
    middle = middle_sizes(host)
    if memory.small < BEYOND * known.reach_bytes:
        why = f"{about(memory.small)} on small pages is less than {BEYOND} times that"
        return Finding(TLB, UNKNOWN, (f"{told}; {reach}", why, *_ways(known)))
    because = [f"{told}, {about(memory.small)} on small ones; {reach}"]
    because += obstacles(process, host, known)
    if middle:
        because.append(middle)
    because.append("how much of it is in use at a time cannot be seen from outside")
    return Finding(
        TLB,
        COULD,
        tuple(because),
        ("try --remedies thp,hugetlb-malloc -- {command}", "remedy {scenario} --pages thp,2m"),
    )


def _source(known: Known) -> str:
    return "measured" if known.reach_measured else f"assumed: `{PROBE}` measures it"


def _ways(known: Known) -> tuple[str, ...]:
    return () if known.reach_measured else (f"`{PROBE}` measures the reach",)


def middle_sizes(host: HostFigures) -> str:
    """What is known of pages between small and huge, which no file of a process shows."""
    there = {size: n for size, n in host.mthp_there.items() if n}
    taken = {size: n for size, n in host.mthp_taken.items() if n > 0}
    if not (there or taken):
        return ""
    named = ", ".join(about(size) for size in sorted(there or taken))
    return f"part of it may be on pages of {named}: there are such on this host, not told whose"


def obstacles(process: ProcessFigures, host: HostFigures, known: Known) -> list[str]:
    """Why memory is on small pages, as far as it can be told."""
    if process.thp_allowed is False:
        return ["transparent huge pages are switched off for it (prctl)"]
    if known.thp is None:
        return ["this kernel has no transparent huge pages"]
    if known.thp == "never":
        return ["the host's setting for transparent huge pages is `never`"]
    words = {
        "silent": "did not ask for huge pages, and the host's setting is `madvise`"
        if known.thp == "madvise"
        else "may have huge pages and has none yet",
        "refused": "asked for small pages (MADV_NOHUGEPAGE)",
        "short": f"is in mappings that no page of {about(known.huge_bytes)} fits into",
        "advised": "asked for huge pages and has none",
    }
    hints = process.memory.hints
    found = [f"{about(hints[key])} {words[key]}" for key in words if hints.get(key, 0) >= 1 << 20]
    refused = host.counts.get("huge_refused", 0)
    if refused > 0:
        found.append(f"{rate(refused)} huge pages could not be had on the host in the window")
    return found


# ---- shootdowns ---------------------------------------------------------------------------------


def churn(process: ProcessFigures, host: HostFigures) -> str:
    """What shows that memory is given back; empty where nothing does."""
    hints = host.counts.get("numa_hints", 0) / host.seconds
    untraced = process.untraced_per_s - hints
    if untraced >= CHURN_FAULTS_PER_S:
        return f"pages of {rate(untraced)} faults/s did not stay resident"
    if process.released_per_s >= CHURN_BYTES_PER_S:
        return f"at least {process.released_per_s / 1e6:.3g} MB/s of resident memory given back"
    return ""


def shootdowns(seen: Observation, known: Known) -> Finding:
    """Whether interrupts that take translations from other CPUs could cost time."""
    processes = busy(seen.processes, IDLE_CPUS)
    if not processes:
        processes = list(seen.processes)
    return strongest([_shootdowns(process, seen, known) for process in processes])


def _shootdowns(process: ProcessFigures, seen: Observation, known: Known) -> Finding:
    who, host = f"{process.name} ({process.pid})", seen.host
    if process.threads < 2:
        return Finding(
            SHOOTDOWNS, CANNOT, (f"{who} has one thread: no other CPU holds its translations",)
        )
    if len(process.allowed) == 1 or known.cpus == 1:
        return Finding(SHOOTDOWNS, CANNOT, (f"all threads of {who} run on one CPU",))
    gave = churn(process, host)
    told = gave or "nothing that sampling can see was given back"
    if host.shootdowns is None:
        why = "this host does not count TLB interrupts"
        return Finding(SHOOTDOWNS, UNKNOWN, (f"{who}: {told}", why))
    other = "" if host.elsewhere is None else f", each other CPU {rate(host.elsewhere)}/s"
    row = f"its CPUs received {rate(host.shootdowns)} TLB interrupts/s{other} (host-wide count)"
    cost = known.shootdown_s if known.shootdown_s is not None else SHOOTDOWN_WORST_S
    at_most = host.shootdowns * cost / max(seen.cpus_used, IDLE_CPUS)
    kind = "measured" if known.shootdown_s is not None else f"assumed at most; `{PROBE}` measures"
    bound = f"at {cost * 1e6:.3g} us each ({kind}): up to {share(at_most)} of its CPU time"
    if known.invlpgb:
        bound += "; this CPU can flush without interrupts, so the count may be too low"
    elif at_most < MATTERS:
        return Finding(SHOOTDOWNS, CANNOT, (f"{who}: {row}, {bound}",))
    if not gave:
        return Finding(SHOOTDOWNS, UNKNOWN, (f"{who}: {row}, {bound}", told))
    return Finding(
        SHOOTDOWNS,
        COULD,
        (f"{who}, {counted(process.threads, 'thread')}: {gave}", f"{row}, {bound}"),
        ("try --remedies keep,thp -- {command}", "remedy {scenario} --remedies pool,thp"),
    )


# ---- first touch --------------------------------------------------------------------------------


def faults(seen: Observation, known: Known) -> Finding:
    """Whether page faults could cost time; they are system time, which bounds them."""
    used = seen.cpus_used
    minor = sum(process.minor_per_s for process in seen.processes)
    system = sum(p.cpus_used * (p.system_share or 0) for p in seen.processes) / used
    told = f"{rate(minor)} minor faults/s"
    kernel = f"{share(system)} of its CPU time is in the kernel"
    huge = max(0.0, seen.host.counts.get("huge_taken", 0)) / seen.host.seconds
    if system < MATTERS:
        return Finding(FAULTS, CANNOT, (f"{told}; {kernel}, faults with it",))
    # Each may have brought a huge page; as many as the whole host took, at most.
    pages = known.huge_bytes // known.page_bytes
    at_most = (minor + min(minor, huge) * pages) * FAULT_WORST_S / used
    if at_most < MATTERS:
        bound = f"at {FAULT_WORST_S * 1e6:.0f} us a small page: {share(at_most)} of its CPU time"
        return Finding(FAULTS, CANNOT, (f"{told}, {bound}",))
    likely = minor * known.fault_s / used
    kind = "measured" if known.fault_measured else f"assumed; `{PROBE}` measures it"
    cost = f"at {known.fault_s * 1e6:.2g} us each ({kind}): {share(min(likely, system))} of its"
    because = (f"{told}, {cost} CPU time; {kernel}", *_brought(seen, minor))
    if likely < MATTERS:
        return Finding(FAULTS, UNKNOWN, because)
    return Finding(
        FAULTS,
        COULD,
        because,
        ("try --remedies keep,thp -- {command}", "remedy {scenario} --remedies pool,thp"),
    )


def _brought(seen: Observation, minor: float) -> list[str]:
    untraced = sum(process.untraced_per_s for process in seen.processes)
    lines = []
    if untraced >= CHURN_FAULTS_PER_S:
        lines.append(f"pages of {share(min(1.0, untraced / minor))} of them did not stay resident")
    huge = min(minor, seen.host.counts.get("huge_taken", 0) / seen.host.seconds)
    if huge >= 1:
        lines.append(
            f"up to {rate(huge)}/s brought a huge page, which costs more (host-wide count)"
        )
    hints = seen.host.counts.get("numa_hints", 0) / seen.host.seconds
    if hints >= CHURN_FAULTS_PER_S:
        lines.append(f"up to {rate(hints)}/s are NUMA hints (host-wide count), no first touches")
    return lines


SMALL_HOST_PAGES = (
    "a hypervisor backs large pages with small ones here: larger pages shorten the walk, no more"
)
