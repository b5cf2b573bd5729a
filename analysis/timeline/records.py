"""Blocks of text become records: numbers and ids in columns.

Blocks in which every record is plain are read all lines at once (`analysis.timeline.tokens`), all
others line by line, by rules that both share; what is wrong with a line is found by the latter.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.intervals import Floats
from analysis.timeline.events import (
    EVENTS,
    ITEM_KEYS,
    TASK_KEY,
    WORKER_KEY,
)
from analysis.timeline.faults import Faults
from analysis.timeline.spans import NONE
from analysis.timeline.tokens import Field, tokens

MARK = b"TIMELINE,"
EVENT_NAMES = tuple(EVENTS)
FIGURE_KEYS = tuple(b.reports for b in EVENTS.values() if b.reports)
"""Details with a writer's own figure for a phase."""
UNKNOWN = -1
"""In place of an event."""
_ANSI = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_FIGURE = re.compile(rb"(?<=_ms=)\d{1,15}$")
# What details say is remembered, as they come again and again; details that differ in every line
# are forgotten in time.
MOST_DETAILS = 1 << 18

Ints = NDArray[np.int64]


class Records(NamedTuple):
    """Columns of equal length, in the order of lines."""

    line: Ints
    """Number of the line in its file."""
    ms: Floats
    event: Ints
    """Place in `EVENT_NAMES`."""
    job: Ints
    item: Ints
    worker: Ints
    task: Ints
    key: Ints
    """Place in `FIGURE_KEYS` of the figure that the details give; `NONE`: they give none."""
    figure: Floats
    """Its value; NaN: none, or not a number."""

    def rows(self, chosen: "slice | NDArray[np.bool_]") -> "Records":
        """Some of them."""
        return Records._make(column[chosen] for column in self)


_NO_RECORDS = Records._make(
    np.zeros(0, dtype=np.float64 if name in ("ms", "figure") else np.int64)
    for name in Records._fields
)


class Detail(NamedTuple):
    """What a details column says: ids, and a figure."""

    item: int
    worker: int
    task: int
    key: int
    figure: float
    """NaN where its digits were taken off the end."""


@dataclass
class Names:
    """Ids of the names of a log: in the order in which they first came."""

    jobs: dict[bytes, int] = field(default_factory=dict)
    items: dict[str, int] = field(default_factory=dict)
    workers: dict[str, int] = field(default_factory=dict)
    tasks: dict[str, int] = field(default_factory=dict)


class Reader:
    """Reads blocks; keeps the ids of names between them."""

    def __init__(self, faults: Faults) -> None:
        self.names = Names()
        self.records = 0
        """Lines, or parts of lines, that claim to be records."""
        self.decimals = 0
        """Most digits after the point of a time."""
        self._faults = faults
        self._details: dict[bytes, Detail] = {}
        self._event_ids: dict[int, int] = {}
        self._job_ids: dict[int, int] = {}
        self._detail_ids: dict[int, Detail] = {}
        self._events = {name.encode(): at for at, name in enumerate(EVENT_NAMES)}

    def read(self, text: bytes, number: int) -> Records:
        """Records of whole lines, of which the first has a number."""
        found = tokens(text)
        if found is None:
            return self._line_by_line(text, number)
        if not found.line.size:
            return _NO_RECORDS
        self.records += found.line.size
        self.decimals = max(self.decimals, found.decimals)
        event = _ids(text, found.event, self._event_ids, self._event)
        unknown = event == UNKNOWN
        if unknown.any():
            for at in np.flatnonzero(unknown):
                start, length = int(found.event.start[at]), int(found.event.length[at])
                self._unknown(int(found.line[at]) + number, text[start : start + length])
            found, event = found.rows(~unknown), event[~unknown]
            if not event.size:
                return _NO_RECORDS
        if len(self._detail_ids) > MOST_DETAILS:
            self._detail_ids.clear()
        job = _ids(text, found.job, self._job_ids, self._job)
        detail = _ids(text, found.detail, self._detail_ids, self._detail)
        figure = np.where(np.isnan(found.figure), detail[:, 4], found.figure)
        item, worker, task, key = detail[:, :4].T.astype(np.int64)
        line = found.line + number
        return Records(line, found.ms, event, job, item, worker, task, key, figure)

    def _line_by_line(self, text: bytes, number: int) -> Records:
        rows = [
            row
            for at, line in enumerate(text.split(b"\n"), number)
            if MARK in line and (row := self._line(at, line))
        ]
        columns = np.array(rows, dtype=np.float64).reshape(-1, len(Records._fields)).T
        # Whole numbers below 2^53 are exact as floats.
        return Records._make(
            column if name in ("ms", "figure") else column.astype(np.int64)
            for name, column in zip(Records._fields, columns, strict=True)
        )

    def _line(self, number: int, line: bytes) -> tuple[float, ...] | None:
        """Record of a line; what is wrong with it is counted."""
        if b"\x1b" in line:
            line = _ANSI.sub(b"", line)
        at = line.rfind(MARK)
        if at < 0:
            return None
        torn = line.count(MARK, 0, at + 1)
        self.records += 1 + torn
        if torn:
            self._faults.add("torn", number, count=torn)
        columns = line[at:].rstrip().split(b",", 4)
        if len(columns) < 4 or not _NUMBER.fullmatch(columns[1]):
            self._faults.add("malformed", number)
            return None
        _, digits, name, job = columns[:4]
        if not name or not job:
            self._faults.add("malformed", number)
            return None
        point = digits.find(b".")
        self.decimals = max(self.decimals, 0 if point < 0 else len(digits) - 1 - point)
        event = self._event(name)
        if event == UNKNOWN:
            self._unknown(number, name)
            return None
        raw, figure = columns[4] if len(columns) == 5 else b"", nan
        if match := _FIGURE.search(raw):
            raw, figure = raw[: match.start()], float(match[0])
        detail = self._detail(raw)
        figure = detail.figure if np.isnan(figure) else figure
        return number, float(digits), event, self._job(job), *detail[:4], figure

    def _event(self, name: bytes) -> int:
        return self._events.get(name, UNKNOWN)

    def _job(self, name: bytes) -> int:
        return self.names.jobs.setdefault(name, len(self.names.jobs))

    def _detail(self, raw: bytes) -> Detail:
        """What a details column says; ids are given to new names."""
        known = self._details.get(raw)
        if known is not None:
            return known
        if len(self._details) > MOST_DETAILS:
            self._details.clear()
        said = dict(part.partition("=")[::2] for part in raw.decode(errors="replace").split(","))
        item = next((said[key] for key in ITEM_KEYS if key in said), None)
        worker, task = said.get(WORKER_KEY), said.get(TASK_KEY)
        items, workers, tasks = self.names.items, self.names.workers, self.names.tasks
        key, figure = NONE, nan
        for name in set(FIGURE_KEYS) & said.keys():
            key = FIGURE_KEYS.index(name)
            if _NUMBER.fullmatch(text := said[name].encode()):
                figure = float(text)
        detail = self._details[raw] = Detail(
            NONE if item is None else items.setdefault(item, len(items)),
            NONE if worker is None else workers.setdefault(worker, len(workers)),
            tasks.setdefault(task, len(tasks)) if task else NONE,
            key,
            figure,
        )
        return detail

    def _unknown(self, number: int, name: bytes) -> None:
        self._faults.add("unknown event", number, name[:40].decode(errors="replace"))


def _ids(text: bytes, column: Field, known: dict[int, Any], intern: Callable[[bytes], Any]) -> Any:  # noqa: ANN401 - ids, or rows of them
    """What ``intern`` makes of the fields of a column, found by their hashes."""
    hashes, first, which = np.unique(column.hash, return_index=True, return_inverse=True)
    keys = [int(value) for value in hashes]
    # In the order of lines: ids are given in the order in which names come.
    for k in np.argsort(first, kind="stable"):
        if keys[k] not in known:
            start = int(column.start[first[k]])
            known[keys[k]] = intern(text[start : start + int(column.length[first[k]])])
    return np.array([known[key] for key in keys])[which]
