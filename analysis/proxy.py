"""What samples of a pipeline say: seconds per job, and where they go."""

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analysis.intervals import interval, pairs_needed
from analysis.stats import DEAD_BAND, Decision, decide, not_tested
from analysis.visits import JOB, Layout, LostEventsError, events_of, pool_use, visits

Line = Mapping[str, Any]


@dataclass(frozen=True)
class TaskTime:
    """One task: seconds of its work on an item."""

    name: str
    n: int
    """Items, in all windows."""
    median_s: float
    low_s: float
    high_s: float
    """Quartiles."""
    alone_s: float
    """With the host to itself, or as the pipeline says; NaN: not measured."""
    at_once: float
    """Mean number of items at it."""


@dataclass(frozen=True)
class PoolTime:
    """One pool of the pipeline."""

    name: str
    tokens: int
    used: float
    """Mean share of the tokens that was out; NaN where it cannot be told."""
    wait_s: float
    """Mean of a take, those that did not wait included."""


@dataclass(frozen=True)
class Throughput:
    """Seconds per job at the sink, filling and draining left out."""

    seconds: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    of: str = "samples"
    """What the interval is over: samples, or blocks of so many jobs."""
    jobs: int = 0


@dataclass(frozen=True)
class SettingResult:
    """One setting of a pipeline."""

    name: str
    throughput: Throughput
    tasks: tuple[TaskTime, ...] = ()
    pools: tuple[PoolTime, ...] = ()
    against: Decision = field(default_factory=lambda: not_tested("it is the baseline"))
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProxyReport:
    """Result of a run of a pipeline."""

    pipeline: str
    settings: tuple[SettingResult, ...]
    timelines: Mapping[str, str] = field(default_factory=dict)
    """Setting -> file."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sampled:
    """One sample of one setting."""

    round: int
    line: Line


def throughput(samples: Sequence[Sampled], layout: Layout) -> Throughput:
    """Median over samples; its interval over them, or where they are few over blocks of jobs.

    A block is as many jobs as are in flight: inside one, jobs that were let in together come out
    together. Blocks of one sample are not independent, so samples come first.
    """
    rows = [s.line["actors"][layout.job] for s in samples]
    values = [row["seconds"] for row in rows if row["seconds"] > 0]
    if not values:
        return Throughput()
    jobs, middle = round(sum(row["passes"] for row in rows)), statistics.median(values)
    if len(values) >= pairs_needed():
        found = interval(values)
        return Throughput(middle, found.low, found.high, len(values), "samples", jobs)
    blocks = [seconds for s in samples for seconds in job_blocks(s.line, layout)]
    of = f"blocks of {layout.in_flight} jobs" if layout.in_flight > 1 else "jobs"
    if len(blocks) < pairs_needed():
        return Throughput(middle, n=len(blocks), of=of, jobs=jobs)
    found = interval(blocks)
    return Throughput(middle, found.low, found.high, len(blocks), of, jobs)


def job_blocks(line: Line, layout: Layout) -> list[float]:
    """Seconds per job of each block of jobs that came through in a sample's window."""
    try:
        events = events_of(line)
    except LostEventsError:
        return []
    script = layout.mix.actors[layout.job].script
    ends = sorted(e.end_ns for e in events if e.actor == layout.job and script[e.op].kind == "pass")
    before = sum(end <= 0 for end in ends)
    counted = ends[max(0, before - 1) :]
    size = layout.in_flight
    return [
        (counted[i + size] - counted[i]) * 1e-9 / size for i in range(0, len(counted) - size, size)
    ]


def setting_result(
    name: str,
    samples: Sequence[Sampled],
    layout: Layout,
    alone: Mapping[str, float],
    baseline: Sequence[Sampled] = (),
    dead_band: float = DEAD_BAND,
) -> SettingResult:
    """Result of one setting; ``baseline``: samples it is paired with, round by round."""
    durations: dict[str, list[float]] = defaultdict(list)
    at_once: dict[str, list[float]] = defaultdict(list)
    used: dict[str, list[float]] = defaultdict(list)
    notes = []
    for sample in samples:
        window_ns = sample.line["window_s"] * 1e9
        try:
            events = events_of(sample.line)
        except LostEventsError as error:
            notes.append(str(error))
            continue
        # What ended in the window, wherever it began: neither short nor long work is preferred.
        ended = [v for v in visits(events, layout) if v.works and 0 < v.end <= window_ns]
        for task in dict.fromkeys(layout.tasks):
            seconds = [(v.end - v.begin) * 1e-9 for v in ended if v.task == task]
            durations[task] += seconds
            # Little's law: items through in the window, times how long each was there.
            at_once[task].append(sum(seconds) / sample.line["window_s"])
        for pool, share in pool_use(events, layout, window_ns).items():
            used[pool].append(share)
    return SettingResult(
        name,
        throughput(samples, layout),
        tuple(
            _task_time(task, values, alone.get(task, math.nan), at_once[task])
            for task, values in durations.items()
            if values and task != JOB
        ),
        tuple(_pool_time(pool, samples, layout, used[pool]) for pool in layout.own_pools),
        _against(samples, layout, baseline, dead_band),
        tuple(dict.fromkeys(notes)),
    )


def _task_time(
    name: str, seconds: Sequence[float], alone_s: float, at_once: Sequence[float]
) -> TaskTime:
    low, middle, high = statistics.quantiles(seconds, n=4) if len(seconds) > 1 else [seconds[0]] * 3
    return TaskTime(name, len(seconds), middle, low, high, alone_s, statistics.fmean(at_once))


def _pool_time(
    name: str, samples: Sequence[Sampled], layout: Layout, used: Sequence[float]
) -> PoolTime:
    rows = [s.line["pools"][name] for s in samples]
    takes = sum(row["takes"] for row in rows)
    waits = sum(row["wait_s"] for row in rows)
    tokens = next(pool.tokens for pool in layout.mix.pools if pool.name == name)
    return PoolTime(
        name,
        tokens,
        statistics.fmean(used) if used else math.nan,
        waits / takes if takes else math.nan,
    )


def _against(
    samples: Sequence[Sampled], layout: Layout, baseline: Sequence[Sampled], dead_band: float
) -> Decision:
    """Decision on a setting and the baseline, pairs of one round; the sink is always the last."""
    if not baseline:
        return not_tested("it is the baseline")
    theirs = {s.round: s.line["actors"][-1]["seconds"] for s in baseline}
    mine = {s.round: s.line["actors"][layout.job]["seconds"] for s in samples}
    ratios = [
        math.log(mine[r] / theirs[r])
        for r in sorted(mine.keys() & theirs.keys())
        if mine[r] > 0 and theirs[r] > 0
    ]
    if not ratios:
        return not_tested("no round has both")
    return decide(ratios, dead_band)


def alone_seconds(
    lines: Mapping[str, Sequence[Line]], mixes: Mapping[str, str]
) -> dict[str, float]:
    """Median seconds of a pass of each task alone; ``mixes``: task -> name of its mix."""
    found = {}
    for task, mix in mixes.items():
        values = [line["actors"][0]["seconds"] for line in lines.get(mix, [])]
        values = [value for value in values if value > 0]
        if values:
            found[task] = statistics.median(values)
    return found
