"""Latency against bandwidth as one queue.

M/M/1 and M/D/1 give the same curve when the service time is free: the factor of two between them
goes into c. A good fit says nothing about which of the two a memory controller is.
"""

from collections.abc import Sequence

import numpy as np

from analysis.intervals import Floats
from analysis.model import Param, Scale, columns, linear_guess

NAME = "latency_mm1"
SUBJECT = "loaded latency"
SUMMARY = "l0 + c r/(1-r), r = x/bmax"
WHEN = "latency of a chase beside traffic; x is the bandwidth measured, not the one asked for"
SOURCE = "L. Kleinrock, Queueing Systems I (1975) ch. 3"
# Latency spans a factor of two or more: fitted as differences, the last points decide alone.
SCALE: Scale = "log"
PARAMS = (
    Param("l0", "y", "latency without traffic"),
    Param("c", "y", "latency of queueing at half load"),
    Param("bmax", "x", "where latency would diverge: an extrapolation, not a peak"),
)


def f(x: Floats, l0: Floats, c: Floats, bmax: Floats) -> Floats:
    """Latency at bandwidth x; NaN at and beyond bmax."""
    return l0 + c * _queue(x, bmax)


def jacobian(x: Floats, l0: Floats, c: Floats, bmax: Floats) -> Floats:
    """Differentiate by l0, c, bmax."""
    queue = _queue(x, bmax)
    return columns(1.0, queue, -c * queue * (1 + queue) / bmax)


def guess(x: Floats, y: Floats) -> Sequence[tuple[float, ...]]:
    """Start with bmax just and far above the highest bandwidth; the rest is linear."""
    starts = []
    for bmax in (1.02 * x.max(), 1.2 * x.max(), 2.0 * x.max()):
        l0, c = linear_guess([np.ones_like(x), _queue(x, bmax)], y, 1 / y)
        starts.append((l0 if l0 > 0 else float(y.min()), max(c, 1e-3 * float(y.min())), bmax))
    return starts


def _queue(x: Floats, bmax: Floats) -> Floats:
    return np.where(x < bmax, x, np.nan) / (bmax - x)
