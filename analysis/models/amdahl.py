"""Amdahl's law: the USL without its coherence term."""

import math
from collections.abc import Sequence

import numpy as np

from analysis.intervals import Floats
from analysis.model import Param, Scale, columns
from analysis.models import usl

NAME = "amdahl"
SUBJECT = "throughput"
SUMMARY = "gamma n / (1 + alpha (n-1))"
WHEN = "throughput that flattens and never falls; nested in usl, so compare them by an F-test"
SOURCE = "G. M. Amdahl, AFIPS 30 (1967) 483-485; equals a closed queue with Z, S: alpha = S/(S+Z)"
SCALE: Scale = "linear"
PARAMS = (usl.PARAMS[0], Param("gamma", "y/x", "throughput of one worker alone"))


def f(x: Floats, alpha: Floats, gamma: Floats) -> Floats:
    """Throughput of x workers."""
    return gamma * x / (1 + alpha * (x - 1))


def jacobian(x: Floats, alpha: Floats, gamma: Floats) -> Floats:
    """Differentiate by alpha, gamma."""
    rate = x / (1 + alpha * (x - 1))
    return columns(-gamma * rate**2 * (x - 1) / x, rate)


def guess(x: Floats, y: Floats) -> Sequence[tuple[float, ...]]:
    """Start as the USL does, without beta."""
    return [(alpha, gamma) for alpha, _, gamma in usl.guess(x, y)] + [(0.1, float(np.max(y / x)))]


def derived(alpha: float, gamma: float) -> dict[str, float]:
    """Limit for unlimited workers, and the optimum where linear growth would reach it."""
    return {
        "limit": gamma / alpha if alpha > 0 else math.inf,
        "optimum_n": 1 / alpha if alpha > 0 else math.inf,
    }
