"""Starts and ends of one phase become spans, in whatever order they come.

What is open is kept by job and item. An end that comes before its start in the file waits for it,
so that lines out of order do no harm as long as their times are right. Nothing is guessed: what
has no other half is counted and named.
"""

from array import array

import numpy as np

from analysis.timeline.faults import Faults
from analysis.timeline.spans import NONE, Spans

# An end that has waited while this many others came will not find its start.
MOST_WAITING = 10_000
# To tell a repeated end from one without a start: repeats of a line come close together.
REMEMBERED = 4_096
# A key holds the job below this bit and the item above.
ITEM_SHIFT = 32

# Time in ms, worker, file, line, the writer's own figure in ms.
Half = tuple[float, int, str, int, float]


class Book:
    """One phase of one run."""

    def __init__(self, faults: Faults) -> None:
        self.n_starts = self.n_ends = 0
        self._repeats_possible = False
        self._faults = faults
        self._open: dict[int, Half] = {}
        self._early: dict[int, Half] = {}
        self._recent: dict[int, float] = {}
        self._start, self._end = array("d"), array("d")
        self._key, self._worker, self._reported = array("q"), array("i"), array("f")

    def begin(self, key: int, half: Half) -> bool:
        """Note a start; False where it is the same record again."""
        before = self._open.get(key)
        if before is not None:
            if before[0] == half[0]:
                return False
            # It was begun anew: whatever became of the first try, its end is not in the log.
            self._faults.add_at("start without end", _where(before))
        self.n_starts += 1
        if self._early:
            end = self._early.get(key)
            if end is not None and end[0] >= half[0]:
                del self._early[key]
                self._keep(key, half, end)
                return True
        self._open[key] = half
        return True

    def end(self, key: int, half: Half) -> bool:
        """Note an end; False where it is the same record again."""
        start = self._open.pop(key, None)
        if start is None:
            if self._recent.get(key) == half[0]:
                return False
            waiting = self._early.get(key)
            if waiting is not None:
                if waiting[0] == half[0]:
                    return False
                self._faults.add_at("end without start", _where(waiting))
            elif len(self._early) >= MOST_WAITING:
                oldest = next(iter(self._early))
                self._faults.add_at("end without start", _where(self._early.pop(oldest)))
            self.n_ends += 1
            self._early[key] = half
            return True
        self.n_ends += 1
        if half[0] < start[0]:
            self._faults.add_at("end before start", _where(half))
            return True
        self._keep(key, start, half)
        return True

    def finish(self, watched: bool, scale: float) -> tuple[Spans | None, int]:
        """Spans by start, times multiplied by ``scale``, and how many came twice.

        ``watched``: the log has both kinds of events; where it lacks one, halves are no fault.
        """
        if watched:
            for half in self._open.values():
                self._faults.add_at("start without end", _where(half))
            for half in self._early.values():
                self._faults.add_at("end without start", _where(half))
        if not self._start:
            return None, 0
        start = np.frombuffer(self._start, np.float64) * scale
        end = np.frombuffer(self._end, np.float64) * scale
        key = np.frombuffer(self._key, np.int64)
        order = np.argsort(start, kind="stable")
        if self._repeats_possible:
            order = np.lexsort((end, key, start))
            same = (np.diff(start[order]) == 0) & (np.diff(key[order]) == 0)
            same &= np.diff(end[order]) == 0
            order = order[np.concatenate([[True], ~same])]
        spans = Spans(
            start[order],
            end[order],
            (key[order] & ((1 << ITEM_SHIFT) - 1)).astype(np.int32),
            # One is added to an item in its key, so that "no item" is 0 there.
            ((key[order] >> ITEM_SHIFT) - 1).astype(np.int32),
            np.frombuffer(self._worker, np.int32)[order],
            np.frombuffer(self._reported, np.float32)[order].astype(np.float64) * scale,
        )
        return spans, start.size - order.size

    @property
    def unmatched(self) -> int:
        """Halves that wait for their other half."""
        return len(self._open) + len(self._early)

    def expect_repeats(self) -> None:
        """Look for spans that came twice: time has gone back, and a part may have been repeated."""
        self._repeats_possible = True

    def _keep(self, key: int, start: Half, end: Half) -> None:
        worker = start[1]
        if end[1] != worker:
            if worker != NONE and end[1] != NONE:
                self._faults.add_at("worker differs", _where(end))
                worker = NONE
            else:
                worker = max(worker, end[1])
        self._start.append(start[0])
        self._end.append(end[0])
        self._key.append(key)
        self._worker.append(worker)
        self._reported.append(end[4])
        if len(self._recent) >= REMEMBERED:
            self._recent.clear()
        self._recent[key] = end[0]


def _where(half: Half) -> str:
    return f"{half[2]}:{half[3]}"


def key_of(job: int, item: int) -> int:
    """One number for a job and an item (or none)."""
    return ((item + 1) << ITEM_SHIFT) | job
