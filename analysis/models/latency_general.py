"""Latency against bandwidth as one queue whose onset has a free exponent."""

from collections.abc import Sequence

import numpy as np

from analysis.intervals import Floats
from analysis.model import Param, Scale, columns
from analysis.models import latency_mm1

NAME = "latency_general"
SUBJECT = "loaded latency"
SUMMARY = "l0 + c r^p/(1-r), r = x/bmax"
WHEN = "latency that rises earlier or later than one queue does; needs points at low load too"
SOURCE = "latency_mm1 with an exponent; empirical"
SCALE: Scale = "log"
PARAMS = (
    *latency_mm1.PARAMS,
    Param("p", "", "onset: 1 is one queue, less is earlier", 0.05, 20.0),
)


def f(x: Floats, l0: Floats, c: Floats, bmax: Floats, p: Floats) -> Floats:
    """Latency at bandwidth x; NaN at and beyond bmax."""
    load = _load(x, bmax)
    return l0 + c * load**p / (1 - load)


def jacobian(x: Floats, l0: Floats, c: Floats, bmax: Floats, p: Floats) -> Floats:
    """Differentiate by l0, c, bmax, p."""
    load = _load(x, bmax)
    queue = load**p / (1 - load)
    # r^p ln r is 0 without load, which 0 times minus infinity is not.
    log_load = np.log(np.where(load > 0, load, 1.0))
    by_bmax = -c * queue * (p + load / (1 - load)) / bmax
    return columns(1.0, queue, by_bmax, c * queue * log_load)


def guess(x: Floats, y: Floats) -> Sequence[tuple[float, ...]]:
    """Start at early, plain and late onsets of the fitted queue."""
    return [(*start, p) for start in latency_mm1.guess(x, y) for p in (0.4, 1.0, 2.5)]


def _load(x: Floats, bmax: Floats) -> Floats:
    return np.where(x < bmax, x, np.nan) / bmax
