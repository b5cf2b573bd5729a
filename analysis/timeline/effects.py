"""What running beside other phases does to how long a phase takes.

The logarithm of each duration is regressed on how many spans of each phase ran beside it, on
average over its own time: of other items only, as the parts of one item follow a plan of their own.
What is reported is association in this log. It is no proof of a cause: what slows everything for
a while (a clock, a neighbour) makes phases longer and their overlap larger at once.

Three things would make such a regression lie, and are dealt with: length makes its own company
(`analysis.timeline.company`); neighbours in time share conditions, so errors come from leaving out
one stretch of time after another, with t quantiles of as many as contribute; and where the others
explain nine tenths of what a phase did, they cannot be told apart, and no number is given.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.intervals import LEVEL, Floats
from analysis.significance import holm
from analysis.stats import DEAD_BAND, Verdict, verdict_of
from analysis.timeline.beside import Level
from analysis.timeline.company import company
from analysis.timeline.slowdown import Estimate, slowdown
from analysis.timeline.spans import Run, Spans
from bench.units import counted

# Spans of a phase that are looked at: more would sharpen what is sharp enough.
MOST_SPANS = 10_000
# Bounds the time it takes where there are many phases: each is looked for beside each.
MOST_WORK = 2_000_000
# In logs: no company makes a phase take more than e times as long or short, for counting ages.
MOST_STRETCH = 1.0
FEWEST_SPANS = 40
# Stretches of time. Each should be longer than what connects neighbours: twice the longest phase.
MOST_STRETCHES = 30
FEWEST_STRETCHES = 8
# In logs, half an interval: beyond a factor of 3 either way nothing has been learnt.
WIDEST = 1.1
_SEED = 0


@dataclass(frozen=True)
class Effect:
    """What more of one phase does to the duration of another, of other items."""

    phase: str
    beside: str
    verdict: Verdict
    """On ``ratio``: ``hurts`` is longer. "cannot tell" with NaN: the log does not show it."""
    ratio: float = math.nan
    """Duration beside much (``much`` at once) over duration beside little (``little``)."""
    low: float = math.nan
    high: float = math.nan
    """Interval at ``level``."""
    level: float = LEVEL
    """Raised for the number of effects looked at (Holm's steps)."""
    little: float = math.nan
    much: float = math.nan
    """How many ran beside the tenth of the spans with least company, and the tenth with most."""
    per_one: float = math.nan
    """Ratio for one more beside it."""
    per_one_low: float = math.nan
    per_one_high: float = math.nan
    """95 % interval, not raised."""
    p: float = math.nan
    p_adjusted: float = math.nan
    """Of no association; adjusted by Holm over all effects."""
    spans: int = 0
    stretches: int = 0
    reason: str = ""
    """Why it cannot be told."""

    @property
    def told(self) -> bool:
        """Whether there is a number."""
        return math.isfinite(self.ratio)


def effects(run: Run, dead_band: float = DEAD_BAND, level: float = LEVEL) -> list[Effect]:
    """Estimate how the duration of every phase of work depends on what ran beside it.

    Parameters
    ----------
    run : Run
    dead_band : float
        Relative change of a duration that is of no interest.
    level : float
        Of the whole family: with probability ``level`` no effect is called that is none.

    Returns
    -------
    list of Effect
        One a pair of phases of work, a phase beside itself included.
    """
    working = run.finest
    levels = {name: Level(spans) for name, spans in working.items()}
    most = min(MOST_SPANS, MOST_WORK // (len(working) ** 2 * (len(working) + 1)))
    found: list[Effect] = []
    estimates: list[Estimate] = []
    for name, spans in working.items():
        chosen = _thinned(spans, run.resolution, most)
        for effect, estimate in _of_phase(name, chosen, working, levels, run.resolution):
            found.append(effect)
            estimates.append(estimate)
    return _decided(found, estimates, dead_band, level)


def _thinned(spans: Spans, resolution: float, most: int) -> Spans:
    """Spans long enough to have a duration; at random, not every k-th, where they are very many."""
    spans = spans.where(spans.duration > resolution / 2)
    if len(spans) <= most:
        return spans
    picks = np.random.default_rng(_SEED).choice(len(spans), most, replace=False)
    chosen = np.zeros(len(spans), dtype=bool)
    chosen[picks] = True
    return spans.where(chosen)


def _of_phase(
    name: str,
    spans: Spans,
    working: Mapping[str, Spans],
    levels: Mapping[str, Level],
    resolution: float,
) -> list[tuple[Effect, Estimate]]:
    """Effects on one phase, before they are judged."""
    groups, why = _stretches(spans, working)
    if why:
        none = Estimate(math.nan, math.nan, 0, why)
        return [(Effect(name, other, "cannot tell", spans=len(spans)), none) for other in working]

    def at(slopes: Floats) -> tuple[Floats, Floats]:
        log_stretch = (usual - usual.mean(axis=0)) @ slopes
        stretch = np.exp(log_stretch.clip(-MOST_STRETCH, MOST_STRETCH))
        pairs = [
            company(spans, working[other], levels[other], same=other == name, stretch=stretch)
            for other in working
        ]
        return np.column_stack([p[0] for p in pairs]), np.column_stack([p[1] for p in pairs])

    usual = np.zeros((len(spans), len(working)))
    usual, _ = at(np.zeros(len(working)))
    # What a clock rounds is noise too; without it durations that are all equal to the digit would
    # give an interval of no width.
    rounding = resolution / 6**0.5 / float(np.median(spans.duration))
    estimates = slowdown(np.log(spans.duration), at, groups, rounding, list(working))
    found = []
    for other, mean, estimate in zip(working, usual.T, estimates, strict=True):
        little, much = _tenths(mean)
        effect = Effect(
            name, other, "cannot tell", little=little, much=much, spans=len(spans),
            stretches=int(groups.max()) + 1,
        )  # fmt: skip
        found.append((effect, estimate))
    return found


def _tenths(values: Floats) -> tuple[float, float]:
    """Means of the lowest and of the highest tenth; unlike percentiles they differ if any do."""
    ordered = np.sort(values)
    tenth = max(1, ordered.size // 10)
    return float(ordered[:tenth].mean()), float(ordered[-tenth:].mean())


def _stretches(spans: Spans, working: Mapping[str, Spans]) -> tuple[NDArray[np.int64], str]:
    """Number of the stretch of time each span belongs to, or why there are too few."""
    none = np.zeros(0, dtype=np.int64)
    if len(spans) < FEWEST_SPANS:
        return none, f"{counted(len(spans), 'span')}; it takes {FEWEST_SPANS}"
    longest = max(float(np.quantile(other.duration, 0.9)) for other in working.values())
    covered = float(spans.start[-1] - spans.start[0])
    n = int(min(MOST_STRETCHES, covered / (2 * longest), len(spans) / 5))
    if n < FEWEST_STRETCHES:
        return none, (
            f"the log covers {covered / longest:.2g} times its longest phase; "
            f"it takes {2 * FEWEST_STRETCHES}"
        )
    return np.asarray(np.arange(len(spans)) * n // len(spans)), ""


def _decided(
    found: list[Effect], estimates: list[Estimate], dead_band: float, level: float
) -> list[Effect]:
    """Judge all effects as one family: Holm's steps on intervals, as for remedies."""
    told = [i for i, e in enumerate(estimates) if math.isfinite(e.slope)]
    p = {i: _p_value(estimates[i]) for i in told}
    adjusted = dict(zip(told, holm(list(p.values())), strict=True)) if told else {}
    out = [replace(f, reason=e.reason) for f, e in zip(found, estimates, strict=True)]
    remaining = list(told)
    while remaining:
        each = 1 - (1 - level) / len(remaining)
        for i in remaining:
            out[i] = replace(
                _judged(found[i], estimates[i], each, dead_band),
                p=p[i],
                p_adjusted=float(adjusted[i]),
            )
        unclear = [i for i in remaining if out[i].verdict == "cannot tell"]
        if len(unclear) == len(remaining):
            break
        remaining = unclear
    return out


def _judged(effect: Effect, estimate: Estimate, level: float, dead_band: float) -> Effect:
    range_ = effect.much - effect.little
    t = float(stats.t.ppf((1 + level) / 2, estimate.groups - 1))
    t95 = float(stats.t.ppf((1 + LEVEL) / 2, estimate.groups - 1))
    if t * estimate.error * range_ > WIDEST:
        return replace(effect, reason="what little its number varied leaves any effect possible")
    ratio, low, high = (
        math.exp((estimate.slope + k * estimate.error) * range_) for k in (0, -t, t)
    )
    one, one_low, one_high = (
        float(np.exp(estimate.slope + k * estimate.error)) for k in (0, -t95, t95)
    )
    verdict = verdict_of(low, high, dead_band)
    smallest = math.expm1(t * estimate.error * range_ + math.log1p(dead_band))
    reason = f"this log could have shown {smallest:.1%}" if verdict == "cannot tell" else ""
    return replace(
        effect,
        verdict=verdict,
        ratio=ratio,
        low=low,
        high=high,
        level=level,
        per_one=one,
        per_one_low=one_low,
        per_one_high=one_high,
        reason=reason,
    )


def _p_value(estimate: Estimate) -> float:
    if estimate.error == 0:
        return 1.0 if estimate.slope == 0 else 0.0
    return float(2 * stats.t.sf(abs(estimate.slope / estimate.error), estimate.groups - 1))
