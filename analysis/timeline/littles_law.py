"""Can these figures all be true? Little's law, N = X R, on a log and on figures somebody states.

It needs no assumption about the pipeline: over a long time the mean number of items in a phase is
the rate at which they pass times the mean time they stay. Z = N / X - R is the time one of N
workers waits between two items.

Source: J. D. C. Little, Operations Research 9 (1961) 383-387; P. J. Denning, J. P. Buzen, ACM
Computing Surveys 10 (1978) 225-261 (as identities of measured data).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from analysis.timeline.beside import Level
from analysis.timeline.spans import Run
from analysis.timeline.steady import Mean, Steady, batch_mean
from bench.errors import UsageError
from bench.units import parse_duration

ITEMS = "items"
"""Items of a job."""
PER_JOB = ("s_per_job", "s_per_proof")
PER_ITEM = "s_per_item"
LIMITS = {"pw": "synth", "gw": "gpu"}
"""Short names of limits."""
LIMIT = ".limit"
"""``PHASE.limit``: most items in a phase at once."""
TOLERANCE = 0.02
"""Figures are stated with two or three digits."""


@dataclass(frozen=True)
class Flow:
    """Little's law on one phase of a log, over the steady state or, without one, the whole run."""

    phase: str
    window_s: float
    mean_at_once: float
    """N."""
    per_s: float
    """X: ends a second."""
    residence_s: float
    """R: mean duration of the spans that ended."""
    most_at_once: int
    """The most that was seen: as many places there are, if all were ever taken."""
    idle_s: float
    """Z = most / X - R: how long a place stays empty between two items. Near 0: the phase is full;
    large: it waits for work."""

    @property
    def error(self) -> float:
        """X R / N - 1: what the ends of the window cut off."""
        return self.per_s * self.residence_s / self.mean_at_once - 1 if self.mean_at_once else 0.0


@dataclass(frozen=True)
class Conflict:
    """Figures that cannot all be means of one steady pipeline."""

    figures: tuple[str, ...]
    """As they were stated."""
    text: str


@dataclass
class Stated:
    """What became of the figures somebody stated."""

    figures: dict[str, float] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
    agreed: list[str] = field(default_factory=list)
    """Relations that hold."""
    unknown: list[str] = field(default_factory=list)
    """Relations that need a figure nobody stated, or names that mean nothing here."""


def flows(run: Run, steady: Steady) -> list[Flow]:
    """Little's law on every phase."""
    window = steady.window if steady.exists else (run.start, run.end)
    length = window[1] - window[0]
    found = []
    for phase, spans in run.phases.items():
        ended = spans.where((spans.end > window[0]) & (spans.end <= window[1]))
        if not len(ended) or length <= 0:
            continue
        level = Level(spans)
        rate, stay = len(ended) / length, float(ended.duration.mean())
        # Where something begins it is counted, so the most is reached at a start.
        most = int(level.at(spans.start).max(initial=0))
        mean = float(level.mean(*window))
        found.append(Flow(phase, length, mean, rate, stay, most, most / rate - stay))
    return found


def parse_stated(text: str) -> dict[str, float]:
    """Figures of ``synth=54s,pw=10,s_per_proof=37``: durations in seconds, counts as numbers.

    Raises
    ------
    UsageError
        Not of that form, a value that is no number, or one that is not above 0.
    """
    figures: dict[str, float] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            raise UsageError(
                f"not a stated figure: {part!r}", "write --stated synth=54s,pw=10,s_per_proof=37"
            )
        figures[name] = _count(name, value) if _is_count(name) else parse_duration(value)
        if not figures[name] > 0:
            raise UsageError(f"{name} must be above 0, not {value}")
    return figures


def check_stated(
    figures: Mapping[str, float], run: Run | None = None, steady: Steady | None = None
) -> Stated:
    """Check stated means against each other, and against a log where there is one.

    A phase in which at most k items can be at once, and whose items take R on average, lets at most
    k / R of them pass a second. So R, k and the rate bound each other.

    Parameters
    ----------
    figures : mapping
        ``PHASE``: mean seconds of an item in a phase; ``PHASE.limit`` (``pw``, ``gw``): most items
        in it at once; ``items``: of a job; ``s_per_job`` (``s_per_proof``) or ``s_per_item``.
    """
    found = Stated(dict(figures))
    per_job = next((name for name in PER_JOB if name in figures), "")
    items, items_told = _items(figures, run)
    limits = {_limit_of(name): name for name in figures if _limit_of(name)}
    per_item, told = math.nan, ""
    if PER_ITEM in figures:
        per_item, told = figures[PER_ITEM], f"{PER_ITEM}={figures[PER_ITEM]:g}"
        if per_job and items and abs(items * per_item / figures[per_job] - 1) > TOLERANCE:
            found.conflicts.append(
                Conflict(
                    (PER_ITEM, per_job),
                    f"{items:g} items of {per_item:g} s make {items * per_item:.3g} s a job,"
                    f" not {figures[per_job]:g} s",
                )
            )
    elif per_job and items:
        per_item = figures[per_job] / items
        told = f"{per_job}={figures[per_job]:g} of {items_told}"
    elif per_job:
        found.unknown.append(f"{per_job} says nothing about phases without items=N, items of a job")
    reserved = {ITEMS, PER_ITEM, *PER_JOB, *limits.values()}
    for phase in (name for name in figures if name not in reserved):
        _check_phase(found, phase, limits.get(phase, ""), per_item, told)
        if run is not None:
            _check_against(found, phase, figures[phase], run, steady)
    for phase, name in limits.items():
        if run is not None and phase in run.phases:
            most = int(Level(run.phases[phase]).at(run.phases[phase].start).max())
            if most > figures[name]:
                text = f"{name}={figures[name]:g}: the log has {most} {phase} at once"
                found.conflicts.append(Conflict((name,), text))
            else:
                found.agreed.append(f"{name}={figures[name]:g}: the log has {most} at most")
    return found


def _check_phase(found: Stated, phase: str, limit: str, per_item: float, told: str) -> None:
    stay = found.figures[phase]
    if math.isnan(per_item):
        found.unknown.append(f"{phase}={stay:g}s: needs s_per_job and items, or s_per_item")
        return
    at_once = stay / per_item
    text = f"{phase}={stay:g}s at {told} means {at_once:.3g} at once"
    if not limit:
        found.unknown.append(f"{text}; {phase}{LIMIT}=N would say whether that can be")
        return
    most = found.figures[limit]
    if at_once <= most * (1 + TOLERANCE):
        found.agreed.append(f"{text}, and {limit}={most:g} allows it")
        return
    figures = (phase, limit, told.split("=")[0])
    way = (
        f"with the other two, {phase} is {most * per_item:.3g} s at most,"
        f" or an item takes {stay / most:.3g} s at least, or {math.ceil(at_once)} are at it at once"
    )
    found.conflicts.append(
        Conflict(figures, f"{text}, but {limit}={most:g}: they cannot all be means; {way}")
    )


def _check_against(found: Stated, phase: str, stay: float, run: Run, steady: Steady | None) -> None:
    """Compare a stated mean with the log's."""
    spans = run.phases.get(phase)
    if spans is None:
        found.unknown.append(f"{phase}: not in the log, which has {', '.join(run.phases)}")
        return
    mean: Mean = batch_mean(spans.duration)
    if math.isnan(mean.low):
        found.unknown.append(
            f"{phase}={stay:g}s: the log has a mean of {mean.value:.3g} s from {mean.n} spans,"
            " too few for an interval"
        )
        return
    low, high = mean.low * (1 - TOLERANCE), mean.high * (1 + TOLERANCE)
    text = f"the log has {mean.value:.3g} s [{mean.low:.3g}, {mean.high:.3g}]"
    if low <= stay <= high:
        found.agreed.append(f"{phase}={stay:g}s: {text}")
        return
    below = float((spans.duration < stay).mean())
    where = f"{below:.0%} of its spans are shorter"
    found.conflicts.append(
        Conflict((phase,), f"{phase}={stay:g}s is not the mean: {text}; {where}")
    )


def _items(figures: Mapping[str, float], run: Run | None) -> tuple[float, str]:
    if ITEMS in figures:
        return figures[ITEMS], f"{figures[ITEMS]:g} items"
    if run is None:
        return 0.0, ""
    from analysis.timeline.steady import steady_state, throughput

    steady = steady_state(run)
    per_job = throughput(run, steady).items_per_job
    return per_job, f"{per_job:g} items, as in the log"


def _limit_of(name: str) -> str:
    """Phase whose limit a name states; empty where it states none."""
    return LIMITS.get(name, name.removesuffix(LIMIT) if name.endswith(LIMIT) else "")


def _is_count(name: str) -> bool:
    return name == ITEMS or bool(_limit_of(name))


def _count(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"{name} is a count, not {value!r}") from None
