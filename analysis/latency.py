"""What a loaded-latency curve says without any model: measured points and interpolation.

A fitted ``bmax`` is where latency would diverge, beyond every measurement and on published curves
beyond the theoretical peak. These are the numbers to report instead.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.intervals import finite

FACTORS = (1.1, 1.25, 1.5)


@dataclass(frozen=True)
class LatencyLimits:
    """Bandwidth that can be had at a given cost in latency."""

    idle_ns: float
    """At the least load measured."""
    most_gb_per_s: float
    """Highest bandwidth measured, at any latency."""
    gb_per_s_at: dict[float, float]
    """By factor on the idle latency; NaN where the curve never gets there."""


def latency_limits(
    gb_per_s: ArrayLike, latency_ns: ArrayLike, factors: Sequence[float] = FACTORS
) -> LatencyLimits:
    """Interpolate the bandwidth at which latency first exceeds each multiple of the idle one.

    Parameters
    ----------
    gb_per_s, latency_ns : array_like, shape (n,)
        Least load first.
    factors : sequence of float
        Over 1.

    Raises
    ------
    ValueError
        Fewer than two points, unequal lengths, or a factor not over 1.
    """
    bandwidth, latency = finite("gb_per_s", gb_per_s), finite("latency_ns", latency_ns)
    if bandwidth.size != latency.size or bandwidth.size < 2:
        raise ValueError(
            f"two or more points of equal length are needed, not {bandwidth.size}, {latency.size}"
        )
    if min(factors) <= 1:
        raise ValueError("a factor on the idle latency must be over 1")
    idle = float(latency[0])
    at: dict[float, float] = {}
    for factor in factors:
        over = np.flatnonzero(latency >= factor * idle)
        if over.size == 0:
            at[factor] = math.nan
            continue
        i = int(over[0])
        part = (factor * idle - latency[i - 1]) / (latency[i] - latency[i - 1])
        at[factor] = float(bandwidth[i - 1] + part * (bandwidth[i] - bandwidth[i - 1]))
    return LatencyLimits(idle, float(bandwidth.max()), at)
