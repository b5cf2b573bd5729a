"""Which phases ran together: concurrency over time, and the overlap of each pair of phases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.intervals import Floats
from analysis.timeline.spans import Spans

if TYPE_CHECKING:
    from pandas import DataFrame

# Spans of a phase taken at a time: what is worked out of them grows with the number of phases.
SLICE = 1 << 15


class Level:
    """How many spans of a phase were open, as a function of time; exact."""

    def __init__(self, spans: Spans) -> None:
        self._starts = spans.start
        self._ends = np.sort(spans.end)
        # The integral is straight between boundaries, so its values there are all of it.
        self._times = np.sort(np.concatenate([self._starts, self._ends]), kind="stable")
        since = self.at(self._times[:-1]) * np.diff(self._times)
        self._seconds = np.concatenate([[0.0], np.cumsum(since)])

    def at(self, t: ArrayLike) -> NDArray[np.int64]:
        """Spans open at each time; one that begins there counts, one that ends there does not."""
        times = np.asarray(t, dtype=np.float64)
        begun = np.searchsorted(self._starts, times, side="right")
        ended = np.searchsorted(self._ends, times, side="right")
        return np.asarray(begun - ended)

    def integral(self, t: ArrayLike) -> Floats:
        """Seconds of all spans up to each time."""
        times = np.asarray(t, dtype=np.float64)
        return np.asarray(np.interp(times, self._times, self._seconds))

    def mean(self, first: ArrayLike, last: ArrayLike) -> Floats:
        """Mean number open between times; NaN over no time."""
        a, b = np.asarray(first, dtype=np.float64), np.asarray(last, dtype=np.float64)
        area = self.integral(b) - self.integral(a)
        width = b - a
        out = np.full(width.shape, np.nan)
        return np.asarray(np.divide(area, width, out=out, where=width > 0))


@dataclass(frozen=True)
class Overlap:
    """Time by which phases are active, one row and one column a phase."""

    phases: tuple[str, ...]
    window_s: float
    busy_s: Floats
    """Seconds with at least one span of the phase."""
    both_s: Floats
    """Seconds with at least one of each; of a phase with itself: with at least two."""
    share: Floats
    """``both_s`` over the busy seconds of the row's phase."""
    beside: Floats
    """Mean number of the column's spans while one of the row's runs; without itself."""
    expected: Floats
    """Share there would be if the two had nothing to do with each other: that of the column's busy
    time in the window. NaN on the diagonal."""
    levels: tuple[Floats, ...]
    """Of each phase: seconds at 0, 1, 2 … spans at once."""

    def most(self, phase: str) -> int:
        """Most spans of a phase at once."""
        return int(np.flatnonzero(self.levels[self.phases.index(phase)])[-1])

    def mean(self, phase: str) -> float:
        """Spans of a phase at once, on average over the window."""
        level = self.levels[self.phases.index(phase)]
        return float(level @ np.arange(level.size) / level.sum())

    def frame(self) -> "DataFrame":
        """Tidy DataFrame: one row a pair of phases."""
        import pandas as pd

        rows = [
            {
                "phase": row,
                "beside": column,
                "both_s": self.both_s[i, j],
                "share": self.share[i, j],
                "expected_share": self.expected[i, j],
                "mean_beside": self.beside[i, j],
            }
            for i, row in enumerate(self.phases)
            for j, column in enumerate(self.phases)
        ]
        return pd.DataFrame(rows)


def overlap(phases: Mapping[str, Spans], window: tuple[float, float]) -> Overlap:
    """Work out the overlap of every pair of phases within a window of time.

    One pass over all boundaries in the order of time. A span that ends where another begins does
    not overlap it.

    Parameters
    ----------
    phases : mapping of name to Spans
        At least one.
    window : (float, float)
        Seconds; spans are cut at its ends.
    """
    names = tuple(phases)
    n = len(names)
    sides = [(spans.start, np.sort(spans.end)) for spans in phases.values()]
    both, weighted = (np.zeros((n, n)) for _ in range(2))
    busy, own, more = (np.zeros(n) for _ in range(3))
    levels = [np.zeros(1) for _ in names]
    for first, last in pairwise(_pieces(phases, window)):
        counts, width = _states(sides, first, last)
        active = (counts > 0).astype(np.float64)
        busy += width @ active
        own += width @ counts
        more += width @ (counts > 1)
        both += active.T @ (active * width[:, None])
        weighted += counts.T.astype(np.float64) @ (counts * width[:, None])
        for k in range(n):
            seconds = np.bincount(counts[:, k], weights=width).astype(np.float64)
            levels[k] = _add(levels[k], seconds)
    diagonal = np.eye(n, dtype=bool)
    both = np.where(diagonal, more, both)
    length = window[1] - window[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = both / busy[:, None]
        beside = weighted / own[:, None] - diagonal
        expected = np.where(diagonal, np.nan, np.broadcast_to(busy / length, (n, n)))
    return Overlap(names, length, busy, both, share, beside, expected, tuple(levels))


def concurrency(
    phases: Mapping[str, Spans], window: tuple[float, float], bins: int = 200
) -> tuple[Floats, dict[str, Floats]]:
    """Mean number of spans open in equal pieces of a window: edges, and a curve a phase."""
    edges = np.linspace(*window, bins + 1)
    curves = {name: Level(spans).mean(edges[:-1], edges[1:]) for name, spans in phases.items()}
    return edges, curves


def _pieces(phases: Mapping[str, Spans], window: tuple[float, float]) -> Floats:
    """Times that cut a window into pieces of not too many boundaries."""
    most = max(phases.values(), key=len).start
    cuts = most[::SLICE]
    inside = cuts[(cuts > window[0]) & (cuts < window[1])]
    return np.unique(np.concatenate([[window[0]], inside, [window[1]]]))


def _states(
    sides: Sequence[tuple[Floats, Floats]], first: float, last: float
) -> tuple[NDArray[np.int64], Floats]:
    """Every state between two times: spans open of each phase, and how long it lasts.

    ``sides``: sorted starts and sorted ends of each phase. Where several boundaries have one time,
    the states between them last no time.
    """
    times, steps, phase, before = [], [], [], []
    for k, (starts, ends) in enumerate(sides):
        before.append(0)
        for side, step in ((starts, 1), (ends, -1)):
            low, high = np.searchsorted(side, (first, last), side="right")
            before[k] += step * int(low)
            times.append(side[low:high])
            steps.append(np.full(high - low, step))
            phase.append(np.full(high - low, k))
    at = np.concatenate(times)
    order = np.argsort(at, kind="stable")
    changes = np.zeros((at.size + 1, len(sides)), dtype=np.int64)
    changes[0] = before
    changes[np.arange(1, at.size + 1), np.concatenate(phase)[order]] = np.concatenate(steps)[order]
    counts = np.cumsum(changes, axis=0)
    width = np.diff(at[order], prepend=first, append=last)
    lasts = width > 0
    return counts[lasts], width[lasts]


def _add(a: Floats, b: Floats) -> Floats:
    """Sum of two histograms of different lengths, without empty bins at the end."""
    total = np.zeros(max(a.size, b.size))
    total[: a.size] += a
    total[: b.size] += b
    used = np.flatnonzero(total)
    return total[: used[-1] + 1] if used.size else total[:1]
