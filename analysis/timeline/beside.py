"""Which phases ran together: concurrency over time, and the overlap of each pair of phases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.intervals import Floats
from analysis.timeline.spans import Spans

if TYPE_CHECKING:
    from pandas import DataFrame

# Boundaries taken at a time: what is worked out of them grows with the number of phases.
SLICE = 1 << 17


class Level:
    """How many spans of a phase were open, as a function of time; exact."""

    def __init__(self, spans: Spans) -> None:
        self._starts = spans.start
        self._ends = np.sort(spans.end)
        self._sum_starts = np.concatenate([[0.0], np.cumsum(self._starts)])
        self._sum_ends = np.concatenate([[0.0], np.cumsum(self._ends)])

    def at(self, t: ArrayLike) -> NDArray[np.int64]:
        """Spans open at each time; one that begins there counts, one that ends there does not."""
        times = np.asarray(t, dtype=np.float64)
        begun = np.searchsorted(self._starts, times, side="right")
        ended = np.searchsorted(self._ends, times, side="right")
        return np.asarray(begun - ended)

    def integral(self, t: ArrayLike) -> Floats:
        """Seconds of all spans up to each time."""
        times = np.asarray(t, dtype=np.float64)
        begun = np.searchsorted(self._starts, times, side="right")
        ended = np.searchsorted(self._ends, times, side="right")
        since = times * begun - self._sum_starts[begun]
        return np.asarray(since - (times * ended - self._sum_ends[ended]))

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
    first, last = window
    times, codes = _boundaries(list(phases.values()), window)
    open_now = np.zeros(n, dtype=np.int64)
    busy, both, area, paired, weighted = (np.zeros((n, n)) for _ in range(5))
    levels = [np.zeros(1) for _ in names]
    now = first
    for at in range(0, times.size + 1, SLICE):
        # Each state lasts from its boundary to the next; the one before the first comes along.
        stop = min(at + SLICE, times.size)
        steps = np.zeros((stop - at + 1, n), dtype=np.int64)
        ended = codes[at:stop] >= n
        steps[np.arange(1, stop - at + 1), codes[at:stop] % n] = np.where(ended, -1, 1)
        steps[0] = open_now
        counts = np.cumsum(steps, axis=0)
        following = times[stop] if stop < times.size else last
        edges = np.concatenate([[now], times[at:stop], [following]])
        width = np.diff(edges)
        active = (counts > 0).astype(np.float64)
        timed = active * width[:, None]
        both += active.T @ timed
        weighted += counts.T.astype(np.float64) @ (counts * width[:, None])
        area += np.diag(width @ counts)
        paired += np.diag(width @ (counts > 1))
        busy += np.diag(width @ active)
        for k in range(n):
            more = np.bincount(counts[:, k].clip(0), weights=width)
            levels[k] = _add(levels[k], more.astype(np.float64))
        open_now, now = counts[-1], following
    diagonal = np.eye(n, dtype=bool)
    busy_s, area_s = np.diag(busy), np.diag(area)
    both = np.where(diagonal, paired, both)
    length = last - first
    with np.errstate(divide="ignore", invalid="ignore"):
        share = both / busy_s[:, None]
        beside = weighted / area_s[:, None] - diagonal
        expected = np.where(diagonal, np.nan, np.broadcast_to(busy_s / length, (n, n)))
    return Overlap(names, length, busy_s, both, share, beside, expected, tuple(levels))


def concurrency(
    phases: Mapping[str, Spans], window: tuple[float, float], bins: int = 200
) -> tuple[Floats, dict[str, Floats]]:
    """Mean number of spans open in equal pieces of a window: edges, and a curve a phase."""
    edges = np.linspace(*window, bins + 1)
    curves = {name: Level(spans).mean(edges[:-1], edges[1:]) for name, spans in phases.items()}
    return edges, curves


def _boundaries(
    phases: Sequence[Spans], window: tuple[float, float]
) -> tuple[Floats, NDArray[np.int32]]:
    """Times of all boundaries, and which: phase k begins (k) or ends (n + k); ends come first."""
    n = len(phases)
    cut = [spans.where((spans.end > window[0]) & (spans.start < window[1])) for spans in phases]
    times = np.concatenate([s.start for s in cut] + [s.end for s in cut]).clip(*window)
    codes = np.repeat(np.arange(2 * n, dtype=np.int32), [len(spans) for spans in cut] * 2)
    # Stable, and ends stand before starts of the same time.
    turned = np.concatenate([np.flatnonzero(codes >= n), np.flatnonzero(codes < n)])
    order = turned[np.argsort(times[turned], kind="stable")]
    return times[order], codes[order]


def _add(a: Floats, b: Floats) -> Floats:
    """Sum of two histograms of different lengths, without empty bins at the end."""
    total = np.zeros(max(a.size, b.size))
    total[: a.size] += a
    total[: b.size] += b
    used = np.flatnonzero(total)
    return total[: used[-1] + 1] if used.size else total[:1]
