"""Reader of the loaded-latency table that Intel's Memory Latency Checker prints."""

import re
from dataclasses import dataclass

import numpy as np

from analysis.intervals import Floats

_HEAD = re.compile(r"^[ \t]*Inject[ \t]+Latency[ \t]+Bandwidth[ \t\r]*$", re.MULTILINE)
# The tool's own list of delays ends here; with another list only text after the table ends it.
_LAST_DELAY = 20_000
# delay, latency in ns, bandwidth in MB/s:  " 00000\t166.18\t 210643.1"
_ROW = re.compile(r"^\s*(\d+)\s+(\d+\.\d+)\s+(\d+\.\d+)\s*$")


@dataclass(frozen=True, eq=False)
class LoadedLatency:
    """Rows of the table, least load first."""

    delay: Floats
    """Injected delay between requests, as printed."""
    latency_ns: Floats
    gb_per_s: Floats
    truncated: bool
    """Whether the text stops in the table, so that rows may be missing."""


def parse_loaded_latency(text: str) -> LoadedLatency:
    """Read the first loaded-latency table in the tool's output.

    A last line without its end is not used even if it looks whole: ``2268`` may have been
    ``226844.0``.

    Raises
    ------
    ValueError
        There is no such table, or it has no whole row.
    """
    head = _HEAD.search(text)
    if head is None:
        raise ValueError("no loaded-latency table: the line 'Inject Latency Bandwidth' is missing")
    rows: list[tuple[float, ...]] = []
    truncated = True
    # Units and a rule stand between the heading and the rows.
    for line in text[head.end() :].splitlines(keepends=True)[1:]:
        if not line.endswith("\n"):
            break
        row = _ROW.match(line)
        if row is not None:
            rows.append(tuple(float(v) for v in row.groups()))
        elif rows:
            # A row cut short is no end of the table.
            truncated = line.strip()[:1].isdigit()
            break
    if not rows:
        raise ValueError("the loaded-latency table has no whole row")
    delay, latency, megabytes = (np.array(column) for column in zip(*rows[::-1], strict=True))
    truncated = truncated and rows[-1][0] != _LAST_DELAY
    return LoadedLatency(delay, latency, megabytes / 1e3, truncated)
