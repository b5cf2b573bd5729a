"""What a pipeline would do, before anybody builds it: a deterministic fluid simulation.

Items go through tasks as `bench.pipeline` describes; between two events everything that runs has a
constant speed, by `analysis.rates`. The model knows no caches, page tables or scheduler: what it
misses is the point of `pipeline check`.
"""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.binding import Binding, binding, demands
from analysis.plant import Conditions, Crowding, Plant
from analysis.rates import Alone
from analysis.steps import Event, Played, play
from bench.errors import UsageError
from bench.pipeline import Pipeline

STEADY_JOBS = 3
"""Completions in the steady state, below which there is no slope to speak of."""

MOST_ITEMS = 1_000_000
"""Of a run; its memory and time grow with them."""


@dataclass(frozen=True)
class Spread:
    """Distribution of a task's seconds; waiting is not part of them."""

    count: int
    mean: float
    median: float
    p95: float
    least: float
    most: float


@dataclass(frozen=True)
class PoolUse:
    """What became of a pool's tokens."""

    held: float
    """Mean share of the tokens that is out, in the steady state; NaN for a pool that begins empty
    and has no bound."""
    waits: int
    """Takes and puts that had to wait, in the whole run."""
    wait_s: float
    """Their mean seconds; 0 where there were none."""


@dataclass(frozen=True)
class Simulated:
    """One run of the model."""

    completions: tuple[float, ...]
    """Seconds at which jobs were through, in that order."""
    total_s: float
    seconds_per_job: float
    """Slope of the completions between fill and drain; NaN where too few lie there."""
    offset_s: float
    """Total = offset + jobs × seconds a job: what filling and draining cost."""
    task_seconds: Mapping[str, Spread]
    pool_use: Mapping[str, PoolUse]
    demands: Mapping[str, float]
    """Seconds a job of each resource: see `analysis.binding`."""
    binding: Binding
    events: tuple[Event, ...] = ()


def simulate(
    pipeline: Pipeline,
    costs: Mapping[str, Alone] | None = None,
    *,
    jobs: int,
    cpus: int = 0,
    seed: int = 0,
    bandwidth: float = 0.0,
    crowding: Crowding | None = None,
    company: Collection[str] | None = None,
    interrupts: Mapping[str, float] | None = None,
    times: Mapping[str, Sequence[float]] | None = None,
    events: bool = False,
) -> Simulated:
    """Let jobs go through a pipeline.

    Parameters
    ----------
    pipeline : Pipeline
    costs : mapping of str to Alone, optional
        What one pass of each kernel task takes alone, by task; traffic in bytes a second. Tasks of
        a fixed time bring their own.
    jobs : int
        From an empty pipeline until the last is through.
    cpus : int
        Shared by all threads at work once there are more of them; 0: no limit.
    seed : int
        Of the jitter. The luck of an item at a task depends on nothing else.
    bandwidth : float
        Bytes a second that fixed times share, where the pipeline does not say.
    crowding : callable, optional
        Speed of each of k phases at once over that of one, X(k) / (k X(1)), where company costs
        more than the sharing law says; the smaller of the two counts.
    company : collection of str, optional
        Tasks that crowd each other; those that use memory, if not given.
    interrupts : mapping of str to float, optional
        Task -> share of everybody else's time that each item at it takes away.
    times : mapping of str to sequence of float, optional
        Seconds alone of each item in turn (of each job, for a whole task), as from a log.
    events : bool
        Whether to keep when each item was at each task.

    Raises
    ------
    UsageError
        A kernel task without costs, traffic without a bandwidth, or a pipeline that stands still.
    """
    if jobs < 1:
        raise UsageError(f"at least one job must go through, not {jobs}")
    if jobs * pipeline.items > MOST_ITEMS:
        raise UsageError(
            f"{jobs} jobs of {pipeline.items} items are more than {MOST_ITEMS} items",
            "let fewer jobs through: a steady state shows in some hundred",
        )
    conditions = Conditions(cpus, bandwidth, crowding, company, interrupts or {})
    plant = Plant(pipeline, costs or {}, conditions)
    work = plant.work(jobs, seed, times or {})
    return _result(plant, play(plant, jobs, work, events), work)


def _result(plant: Plant, played: Played, work: Sequence[Sequence[float]]) -> Simulated:
    pipeline, completions = plant.pipeline, played.completions
    jobs, total = len(completions), completions[-1]
    first, last = steady(jobs, pipeline.in_flight)
    rate = slope(completions[first:last], pipeline.in_flight)
    known = rate if rate > 0 else total / jobs
    busy, memory = _busy(plant, played) / jobs, _memory(plant, played) / jobs
    demand, alone = (
        demands(pipeline, _means(plant, seconds), busy, memory, plant.conditions.cpus)
        for seconds in (played.durations, work)
    )
    return Simulated(
        tuple(completions),
        total,
        rate,
        total - rate * jobs,
        {task.name: _spread(got) for task, got in zip(plant.tasks, played.durations, strict=True)},
        _pool_use(plant, played, first, last),
        demand,
        binding(demand, alone, known),
        tuple(played.events),
    )


def _means(plant: Plant, seconds: Sequence[Sequence[float]]) -> dict[str, float]:
    return {t.name: statistics.fmean(s) for t, s in zip(plant.tasks, seconds, strict=True)}


def steady(jobs: int, in_flight: int) -> tuple[int, int]:
    """Completions between fill and drain, as bounds of a slice; empty where the run is too short.

    From the first that a full pipeline gave to the last that let another job in.
    """
    first, last = in_flight - 1, jobs - in_flight + 1
    return (first, last) if last - first >= STEADY_JOBS else (0, 0)


def slope(completions: Sequence[float], period: int = 1) -> float:
    """Seconds a job: mean over all completions that lie about half of the window apart.

    Apart by whole periods, because jobs in flight may come out in bursts of as many, and a line
    through a stair depends on where on a step it begins and ends. NaN for too few completions.
    """
    n = len(completions)
    if n < STEADY_JOBS:
        return math.nan
    lag = max(1, n // 2 // period * period or n // 2)
    at = np.asarray(completions)
    return float((at[lag:] - at[:-lag]).mean()) / lag


def _busy(plant: Plant, played: Played) -> float:
    """CPU-seconds. Where CPUs are never short every task had its own all the time."""
    if plant.crowded:
        return played.busy_s
    return sum(n * math.fsum(d) for n, d in zip(plant.threads, played.durations, strict=True))


def _memory(plant: Plant, played: Played) -> float:
    """Seconds times share of the interface that was asked for."""
    if plant.shared:
        return played.memory_s
    return sum(
        max(1.0, n) * alone.b1 / alone.bs * math.fsum(d)
        for n, alone, d in zip(plant.threads, plant.alone, played.durations, strict=True)
        if alone.has_memory
    )


def _spread(seconds: Sequence[float]) -> Spread:
    values = np.asarray(seconds)
    median, p95 = np.percentile(values, (50, 95))
    return Spread(
        len(seconds),
        float(values.mean()),
        float(median),
        float(p95),
        float(values.min()),
        float(values.max()),
    )


def _pool_use(plant: Plant, played: Played, first: int, last: int) -> dict[str, PoolUse]:
    nothing = [0.0] * len(plant.pools)
    if last > first:
        begin, end = played.areas[first], played.areas[last - 1]
        start_s, end_s = played.completions[first], played.completions[last - 1]
    else:
        begin, end, start_s, end_s = nothing, played.areas[-1], 0.0, played.completions[-1]
    found = {}
    for p, name in enumerate(plant.pools):
        size = plant.tokens[p] or plant.capacity[p]
        span = (end_s - start_s) * size
        held = 1 - (end[p] - begin[p]) / span if span > 0 else math.nan
        waits = played.waits[p]
        found[name] = PoolUse(held, waits, played.waited_s[p] / waits if waits else 0.0)
    return found
