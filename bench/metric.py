"""The number a command is judged by: its time, its processor time, or one that it prints.

Of what it prints the last match counts, on stdout before stderr. The one group of the expression
holds the number: ``123``, ``1.5e-3``, ``1,234,567``; a unit may follow it (``980ms``, ``1.2GiB/s``,
``350k``), so that a program that changes its unit between runs is still compared rightly.
"""

import collections
import math
import mmap
import re
from dataclasses import dataclass
from pathlib import Path

from bench.errors import UsageError
from bench.units import KIB

TIME, CPU = "time", "cpu"
_NUMBER = re.compile(
    r"^\s*([+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*([a-zA-Zµ%]*)(/\w+)?\s*$"
)
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0}
_SECONDS |= {"h": 3600.0}
_BYTES = {"B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_BYTES |= {f"{unit}iB": float(KIB**n) for n, unit in enumerate("KMGT", start=1)}
_PLAIN = {"": 1.0, "%": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
_KINDS = (("second", _SECONDS), ("byte", _BYTES), ("", _PLAIN))


@dataclass(frozen=True)
class Metric:
    """What to read out of a run. ``pattern`` empty: its time; ``cpu``: its processor time."""

    pattern: str = ""
    higher_is_better: bool = False

    @classmethod
    def of(cls, text: str | None, higher_is_better: bool = False) -> "Metric":
        """Metric of a command line; refuses what cannot be read."""
        if text in (None, TIME, CPU):
            if higher_is_better:
                raise UsageError(
                    "more time is not better", "leave --higher-is-better out, or give --metric"
                )
            return cls(CPU if text == CPU else "")
        try:
            groups = re.compile(str(text).encode()).groups
        except re.error as error:
            raise UsageError(f"not a regular expression: {text!r} ({error})") from None
        if groups != 1:
            raise UsageError(
                f"--metric needs one group around the number, and {text!r} has {groups}",
                r"write 'requests/s: ([0-9.]+)', and (?:…) for other parentheses",
            )
        return cls(str(text), higher_is_better)

    @property
    def name(self) -> str:
        """For tables."""
        return self.pattern or TIME

    @property
    def printed(self) -> bool:
        """Whether the command prints it."""
        return self.pattern not in ("", CPU)

    def read(self, stdout: Path, stderr: Path) -> "tuple[float, str] | str":
        """Number and kind (``second``, ``byte`` or nothing) of a run's output, or what is amiss."""
        for path in (stdout, stderr):
            found = _last_match(path, self.pattern)
            if found is not None:
                return parse_number(found) or f"{found!r} is not a number"
        return f"nothing matches {self.pattern!r}"


def parse_number(text: str) -> tuple[float, str] | None:
    """Value in seconds, bytes or as it stands, and which of these; None where it is no number."""
    match = _NUMBER.match(text)
    if match is None:
        return None
    try:
        value = float(match[1].replace(",", ""))
    except ValueError:
        return None
    # A unit nobody here knows is the program's own.
    factor, unit = 1.0, match[2] + (match[3] or "")
    for kind, units in _KINDS:
        if match[2] in units:
            factor, unit = units[match[2]], kind + (match[3] or "" if kind else "")
            break
    value *= factor
    return (value, unit) if math.isfinite(value) else None


def _last_match(path: Path, pattern: str) -> str | None:
    with path.open("rb") as file:
        if not path.stat().st_size:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            found = collections.deque(re.finditer(pattern.encode(), text, re.MULTILINE), maxlen=1)
            # Before the mapping closes: a match reads from it.
            last = found[0][1] if found else None
            del found
            return None if last is None else last.decode(errors="replace")


def tail(path: Path, lines: int = 5, most: int = 2000) -> str:
    """End of a file of text, to say what a program said."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            file.seek(max(0, size - most))
            text = file.read(most).decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.strip().splitlines()[-lines:])
