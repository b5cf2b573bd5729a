"""What was wrong with a log: counted by kind, the first few named by line."""

from dataclasses import dataclass, field

NAMED = 5
"""Lines named of each kind."""

KINDS = {
    "malformed": "not a record: TIMELINE,<ms>,<EVENT>,<job>,<details>",
    "truncated": "the last line has no end: not used",
    "torn": "another record begins inside it: not used",
    "unknown event": "no such event",
    "duplicate": "the same record again: used once",
    "end without start": "not used",
    "start without end": "not used",
    "end before start": "not used",
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
    """Counts faults of a log."""

    def __init__(self) -> None:
        self.source = ""
        """Name of the file being read."""
        self._found: dict[str, Fault] = {}

    def add(self, kind: str, number: int, note: str = "", count: int = 1) -> None:
        """Count a fault at a line of the file being read."""
        self.add_at(kind, f"{self.source}:{number}" + (f" {note}" if note else ""), count)

    def add_at(self, kind: str, where: str, count: int = 1) -> None:
        """Count a fault whose place was noted before."""
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
