"""CPUs of its own for the actor that matters most: what the remedy ``apart`` computes."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from bench.mix import Mix
from bench.place import UNPINNED, Placement
from bench.sysfs import format_cpulist
from bench.topology import Cpu, Topology, pin_order

# From the widest separation to the least one.
_LEVELS: tuple[tuple[str, Callable[[Cpu], int | None]], ...] = (
    ("last-level caches", lambda cpu: cpu.llc),
    ("cores", lambda cpu: cpu.core),
    ("CPUs", lambda cpu: cpu.id),
)


def split(
    mix: Mix, firsts: Sequence[int], topology: Topology, allowed: Collection[int]
) -> tuple[str, tuple[int, ...], tuple[int, ...]] | None:
    """Level, CPUs of the first actors and CPUs of the others; None where there is one CPU only."""
    order = pin_order(topology, allowed)
    own = sum(mix.actors[i].threads for i in firsts)
    others = sum(actor.threads for actor in mix.actors) - own
    for level, key in _LEVELS:
        groups: dict[object, list[int]] = {}
        for cpu in order:
            groups.setdefault(key(topology.by_id[cpu]), []).append(cpu)
        if len(groups) < 2 or None in groups:
            continue
        taken: list[int] = []
        domains = list(groups.values())
        while domains and len(taken) < own:
            taken += domains.pop(0)
        rest = [cpu for domain in domains for cpu in domain]
        # The last level may make the others share CPUs: there is no other way to set one free.
        if len(taken) >= own and (len(rest) >= others or (level == "CPUs" and rest)):
            return level, tuple(taken), tuple(rest)
    return None


def already_apart(mix: Mix, firsts: Sequence[int], placement: Placement, topology: Topology) -> str:
    """Widest level at which the first actors are by themselves; empty where they share CPUs."""
    own = {cpu for i in firsts for cpu in placement.cpus[i]}
    others = {cpu for i, cpus in enumerate(placement.cpus) if i not in firsts for cpu in cpus}
    if UNPINNED in own | others:
        return ""
    for level, key in _LEVELS:
        mine: set[object] = {key(topology.by_id[cpu]) for cpu in own}
        theirs: set[object] = {key(topology.by_id[cpu]) for cpu in others}
        if None not in mine | theirs and not mine & theirs:
            return level
    return ""


def pinned(mix: Mix, firsts: Sequence[int], own: Sequence[int], rest: Sequence[int]) -> Mix:
    """Mix whose actors keep to these CPUs."""
    actors = tuple(
        replace(actor, pin="cpus:" + format_cpulist(own if i in firsts else rest))
        for i, actor in enumerate(mix.actors)
    )
    return replace(mix, actors=actors)


def rank(level: str) -> int:
    """Place of a level among all, the widest first; after all of them where there is none."""
    names = [name for name, _ in _LEVELS]
    return names.index(level) if level in names else len(names)
