"""Speeds of phases that run side by side: the one place where CPUs and the interface are shared.

A phase alone has speed 1. Beside others it has the smaller of its part of a CPU's time and what
traffic it gets over the traffic it has alone. The fluid model of a mix and the simulation of a
pipeline both step by these.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.models.sharing import Group, shares


@dataclass(frozen=True)
class Alone:
    """What an actor does with the host to itself; bandwidths in one unit for all actors."""

    pass_s: float
    """Seconds of one pass by the actor's threads, rests and waits left out."""
    b1: float = 0.0
    """Traffic of one thread; 0: it touches no memory."""
    bs: float = 0.0
    """Traffic at saturation."""
    most: float = math.inf
    """That all its threads ever moved together, where something else than the interface (locks,
    latency) held them back."""

    @property
    def has_memory(self) -> bool:
        """Whether it takes part in sharing the interface."""
        return self.b1 > 0 and self.bs > 0

    def traffic(self, threads: float) -> float:
        """Traffic of so many threads with the host to themselves."""
        return min(threads * self.b1, self.bs, max(self.b1, self.most))


@dataclass(frozen=True)
class Load:
    """Equal phases that ask for the interface."""

    alone: Alone
    asking: float
    """Threads, those with a part of a CPU counted as that part: the law is linear in threads."""
    undisturbed: float
    """Traffic they would have if nobody else were there."""


def memory_factors(loads: Sequence[Load]) -> list[float]:
    """Traffic each load gets over what it would have undisturbed."""
    if not loads:
        return []
    got = shares([Group(load.asking, load.alone.b1, load.alone.bs) for load in loads])
    return [float(g) / load.undisturbed for g, load in zip(got, loads, strict=True)]


def memory_use(loads: Sequence[Load]) -> float:
    """Share of the interface that is asked for; at most 1."""
    return min(1.0, sum(load.asking * load.alone.b1 / load.alone.bs for load in loads))


def gives_way(courtesy: str, priority: int, top: int) -> bool:
    """Whether a phase stands still while one of priority ``top`` is active."""
    return courtesy == "pause" and priority < top
