"""Mixes whose differences say why a victim is slow: contrasts in place of hardware counters.

All in one block, so that every contrast is formed within a round. The reference aggressors do one
thing each, and as much of it as they can.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.mix import Actor, Mix
from bench.mixplan import MixPlanner

WARM_BYTES = 256 << 10
"""A reader of this much never faults, and misses no cache that anybody else uses."""
WARM_STEP = 64 << 10
STREAM_BYTES = 64 << 20
FAULT_BYTES = 4 << 20
LARGE = "thp"


@dataclass(frozen=True)
class Named:
    """One mix, and what the contrasts call it. The victim is its first actor."""

    name: str
    mix: Mix


def mixes(victim: Actor, aggressor: Actor, cache_bytes: int, planner: MixPlanner) -> list[Named]:
    """Every mix that the contrasts need and this build has kernels for, the victim alone first."""
    kernels = planner.registry.kernels()
    base = victim.policy

    def made(kernel: str, size: int, params: Sequence[tuple[str, int | str]] = ()) -> Actor:
        return planner.registry.canonical(
            Actor(kernel, kernels[kernel].best_variant, base, 1, size, tuple(params))
        )

    def beside(first: Actor, second: Actor, process: str = "") -> Mix:
        return Mix((first, replace(second, role="background", process=process)))

    threads = aggressor.threads
    spin = replace(made("spin", 0), threads=threads)
    copy = made("scan", STREAM_BYTES * threads, (("op", "copy"), ("store", "nt")))
    streamer = replace(copy, threads=threads)
    filler = replace(made("scan", cache_bytes, (("op", "read"),)), threads=threads)
    warm = made("scan", WARM_BYTES, (("op", "read"), ("step", WARM_STEP)))
    found = [
        Named("alone", Mix((victim,))),
        Named("alone on large pages", Mix((replace(victim, policy=LARGE),))),
        Named("beside spin", beside(victim, spin)),
        Named("beside a streamer past the caches", beside(victim, streamer)),
        Named("beside a reader that fills the cache", beside(victim, filler)),
        Named("beside it, another process", beside(victim, aggressor, "own")),
        Named("beside it", beside(victim, aggressor)),
        Named("warm reader beside it, another process", beside(warm, aggressor, "own")),
        Named("warm reader beside it", beside(warm, aggressor)),
    ]
    if "fault" in kernels:
        toucher = made("fault", FAULT_BYTES)
        found += [
            Named("first touch beside it, another process", beside(toucher, aggressor, "own")),
            Named("first touch beside it", beside(toucher, aggressor)),
        ]
    unique: dict[Mix, Named] = {}
    for named in found:
        unique.setdefault(named.mix, named)
    return list(unique.values())
