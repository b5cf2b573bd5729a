"""Fitting one model to one measured curve."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from analysis import model as contract
from analysis.fitted import Fit, pushed
from analysis.intervals import Floats, finite
from analysis.model import Curve, Scale
from analysis.solve import Problem, solve
from analysis.uncertainty import Centre

__all__ = ["LEAST_POINTS", "Fit", "TooFewPointsError", "fit", "measured_best"]

# With fewer, a curve with three parameters follows any data and says nothing.
LEAST_POINTS = 6
# Kinked models have many valleys; the best few hold every answer seen on published curves.
VALLEYS = 4


class TooFewPointsError(ValueError):
    """The data hold too few points for the model; the measured best is all there is to say."""

    def __init__(self, message: str, best_x: float, best_y: float) -> None:
        super().__init__(f"{message}: measured best only")
        self.best_x = best_x
        self.best_y = best_y


def fit(
    model: Curve,
    x: ArrayLike,
    y: ArrayLike | Sequence[ArrayLike],
    *,
    scale: Scale | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    centre: Centre = "median",
) -> Fit:
    """Fit a model by least squares from several starts.

    Parameters
    ----------
    model : Curve
        From `analysis.models`.
    x : array_like, shape (n,)
    y : array_like, shape (n,), or n arrays of samples
        With samples the centre of each is fitted, and `Fit.bootstrap` resamples them.
    scale : {"linear", "log"}, optional
        How errors are compared; the model's own choice unless given.
    bounds : mapping of parameter name to (low, high), optional
        In place of the model's.
    centre : {"median", "mean"}
        Of samples.

    Raises
    ------
    TooFewPointsError
        Fewer than six different x, or fewer than parameters + 2; a ValueError that holds the
        measured best.
    ValueError
        Unequal lengths, values that are not finite, or not over 0 for the log scale; a bound for
        an unknown parameter.
    """
    at = finite("x", x)
    data, groups = _centres(y, centre)
    if at.size != data.size:
        raise ValueError(f"x and y need equal lengths, not {at.size} and {data.size}")
    used = model.SCALE if scale is None else scale
    least_y = min(float(values.min()) for values in groups or (data,))
    if used == "log" and least_y <= 0:
        raise ValueError(f"y holds {least_y:g}: the log scale needs values over 0")
    k = len(model.PARAMS)
    needed = max(LEAST_POINTS, k + 2)
    if np.unique(at).size < needed or at.size < needed:
        raise TooFewPointsError(
            f"too few points ({np.unique(at).size}, under {needed}) for {model.NAME}",
            *measured_best(model, at, data),
        )
    low, high = _bounds(model, bounds or {})
    problem = Problem(model, at, data, used, low, high)
    found, rss = solve(problem, np.array(model.guess(at, data), dtype=np.float64))
    if not np.isfinite(rss).any():
        raise ValueError(f"{model.NAME} has no finite value at any start for these data")
    valleys = _distinct(found[np.argsort(rss)])[:VALLEYS]
    values, least = _polish(problem, valleys[0], float(rss.min()))
    return Fit(problem, values, least, valleys, groups, centre)


def measured_best(model: Curve, x: Floats, y: Floats) -> tuple[float, float]:
    """X and y of the best point: the most of a rate, the least of a time."""
    rate = model.SUBJECT in ("bandwidth", "throughput")
    best = int(np.argmax(y) if rate else np.argmin(y))
    return float(x[best]), float(y[best])


def _distinct(rows: Floats) -> Floats:
    """Rows that differ from all before them by more than rounding."""
    kept: list[Floats] = []
    for row in rows:
        if not any(np.allclose(row, other, rtol=1e-4, atol=0) for other in kept):
            kept.append(row)
    return np.array(kept)


def _polish(problem: Problem, values: Floats, rss: float) -> tuple[Floats, float]:
    """Let scipy's trust region solver improve the parameters that are not at a bound."""
    free = ~pushed(problem, values)
    if not free.any():
        return values, rss

    def whole(part: Floats) -> Floats:
        full = values.copy()
        full[free] = part
        return full[np.newaxis]

    def errors(part: Floats) -> Any:  # noqa: ANN401 - the solver's type
        return problem.values(whole(part))[0] - problem.target

    def slopes(part: Floats) -> Any:  # noqa: ANN401 - the solver's type
        return problem.slopes(whole(part))[0][:, free]

    inside = (problem.low[free], problem.high[free])
    start = values[free]
    if np.any(start <= inside[0]) or np.any(start >= inside[1]):
        return values, rss
    result = optimize.least_squares(
        errors,
        start,
        jac=slopes,
        bounds=inside,
        x_scale=np.maximum(np.abs(start), 1e-12),
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
        max_nfev=50,
    )
    better = float(2 * result.cost)
    return (whole(result.x)[0], better) if better < rss else (values, rss)


def _centres(
    y: ArrayLike | Sequence[ArrayLike], centre: Centre
) -> tuple[Floats, tuple[Floats, ...] | None]:
    rows: list[Any] = list(y)  # type: ignore[arg-type]
    if not rows or np.ndim(rows[0]) == 0:
        return finite("y", rows), None
    groups = tuple(finite(f"y[{i}]", row) for i, row in enumerate(rows))
    middle = np.median if centre == "median" else np.mean
    return np.array([float(middle(g)) for g in groups]), groups


def _bounds(model: Curve, changed: Mapping[str, tuple[float, float]]) -> tuple[Floats, Floats]:
    unknown = set(changed) - set(contract.names(model))
    if unknown:
        raise ValueError(f"{model.NAME} has no parameter {', '.join(sorted(unknown))} to bound")
    pairs = [changed.get(p.name, (p.low, p.high)) for p in model.PARAMS]
    low, high = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    if np.any(low >= high):
        raise ValueError("every lower bound must be under its upper one")
    return low, high
