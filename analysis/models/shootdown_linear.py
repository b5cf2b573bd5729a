"""TLB shootdown cost that grows with every CPU interrupted."""

from collections.abc import Sequence

from analysis.intervals import Floats
from analysis.model import Param, Scale, columns, linear_guess

NAME = "shootdown_linear"
SUBJECT = "shootdown"
SUMMARY = "a + b (n-1)"
WHEN = "time of one unmap against CPUs that run the address space: interrupts sent one by one"
SOURCE = "one inter-processor interrupt and acknowledgement a CPU (x86 without INVLPGB)"
SCALE: Scale = "linear"
PARAMS = (
    Param("a", "y", "cost with one CPU"),
    Param("b", "y/x", "cost of every further CPU"),
)


def f(x: Floats, a: Floats, b: Floats) -> Floats:
    """Cost with x CPUs."""
    return a + b * (x - 1)


def jacobian(x: Floats, a: Floats, b: Floats) -> Floats:
    """Differentiate by a, b."""
    return columns(1.0, x - 1, f(x, a, b))[..., :2]


def guess(x: Floats, y: Floats) -> Sequence[tuple[float, ...]]:
    """Solve: the model is linear."""
    return [tuple(linear_guess([x**0, x - 1], y))]
