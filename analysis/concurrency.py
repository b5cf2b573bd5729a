"""How many threads move most bytes a second, and where more stop helping."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.measured import (
    ENOUGH,
    MeasuredCurve,
    Saturation,
    fit_curve,
    measured_curves,
    saturation,
    why_unfitted,
)
from analysis.paired import middle
from analysis.rows import Row


@dataclass(frozen=True)
class Concurrency:
    """Number of threads that moved most bytes a second."""

    label: str
    size: int
    pages: str
    threads: int
    gbps: float
    enough: int
    """Fewest threads that reached 95 % of it."""
    tried: tuple[int, ...]
    saturation: Saturation | None
    """By a fit over the threads of one memory node."""
    unfitted: str
    """Why there is no fit, or no plateau in it."""


def best_concurrency(rows: Sequence[Row]) -> list[Concurrency]:
    """Best concurrency of every kernel alone, by size and page policy."""
    curves = measured_curves(rows, "bandwidth")
    different = {(c.label, c.size, c.pages, c.variant) for c in curves}
    variants = Counter(key[:3] for key in different)
    found = []
    for curve in sorted(curves, key=lambda c: (c.label, c.size, c.pages != "base", c.pages)):
        points = dict(zip(curve.x, curve.y, strict=True))
        points |= {point.x: middle(point.samples) for point in curve.outside}
        threads, most = curve.best
        enough = min(x for x, y in points.items() if y >= ENOUGH * most)
        several = variants[curve.label, curve.size, curve.pages] > 1
        limit, unfitted = _saturation(curve)
        found.append(
            Concurrency(
                f"{curve.label}/{curve.variant}" if several else curve.label,
                curve.size,
                curve.pages,
                int(threads),
                most,
                int(enough),
                tuple(int(x) for x in sorted(points)),
                limit,
                unfitted,
            )
        )
    return found


def _saturation(curve: MeasuredCurve) -> tuple[Saturation | None, str]:
    if len(curve.x) < 2:
        return None, "one thread count on one memory node: measured best only"
    choice = fit_curve(curve)
    if choice.best is None:
        return None, why_unfitted(curve, choice)
    limit = saturation(choice)
    name = choice.best.model.NAME
    return limit, "" if limit else f"no plateau in sight by {name}"
