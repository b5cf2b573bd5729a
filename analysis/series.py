"""What happened along a series of samples: outliers, and a change of level half-way.

Both describe; neither removes anything. A sample is set aside only for what is known about its
run, never for its value.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.intervals import Floats, finite

# Makes the median absolute deviation of normal data estimate its standard deviation.
NORMAL_CONSISTENT = 1 / float(stats.norm.ppf(0.75))


def median_absolute_deviation(x: ArrayLike) -> float:
    """Median of the distances from the median, unscaled."""
    return float(stats.median_abs_deviation(finite("x", x)))


def robust_z(x: ArrayLike) -> Floats:
    """Distance of each value from the median, in standard deviations estimated from the MAD.

    A value beyond about 3.5 is worth a look. Where more than half of the values are equal the
    spread is 0: equal values score 0, every other infinity with its sign.
    """
    values = finite("x", x)
    away = values - np.median(values)
    spread = NORMAL_CONSISTENT * median_absolute_deviation(values)
    if spread > 0:
        return np.asarray(away / spread)
    return np.where(away == 0, 0.0, np.copysign(np.inf, away))


@dataclass(frozen=True)
class ChangePoint:
    """The one split of a series that explains most of its scatter."""

    index: int
    """How many values lie before the change."""
    mean_before: float
    mean_after: float
    rss: float
    """Sum of squares about the two means."""
    rss_without: float
    """Sum of squares about one mean."""
    p: float
    """Share of shuffled series in which the best split explains as much."""


def change_point(
    x: ArrayLike, *, least: int = 3, shuffles: int = 999, seed: int = 0
) -> ChangePoint:
    """Find the split of a series into two levels with the least sum of squares.

    Parameters
    ----------
    x : array_like, shape (n,)
        In time order.
    least : int
        Fewest values on either side.
    shuffles : int
        Random orders that give ``p`` its meaning: the best of many splits always looks good.

    Raises
    ------
    ValueError
        Fewer than ``2 * least`` values.
    """
    values = finite("x", x)
    if values.size < 2 * least:
        raise ValueError(f"{values.size} values have no room for two parts of {least}")
    rng = np.random.default_rng(seed)
    index, explained = _best_split(values[np.newaxis, :], least)
    shuffled = rng.permuted(np.tile(values, (shuffles, 1)), axis=1)
    _, by_chance = _best_split(shuffled, least)
    at = int(index[0])
    total = float(np.sum((values - values.mean()) ** 2))
    return ChangePoint(
        index=at,
        mean_before=float(values[:at].mean()),
        mean_after=float(values[at:].mean()),
        rss=total - float(explained[0]),
        rss_without=total,
        p=(1 + int(np.count_nonzero(by_chance >= explained[0]))) / (1 + shuffles),
    )


def _best_split(rows: Floats, least: int) -> tuple[Floats, Floats]:
    """Index of the best split of each row, and the sum of squares it explains."""
    n = rows.shape[1]
    centred = rows - rows.mean(axis=1, keepdims=True)
    before = np.cumsum(centred, axis=1)[:, :-1]
    k = np.arange(1, n)
    # Both halves of a centred row sum to ±S, so the two means explain S²/k + S²/(n-k).
    explained = before**2 * n / (k * (n - k))
    explained[:, (k < least) | (n - k < least)] = -1.0
    index = np.argmax(explained, axis=1)
    return k[index], explained[np.arange(rows.shape[0]), index]
