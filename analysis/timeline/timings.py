"""Lines of figures without a time: ``CUZK_TIMING: key=value …`` and a few fields of traces."""

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

TIMING = b"CUZK_TIMING:"
FIELDS = (b"witness_ms", b"eval_ms", b"malloc_trim_ms")
"""Figures that stand in other lines."""
MOST_KEYS = 256
_PAIR = re.compile(rb"(?:^|[\s,{])([A-Za-z_]\w*)=(\S+?)(?=[\s,}]|$)")
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Timing:
    """How the values of one key are distributed."""

    key: str
    n: int
    mean: float
    p50: float
    p90: float
    p99: float
    total: float


class Timings:
    """Collects figures by key."""

    def __init__(self) -> None:
        self.unreadable = 0
        """Values that are no numbers."""
        self._values: dict[str, array[float]] = {}

    def take(self, text: bytes) -> None:
        """Take whole lines: all pairs behind the mark, or the known fields of other lines."""
        lines = {
            start: text.find(b"\n", start)
            for name in (TIMING, *FIELDS)
            for start in _lines_with(text, name)
        }
        for start, end in sorted(lines.items()):
            self._take_line(text[start:end])

    def _take_line(self, line: bytes) -> None:
        _, marked, rest = line.partition(TIMING)
        for name, value in _PAIR.findall(rest if marked else line):
            key = name.decode()
            if not marked and name not in FIELDS:
                continue
            if not _NUMBER.fullmatch(value):
                self.unreadable += 1
            elif key in self._values or len(self._values) < MOST_KEYS:
                self._values.setdefault(key, array("d")).append(float(value))

    def distributions(self) -> list[Timing]:
        """Distribution of every key, in the order of appearance; in the unit of the log."""
        found = []
        for key, values in self._values.items():
            x = np.frombuffer(values)
            p50, p90, p99 = (float(q) for q in np.quantile(x, (0.5, 0.9, 0.99)))
            found.append(Timing(key, x.size, float(x.mean()), p50, p90, p99, float(x.sum())))
        return found


def _lines_with(text: bytes, name: bytes) -> Iterator[int]:
    """Where the lines begin that hold a name."""
    at = text.find(name)
    while at >= 0:
        yield text.rfind(b"\n", 0, at) + 1
        at = text.find(name, text.find(b"\n", at))
