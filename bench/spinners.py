"""A mix without its memory: every kernel replaced by ``spin`` of equal time.

A remedy that also helps there cannot be about memory. How much a CPU computes in a time is measured
once a run and named: a process that measured it anew would do other work than its neighbours.
"""

from collections.abc import Sequence
from dataclasses import replace

from bench.mix import Actor, Mix
from bench.registry import Registry

KERNEL = "spin"
STEP_US = 50
"""As a step of other kernels: courtesy is shown between steps."""
MOST_STEPS = 1_000_000


def plain(registry: Registry) -> Actor:
    """One thread that leaves memory alone, and heats its core all the same.

    Its operations a second are the ``rate`` of the others.
    """
    kernel = registry.kernels()[KERNEL]
    return Actor(KERNEL, kernel.variants[0].name, next(iter(registry.policies())), 1, 0)


def spinner(actor: Actor, pass_s: float, registry: Registry, rate: float = 0.0) -> Actor:
    """Actor that computes in registers for ``pass_s`` a pass, and is the same in all else.

    ``rate``: iterations a second; 0: each process measures how many it needs.
    """
    step_s = max(STEP_US * 1e-6, pass_s / MOST_STEPS)
    steps = max(1, round(pass_s / step_s))
    if rate:
        step = ("iterations", max(1, round(pass_s * rate / steps)))
    else:
        step = ("step_us", max(1, round(pass_s * 1e6 / steps)))
    kernel = registry.kernels()[actor.kernel]
    return registry.canonical(
        replace(
            actor,
            kernel=KERNEL,
            variant=registry.kernels()[KERNEL].variants[0].name,
            policy=next(iter(registry.policies())),
            size=0,
            params=(step, ("steps", steps)),
            pace=0.0,
            # Threads of a team wait for each other at the end of a pass.
            joined=actor.joined or kernel.sharing == "team",
            aligned=False,
        )
    )


def spinning(
    treated: Mix, baseline: Mix, pass_s: Sequence[float], rate: float, registry: Registry
) -> Mix:
    """A treated mix with spinners that take as long as the baseline's passes do.

    ``pass_s`` are the seconds each actor of the baseline is busy in a pass. Fewer threads than in
    the baseline do the same pass, and take longer for it.
    """
    actors = tuple(
        spinner(actor, seconds * before.threads / actor.threads, registry, rate)
        for actor, before, seconds in zip(treated.actors, baseline.actors, pass_s, strict=True)
    )
    return replace(treated, actors=actors)
