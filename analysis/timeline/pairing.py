"""Records become runs: each begins and ends phases, and halves are paired block by block."""

from collections.abc import Collection

import numpy as np

from analysis.timeline.events import EVENTS, TASK, WAITS
from analysis.timeline.faults import Faults
from analysis.timeline.halves import Halves, Ints, Pairs, joined, pair
from analysis.timeline.records import EVENT_NAMES, FIGURE_KEYS, Names, Records
from analysis.timeline.spans import NONE, Run, Spans
from bench.errors import PagestormError

# Time falls back this far, in ms, only when the program was started again: writers that overtake
# each other differ by less. Where a file begins less is enough.
RESTART_MS = 10_000.0
RESTART_AT_FILE_MS = 1_000.0
# Halves that are paired at a time.
BLOCK = 1 << 20
SECONDS = 1e-3
"""Of the unit of a record."""

# A key holds the phase below, then the job, then the item.
_PHASE_BITS, _JOB_BITS, _ITEM_BITS = 12, 27, 24
_BOUNDARIES = [EVENTS[name] for name in EVENT_NAMES]
_PHASES = tuple(
    dict.fromkeys(p for b in _BOUNDARIES for p in (b.closes, b.opens) if p and p != TASK)
)
# Phases that begin when another ends: their starts are no records of their own.
_FOLLOWING = frozenset(b.opens for b in _BOUNDARIES if b.closes)


class Pairing:
    """Takes records and gives runs."""

    def __init__(self, faults: Faults, names: Names, waits: frozenset[str] = WAITS) -> None:
        self.runs: list[Run] = []
        self.notes: list[str] = []
        self._faults, self._names, self._waits = faults, names, waits
        self._at_file_start = False
        self._new_run()

    def _new_run(self) -> None:
        self._first_line = 0
        self._first = self._newest = -1.0
        self._went_back = False
        self._jobs: set[int] = set()
        self._pending: list[Halves] = []
        self._n_pending = 0
        self._most_pending = BLOCK
        self._pieces: dict[int, list[tuple[np.ndarray, ...]]] = {}
        self._phases_begun: set[int] = set()
        self._phases_ended: set[int] = set()

    def begin_file(self) -> None:
        """Say that another file begins, whose clock may start anew."""
        self._at_file_start = True

    def take(self, records: Records) -> None:
        """Take records in the order of the file, with lines as `Faults.code` numbers them."""
        if records.ms.size and self._at_file_start:
            self._begin_file(records)
        while records.ms.size:
            stop = self._restart(records)
            self._book(records.rows(slice(0, stop)))
            records = records.rows(slice(stop, None))
            if records.ms.size:
                self.finish()

    def finish(self, decimals: int = 0) -> None:
        """Close the run that is being read; times have so many digits after the point."""
        self._pair()
        self._tell_left()
        phases = self._spans()
        if phases:
            by_start = sorted(phases, key=lambda name: float(phases[name].start[0]))
            self.runs.append(
                Run(
                    self._faults.where(self._first_line),
                    {name: phases[name] for name in by_start},
                    tuple(job.decode(errors="replace") for job in self._names.jobs),
                    tuple(self._names.items),
                    tuple(self._names.workers),
                    SECONDS * 10.0**-decimals,
                    self._waits,
                    self._compound(phases),
                )
            )
        self._new_run()

    def _compound(self, phases: Collection[str]) -> frozenset[str]:
        """Phases by the writer's own events, where tasks tell of the same work."""
        own = frozenset(phases) & set(_PHASES)
        return own - self._waits if len(own) < len(phases) else frozenset()

    # ---- runs ------------------------------------------------------------------------------------

    def _begin_file(self, records: Records) -> None:
        """See whether the clock starts anew."""
        self._at_file_start = False
        if records.ms[0] < self._newest - RESTART_AT_FILE_MS:
            self.finish()

    def _restart(self, records: Records) -> int:
        """Row at which the program was started again, or how many rows there are."""
        before = np.maximum.accumulate(np.concatenate([[self._newest], records.ms]))[:-1]
        back = np.flatnonzero(records.ms < before)
        stop = records.ms.size
        for at in back[records.ms[back] < before[back] - RESTART_MS]:
            job = int(records.job[at])
            if job not in self._jobs and job not in records.job[:at]:
                stop = int(at)
                break
        back = back[back < stop]
        self._faults.add_lines("out of order", records.line[back])
        self._went_back |= bool(back.size)
        return stop

    # ---- halves ----------------------------------------------------------------------------------

    def _book(self, records: Records) -> None:
        """Note what records begin and end."""
        if not records.ms.size:
            return
        if not self._jobs:
            self._first_line = int(records.line[0])
        self._newest = max(self._newest, float(records.ms.max()))
        self._jobs.update(np.unique(records.job).tolist())
        self._check_limits()
        for event in np.unique(records.event):
            self._book_event(int(event), records.rows(records.event == event))
        if self._n_pending >= self._most_pending:
            self._pair()

    def _book_event(self, event: int, records: Records) -> None:
        boundary = _BOUNDARIES[event]
        if TASK in (boundary.closes, boundary.opens):
            named = records.task != NONE
            if not named.all():
                self._faults.add_lines("malformed", records.line[~named], "no task=")
                records = records.rows(named)
        figure = np.full(records.ms.size, np.nan, dtype=np.float32)
        if boundary.reports:
            told = records.key == FIGURE_KEYS.index(boundary.reports)
            figure[told] = records.figure[told]
            self._faults.add_lines("unreadable figure", records.line[told & np.isnan(figure)])
        leads = True
        for phase, is_end in ((boundary.closes, True), (boundary.opens, False)):
            if phase:
                self._add(records, phase, figure if is_end else np.full_like(figure, np.nan),
                          is_end=is_end, leads=leads)  # fmt: skip
                leads = False

    def _add(
        self, records: Records, phase: str, figure: np.ndarray, *, is_end: bool, leads: bool
    ) -> None:
        size = records.ms.size
        if phase == TASK:
            number: Ints | int = records.task + len(_PHASES)
        else:
            number = _PHASES.index(phase)
        seen = self._phases_ended if is_end else self._phases_begun
        seen.update(np.unique(number).tolist() if size else ())
        key = (records.item + 1) << (_JOB_BITS + _PHASE_BITS)
        key |= (records.job << _PHASE_BITS) | number
        self._pending.append(
            Halves(
                key,
                records.ms,
                np.full(size, is_end),
                np.full(size, leads),
                records.worker.astype(np.int32),
                figure,
                records.line,
            )
        )
        self._n_pending += size

    def _pair(self) -> None:
        """Pair what has come; what is left over waits for its other half."""
        if not self._pending:
            return
        # Events were booked one after another: back to the order of lines.
        halves = joined(self._pending)
        found = pair(halves.rows(np.argsort(halves.line, kind="stable")))
        self._tell_repeated(found.repeated)
        self._faults.add_lines("worker differs", found.end.line[found.worker_differs])
        self._keep(found)
        self._pending = [found.left]
        self._n_pending = found.left.ms.size
        # So that what never finds its other half is not sorted again and again.
        self._most_pending = max(BLOCK, 2 * self._n_pending)

    def _tell_repeated(self, halves: Halves) -> None:
        self._faults.add_lines("duplicate", halves.line[halves.leads])

    def _tell_left(self) -> None:
        """Name halves without another half; where a log lacks an event it is a note instead."""
        left = self._pending[0] if self._pending else None
        for phase in sorted(self._phases_begun | self._phases_ended):
            name = self._name(phase)
            if name in _FOLLOWING and name in self._waits:
                lacking = [
                    what
                    for what, seen in (
                        ("beginning", self._phases_begun),
                        ("end", self._phases_ended),
                    )
                    if phase not in seen
                ]
                if lacking:
                    self.notes.append(f"{name}: no event of this log marks its {lacking[0]}")
                    continue
            if left is None:
                continue
            own = left.rows((left.key & ((1 << _PHASE_BITS) - 1)) == phase)
            self._faults.add_lines("start without end", own.line[~own.is_end])
            self._faults.add_lines("end without start", own.line[own.is_end])

    def _keep(self, found: Pairs) -> None:
        """Keep of pairs what a span needs, by phase."""
        phases = found.start.key & ((1 << _PHASE_BITS) - 1)
        worker = found.worker
        for phase in np.unique(phases):
            rows = np.flatnonzero(phases == phase)
            piece = (
                found.start.ms[rows],
                found.end.ms[rows],
                found.start.key[rows],
                worker[rows],
                found.end.figure[rows],
            )
            self._pieces.setdefault(int(phase), []).append(piece)

    def _spans(self) -> dict[str, Spans]:
        """Spans by phase, in the order of starts; pieces are given up on the way."""
        phases: dict[str, Spans] = {}
        for phase in sorted(self._pieces):
            name = self._name(phase)
            columns = zip(*self._pieces.pop(phase), strict=True)
            start, end, key, worker, figure = map(np.concatenate, columns)
            order = np.argsort(start, kind="stable")
            if self._went_back:
                order = self._once(name, start, end, key)
            key = key[order] >> _PHASE_BITS
            phases[name] = Spans(
                start[order] * SECONDS,
                end[order] * SECONDS,
                (key & ((1 << _JOB_BITS) - 1)).astype(np.int32),
                # One is added to an item in its key, so that "no item" is 0 there.
                ((key >> _JOB_BITS) - 1).astype(np.int32),
                worker[order],
                figure[order] * np.float32(SECONDS),
            )
        return phases

    def _once(self, name: str, start: np.ndarray, end: np.ndarray, key: Ints) -> Ints:
        """Order by start, without spans that came twice: time went back, a part was repeated."""
        order = np.lexsort((end, key, start))
        same = np.ones(max(order.size - 1, 0), dtype=bool)
        for column in (start, end, key):
            same &= np.diff(column[order]) == 0
        twice = int(same.sum())
        records = twice * (1 if name in _FOLLOWING else 2)
        if twice:
            self._faults.add_at("duplicate", f"{self._faults.where(self._first_line)} ({name})",
                                records)  # fmt: skip
        return np.asarray(order[np.concatenate([[True], ~same])])

    def _name(self, phase: int) -> str:
        if phase < len(_PHASES):
            return _PHASES[phase]
        return list(self._names.tasks)[phase - len(_PHASES)]

    def _check_limits(self) -> None:
        for what, names, bits in (
            ("tasks", self._names.tasks, _PHASE_BITS - 1),
            ("jobs", self._names.jobs, _JOB_BITS),
            ("items", self._names.items, _ITEM_BITS - 1),
        ):
            if len(names) >= 1 << bits:
                raise PagestormError(f"more than {1 << bits} {what}", "give a part of the log")
