"""A knee with a rounded corner of adjustable sharpness."""

from collections.abc import Sequence

import numpy as np

from analysis.intervals import Floats
from analysis.model import Param, Scale, columns

NAME = "power_min"
SUBJECT = "bandwidth"
SUMMARY = "((n b1)^-p + bs^-p)^(-1/p)"
WHEN = (
    "saturation is rounded; an empirical shape between the hyperbola (p = 1) and the knee (p -> ∞)"
)
SOURCE = "the p-norm as a smooth minimum; empirical"
SCALE: Scale = "linear"
PARAMS = (
    Param("b1", "y/x", "bandwidth of one thread"),
    Param("bs", "y", "saturated bandwidth"),
    # At 200 the curve is the knee to 0.4 % at the corner and exactly elsewhere.
    Param("p", "", "sharpness of the corner", 0.2, 200.0),
)


def f(x: Floats, b1: Floats, bs: Floats, p: Floats) -> Floats:
    """Bandwidth of x threads."""
    return np.exp(_log(x, b1, bs, p)[0])


def jacobian(x: Floats, b1: Floats, bs: Floats, p: Floats) -> Floats:
    """Differentiate by b1, bs, p."""
    log_y, linear, limit, share = _log(x, b1, bs, p)
    y = np.exp(log_y)
    return columns(
        y * share / b1,
        y * (1 - share) / bs,
        y * (share * linear + (1 - share) * limit - log_y) / p,
    )


def guess(x: Floats, y: Floats) -> Sequence[tuple[float, ...]]:
    """Start at several sharpnesses: blunt starts do not find sharp corners."""
    b1, bs = float(np.max(y / x)), float(y.max())
    return [(b1, bs, p) for p in (1.5, 3.0, 6.0, 15.0)]


def _log(x: Floats, b1: Floats, bs: Floats, p: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return log y, log of both limits, and the weight of the first; in logs nothing overflows."""
    linear, limit = np.log(x * b1), np.log(bs)
    total = np.logaddexp(-p * linear, -p * limit)
    return -total / p, linear, limit, np.exp(-p * linear - total)
