"""How long steps took: the distribution of stalls, from the histograms of a journal.

Quantiles depend on how many steps there were; "over x a second" does not, so that is what mixes are
compared by. The largest step alone says how long one looked.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from analysis.intervals import Floats
from analysis.rows import Row
from bench.units import natural

THRESHOLDS_S = (20e-6, 100e-6, 1e-3, 10e-3)
QUANTILES = (0.5, 0.99, 0.999, 0.9999)
STEPS_FOR_A_QUANTILE = 10
"""Beyond it: with fewer, the quantile is a few accidents."""


@dataclass(frozen=True)
class Stalls:
    """Step times of one measured actor of a mix, over all its samples."""

    case: str
    label: str
    beside: str
    steps: int
    quantiles_s: Mapping[float, float]
    """Upper edge of the bin, at most 6 % too high; NaN where the steps are too few."""
    over_per_s: Mapping[float, float]
    """Steps a second of one thread's time that took longer than this many seconds."""
    size: int
    pages: str


@dataclass(frozen=True, eq=False)
class Tail:
    """How often one measured actor's steps took longer than x, at every edge of a bin."""

    case: str
    label: str
    size: int
    pages: str
    beside: str
    longer_than_ns: Floats
    """Ascending."""
    per_s: Floats
    """Steps a second of one thread's time that took longer."""
    steps: Floats
    """How many those were: under ten the rate is a few accidents."""


def tails(steps: Iterable[Row]) -> list[Tail]:
    """Tails of the rows of `analysis.load.steps`, one a benchmark; the actor alone comes first."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in steps:
        groups.setdefault((row["host"], row["case"]), []).append(row)
    found = [_tail(rows) for rows in groups.values()]
    return sorted(found, key=lambda tail: (tail.label, tail.size, tail.pages, natural(tail.beside)))


def table(steps: Iterable[Row]) -> list[Stalls]:
    """Distributions of the rows of `analysis.load.steps`, one a benchmark."""
    groups: dict[str, list[Row]] = {}
    for row in steps:
        groups.setdefault(row["case"], []).append(row)
    return [_stalls(case, rows) for case, rows in groups.items()]


def _tail(rows: list[Row]) -> Tail:
    first = rows[0]
    counts: dict[float, int] = {}
    for row in rows:
        counts[row["low_ns"]] = counts.get(row["low_ns"], 0) + row["count"]
    # A sample has a row a bin, and one time of its threads.
    watched = {(row["run"], row["block"], row["round"]): row["threads_s"] for row in rows}
    edges = np.array(sorted(counts))
    longer = np.cumsum([counts[edge] for edge in edges[::-1]])[::-1].astype(np.float64)
    return Tail(
        first["case"],
        _label(first),
        first["size"],
        first["pages"],
        first["beside"],
        edges,
        np.asarray(longer / sum(watched.values())),
        longer,
    )


def _label(row: Row) -> str:
    return str(row["kernel"]) + (f"[{row['params']}]" if row["params"] else "")


def _stalls(case: str, rows: list[Row]) -> Stalls:
    first = rows[0]
    counts: dict[tuple[float, float], int] = {}
    watched: dict[tuple[str, int], float] = {}
    for row in rows:
        edges = (row["low_ns"], row["high_ns"])
        counts[edges] = counts.get(edges, 0) + row["count"]
        watched[row["block"], row["round"]] = row["threads_s"]
    total, seconds = sum(counts.values()), sum(watched.values())
    ordered = sorted(counts.items())
    return Stalls(
        case,
        _label(first),
        first["beside"],
        total,
        {q: _quantile(ordered, q, total) for q in QUANTILES},
        {
            limit: sum(n for (low, _), n in ordered if low >= limit * 1e9) / seconds
            for limit in THRESHOLDS_S
        },
        first["size"],
        first["pages"],
    )


def _quantile(ordered: list[tuple[tuple[float, float], int]], q: float, total: int) -> float:
    if total * (1 - q) < STEPS_FOR_A_QUANTILE - 1e-9:
        return math.nan
    seen = 0
    for (_, high), count in ordered:
        seen += count
        if seen >= q * total:
            return high * 1e-9
    return math.nan
