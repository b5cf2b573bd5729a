"""Rows -> measured curves: cases that differ in one number, ready to be fitted and drawn.

``measured_curves`` finds them, ``fit_curve`` chooses a model for one. By subject:

bandwidth
    a kernel alone, against threads, on the CPUs of one memory node
throughput
    passes a second of a kernel that takes from or puts into pools, against its threads
tlb, caches
    latency of a kernel alone on one thread, against its size: of one line a page, of every line
loaded latency
    latency beside traffic at several rates, against the bandwidth that the traffic reached
shootdown
    time of one release of memory, against CPUs of one address space: threads that all release, or
    one beside spinners
"""

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from analysis import models
from analysis.fit import LEAST_POINTS
from analysis.loaded import traffic
from analysis.model import Curve
from analysis.models.tlb_ladder import Ladder
from analysis.paired import grouped
from analysis.rows import Row, as_rows, neighbour, row_label
from analysis.selection import Choice, choose
from bench.errors import UsageError
from bench.mix import parse_mix
from bench.units import format_size

if TYPE_CHECKING:
    from pandas import DataFrame

UNITS = {
    "bandwidth": ("threads", "GB/s"),
    "throughput": ("threads", "passes/s"),
    "tlb": ("bytes", "ns"),
    "caches": ("bytes", "ns"),
    "loaded latency": ("GB/s", "ns"),
    "shootdown": ("CPUs", "ns"),
}
"""Units of x and y by subject."""
RELEASE = "phase_release_s"
"""Column of kernels that map and release memory."""
SATURATED = "bs"
"""Parameter of bandwidth models that is a plateau, not a limit for ever more threads."""
BYSTANDER = "spin"
"""Kernel that runs in an address space and leaves memory alone."""
ENOUGH = 0.95
"""Share of the highest bandwidth at which more threads are not worth having."""
LADDERS = (1, 2, 3)
"""Numbers of levels that are tried where one line a page is chased."""
LEAST_STRIDE = 4096
"""Bytes between lines from which a chase touches each page once."""


class Outside(NamedTuple):
    """A point that was measured and does not belong to the curve."""

    x: float
    samples: tuple[float, ...]
    why: str


@dataclass(frozen=True)
class MeasuredCurve:
    """Samples of one quantity at several x."""

    subject: str
    host: str
    label: str
    """Kernel with its parameters, and what ran beside it."""
    variant: str
    size: int
    """Bytes; 0 where it is what x counts."""
    pages: str
    x: tuple[float, ...]
    """Ascending; where x was measured too, its median."""
    samples: tuple[tuple[float, ...], ...]
    """At each x."""
    outside: tuple[Outside, ...] = ()

    @property
    def name(self) -> str:
        """What was measured, in short."""
        size = format_size(self.size) if self.size else ""
        return " ".join(filter(None, (self.label, size, self.pages)))

    @property
    def best(self) -> tuple[float, float]:
        """X and median y of the highest point measured, on the curve or not."""
        points = [*zip(self.x, self.y, strict=True)]
        points += [(point.x, statistics.median(point.samples)) for point in self.outside]
        return max(points, key=lambda point: point[1])

    @property
    def left_out(self) -> str:
        """Which points do not belong to the curve, and why."""
        reasons = {point.why: "" for point in self.outside}
        return "; ".join(
            f"{', '.join(f'{p.x:g}' for p in self.outside if p.why == why)} threads: {why}"
            for why in reasons
        )

    @property
    def y(self) -> tuple[float, ...]:
        """Median at each x."""
        return tuple(map(statistics.median, self.samples))

    @property
    def units(self) -> tuple[str, str]:
        """Of x and y."""
        return UNITS[self.subject]


def measured_curves(
    data: "Iterable[Row] | DataFrame", subject: str | None = None
) -> list[MeasuredCurve]:
    """Find every curve of two or more points; of one subject, or all.

    Parameters
    ----------
    data : iterable of rows, or DataFrame
        From `analysis.load`: ``frame``, ``rows``, or the ``rows`` of ``Results``.
    subject : str, optional
        A key of ``UNITS``.
    """
    known = [row for row in as_rows(data) if row["seconds"] > 0]
    piped = [row for row in known if row["pools"]]
    free = [row for row in known if not row["pools"]]
    alone = [row for row in free if not row["beside"]]
    found = [
        *_by_threads("bandwidth", alone, _bandwidth),
        *_by_threads("throughput", piped, lambda row: float(1 / row["seconds"])),
        *_by_threads("shootdown", alone, _release_ns),
        *_by_bystanders(free),
        *_by_size(alone),
        *_by_load(free),
    ]
    return [
        curve
        for curve in found
        if subject in (None, curve.subject) and len(curve.x) + len(curve.outside) > 1
    ]


def fit_curve(curve: MeasuredCurve, model: Curve | None = None) -> Choice:
    """Fit one model, or choose among all of the curve's subject.

    The median of the samples at each x is fitted. Under six points the choice is none but the
    measured best.

    Raises
    ------
    UsageError
        No model is known for the subject, or the model is for another one.
    ValueError
        The model cannot be fitted to these data.
    """
    if model is None:
        candidates = _candidates(curve.subject)
        if not candidates:
            raise UsageError(f"no model describes {curve.subject}", "name one with --model")
    elif curve.subject not in subjects_of(model):
        raise UsageError(f"{model.NAME} describes {model.SUBJECT}, not {curve.subject}")
    else:
        candidates = [model]
    return choose(candidates, curve.x, curve.samples)


def _candidates(subject: str) -> list[Curve]:
    if subject == "tlb":
        return [cast(Curve, Ladder(levels)) for levels in LADDERS]
    return list(models.curves(subject).values())


@dataclass(frozen=True)
class Saturation:
    """Where more threads stop moving more bytes, by a fitted model."""

    model: str
    gbps: float
    low: float
    high: float
    threads: int | None
    """Fewest threads measured or between that reach 95 % of it; None: none does."""


def saturation(choice: Choice) -> Saturation | None:
    """Saturated bandwidth of a fit; None where there is none, or the data do not determine it."""
    fit = choice.best
    if fit is None or SATURATED not in fit.params or SATURATED in fit.not_identifiable:
        return None
    limit = fit.params[SATURATED]
    low, high = fit.interval(SATURATED)
    counts = np.arange(1, int(fit.x.max()) + 1)
    reached = counts[fit.predict(counts) >= ENOUGH * limit]
    return Saturation(fit.model.NAME, limit, low, high, int(reached[0]) if reached.size else None)


def why_unfitted(curve: MeasuredCurve, choice: Choice) -> str:
    """Say why there is no fit; empty where there is one."""
    if choice.best is not None:
        return ""
    n = len(curve.x)
    what = "CPUs" if curve.subject == "shootdown" else "points"
    few = f"too few {what} ({n}, under {LEAST_POINTS})" if n < LEAST_POINTS else choice.reason
    return f"{few.partition(':')[0]}: measured best only"


def subjects_of(model: Curve) -> tuple[str, ...]:
    """Subjects whose curves a model may be fitted to: the one that it is for, first."""
    others = {"tlb": ("caches",), "throughput": ("bandwidth",)}
    return (model.SUBJECT, *others.get(model.SUBJECT, ()))


# ---- one function a kind of x --------------------------------------------------------------------

_SAME = (
    "host", "kernel", "params", "variant", "pages", "options",
)  # fmt: skip
"""What all points of a curve have in common, with the size where x is not the size."""


def _by_threads(
    subject: str, rows: list[Row], value: Callable[[Row], float]
) -> Iterable[MeasuredCurve]:
    usable = [row for row in rows if math.isfinite(value(row)) and value(row) > 0]
    for group in _groups(usable, (*_SAME, "size", "beside", "pools")):
        # Beyond one node the curve starts anew, and no model here knows that.
        points: dict[float, list[float]] = {}
        outside: list[Outside] = []
        for n, same in sorted(grouped(group, "threads").items()):
            values = [value(row) for row in same]
            if why := _why_not(same[0]):
                outside.append(Outside(float(n), tuple(values), why))
            else:
                points[float(n)] = values
        yield _curve(subject, group[0], points, tuple(outside))


def _why_not(row: Row) -> str:
    if row["nodes"] > 1:
        return "on several memory nodes"
    return "more than CPUs" if row["oversubscribed"] else ""


def _by_size(rows: list[Row]) -> Iterable[MeasuredCurve]:
    # What a chunk costs to map and release is no latency of a hierarchy.
    usable = [
        row
        for row in rows
        if row["threads"] == 1 and math.isfinite(row["latency_ns"]) and not _releases(row)
    ]
    for group in _groups(usable, _SAME):
        a_line_a_page = group[0].get("param_stride", math.nan) >= LEAST_STRIDE
        subject = "tlb" if a_line_a_page else "caches"
        points = {
            float(size): [row["latency_ns"] for row in same]
            for size, same in grouped(group, "size").items()
        }
        yield _curve(subject, group[0] | {"size": 0}, points)


def _by_bystanders(rows: list[Row]) -> Iterable[MeasuredCurve]:
    """Who releases memory, beside 0, 1, 2 … spinners that only run in the same address space."""
    usable = [row for row in rows if math.isfinite(_release_ns(row)) and not row["oversubscribed"]]
    for group in _groups(usable, (*_SAME, "size", "threads", "run", "block")):
        points: dict[float, list[float]] = {}
        for row in group:
            mix = parse_mix(row["mix"])
            own = mix.actors[row["actor"]].process
            others = [actor for i, actor in enumerate(mix.actors) if i != row["actor"]]
            if all(actor.kernel == BYSTANDER and actor.process == own for actor in others):
                cpus = float(row["threads"] + sum(actor.threads for actor in others))
                points.setdefault(cpus, []).append(_release_ns(row))
        if len(points) > 1:
            yield _curve("shootdown", group[0] | {"beside": BYSTANDER}, points)


def _by_load(rows: list[Row]) -> Iterable[MeasuredCurve]:
    for found in traffic(rows):
        points = {0.0: [row["latency_ns"] for row in found.idle]}
        for same in found.by_pace.values():
            reached = statistics.median(row["beside_gbps"] for row in same)
            points[reached] = [row["latency_ns"] for row in same]
        if len(points) > 2:
            row = found.idle[0]
            beside = neighbour(found.loader, row["process"])
            yield _curve("loaded latency", row | {"beside": beside}, points)


def _curve(
    subject: str, row: Row, points: dict[float, list[float]], outside: tuple[Outside, ...] = ()
) -> MeasuredCurve:
    x = tuple(sorted(points))
    samples = tuple(tuple(points[at]) for at in x)
    return MeasuredCurve(
        subject, row["host"], row_label(row), row["variant"], row["size"], row["pages"], x, samples,
        outside,
    )  # fmt: skip


def _bandwidth(row: Row) -> float:
    """GB/s; of memory that is mapped and released it is no matter of the memory bus."""
    return math.nan if _releases(row) else float(row["gbps"])


def _releases(row: Row) -> bool:
    return math.isfinite(row.get(RELEASE, math.nan))


def _release_ns(row: Row) -> float:
    """Time of one release: phases are summed over threads and over the window."""
    released = row["ops"] * row["passes"] * row["threads"]
    return float(row.get(RELEASE, math.nan) / released * 1e9) if released else math.nan


def _groups(rows: Iterable[Row], columns: tuple[str, ...]) -> Iterable[list[Row]]:
    """Rows that agree in all columns, in order of appearance."""
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[column] for column in columns), []).append(row)
    return found.values()
