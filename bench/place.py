"""Which CPU every thread of a mix runs on, and on which memory node its memory belongs.

Actors of one mix take CPUs of their own as long as there are enough; after that they share, and
the mix is marked, because sharing CPUs is not sharing memory.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from bench import blocks
from bench.errors import HostError, UsageError
from bench.mix import Actor, Mix
from bench.sysfs import format_cpulist, parse_cpulist
from bench.topology import Topology, pin_order

UNPINNED = -1


@dataclass(frozen=True)
class Placement:
    """Where a mix runs."""

    cpus: blocks.Placement
    nodes: blocks.Placement | None
    """Memory node of every thread where the mix spans several, and all of them are known."""
    oversubscribed: tuple[bool, ...]
    """For every actor, whether one of its CPUs has more than one thread of the mix."""


def place(mix: Mix, topology: Topology, allowed: Collection[int]) -> Placement:
    """Give every thread of a mix a CPU out of ``allowed``.

    Raises
    ------
    HostError
        Where a wanted CPU or node is not there, or not allowed.
    """
    load: Counter[int] = Counter()
    taken: dict[int, tuple[int, ...]] = {}
    # Listed CPUs are claimed first, so that actors which leave the choice open keep off them.
    order = sorted(range(len(mix.actors)), key=lambda i: not mix.actors[i].pin.startswith("cpus:"))
    for i in order:
        actor = mix.actors[i]
        taken[i] = _take(actor.threads, _candidates(actor, topology, allowed), load)
        load.update(cpu for cpu in taken[i] if cpu != UNPINNED)
    cpus = tuple(taken[i] for i in range(len(mix.actors)))
    return Placement(cpus, _nodes(cpus, topology), oversubscribed(cpus, len(set(allowed))))


def candidates(pin: str, topology: Topology, allowed: Collection[int]) -> list[int]:
    """CPUs of a pin policy in the order in which threads take them; empty: threads are not pinned.

    ``compact``, ``scatter``, either with ``:NODE``, ``cpus:0-3,8`` or ``none``.
    """
    kind, _, rest = pin.partition(":")
    if kind == "none" and not rest:
        return []
    if kind == "cpus":
        return _listed(rest, topology, allowed)
    if kind in ("compact", "scatter") and (not rest or rest.isdigit()):
        node = int(rest) if rest else None
        return pin_order(topology, allowed, "compact" if kind == "compact" else "scatter", node)
    raise UsageError(
        f"not a pin policy: {pin!r}", "write compact, scatter, compact:NODE, none or cpus:0-3,8"
    )


def _candidates(actor: Actor, topology: Topology, allowed: Collection[int]) -> Sequence[int]:
    return candidates(actor.pin, topology, allowed)


def _listed(text: str, topology: Topology, allowed: Collection[int]) -> list[int]:
    cpus: list[int] = []
    try:
        # Part by part: the order in which CPUs are written is the order of the threads.
        for part in text.split(","):
            cpus.extend(cpu for cpu in parse_cpulist(part) if cpu not in cpus)
    except ValueError:
        raise UsageError(f"not a list of CPUs: {text!r}", "write cpus:0-3,8") from None
    missing = [cpu for cpu in cpus if cpu not in topology.by_id or cpu not in set(allowed)]
    if missing or not cpus:
        raise HostError(
            f"CPUs {format_cpulist(missing)} of pin=cpus:{text} are off or not allowed here",
            f"allowed: {format_cpulist(set(allowed) & set(topology.by_id))}",
        )
    return cpus


def _take(threads: int, order: Sequence[int], load: Counter[int]) -> tuple[int, ...]:
    """Least loaded CPUs first, in pin order among equals."""
    if not order:
        return (UNPINNED,) * threads
    own = {cpu: load[cpu] for cpu in order}
    chosen = []
    for _ in range(threads):
        cpu = min(order, key=own.__getitem__)
        own[cpu] += 1
        chosen.append(cpu)
    return tuple(chosen)


def _nodes(cpus: blocks.Placement, topology: Topology) -> blocks.Placement | None:
    flat = [cpu for actor in cpus for cpu in actor]
    if UNPINNED in flat:
        return None
    nodes = [topology.by_id[cpu].node for cpu in flat]
    if None in nodes or len(set(nodes)) == 1:
        return None
    return tuple(tuple(topology.by_id[cpu].node or 0 for cpu in actor) for actor in cpus)


def oversubscribed(cpus: blocks.Placement, n_allowed: int) -> tuple[bool, ...]:
    """Say of every actor whether it has to share a CPU: pinned to one, or for want of CPUs."""
    load = Counter(cpu for actor in cpus for cpu in actor)
    n_threads = sum(len(actor) for actor in cpus)
    return tuple(
        any(load[cpu] > 1 for cpu in actor if cpu != UNPINNED)
        or (UNPINNED in actor and n_threads > n_allowed)
        for actor in cpus
    )


def nodes_of(cpus: Iterable[int], topology: Topology) -> tuple[int, ...]:
    """Memory nodes of these CPUs, rising; empty where one is not known."""
    nodes = {topology.by_id[cpu].node for cpu in cpus if cpu in topology.by_id}
    return () if None in nodes else tuple(sorted(node for node in nodes if node is not None))
