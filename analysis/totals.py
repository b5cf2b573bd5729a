"""Speed of a scenario's actors and of the scenario as a whole, sample by sample.

The total adds up different work, so every actor counts in units of its own usual speed: with
everybody as fast as in the baseline of the pilot, it is 1. The units are fixed before the samples
that decide are taken; dividing each sample by its own neighbour instead would favour noise.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.load import Row
from analysis.paired import work_seconds
from analysis.stats import PairedByState, pair_by_state
from bench.schema import strata


@dataclass(frozen=True)
class Sample:
    """One mix run once."""

    speeds: Mapping[int, float]
    """Work a second by position in the mix; 0 where an actor stood still."""
    state: str
    wall_s: float
    known: bool
    """Whether anything could be told about the pages behind it."""


Samples = Mapping[str, Mapping[int, Sample]]
"""Mix -> round -> sample, of one block."""


def samples(
    rows: Iterable[Row], block: str, per_pass: bool = False
) -> dict[str, dict[int, Sample]]:
    """Collect the samples of a block.

    ``per_pass`` counts passes instead of the work in them: a spinner's pass stands for a pass of
    the kernel in whose place it is, whatever it computes meanwhile.
    """
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        if row["block"] == block:
            groups.setdefault((row["mix"], row["round"]), []).append(row)
    found: dict[str, dict[int, Sample]] = {}
    for (mix, round_), own in groups.items():
        speeds = {
            r["actor"]: 1 / (r["seconds"] if per_pass else work_seconds(r))
            if r["seconds"] > 0
            else 0.0
            for r in own
        }
        known = not any(r["evidence_known"] == 0 for r in own)
        found.setdefault(mix, {})[round_] = Sample(speeds, own[0]["state"], own[0]["wall_s"], known)
    return found


def usual_speeds(found: Samples, baseline: str) -> dict[int, float]:
    """Median speed of every actor of the baseline; NaN for one that stood still throughout."""
    positions = sorted({p for sample in found.get(baseline, {}).values() for p in sample.speeds})
    speeds = {}
    for position in positions:
        own = [s.speeds[position] for s in found[baseline].values() if s.speeds.get(position)]
        speeds[position] = statistics.median(own) if own else math.nan
    return speeds


def total(sample: Sample, usual: Mapping[int, float], weights: Mapping[int, float]) -> float:
    """Weighted work a second of all measured actors, 1 where each is as fast as usual."""
    known = {p: w for p, w in weights.items() if math.isfinite(usual.get(p, math.nan))}
    whole = sum(known.values())
    if not whole:
        return 0.0
    return sum(w * sample.speeds.get(p, 0.0) / usual[p] for p, w in known.items()) / whole


Speed = Callable[[Sample], float]


def pairs(found: Samples, baseline: str, treated: str, speed: Speed) -> PairedByState:
    """Log ratios of time for the same work, treated over baseline, round by round.

    Rounds in which either stood still have no ratio; ``stood_still`` counts them.
    """
    other = found.get(baseline, {})
    rows = []
    for round_, sample in sorted(found.get(treated, {}).items()):
        if round_ in other and speed(sample) > 0 and speed(other[round_]) > 0:
            states = strata(sample.state, other[round_].state)
            rows.append((1 / speed(sample), 1 / speed(other[round_]), *states))
    if not rows:
        return PairedByState(np.array([]), ())
    top, bottom, mine, theirs = zip(*rows, strict=True)
    return pair_by_state(top, bottom, mine, theirs)


def stood_still(found: Samples, mix: str, speed: Speed) -> int:
    """Samples in which nothing moved."""
    return sum(speed(sample) <= 0 for sample in found.get(mix, {}).values())


def wall_s(found: Iterable[Samples], mix: str) -> float:
    """Median seconds that one sample of a mix takes; NaN where there is none."""
    walls = [sample.wall_s for block in found for sample in block.get(mix, {}).values()]
    return statistics.median(walls) if walls else math.nan


def rounds_of(found: Samples, mixes: Sequence[str]) -> int:
    """Rounds that all these mixes have a sample of."""
    sets = [set(found.get(mix, {})) for mix in mixes]
    return len(set.intersection(*sets)) if sets else 0
