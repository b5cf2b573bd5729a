"""Fill, steady state and drain of a pipeline, and what a job takes in steady state.

The rule: fill lasts from the first start until the first item leaves (the first end of the last
phase); drain from the last time an item enters (the last start of the first phase) to the end. In
between the pipeline is steady: work enters and leaves.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from analysis.intervals import LEVEL, Floats
from analysis.timeline.spans import Run

# Means of batches are closer to independent the longer the batches are; fewer than ten batches
# leave too little to tell their spread, and a batch of fewer than five is none.
BATCHES = 20
FEWEST_BATCHES = 8
LEAST_IN_BATCH = 5
# Enough jobs to see in which phase they begin and end.
JOBS_LOOKED_AT = 2_000


class Mean(NamedTuple):
    """A mean with its interval; NaN ends where there is too little for one."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Steady:
    """When a pipeline was full."""

    source: str
    """Phase that most jobs begin with."""
    sink: str
    """Phase that most jobs end with."""
    start: float
    """Seconds on the log's clock."""
    end: float
    fill_s: float
    drain_s: float
    exists: bool
    """Whether work entered after the first item had left."""

    @property
    def window(self) -> tuple[float, float]:
        """Start and end."""
        return self.start, self.end


@dataclass(frozen=True)
class Throughput:
    """What an item and a job take: total = a + b n."""

    items: int
    """Items that left in steady state."""
    jobs: int
    """Jobs in the log."""
    items_per_job: float
    s_per_item: Mean
    s_per_job: Mean
    """b: the slope."""
    offset_s: Mean
    """a: what fill and drain add."""
    reason: str
    """Why there is no interval, or no value."""


def batch_mean(values: Floats, level: float = LEVEL) -> Mean:
    """Mean of values in the order of time, which may depend on their neighbours.

    Batches of equal counts are averaged and their means taken as independent: with t quantiles
    this holds as long as what connects neighbours lasts for less than a batch.

    References
    ----------
    A. M. Law, Simulation Modeling and Analysis, 5th ed., section 9.5.3.
    """
    n = values.size
    if not n:
        return Mean(math.nan, math.nan, math.nan, 0)
    mean = float(values.mean())
    batches = min(BATCHES, n // LEAST_IN_BATCH)
    if batches < FEWEST_BATCHES:
        return Mean(mean, math.nan, math.nan, n)
    edges = np.linspace(0, n, batches + 1).astype(np.int64)
    means = np.add.reduceat(values, edges[:-1]) / np.diff(edges)
    half = float(stats.t.ppf((1 + level) / 2, batches - 1) * means.std(ddof=1) / batches**0.5)
    return Mean(mean, mean - half, mean + half, n)


def steady_state(run: Run) -> Steady:
    """Find the window in which work both enters and leaves; see the rule above."""
    source, sink = _ends_of_jobs(run)
    fill_end = float(run.phases[sink].end.min())
    drain_start = float(run.phases[source].start[-1])
    exists = drain_start > fill_end
    return Steady(
        source,
        sink,
        fill_end,
        max(drain_start, fill_end),
        fill_end - run.start,
        run.end - max(drain_start, fill_end),
        exists,
    )


def throughput(run: Run, steady: Steady) -> Throughput:
    """Work out seconds an item and a job in steady state, and what fill and drain add.

    ``a`` is the whole time less ``b`` a job, so that a + b n is exact for this log.
    """
    sink = run.phases[steady.sink]
    jobs = np.unique(np.concatenate([spans.job for spans in run.phases.values()])).size
    per_job = len(sink) / jobs
    nothing = Mean(math.nan, math.nan, math.nan, 0)
    left = np.sort(sink.end)
    left = left[(left >= steady.start) & (left <= steady.end)]
    if not steady.exists or left.size < 2:
        why = "nothing entered after the first item had left: it was never steady"
        return Throughput(int(left.size), jobs, per_job, nothing, nothing, nothing, why)
    each = batch_mean(np.diff(left))
    job = Mean(per_job * each.value, per_job * each.low, per_job * each.high, each.n)
    low, high = (run.seconds - jobs * v for v in (job.high, job.low))
    offset = Mean(run.seconds - jobs * job.value, low, high, jobs)
    needed = FEWEST_BATCHES * LEAST_IN_BATCH + 1
    reason = "" if math.isfinite(each.low) else f"{left.size} items: an interval needs {needed}"
    return Throughput(int(left.size), jobs, per_job, each, job, offset, reason)


def _ends_of_jobs(run: Run) -> tuple[str, str]:
    """Phases with which most jobs begin and end."""
    names = list(run.phases)
    found = []
    for pick in ("start", "end"):
        jobs = np.concatenate([s.job for s in run.phases.values()])
        times = np.concatenate([getattr(s, pick) for s in run.phases.values()])
        which = np.repeat(np.arange(len(names)), [len(s) for s in run.phases.values()])
        # Jobs are numbered in the order in which they came.
        known = jobs < jobs.min() + JOBS_LOOKED_AT
        jobs, times, which = jobs[known], times[known], which[known]
        # Ties go to the phase that begins first in the log, or to the one that begins last.
        order = np.lexsort((which, times, jobs))
        jobs, which = jobs[order], which[order]
        change = np.flatnonzero(np.diff(jobs)) + 1
        at = np.r_[0, change] if pick == "start" else np.r_[change, jobs.size] - 1
        found.append(names[int(np.bincount(which[at]).argmax())])
    return found[0], found[1]
