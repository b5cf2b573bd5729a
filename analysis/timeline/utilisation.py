"""How busy the workers of each phase were, and the gaps in which they were not.

A worker's spans are merged first: where one call is still being wound up while the next runs, the
worker is busy once, not twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analysis.intervals import Floats
from analysis.timeline.beside import Level
from analysis.timeline.spans import NONE, Run, Spans
from analysis.timeline.steady import Steady

GAP_EDGES_S = (0.05, 0.5, 5.0)
"""Between classes of gaps: hand-over between two items, a short wait, a long one."""
LONGEST = 5
"""Gaps named one by one."""


@dataclass(frozen=True)
class Gap:
    """Time in which a worker had nothing to do."""

    start_s: float
    """After the start of the run."""
    seconds: float
    beside: dict[str, float]
    """Mean number of spans of each phase meanwhile."""


@dataclass(frozen=True)
class Utilisation:
    """One worker of a phase, or all of them together."""

    phase: str
    worker: str
    """Empty: all together, busy while at least one is."""
    spans: int
    busy_s: float
    """Seconds of merged spans."""
    sum_s: float
    """Seconds of all spans added up; more than ``busy_s`` where they overlap."""
    share: float
    """Busy share of the time from its first start to its last end."""
    steady_share: float
    """Busy share of the steady state; NaN without one."""
    gaps: int
    idle_s: float
    """Seconds of all gaps."""
    classes: tuple[int, ...]
    """Gaps by length, between the edges `GAP_EDGES_S`."""
    longest: tuple[Gap, ...]
    """The longest gaps, longest first."""
    in_gaps: dict[str, float]
    """Mean number of spans of each phase over all gaps."""


def merged(spans: Spans) -> tuple[Floats, Floats]:
    """Starts and ends of the pieces of time in which at least one span is open.

    Spans that touch are one piece.
    """
    if not len(spans):
        return spans.start, spans.end
    reach = np.maximum.accumulate(spans.end)
    new = np.concatenate([[True], spans.start[1:] > reach[:-1]])
    last = np.concatenate([np.flatnonzero(new[1:]), [len(spans) - 1]])
    return spans.start[new], reach[last]


def busy_within(spans: Spans, window: tuple[float, float]) -> float:
    """Seconds of a window in which at least one span is open."""
    start, end = merged(spans)
    return float(np.maximum(end.clip(*window) - start.clip(*window), 0).sum())


def utilisation(run: Run, steady: Steady) -> list[Utilisation]:
    """Busy shares and gaps of every phase of work: all workers together, then each by name."""
    levels = {name: Level(spans) for name, spans in run.phases.items()}
    found = []
    for phase, spans in run.working.items():
        found.append(_of(phase, "", spans, run, steady, levels))
        named = [int(w) for w in np.unique(spans.worker) if w != NONE]
        if len(named) > 1 or (named and (spans.worker == NONE).any()):
            for worker in sorted(named, key=lambda w: _natural(run.workers[w])):
                own = spans.where(spans.worker == worker)
                found.append(_of(phase, run.workers[worker], own, run, steady, levels))
    return found


def _of(
    phase: str,
    worker: str,
    spans: Spans,
    run: Run,
    steady: Steady,
    levels: Mapping[str, Level],
) -> Utilisation:
    start, end = merged(spans)
    gap_start, gap_end = end[:-1], start[1:]
    length = gap_end - gap_start
    order = np.argsort(-length, kind="stable")[:LONGEST]
    idle = float(length.sum())
    meanwhile = {
        name: float((level.integral(gap_end) - level.integral(gap_start)).sum()) / idle
        for name, level in levels.items()
        if idle
    }
    window = steady.end - steady.start
    return Utilisation(
        phase,
        worker,
        len(spans),
        float((end - start).sum()),
        float(spans.duration.sum()),
        float((end - start).sum() / (end[-1] - start[0])) if end[-1] > start[0] else 1.0,
        busy_within(spans, steady.window) / window if window > 0 else np.nan,
        int(length.size),
        idle,
        tuple(int(n) for n in np.bincount(np.searchsorted(GAP_EDGES_S, length, side="right"),
                                          minlength=len(GAP_EDGES_S) + 1)),
        tuple(
            Gap(
                float(gap_start[i] - run.start),
                float(length[i]),
                {n: float(v.mean(gap_start[i], gap_end[i])) for n, v in levels.items()},
            )
            for i in order
        ),
        meanwhile,
    )  # fmt: skip


def _natural(name: str) -> tuple[int, str]:
    """Order of workers: numbers by value."""
    return (int(name) if name.isdecimal() else 1 << 62, name)
