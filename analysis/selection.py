"""Which of several models describes a curve: by AICc, beside the leave-one-out error.

AICc punishes parameters hard on short curves: on seven published points it prefers Amdahl's law
although the USL's second term is significant. Sweep ten levels or more; below that look at the
leave-one-out error and `f_test` too, which stand beside it here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.fit import Fit, TooFewPointsError, fit, measured_best
from analysis.model import Curve

if TYPE_CHECKING:
    from pandas import DataFrame

# Models this close in AICc explain the data about equally well.
CLOSE = 2.0


@dataclass(frozen=True)
class FTest:
    """Whether the added parameters of the larger of two nested models earn their place."""

    f: float
    p: float


def f_test(small: Fit, large: Fit) -> FTest:
    """Compare nested fits of the same data: ``small`` is ``large`` with parameters held.

    Not valid where the larger fit has an active bound: p is then too large.

    Raises
    ------
    ValueError
        Different data, or the larger fit has no more parameters or a larger error.
    """
    _check_same_data([small, large])
    added = large.values.size - small.values.size
    if added < 1 or large.rss > small.rss * (1 + 1e-9):
        raise ValueError(f"{small.model.NAME} is not nested in {large.model.NAME}")
    left = large.n - large.values.size
    f = max(small.rss - large.rss, 0.0) / added / (large.rss / left)
    return FTest(f, float(stats.f.sf(f, added, left)))


def compare(fits: Iterable[Fit]) -> "DataFrame":
    """Tabulate fits of the same data, best AICc first.

    Returns
    -------
    DataFrame
        Columns model, n_params, rss, rms_percent, aicc, delta_aicc, loo, not_identifiable,
        at_bound. ``aicc`` is NaN where the points are too few for it.

    Raises
    ------
    ValueError
        No fit, or fits of different data or scales, whose criteria cannot be compared.
    """
    import pandas as pd

    listed = list(fits)
    _check_same_data(listed)
    table = pd.DataFrame(
        {
            "model": [f.model.NAME for f in listed],
            "n_params": [f.values.size for f in listed],
            "rss": [f.rss for f in listed],
            "rms_percent": [f.rms_percent for f in listed],
            "aicc": [np.nan if f.aicc is None else f.aicc for f in listed],
            "loo": [f.loo for f in listed],
            "not_identifiable": [" ".join(f.not_identifiable) for f in listed],
            "at_bound": [" ".join(f.at_bound) for f in listed],
        }
    )
    table.insert(5, "delta_aicc", table["aicc"] - table["aicc"].min())
    return table.sort_values("aicc", ignore_index=True)


@dataclass(frozen=True, eq=False)
class Choice:
    """The model chosen for a curve, or why there is none."""

    best: Fit | None
    fits: tuple[Fit, ...]
    reason: str
    best_x: float
    """Where the best y was measured: the most of a rate, the least of a time."""
    best_y: float

    @property
    def table(self) -> "DataFrame":
        """All fits, see `compare`."""
        return compare(self.fits)

    def __str__(self) -> str:
        measured = f"measured best {self.best_y:.5g} at {self.best_x:g}"
        return f"{self.reason}; {measured}"

    def __repr__(self) -> str:
        return f"<Choice of {len(self.fits)} fits: {self}>"

    def _repr_html_(self) -> str:
        from analysis.page.model import Cell, Text, columns, table
        from analysis.page.notebook import blocks_html

        frame = self.table if self.fits else None
        rows = [] if frame is None else frame.itertuples(index=False)
        cells = [
            [Cell(f"{value:.4g}" if isinstance(value, float) else str(value)) for value in row]
            for row in rows
        ]
        names = () if frame is None else map(str, frame.columns)
        heads = columns(*(name if i in (0, 6, 7) else f"-{name}" for i, name in enumerate(names)))
        return blocks_html([Text(f"{self}."), *table("All fits, best first", heads, cells)])


def choose(candidates: Iterable[Curve], x: ArrayLike, y: ArrayLike | Sequence[ArrayLike]) -> Choice:
    """Fit every candidate and take the best AICc among those the data determine.

    A model with a parameter that is not identifiable yields to a simpler one: its shape is not
    what the data showed. Fewer than six points give no model but the measured best.

    Raises
    ------
    ValueError
        No candidate, or bad data.
    """
    fits: list[Fit] = []
    short: TooFewPointsError | None = None
    for model in candidates:
        try:
            fits.append(fit(model, x, y))
        except TooFewPointsError as error:
            short = error
    if not fits:
        if short is None:
            raise ValueError("nothing to choose from: give at least one model")
        return Choice(None, (), str(short), short.best_x, short.best_y)
    best_x, best_y = measured_best(fits[0].model, fits[0].x, fits[0].y)
    rated = sorted((f for f in fits if f.aicc is not None), key=_aicc)
    if not rated:
        reason = "too few points for AICc: measured best only"
        return Choice(None, tuple(fits), reason, best_x, best_y)
    determined = [f for f in rated if not f.not_identifiable]
    best = (determined or rated)[0]
    return Choice(best, tuple(fits), _reason(best, rated), best_x, best_y)


def _reason(best: Fit, rated: list[Fit]) -> str:
    parts = [f"{best.model.NAME} by AICc"]
    if best.not_identifiable:
        parts.append(f"not identifiable: {', '.join(best.not_identifiable)}")
    for other in rated:
        if other is best:
            continue
        if other.not_identifiable and _aicc(other) < _aicc(best):
            loose = ", ".join(other.not_identifiable)
            parts.append(f"{other.model.NAME} set aside: {loose} not identifiable")
        elif _aicc(other) - _aicc(best) < CLOSE:
            parts.append(f"{other.model.NAME} explains the data about equally well")
        elif other.loo < best.loo and not other.not_identifiable:
            parts.append(f"{other.model.NAME} predicts left-out points better")
    return "; ".join(parts)


def _aicc(f: Fit) -> float:
    return np.inf if f.aicc is None else f.aicc


def _check_same_data(fits: Sequence[Fit]) -> None:
    if not fits:
        raise ValueError("nothing to compare: give at least one fit")
    first = fits[0]
    for other in fits[1:]:
        if other.scale != first.scale:
            raise ValueError("errors in logs and in differences cannot be compared")
        if not (np.array_equal(other.x, first.x) and np.array_equal(other.y, first.y)):
            raise ValueError("fits of different data cannot be compared")
