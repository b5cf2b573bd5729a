"""Everything a log says, as data; nothing here formats (`analysis.timeline.tables` does)."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.intervals import LEVEL, Floats
from analysis.report import plain
from analysis.stats import DEAD_BAND
from analysis.timeline.beside import Overlap, concurrency, overlap
from analysis.timeline.effects import Effect, effects
from analysis.timeline.littles_law import Flow, Stated, check_stated, flows
from analysis.timeline.reading import Log
from analysis.timeline.spans import NONE, Run, Spans
from analysis.timeline.steady import (
    Mean,
    Steady,
    Throughput,
    batch_mean,
    steady_state,
    throughput,
)
from analysis.timeline.timings import Timing
from analysis.timeline.utilisation import Utilisation, utilisation

if TYPE_CHECKING:
    from pandas import DataFrame

SCHEMA = 1
"""Of the JSON document."""
BINS = 120
"""Pieces of time in a curve of concurrency."""
# A quantile q needs 10 / (1 - q) values, or it is the rank of one or two of them.
FOR_P90, FOR_P99 = 100, 1000
# A writer's own figure that differs by more is of something else than the span.
REPORTED_ALIKE = 0.02


@dataclass(frozen=True)
class Phase:
    """How long the spans of a phase are, and how many there are at once."""

    phase: str
    waiting: bool
    """Nothing is done in it."""
    spans: int
    workers: int
    """That lines name; 0: none."""
    mean_s: Mean
    p50_s: float
    p90_s: float
    p99_s: float
    """NaN with too few spans for the quantile."""
    least_s: float
    most_s: float
    mean_at_once: float
    most_at_once: int
    reported_ratio: float
    """Median of the writer's own figure over the span; NaN where it gives none."""


class AcrossRuns(NamedTuple):
    """total = a + b n over several runs of different numbers of jobs."""

    offset_s: Mean
    s_per_job: Mean


@dataclass
class RunSummary:
    """One run of the program that wrote the log."""

    run: Run
    phases: list[Phase]
    overlap: Overlap
    effects: list[Effect]
    utilisation: list[Utilisation]
    steady: Steady
    throughput: Throughput
    flows: list[Flow]
    stated: Stated | None
    edges_s: Floats
    """Of the pieces of time below, after the start of the run."""
    at_once: dict[str, Floats]
    """Mean number of spans in each piece."""
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Where in which file it begins."""
        return self.run.origin

    def to_dict(self) -> dict[str, Any]:
        """JSON data; what is not known is null."""
        steady = plain(self.steady)
        for key in ("start", "end"):
            steady[f"{key}_s"] = steady.pop(key) - self.run.start
        o = self.overlap
        return {
            "origin": self.run.origin,
            "jobs": self.throughput.jobs,
            "seconds": self.run.seconds,
            "phases": plain([_named(p) for p in self.phases]),
            "overlap": {
                "phases": list(o.phases),
                "busy_s": _lists(o.busy_s),
                "both_s": _lists(o.both_s),
                "share": _lists(o.share),
                "expected_share": _lists(o.expected),
                "mean_beside": _lists(o.beside),
                "seconds_at_level": {p: _lists(v) for p, v in zip(o.phases, o.levels, strict=True)},
            },
            "effects": plain(self.effects),
            "utilisation": plain(self.utilisation),
            "steady": steady,
            "throughput": plain(_named(self.throughput)),
            "flows": plain(self.flows),
            "stated": plain(self.stated) if self.stated else None,
            "concurrency": {
                "edges_s": _lists(self.edges_s),
                "mean": {name: _lists(curve) for name, curve in self.at_once.items()},
            },
            "notes": self.notes,
        }

    def frame(self, what: str = "phases") -> "DataFrame":
        """Tidy DataFrame of ``phases``, ``overlap``, ``effects``, ``utilisation``, ``gaps``,
        ``flows``, ``concurrency`` or ``spans``.
        """  # noqa: D205 - the list of names does not fit a line
        import pandas as pd

        if what == "spans":
            return self.run.frame()
        if what == "overlap":
            return self.overlap.frame()
        if what == "concurrency":
            parts = {"from_s": self.edges_s[:-1], "to_s": self.edges_s[1:]}
            wide = pd.DataFrame(parts | self.at_once)
            return wide.melt(["from_s", "to_s"], var_name="phase", value_name="at_once")
        if what == "gaps":
            rows = [
                {"phase": u.phase, "worker": u.worker, "start_s": g.start_s, "seconds": g.seconds}
                | {f"beside_{name}": value for name, value in g.beside.items()}
                for u in self.utilisation
                for g in u.longest
            ]
            return pd.DataFrame(rows)
        found = {
            "phases": self.phases,
            "effects": self.effects,
            "utilisation": self.utilisation,
            "flows": self.flows,
        }
        if what not in found:
            known = ", ".join([*found, "overlap", "gaps", "concurrency", "spans"])
            raise ValueError(f"no table {what!r}: there are {known}")
        return pd.json_normalize([_named(one) for one in found[what]])  # type: ignore[attr-defined]

    def _repr_html_(self) -> str:
        from analysis.timeline.tables import run_html

        return run_html(self)


@dataclass
class TimelineReport:
    """All runs of the logs that were read."""

    log: Log
    runs: list[RunSummary]
    across: AcrossRuns | None = None
    """Where there are at least three runs, of different numbers of jobs."""
    stated: Stated | None = None
    """Of figures stated without a log."""

    @property
    def timings(self) -> list[Timing]:
        """Figures without a time."""
        return self.log.timings

    def to_json(self) -> dict[str, Any]:
        """JSON data; what is not known is null."""
        return {
            "schema": SCHEMA,
            "log": {
                "sources": self.log.sources,
                "lines": self.log.lines,
                "records": self.log.records,
                "used": self.log.used,
                "faults": [plain(f) | {"meaning": f.meaning} for f in self.log.faults],
                "notes": self.log.notes,
            },
            "runs": [run.to_dict() for run in self.runs],
            "across_runs": plain(_named(self.across)) if self.across else None,
            "timings": plain(self.log.timings),
            "stated": plain(self.stated) if self.stated else None,
        }

    def json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n"

    def _repr_html_(self) -> str:
        from analysis.timeline.tables import report_html

        return report_html(self)


def summarise(
    log: Log, stated: Mapping[str, float] | None = None, dead_band: float = DEAD_BAND
) -> TimelineReport:
    """Work out everything a log says.

    Parameters
    ----------
    log : Log
        From `analysis.timeline.reading.read_log`.
    stated : mapping, optional
        Figures to check, see `analysis.timeline.littles_law.check_stated`.
    dead_band : float
        Relative change of a duration that is of no interest.
    """
    runs = [_of_run(run, stated, dead_band) for run in log.runs]
    report = TimelineReport(log, runs, _across(runs))
    if stated and not runs:
        report.stated = check_stated(stated)
    return report


def _of_run(run: Run, stated: Mapping[str, float] | None, dead_band: float) -> RunSummary:
    window = (run.start, run.end)
    steady = steady_state(run)
    found = overlap(run.phases, window)
    edges, curves = concurrency(run.phases, window, BINS)
    phases = [_of_phase(name, spans, run, found) for name, spans in run.phases.items()]
    notes = [
        f"{p.phase}: the log's own figure is {p.reported_ratio:.3g} times the span"
        for p in phases
        if abs(p.reported_ratio - 1) > REPORTED_ALIKE
    ]
    if run.compound:
        told = ", ".join(sorted(run.compound))
        notes.append(f"{told}: tasks tell of the same work; effects are looked for among these")
    return RunSummary(
        run,
        phases,
        found,
        effects(run, dead_band),
        utilisation(run, steady),
        steady,
        throughput(run, steady),
        flows(run, steady),
        check_stated(stated, run) if stated else None,
        edges - run.start,
        curves,
        notes,
    )


def _of_phase(name: str, spans: Spans, run: Run, found: Overlap) -> Phase:
    p50, p90, p99 = (float(q) for q in np.quantile(spans.duration, (0.5, 0.9, 0.99)))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = spans.reported / spans.duration
    ratio = ratio[np.isfinite(ratio)]
    return Phase(
        name,
        name in run.waits,
        len(spans),
        int((np.unique(spans.worker) != NONE).sum()),
        batch_mean(spans.duration),
        p50,
        p90 if len(spans) >= FOR_P90 else math.nan,
        p99 if len(spans) >= FOR_P99 else math.nan,
        float(spans.duration.min()),
        float(spans.duration.max()),
        found.mean(name),
        found.most(name),
        float(np.median(ratio)) if ratio.size else math.nan,
    )


def _across(runs: list[RunSummary]) -> AcrossRuns | None:
    """Least squares over runs; with two there would be no error to judge it by."""
    jobs = np.array([run.throughput.jobs for run in runs], dtype=np.float64)
    if jobs.size < 3 or np.unique(jobs).size < 2:
        return None
    seconds = np.array([run.run.seconds for run in runs])
    line = stats.linregress(jobs, seconds)
    t = float(stats.t.ppf((1 + LEVEL) / 2, jobs.size - 2))
    found = []
    for value, error in ((line.intercept, line.intercept_stderr), (line.slope, line.stderr)):
        half = t * float(error)
        found.append(Mean(float(value), float(value) - half, float(value) + half, jobs.size))
    return AcrossRuns(*found)


def _lists(values: NDArray[Any]) -> Any:  # noqa: ANN401 - nested lists of numbers
    """Numbers as JSON data: NaN becomes null."""
    return plain(np.asarray(values, dtype=np.float64).tolist())


def _named(value: Any) -> Any:  # noqa: ANN401 - dataclasses of any kind
    """Dataclass or named tuple as a dictionary, named tuples inside too."""
    if hasattr(value, "_asdict"):
        return {key: _named(inner) for key, inner in value._asdict().items()}
    if hasattr(value, "__dataclass_fields__"):
        return {key: _named(getattr(value, key)) for key in value.__dataclass_fields__}
    return value
