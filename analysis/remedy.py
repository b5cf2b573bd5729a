"""Which remedy pays for a scenario: decisions from the verdict stage, and what is left to say."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from analysis import totals
from analysis.load import Results, Row
from analysis.paired import gain
from analysis.remedy_stages import PAIRS, PILOT, SPIN, VERDICT, Choice, Spec, choose, total_pairs
from analysis.stats import Decision, PairedByState, decide, not_tested
from analysis.verdict import Cause, cause, decide_remedies
from bench.schema import too_many_rejected


@dataclass(frozen=True)
class RemedyResult:
    """One remedy against doing nothing. Decisions are on time: a ratio under 1 is a gain."""

    name: str
    total: Decision
    critical: Decision
    bystanders: Mapping[str, Decision]
    """By name of the actor, the critical one left out."""
    pilot_gain: float
    """Median of the pilot's few samples: no result, but why it was tried or not."""
    predicted: float
    """Gain in total work before anything was measured; NaN: no prediction."""
    prediction: str
    """Where that is from, or why there is none."""
    cause: Cause
    among_spinners: Decision
    beyond: Mapping[str, Decision] = field(default_factory=dict)
    """Of a combination: what it brings beyond each of its parts."""
    notes: tuple[str, ...] = ()

    @property
    def tested(self) -> bool:
        """Whether fresh samples decided."""
        return self.total.verdict != "not tested"


def judge(results: Results, spec: Spec) -> list[RemedyResult]:
    """Every remedy that got fresh samples, the most helpful first."""
    given = results.plan["options"]["remedy"]
    decided = _decide(results, spec, choose(results.rows, spec))
    found = [
        _result(results, spec, name, decided, given["predictions"].get(name, {}))
        for name in decided
    ]
    return sorted(found, key=lambda r: r.total.ratio if r.tested else math.inf)


# ---- decisions -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Decided:
    total: Decision
    actors: Mapping[str, Decision]
    spinners: Decision
    beyond: Mapping[str, Decision]


def _decide(results: Results, spec: Spec, choice: Choice) -> dict[str, _Decided]:
    """Decide every remedy of the verdict stage; families are corrected each for itself."""
    found = totals.samples(results.rows, VERDICT)
    names = [name for name in choice.remedies if spec.mixes[name] in found]
    if not names:
        return {}
    whole = {
        name: _why_not(results, spec, found, name) or total_pairs(results.rows, spec, VERDICT, name)
        for name in names
    }
    totals_decided = decide_remedies(whole, spec.dead_band).decisions
    actors: dict[str, dict[str, Decision]] = {name: {} for name in names}
    critical = spec.scenario.critical
    bystanders = [n for n in spec.scenario.measured_names if n != critical]
    for family in ([critical] if critical else [], bystanders):
        cells: dict[str, PairedByState | Decision] = {}
        for actor in family:
            for name in names:
                cells[f"{name}\n{actor}"] = _cell(results, spec, found, name, actor)
        if cells:
            for key, decision in decide_remedies(cells, spec.dead_band).decisions.items():
                name, actor = key.split("\n")
                actors[name][actor] = decision
    return {
        name: _Decided(
            totals_decided[name],
            actors[name],
            _among_spinners(results, spec, name),
            _beyond_parts(results.rows, spec, name, names),
        )
        for name in names
    }


def _beyond_parts(
    rows: Sequence[Row], spec: Spec, name: str, tested: Sequence[str]
) -> dict[str, Decision]:
    """Compare a combination with each of its parts in the same blocks."""
    found = {}
    for part in spec.parts[name]:
        if part != name and part in tested:
            paired = total_pairs(rows, spec, VERDICT, name, over=part)
            if paired.log_ratios.size:
                found[part] = decide(paired.log_ratios, spec.dead_band)
    return found


def helping(rows: Sequence[Row], spec: Spec, choice: Choice) -> list[str]:
    """Remedies that the verdict stage has shown to help, in total or the critical actor."""
    decided = _decide(Results(Path(), rows=list(rows)), spec, choice)
    critical = spec.scenario.critical
    return [
        name
        for name, own in decided.items()
        if own.total.verdict == "helps" or (critical and own.actors[critical].verdict == "helps")
    ]


def _why_not(results: Results, spec: Spec, found: totals.Samples, name: str) -> Decision | None:
    for mix in (spec.baseline, spec.mixes[name]):
        rejections = results.rejections.get(mix)
        if rejections and too_many_rejected(rejections.rejected, rejections.share):
            return not_tested(
                f"{rejections.share:.0%} of its samples were rejected: {rejections.reasons[-1]}"
            )
        samples = found.get(mix, {}).values()
        if not spec.accept_unknown and not all(sample.known for sample in samples):
            return not_tested("the pages behind it could not be told", "--accept-unknown")
    return None


def _cell(
    results: Results, spec: Spec, found: totals.Samples, name: str, actor: str
) -> PairedByState | Decision:
    position = spec.scenario.position(actor)

    def speed(sample: totals.Sample) -> float:
        return sample.speeds.get(position, 0.0)

    refused = _why_not(results, spec, found, name)
    if refused is not None:
        return refused
    still = totals.stood_still(found, spec.mixes[name], speed)
    if still:
        return not_tested(f"stood still in {still} of {len(found[spec.mixes[name]])} samples")
    return totals.pairs(found, spec.baseline, spec.mixes[name], speed)


def _among_spinners(results: Results, spec: Spec, name: str) -> Decision:
    """Decide the same remedy on the same mix without memory."""
    if name not in spec.spin:
        return not_tested("among spinners it changes nothing")
    found = totals.samples(results.rows, SPIN, per_pass=True)
    baseline, treated = spec.spin[""], spec.spin[name]
    if treated not in found or baseline not in found:
        return not_tested("not measured among spinners")
    usual = totals.usual_speeds(found, baseline)
    paired = totals.pairs(
        found, baseline, treated, lambda sample: totals.total(sample, usual, spec.weights)
    )
    if not paired.log_ratios.size:
        return not_tested("no two samples of a round ran in the same placement")
    return decide(paired.log_ratios, spec.dead_band)


def _result(
    results: Results,
    spec: Spec,
    name: str,
    decided: Mapping[str, _Decided],
    predicted: Mapping[str, Any],
) -> RemedyResult:
    own = decided[name]
    critical = spec.scenario.critical
    pilot = [
        ratios
        for block in (PILOT, PAIRS)
        if (ratios := total_pairs(results.rows, spec, block, name).log_ratios).size
    ]
    if name in spec.spin:
        why = cause(own.total, own.spinners)
    else:
        # Nothing about it could help a mix without memory.
        why = "memory" if own.total.verdict in ("helps", "hurts") else cause(own.total, own.total)
    return RemedyResult(
        name,
        own.total,
        own.actors.get(critical, not_tested("no actor is critical")),
        {actor: d for actor, d in own.actors.items() if actor != critical},
        math.exp(-float(np.median(pilot[0]))) - 1 if pilot else math.nan,
        predicted.get("total", math.nan),
        predicted.get("reason", ""),
        why,
        own.spinners,
        own.beyond,
        tuple(results.plan["options"]["remedy"]["notes"].get(name, ())),
    )


def conclude(remedies: Sequence[RemedyResult], critical: str) -> tuple[str, str]:
    """Remedy to use, or none, and the sentence that says so."""
    tested = [r for r in remedies if r.tested]
    if not tested:
        return "", "nothing was tested: no conclusion"
    helping = [r for r in tested if r.total.verdict == "helps" and r.critical.verdict != "hurts"]
    if helping:
        names = {r.name for r in helping}
        # Two remedies are more trouble than one, and the best of many noisy ones flatters itself.
        simple = [
            r
            for r in helping
            if all(d.verdict == "helps" for part, d in r.beyond.items() if part in names)
        ]
        best = max(simple, key=lambda r: gain(r.total)[0])
        others = [r.name for r in helping if r is not best]
        also = f"; so do {', '.join(others)}, not shown to be better" if others else ""
        return best.name, f"{best.name} pays: {told(best.total)} of total work{_why(best)}{also}"
    urgent = [r for r in tested if r.critical.verdict == "helps" and r.total.verdict != "hurts"]
    if urgent:
        best = max(urgent, key=lambda r: gain(r.critical)[0])
        return (
            best.name,
            f"{best.name} helps {critical}: {told(best.critical)}; of the total work there is no"
            f" such verdict ({best.total.verdict})",
        )
    unclear = [r.name for r in tested if not r.total.decided]
    if unclear:
        return "", (
            f"no remedy is shown to pay; cannot tell about {', '.join(unclear)}: the smallest"
            f" effect this run could have seen is {_smallest(tested)}"
        )
    return "", "no remedy pays: leave it as it is"


def _why(best: RemedyResult) -> str:
    if best.cause == "scheduling":
        return "; it helps as much without any memory traffic, so this is scheduling, not memory"
    if best.cause == "cannot tell":
        return "; whether this is memory or scheduling could not be told"
    return ""


def told(decision: Decision) -> str:
    """``+18% [+12%, +25%]``."""
    middle, low, high = (f"{value:+.1%}" for value in gain(decision))
    return f"{middle} [{low}, {high}]"


def _smallest(tested: Sequence[RemedyResult]) -> str:
    known = [r.total.smallest_effect for r in tested if math.isfinite(r.total.smallest_effect)]
    least, most = (f"{edge(known):.1%}" for edge in (min, max)) if known else ("unknown",) * 2
    return least if least == most else f"{least} to {most}"
