"""Verdicts on the way to memory: bandwidth that is shared, and nodes that are far."""

from bench.observe.figures import Observation
from bench.observe.finding import CANNOT, COULD, UNKNOWN, Finding, share
from bench.observe.known import Known
from bench.units import about

BANDWIDTH, NUMA = "memory bandwidth", "NUMA distance"

LEAST_BANDWIDTH = 1e9
"""Bytes a second: a tenth of what one core can draw, and no memory interface is short by it."""
OTHERS_CPUS = 0.2
"""CPUs at work beside the target: with less there is nobody to share an interface with."""
ONE_THREAD = 1.1
"""CPUs used by a program that runs one thread at a time, and a little beside."""
REMOTE = 0.1
"""Of memory, or of the time on CPUs, that is on another node than most of it."""

_WAYS = ("remedy {scenario}", "corun --dry-run")


def bandwidth(seen: Observation, known: Known) -> Finding:
    """Whether threads could lack memory bandwidth; only resctrl counts it without privileges."""
    resident = sum(process.memory.resident for process in seen.processes)
    moved = [p.moved_per_s for p in seen.processes if p.moved_per_s is not None]
    running = f"{seen.cpus_used:.2g} CPUs used"
    if seen.bandwidth is not None:
        return _counted(seen)
    if resident <= known.small_cache_bytes and moved and sum(moved) < LEAST_BANDWIDTH:
        cache = about(known.small_cache_bytes)
        why = f"{about(resident)} resident fits into a cache of {cache}; {running}"
        return Finding(BANDWIDTH, CANNOT, (why,))
    others = None
    if seen.host.busy_cpus is not None:
        others = max(0.0, seen.host.busy_cpus - seen.cpus_used - seen.cost.share)
    if seen.cpus_used <= ONE_THREAD and others is not None and others < OTHERS_CPUS:
        why = f"{running}, {others:.2g} by anybody else on the host: nobody to share with"
        return Finding(BANDWIDTH, CANNOT, (why,))
    because = [f"{running}" + ("" if others is None else f", {others:.2g} by others on the host")]
    because.append("no counter of bandwidth is readable (resctrl is not mounted, or not supported)")
    if moved and sum(moved) >= LEAST_BANDWIDTH:
        because.append(f"read and write calls move {sum(moved) / 1e9:.2g} GB/s, copies of it apart")
    return Finding(BANDWIDTH, UNKNOWN, tuple(because), _WAYS)


def _counted(seen: Observation) -> Finding:
    assert seen.bandwidth is not None
    found = seen.bandwidth
    told = f"{found.bytes_per_s / 1e9:.3g} GB/s counted by {found.group}"
    told += "" if found.own else ", which counts others too"
    if found.bytes_per_s < LEAST_BANDWIDTH:
        return Finding(BANDWIDTH, CANNOT, (told,))
    if not found.own:
        return Finding(BANDWIDTH, UNKNOWN, (told, f"{seen.cpus_used:.2g} CPUs used"), _WAYS)
    return Finding(BANDWIDTH, COULD, (told, f"{seen.cpus_used:.2g} CPUs used"), _WAYS)


def numa(seen: Observation, known: Known) -> Finding:
    """Whether memory could lie on other nodes than the CPUs that use it."""
    if known.nodes < 2:
        return Finding(NUMA, CANNOT, ("the host shows one memory node",))
    looks: dict[int, int] = {}
    for process in seen.processes:
        for cpu, n in process.on_cpus.items():
            node = known.node_of.get(cpu)
            if node is not None:
                looks[node] = looks.get(node, 0) + n
    memory: dict[int, int] = {}
    for process in seen.processes:
        for node, size in process.memory.nodes.items():
            memory[node] = memory.get(node, 0) + size
    source = "of its mappings"
    if not memory and seen.group.nodes:
        memory, source = dict(seen.group.nodes), "of its control group"
    if not memory or not looks:
        why = "where its memory lies was not read: numa_maps of a large process is costly to read"
        return Finding(NUMA, UNKNOWN, (why,) if looks else ("no thread was seen running",))
    told = f"memory {source}: {_parts(memory)}; running threads: {_parts(looks)}"
    apart = 1 - sum(
        min(memory.get(node, 0) / sum(memory.values()), n / sum(looks.values()))
        for node, n in looks.items()
    )
    spread = 1 - max(memory.values()) / sum(memory.values())
    if max(apart, spread) < REMOTE:
        return Finding(NUMA, CANNOT, (told,))
    return Finding(
        NUMA,
        COULD,
        (told, "which thread uses which memory cannot be seen from outside"),
        ("try --remedies interleave,bind:0 -- {command}",),
    )


def _parts(counts: dict[int, int]) -> str:
    total = sum(counts.values())
    return ", ".join(f"{share(n / total)} on node {node}" for node, n in sorted(counts.items()))
