"""What kernels lose beside each other: time beside a neighbour over time alone, pair by pair."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.intervals import interval, pairs_needed
from analysis.paired import middle
from analysis.rows import Row, as_rows, row_label
from analysis.stats import pair_by_state
from bench.schema import strata

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Slowdown:
    """A kernel beside one neighbour."""

    victim: str
    size: int
    pages: str
    beside: str
    ratio: float
    """Median of time beside over time alone, of the same round; 2 is half the speed."""
    low: float
    """Of the 95 % interval; NaN where there are too few pairs."""
    high: float
    n: int

    @property
    def resolved(self) -> bool:
        """Whether the interval leaves out "no change"."""
        return self.low > 1 or self.high < 1


def slowdowns(data: "Iterable[Row] | DataFrame") -> list[Slowdown]:
    """Every kernel that was measured in one block alone and beside others.

    Samples are paired by round, and by placement as everywhere: two threads that find themselves
    near or far by turns are compared with the alone sample of their round.
    """
    measured = [row for row in as_rows(data) if row["seconds"] > 0 and not row["pools"]]
    alone = {(*_what(row), *_when(row)): row for row in measured if not row["beside"]}
    pairs: dict[tuple[object, ...], list[tuple[Row, Row]]] = {}
    for row in measured:
        if row["beside"] and (base := alone.get((*_what(row), *_when(row)))):
            pairs.setdefault((*_what(row), row["beside"]), []).append((row, base))
    return [_slowdown(same) for same in pairs.values()]


def comparable(found: Iterable[Slowdown]) -> list[Slowdown]:
    """Those that make a matrix: neighbours at no set rate, which several kernels were beside.

    Neighbours at a set rate make a curve of their own.
    """
    known = [s for s in found if " GB/s" not in s.beside and math.isfinite(s.ratio)]
    shared = Counter(s.beside for s in known)
    several = max(shared.values(), default=0) > 1
    return [s for s in known if shared[s.beside] > 1] if several else known


def _what(row: Row) -> tuple[object, ...]:
    columns = ("host", "kernel", "params", "variant", "pages", "threads", "size")
    return tuple(row[column] for column in columns)


def _when(row: Row) -> tuple[object, ...]:
    return row["run"], row["block"], row["round"]


def _slowdown(pairs: list[tuple[Row, Row]]) -> Slowdown:
    states = [strata(mine["state"], base["state"]) for mine, base in pairs]
    logs = pair_by_state(
        [mine["seconds"] for mine, _ in pairs],
        [base["seconds"] for _, base in pairs],
        [state for state, _ in states],
        [state for _, state in states],
    ).log_ratios
    low = high = math.nan
    if logs.size >= pairs_needed():
        ends = interval(logs)
        low, high = math.exp(ends.low), math.exp(ends.high)
    base, beside = pairs[0][1], pairs[0][0]["beside"]
    return Slowdown(
        row_label(base), base["size"], base["pages"], beside, math.exp(middle(logs)), low, high,
        int(logs.size),
    )  # fmt: skip
