"""What was wrong with a log: counted by kind, the first few named by line."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

NAMED = 5
"""Lines named of each kind."""
# A line's number is below this bit, its file above.
_FILE_SHIFT = 40

NOT_USED = ("malformed", "truncated", "torn", "unknown event", "duplicate")
"""Faults of whole records: with the records used these are all there are."""
KINDS = {
    "malformed": "not a record: TIMELINE,<ms>,<EVENT>,<job>,<details>",
    "truncated": "the last line has no end: not used",
    "torn": "another record begins inside it: not used",
    "unknown event": "no such event",
    "duplicate": "the same record again: used once",
    "end without start": "not used",
    "start without end": "not used",
    "worker differs": "the end names another worker than the start: the worker is left open",
    "unreadable figure": "a figure that is no number: left out",
    "out of order": "earlier than a line before it: used by its time",
    "overlong": "longer than any record: passed over",
    "damaged archive": "it ends early: what could be unpacked was used",
}
"""Kind of fault -> what it means and what was done."""


@dataclass
class Fault:
    """One kind of fault."""

    kind: str
    count: int = 0
    lines: list[str] = field(default_factory=list)
    """The first few, ``FILE:LINE``, with the name of an unknown event."""

    @property
    def meaning(self) -> str:
        """What it means and what was done."""
        return KINDS[self.kind]


class Faults:
    """Counts faults of logs; lines of several files are told apart by one number."""

    def __init__(self) -> None:
        self._sources: list[str] = []
        self._found: dict[str, Fault] = {}

    def begin_file(self, name: str) -> None:
        """Say which file is being read."""
        self._sources.append(name)

    def code(self, lines: NDArray[np.int64]) -> NDArray[np.int64]:
        """Line numbers of the file being read, as numbers that hold the file too."""
        return lines + ((len(self._sources) - 1) << _FILE_SHIFT)

    def where(self, code: int) -> str:
        """``FILE:LINE`` of such a number."""
        return f"{self._sources[code >> _FILE_SHIFT]}:{code & ((1 << _FILE_SHIFT) - 1)}"

    def add(self, kind: str, number: int, note: str = "", count: int = 1) -> None:
        """Count a fault at a line of the file being read."""
        self.add_at(kind, f"{self._sources[-1]}:{number}" + (f" {note}" if note else ""), count)

    def add_lines(self, kind: str, codes: NDArray[np.int64], note: str = "") -> None:
        """Count a fault at each of some lines."""
        if codes.size:
            first = np.sort(codes)[:NAMED]
            for code in first:
                self.add_at(kind, self.where(int(code)) + (f" {note}" if note else ""))
            self._found[kind].count += codes.size - first.size

    def add_at(self, kind: str, where: str, count: int = 1) -> None:
        """Count a fault at a place."""
        fault = self._found.setdefault(kind, Fault(kind))
        fault.count += count
        if len(fault.lines) < NAMED:
            fault.lines.append(where)

    def count(self, kind: str) -> int:
        """How many of a kind."""
        return self._found[kind].count if kind in self._found else 0

    @property
    def found(self) -> list[Fault]:
        """All kinds that occurred, in the order of `KINDS`."""
        return [self._found[kind] for kind in KINDS if kind in self._found]
