"""Variants of a pipeline by what the simulation says they gain, with what that is worth."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from analysis.binding import Binding
from analysis.simulate import Simulated

SAME = 5e-4
"""Gains below are none: rounding, and where bursts fall in the steady state."""


@dataclass(frozen=True)
class Ranked:
    """One variant against the pipeline as it is."""

    name: str
    seconds_per_job: float
    gain: float
    """Of throughput: 0.1 is a tenth more jobs in the same time."""
    binding: Binding
    claim: str
    """``faster``, ``slower``, ``nothing``, or ``no claim``: smaller than the model's own error."""


def rank(base: Simulated, variants: Iterable[tuple[str, Simulated]], error: float) -> list[Ranked]:
    """Order variants by gain, the best first; equal ones as they came.

    Parameters
    ----------
    error : float
        Relative error of the model. A gain that is smaller may as well be none, or the opposite.
    """
    found = []
    for name, result in variants:
        gain = base.seconds_per_job / result.seconds_per_job - 1
        found.append(Ranked(name, result.seconds_per_job, gain, result.binding, claim(gain, error)))
    return sorted(found, key=lambda r: -r.gain if math.isfinite(r.gain) else math.inf)


def claim(gain: float, error: float) -> str:
    """What a gain is worth."""
    if math.isnan(gain):
        return "no claim: too few jobs"
    if abs(gain) < SAME:
        return "nothing"
    # As logarithms, so that a loss and the gain that undoes it are alike.
    if abs(math.log1p(gain)) < math.log1p(error):
        return f"no claim: under {error:.0%}"
    return "faster" if gain > 0 else "slower"
