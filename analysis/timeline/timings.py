"""Lines of figures without a time: ``CUZK_TIMING: key=value …`` and a few fields of traces."""

import re
from array import array
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
        self.lines = 0
        """Lines that had a figure."""
        self.unreadable = 0
        """Values that are no numbers."""
        self._values: dict[str, array[float]] = {}

    def take(self, line: bytes) -> None:
        """Take a line: all pairs after the mark, or the known fields of another line."""
        _, marked, rest = line.partition(TIMING)
        pairs = _PAIR.findall(rest if marked else line)
        if not marked:
            pairs = [pair for pair in pairs if pair[0] in FIELDS]
        self.lines += bool(pairs)
        for name, text in pairs:
            key = name.decode()
            if not _NUMBER.fullmatch(text):
                self.unreadable += 1
            elif key in self._values or len(self._values) < MOST_KEYS:
                self._values.setdefault(key, array("d")).append(float(text))

    def distributions(self) -> list[Timing]:
        """Distribution of every key, in the order of appearance; in the unit of the log."""
        found = []
        for key, values in self._values.items():
            x = np.frombuffer(values)
            p50, p90, p99 = (float(q) for q in np.quantile(x, (0.5, 0.9, 0.99)))
            found.append(Timing(key, x.size, float(x.mean()), p50, p90, p99, float(x.sum())))
        return found
