"""A mix without its memory: every kernel replaced by ``spin`` of equal time.

A remedy that also helps there cannot be about memory.
"""

from collections.abc import Sequence
from dataclasses import replace

from bench.mix import Actor, Mix
from bench.registry import Registry

KERNEL = "spin"
STEP_US = 50
"""As a step of other kernels: courtesy is shown between steps."""
MOST_STEPS = 1_000_000


def spinner(actor: Actor, pass_s: float, registry: Registry) -> Actor:
    """Actor that computes in registers for ``pass_s`` a pass, and is the same in all else."""
    total_us = max(1, round(pass_s * 1e6))
    steps = max(1, min(MOST_STEPS, round(total_us / STEP_US)))
    step_us = round(total_us / steps)
    kernel = registry.kernels()[actor.kernel]
    return registry.canonical(
        replace(
            actor,
            kernel=KERNEL,
            variant=registry.kernels()[KERNEL].variants[0].name,
            policy=next(iter(registry.policies())),
            size=0,
            params=(("step_us", step_us), ("steps", steps)),
            pace=0.0,
            # Threads of a team wait for each other at the end of a pass.
            joined=actor.joined or kernel.sharing == "team",
            aligned=False,
        )
    )


def spinning(treated: Mix, baseline: Mix, pass_s: Sequence[float], registry: Registry) -> Mix:
    """A treated mix with spinners that take as long as the baseline's passes do.

    ``pass_s`` are the seconds each actor of the baseline is busy in a pass. Fewer threads than in
    the baseline do the same pass, and take longer for it.
    """
    actors = tuple(
        spinner(actor, seconds * before.threads / actor.threads, registry)
        for actor, before, seconds in zip(treated.actors, baseline.actors, pass_s, strict=True)
    )
    return replace(treated, actors=actors)
