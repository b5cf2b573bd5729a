"""TLB arithmetic, and labels for the knees that a ladder fit has found."""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import ArrayLike

from analysis.fitted import Fit
from analysis.intervals import Floats, finite

# A knee measured this near a published count may be that level; nearer claims more than a fitted
# corner can.
NEAR = 0.2


def reach_bytes(entries: int, page_bytes: int) -> int:
    """Bytes that a level covers. Compare reaches of one level only, not L2 with L1."""
    if entries < 1 or page_bytes < 1:
        raise ValueError("entries and page size must be 1 or more")
    return entries * page_bytes


def hit_fraction(working_set: ArrayLike, reach: float) -> Floats:
    """Share of uniformly random accesses that a level with this reach serves."""
    if not reach > 0:
        raise ValueError(f"the reach must be over 0, not {reach}")
    sizes = finite("working_set", working_set)
    if sizes.min() <= 0:
        raise ValueError("a working set must be over 0")
    return np.asarray(np.minimum(1.0, reach / sizes))


@dataclass(frozen=True)
class Level:
    """One step of a fitted ladder."""

    reach: float
    """Bytes, measured."""
    cost: float
    """Of a miss, in units of the latency; the last level's is a page walk."""
    entries: float
    """Reach over page size."""
    labels: tuple[str, ...]
    """Published levels of about this many entries; a hint, not a finding."""


def levels(fit: Fit, page_bytes: int) -> list[Level]:
    """List the levels of a `tlb_ladder` fit, smallest reach first.

    Raises
    ------
    ValueError
        The fit is of another model.
    """
    if fit.model.SUBJECT != "tlb":
        raise ValueError(f"{fit.model.NAME} is no TLB ladder")
    steps = sorted(zip(fit.values[1::2], fit.values[2::2], strict=True))
    return [
        Level(float(reach), float(cost), float(reach) / page_bytes, labels(reach / page_bytes))
        for reach, cost in steps
    ]


def labels(entries: float) -> tuple[str, ...]:
    """Name the published 4 KiB levels within a fifth of this many entries."""
    return tuple(
        f"{core} {level.upper()} ({count})"
        for core, level, count in _published()
        if abs(entries / count - 1) <= NEAR
    )


@cache
def _published() -> tuple[tuple[str, str, int], ...]:
    text = resources.files("analysis").joinpath("data/tlb_entries.json").read_text("utf-8")
    return tuple(
        (row["core"], level, row[level])
        for row in json.loads(text)["cores"]
        for level in ("l1", "l2")
    )
