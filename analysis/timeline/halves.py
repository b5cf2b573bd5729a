"""Starts and ends become spans: sorted by item and time, a start that an end follows is one.

So the order of lines does not matter, and nothing is guessed: what has no other half is left over.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.intervals import Floats
from analysis.timeline.spans import NONE

Ints = NDArray[np.int64]


class Halves(NamedTuple):
    """Starts and ends in columns of equal length, in the order of lines."""

    key: Ints
    """Phase, job and item in one number."""
    ms: Floats
    is_end: NDArray[np.bool_]
    leads: NDArray[np.bool_]
    """Whether it stands for its record: an event that ends one phase and begins another has two."""
    worker: NDArray[np.int32]
    figure: NDArray[np.float32]
    line: Ints

    def rows(self, chosen: Ints | NDArray[np.bool_]) -> "Halves":
        """Some of them."""
        return Halves._make(column[chosen] for column in self)


class Pairs(NamedTuple):
    """What became of halves."""

    start: Halves
    end: Halves
    """Of the same length: the spans."""
    left: Halves
    """Those without another half, in the order of lines."""
    repeated: Halves
    """Those that say what another said."""

    @property
    def worker_differs(self) -> NDArray[np.bool_]:
        """Whether start and end of a span name different workers."""
        a, b = self.start.worker, self.end.worker
        return np.asarray((a != b) & (a != NONE) & (b != NONE))

    @property
    def worker(self) -> NDArray[np.int32]:
        """Worker of each span: none where start and end differ."""
        named = np.maximum(self.start.worker, self.end.worker)
        return np.where(self.worker_differs, np.int32(NONE), named)


def joined(parts: list[Halves]) -> Halves:
    """One after another."""
    return Halves._make(np.concatenate(columns) for columns in zip(*parts, strict=True))


def pair(halves: Halves) -> Pairs:
    """Pair starts with ends."""
    order = _by_item_and_time(halves)
    key, ms, is_end = halves.key[order], halves.ms[order], halves.is_end[order]
    same_item = key[1:] == key[:-1]
    repeats = same_item & (ms[1:] == ms[:-1]) & (is_end[1:] == is_end[:-1])
    repeated = order[1:][repeats]
    if repeats.any():
        kept = np.concatenate([[True], ~repeats])
        order, key, ms, is_end = order[kept], key[kept], ms[kept], is_end[kept]
        same_item = key[1:] == key[:-1]
    at = np.flatnonzero(same_item & ~is_end[:-1] & is_end[1:])
    first, last = order[at], order[at + 1]
    free = np.ones(order.size, dtype=bool)
    free[at] = free[at + 1] = False
    # Without length, and the end came first in the file.
    turned = same_item & is_end[:-1] & ~is_end[1:] & (ms[1:] == ms[:-1]) & free[1:] & free[:-1]
    at = np.flatnonzero(turned)
    free[at] = free[at + 1] = False
    first, last = np.concatenate([first, order[at + 1]]), np.concatenate([last, order[at]])
    return Pairs(
        halves.rows(first),
        halves.rows(last),
        halves.rows(np.sort(order[free])),
        halves.rows(repeated),
    )


def _by_item_and_time(halves: Halves) -> Ints:
    """Order by item, then time, then line; most logs are in the order of time already."""
    order = np.argsort(halves.key, kind="stable")
    key, ms = halves.key[order], halves.ms[order]
    if ((np.diff(ms) < 0) & (key[1:] == key[:-1])).any():
        order = np.lexsort((halves.ms, halves.key))
    return order
