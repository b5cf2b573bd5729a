"""Bandwidth grows with every thread until the interface is full, then stops."""

from collections.abc import Sequence

import numpy as np

from analysis.intervals import Floats
from analysis.model import Param, Scale, columns

NAME = "knee"
SUBJECT = "bandwidth"
SUMMARY = "min(n b1, bs)"
WHEN = "saturation is abrupt, or there are too few points below it for a softer shape"
SOURCE = "the roofline bound; S. Williams, A. Waterman, D. Patterson, CACM 52 (2009) 65-76"
SCALE: Scale = "linear"
PARAMS = (
    Param("b1", "y/x", "bandwidth of one thread"),
    Param("bs", "y", "saturated bandwidth"),
)


def f(x: Floats, b1: Floats, bs: Floats) -> Floats:
    """Bandwidth of x threads."""
    return np.asarray(np.minimum(x * b1, bs))


def jacobian(x: Floats, b1: Floats, bs: Floats) -> Floats:
    """Differentiate by b1, bs."""
    below = x * b1 < bs
    return columns(np.where(below, x, 0.0), np.where(below, 0.0, 1.0))


def guess(x: Floats, y: Floats) -> Sequence[tuple[float, ...]]:
    """Fit both sides of every possible knee; the best split is the answer or beside it."""
    order = np.argsort(x)
    x, y = x[order], y[order]
    found = []
    for split in range(1, x.size):
        b1 = float(x[:split] @ y[:split] / (x[:split] @ x[:split]))
        bs = float(y[split:].mean())
        found.append((float(np.sum((y - np.minimum(x * b1, bs)) ** 2)), (b1, bs)))
    return [start for _, start in sorted(found)[:3]]
