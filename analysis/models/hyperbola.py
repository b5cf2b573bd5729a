"""Bandwidth that approaches its limit slowly, half of it at h threads."""

from collections.abc import Sequence

from analysis.intervals import Floats
from analysis.model import Param, Scale, columns, linear_guess

NAME = "hyperbola"
SUBJECT = "bandwidth"
SUMMARY = "bmax n / (n + h)"
WHEN = "a reference: real memory saturates faster, so expect another model to win"
SOURCE = "the USL without its second term; NIST StRD Misra1d has the same form"
SCALE: Scale = "linear"
PARAMS = (
    Param("bmax", "y", "limit for many threads"),
    Param("h", "x", "threads that reach half of the limit"),
)


def f(x: Floats, bmax: Floats, h: Floats) -> Floats:
    """Bandwidth of x threads."""
    return bmax * x / (x + h)


def jacobian(x: Floats, bmax: Floats, h: Floats) -> Floats:
    """Differentiate by bmax, h."""
    return columns(x / (x + h), -bmax * x / (x + h) ** 2)


def guess(x: Floats, y: Floats) -> Sequence[tuple[float, ...]]:
    """Fit x/y, which is linear in x, weighted so that errors count as errors of y."""
    intercept, slope = linear_guess([x**0, x], x / y, y**2 / x)
    if slope <= 0:
        return [(float(y.max()), 1.0)]
    return [(1 / slope, max(intercept / slope, 1e-9))]
