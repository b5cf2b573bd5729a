"""How long steps took: the distribution of stalls, from the histograms of a journal.

Quantiles depend on how many steps there were; "over x a second" does not, so that is what mixes are
compared by. The largest step alone says how long one looked.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from analysis.rows import Row

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


def table(steps: Iterable[Row]) -> list[Stalls]:
    """Distributions of the rows of `analysis.load.steps`, one a benchmark."""
    groups: dict[str, list[Row]] = {}
    for row in steps:
        groups.setdefault(row["case"], []).append(row)
    return [_stalls(case, rows) for case, rows in groups.items()]


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
        first["kernel"] + (f"[{first['params']}]" if first["params"] else ""),
        first["beside"],
        total,
        {q: _quantile(ordered, q, total) for q in QUANTILES},
        {
            limit: sum(n for (low, _), n in ordered if low >= limit * 1e9) / seconds
            for limit in THRESHOLDS_S
        },
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
