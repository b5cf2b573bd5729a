"""Lines become runs: each record is read, checked, and booked in the phases it begins and ends."""

import re
from collections.abc import Iterable
from math import nan
from typing import NamedTuple

from analysis.timeline.book import Book, key_of
from analysis.timeline.events import (
    EVENTS,
    ITEM_KEYS,
    TASK,
    TASK_KEY,
    WAITS,
    WORKER_KEY,
    Boundary,
)
from analysis.timeline.faults import Faults
from analysis.timeline.spans import NONE, Run, Spans

MARK = b"TIMELINE,"
_ANSI = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
# Time falls back this far, in ms, only when the program was started again: writers that overtake
# each other differ by less. Where a file begins less is enough.
RESTART_MS = 10_000.0
RESTART_AT_FILE_MS = 1_000.0
# The same details come again and again; more different ones than this are not worth keeping.
MOST_DETAILS = 1 << 16
SECONDS = 1e-3
"""Of the unit of a record."""


class _Detail(NamedTuple):
    """One details column, read."""

    item: int
    worker: int
    task: str
    figures: dict[str, str]


class Pairing:
    """Takes lines and gives runs."""

    def __init__(self, faults: Faults, waits: frozenset[str] = WAITS) -> None:
        self.faults = faults
        self.records = 0
        self.used = 0
        """Records that begin or end a phase; the others are faults."""
        self.runs: list[Run] = []
        self.notes: list[str] = []
        self._waits = waits
        self._boundaries = {name.encode(): boundary for name, boundary in EVENTS.items()}
        self._at_file_start = False
        self._clear()

    def _clear(self) -> None:
        self._origin = ""
        self._jobs: dict[bytes, int] = {}
        self._items: dict[str, int] = {}
        self._workers: dict[str, int] = {}
        self._books: dict[str, Book] = {}
        self._details: dict[bytes, _Detail] = {}
        self._newest = -1.0
        self._went_back = False
        self._decimals = 0

    def begin_file(self) -> None:
        """Say that another file begins, whose clock may start anew."""
        self._at_file_start = True

    def feed(self, lines: Iterable[tuple[int, bytes]]) -> None:
        """Take numbered lines that hold the mark, in the order of the file."""
        boundaries = self._boundaries
        faults = self.faults
        for number, line in lines:
            self.records += 1
            if b"\x1b" in line:
                line = _ANSI.sub(b"", line)
            at = line.rfind(MARK)
            if at > 0 and (torn := line.count(MARK, 0, at + 1)):
                self.records += torn
                faults.add("torn", number, count=torn)
            columns = line[at:].rstrip().split(b",", 4)
            if len(columns) < 4 or not columns[2] or not columns[3]:
                faults.add("malformed", number)
                continue
            digits = columns[1]
            if not digits.isdigit():
                if not _NUMBER.fullmatch(digits):
                    faults.add("malformed", number)
                    continue
                self._decimals = max(self._decimals, len(digits) - digits.index(b".") - 1)
            boundary = boundaries.get(columns[2])
            if boundary is None:
                faults.add("unknown event", number, columns[2][:40].decode(errors="replace"))
                continue
            ms = float(digits)
            if ms < self._newest or self._at_file_start:
                self._look_back(ms, columns[3], number)
            if ms > self._newest:
                self._newest = ms
            job = self._jobs.get(columns[3])
            if job is None:
                job = self._new_job(columns[3], number)
            raw = columns[4] if len(columns) == 5 else b""
            detail = self._details.get(raw) or self._read_detail(raw)
            self._place(boundary, key_of(job, detail.item), ms, number, detail)

    def finish(self) -> None:
        """Close the run that is being read."""
        books, start = self._books, None
        phases: dict[str, Spans] = {}
        for name, book in books.items():
            if self._went_back:
                book.expect_repeats()
            watched = name not in self._waits or bool(book.n_starts and book.n_ends)
            if not watched:
                what = "end" if book.n_starts else "beginning"
                self.notes.append(f"{name}: no event of this log marks its {what}")
            spans, twice = book.finish(watched, SECONDS)
            if twice:
                # Of each both records came again.
                self.faults.add_at("duplicate", f"{self._origin} ({name})", 2 * twice)
                self.used -= 2 * twice
            if spans is not None:
                phases[name] = spans
                start = min(start or spans.start[0], spans.start[0])
        if phases:
            by_start = sorted(phases, key=lambda name: float(phases[name].start[0]))
            self.runs.append(
                Run(
                    self._origin,
                    {name: phases[name] for name in by_start},
                    tuple(job.decode(errors="replace") for job in self._jobs),
                    tuple(self._items),
                    tuple(self._workers),
                    SECONDS * 10.0**-self._decimals,
                    self._waits,
                )
            )
        self._clear()

    def _place(self, boundary: Boundary, key: int, ms: float, number: int, detail: _Detail) -> None:
        """End and begin what an event ends and begins."""
        closes, opens = boundary.closes, boundary.opens
        if TASK in (closes, opens):
            if not detail.task:
                self.faults.add("malformed", number, f"no {TASK_KEY}=")
                return
            closes, opens = closes and detail.task, opens and detail.task
        source, worker = self.faults.source, detail.worker
        new = True
        if closes:
            reported = nan
            if detail.figures and boundary.reports in detail.figures:
                reported = self._figure(detail.figures[boundary.reports], number)
            new = self._book(closes).end(key, (ms, worker, source, number, reported))
        if opens and new:
            new = self._book(opens).begin(key, (ms, worker, source, number, nan))
        if new:
            self.used += 1
        else:
            self.faults.add("duplicate", number)

    def _book(self, phase: str) -> Book:
        book = self._books.get(phase)
        if book is None:
            book = self._books[phase] = Book(self.faults)
        return book

    def _look_back(self, ms: float, job: bytes, number: int) -> None:
        """Time went back, or a file begins: the program was started again, or lines overtook."""
        slack = RESTART_AT_FILE_MS if self._at_file_start else RESTART_MS
        self._at_file_start = False
        if ms < self._newest - slack and job not in self._jobs:
            self.finish()
        elif ms < self._newest:
            self.faults.add("out of order", number)
            self._went_back = True

    def _new_job(self, job: bytes, number: int) -> int:
        if not self._jobs:
            self._origin = f"{self.faults.source}:{number}"
        self._jobs[job] = len(self._jobs)
        return len(self._jobs) - 1

    def _read_detail(self, raw: bytes) -> _Detail:
        """Read a details column; it is kept, as most come again."""
        found = dict(part.partition("=")[::2] for part in raw.decode(errors="replace").split(","))
        item = next((found[key] for key in ITEM_KEYS if key in found), None)
        worker = found.get(WORKER_KEY)
        detail = _Detail(
            NONE if item is None else self._items.setdefault(item, len(self._items)),
            NONE if worker is None else self._workers.setdefault(worker, len(self._workers)),
            found.get(TASK_KEY, ""),
            {key: value for key, value in found.items() if key.endswith("_ms")},
        )
        if not detail.figures and len(self._details) < MOST_DETAILS:
            self._details[raw] = detail
        return detail

    def _figure(self, text: str, number: int) -> float:
        if _NUMBER.fullmatch(text.encode()):
            return float(text)
        self.faults.add("unreadable figure", number)
        return nan
