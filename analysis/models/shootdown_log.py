"""TLB shootdown cost that grows with every doubling of the CPUs."""

from collections.abc import Sequence

import numpy as np

from analysis.intervals import Floats
from analysis.model import Param, Scale, columns, linear_guess

NAME = "shootdown_log"
SUBJECT = "shootdown"
SUMMARY = "a + b log2(n)"
WHEN = "time of one unmap against CPUs where interrupts go out to clusters or by a tree"
SOURCE = "a tree of height log2 n"
SCALE: Scale = "linear"
PARAMS = (
    Param("a", "y", "cost with one CPU"),
    Param("b", "y", "cost of every doubling"),
)


def f(x: Floats, a: Floats, b: Floats) -> Floats:
    """Cost with x CPUs."""
    return a + b * np.log2(x)


def jacobian(x: Floats, a: Floats, b: Floats) -> Floats:
    """Differentiate by a, b."""
    return columns(1.0, np.log2(x), f(x, a, b))[..., :2]


def guess(x: Floats, y: Floats) -> Sequence[tuple[float, ...]]:
    """Solve: the model is linear."""
    return [tuple(linear_guess([x**0, np.log2(x)], y))]
