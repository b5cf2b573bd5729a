"""Latency of a chase against the traffic of its neighbours: points, limits and a fitted curve."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from analysis import models
from analysis.intervals import median_interval, pairs_needed
from analysis.latency import FACTORS, latency_limits
from analysis.rows import Row, label
from analysis.selection import choose
from bench.mix import Actor, actor_name, parse_mix

SUBJECT = "loaded latency"
FEWEST_POINTS = 4
"""With traffic: a chase beside one neighbour is a comparison, not a curve."""


@dataclass(frozen=True)
class LoadedPoint:
    """One rate of the neighbours."""

    pace_gb_per_s: float
    """Asked of each thread; 0: as fast as it goes."""
    gb_per_s: float
    """Useful bytes of all neighbours, median."""
    latency_ns: float
    low_ns: float
    """95 % interval of the median; NaN under six samples."""
    high_ns: float
    n: int


@dataclass(frozen=True)
class LoadedCurve:
    """A chase beside one kind of traffic."""

    victim: str
    pages: str
    size: int
    loader: str
    threads: int
    """Of the loader."""
    points: tuple[LoadedPoint, ...]
    """Least traffic first; the first one is the chase alone."""
    gb_per_s_at: dict[float, float] = field(default_factory=dict)
    """Traffic at which latency is this many times the idle one; NaN where it never was."""
    model: str = ""
    """Empty where no model could be fitted."""
    params: dict[str, float] = field(default_factory=dict)
    rms_percent: float = math.nan
    reason: str = ""
    """Why this model, or none."""
    measured_factor: float = math.nan
    """Highest latency measured over the idle one."""


@dataclass(frozen=True)
class Traffic:
    """Samples of one latency victim beside one kind of traffic, at several rates."""

    idle: list[Row]
    """Of the victim alone."""
    by_pace: dict[float, list[Row]]
    """By the rate asked of each thread, in B/s; 0 is as fast as it goes."""
    loader: Actor
    """What runs beside, at whatever rate."""


def traffic(rows: Iterable[Row]) -> list[Traffic]:
    """Find every latency victim that was measured alone and beside paced traffic.

    Samples of one block only: between blocks a host drifts.
    """
    alone: dict[tuple[str, str, str], list[Row]] = {}
    loaded: dict[tuple[str, str, str, Actor], dict[float, list[Row]]] = {}
    for row in rows:
        if math.isnan(row["latency_ns"]):
            continue
        mix = parse_mix(row["mix"])
        victim = actor_name(mix.actors[row["actor"]])
        others = [actor for i, actor in enumerate(mix.actors) if i != row["actor"]]
        if not others:
            alone.setdefault((row["run"], row["block"], victim), []).append(row)
        elif len(others) == 1 and row["beside_gbps"] > 0:
            key = (row["run"], row["block"], victim, replace(others[0], pace=0.0))
            loaded.setdefault(key, {}).setdefault(others[0].pace, []).append(row)
    return [
        Traffic(alone[run, block, victim], by_pace, loader)
        for (run, block, victim, loader), by_pace in loaded.items()
        if (run, block, victim) in alone
    ]


def curves(rows: Iterable[Row]) -> list[LoadedCurve]:
    """Curves in the rows of a run: latency victims beside one paced kind of traffic."""
    return [
        _curve(found.idle, found.by_pace, found.loader)
        for found in traffic(rows)
        if len(found.by_pace) >= FEWEST_POINTS
    ]


def _curve(idle: Sequence[Row], by_pace: dict[float, list[Row]], loader: Actor) -> LoadedCurve:
    groups = [(0.0, 0.0, idle)]
    groups += [
        (pace / 1e9, statistics.median(r["beside_gbps"] for r in rows), rows)
        for pace, rows in by_pace.items()
    ]
    groups.sort(key=lambda item: item[1])
    points = tuple(_point(pace, traffic, rows) for pace, traffic, rows in groups)
    x = [point.gb_per_s for point in points]
    limits = latency_limits(x, [point.latency_ns for point in points], FACTORS)
    candidates = models.curves(SUBJECT).values()
    chosen = choose(candidates, x, [[r["latency_ns"] for r in rows] for _, _, rows in groups])
    first = idle[0]
    base = LoadedCurve(
        first["kernel"] + (f"[{first['params']}]" if first["params"] else ""),
        first["pages"],
        first["size"],
        label(loader),
        loader.threads,
        points,
        limits.gb_per_s_at,
        reason=chosen.reason,
        measured_factor=max(p.latency_ns for p in points) / limits.idle_ns,
    )
    if chosen.best is None:
        return base
    return replace(
        base,
        model=chosen.best.model.NAME,
        params=chosen.best.params,
        rms_percent=chosen.best.rms_percent,
    )


def _point(pace: float, traffic: float, rows: Sequence[Row]) -> LoadedPoint:
    values = [row["latency_ns"] for row in rows]
    low = high = math.nan
    if len(values) >= pairs_needed():
        found = median_interval(values)
        low, high = found.low, found.high
    return LoadedPoint(pace, traffic, statistics.median(values), low, high, len(values))
