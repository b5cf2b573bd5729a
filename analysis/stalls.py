"""How often steps take long: histograms of step times, counted from the long end.

Two runs are compared by "longer than x, a second", never by their maximum, which grows with the
length of the run.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from analysis.intervals import Floats
from analysis.measured import row_label
from analysis.rows import Row

LEAST_STEPS = 10
"""Rates behind fewer steps than this say little."""


@dataclass(frozen=True, eq=False)
class Stalls:
    """One case."""

    label: str
    size: int
    pages: str
    beside: str
    longer_than_ns: Floats
    """Ascending edges of bins."""
    per_second: Floats
    """Steps that took longer, for each second of one thread."""
    steps: Floats
    """How many those were."""

    def rate_over(self, ns: float) -> float:
        """Steps a second of one thread that took longer than this; the next edge above counts."""
        at = int(np.searchsorted(self.longer_than_ns, ns))
        return float(self.per_second[at]) if at < self.per_second.size else 0.0


def stalls(steps: Iterable[Row]) -> list[Stalls]:
    """Add up the histograms of every case.

    Parameters
    ----------
    steps : iterable of rows
        From `analysis.load.steps`.
    """
    cases: dict[tuple[str, str], list[Row]] = {}
    for row in steps:
        cases.setdefault((row["host"], row["case"]), []).append(row)
    return [_of_case(rows) for rows in cases.values()]


def _of_case(rows: list[Row]) -> Stalls:
    counts: dict[float, int] = {}
    for row in rows:
        counts[row["low_ns"]] = counts.get(row["low_ns"], 0) + row["count"]
    # A sample has many rows, and one time of its threads.
    samples = {(row["run"], row["time"]): row["threads_s"] for row in rows}
    edges = np.array(sorted(counts))
    longer = np.cumsum([counts[edge] for edge in edges[::-1]])[::-1].astype(np.float64)
    first = rows[0]
    return Stalls(
        row_label(first | {"beside": ""}),
        first["size"],
        first["pages"],
        first["beside"],
        edges,
        np.asarray(longer / sum(samples.values())),
        longer,
    )
