"""Which remedy pays for a scenario: decisions from the verdict stage, and what is left to say."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from analysis import totals
from analysis.load import Results, Row, load
from analysis.paired import MOST_REJECTED
from analysis.remedy_stages import PAIRS, PILOT, SPIN, VERDICT, Choice, Spec, choose, total_pairs
from analysis.report import Note
from analysis.stats import Decision, PairedByState, decide, not_tested
from analysis.verdict import Cause, cause, decide_remedies


@dataclass(frozen=True)
class ActorResult:
    """One actor of the scenario as it is."""

    name: str
    label: str
    weight: float
    critical: bool
    gbps: float
    """Useful bytes, median over the baseline's samples; NaN for kernels that count none."""
    alone: float
    """Speed over its speed alone, medians; NaN where that was not measured."""
    waits: str
    """Threads, and CPUs shared with others."""


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
    notes: tuple[str, ...] = ()

    @property
    def tested(self) -> bool:
        """Whether fresh samples decided."""
        return self.total.verdict != "not tested"


@dataclass
class RemedyReport:
    """Everything the closing table says."""

    folder: str
    scenario: str
    summary: str
    status: str
    conclusion: str
    best: str
    """Remedy to use; empty: none of them."""
    rounds: int
    needed: int
    dead_band: float
    actors: list[ActorResult] = field(default_factory=list)
    remedies: list[RemedyResult] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    """What could be said before any remedy was measured."""
    refused: list[Note] = field(default_factory=list)
    untested: list[Note] = field(default_factory=list)
    rejected: list[Note] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    next_commands: list[str] = field(default_factory=list)


def gain(decision: Decision) -> tuple[float, float, float]:
    """Median, low and high of the relative gain in speed."""
    low = 1 / decision.high - 1 if decision.high else math.nan
    return 1 / decision.ratio - 1, low, 1 / decision.low - 1 if decision.low else math.inf


def build(
    folder: str | Path,
    program: str = "python -m bench",
    options: Mapping[str, Any] | None = None,
) -> RemedyReport:
    """Build the report of an output directory of ``bench remedy``.

    ``options`` go before those of the plan: ``dead_band``, ``accept_unknown``.
    """
    results = load(folder)
    merged = results.plan["options"] | dict(options or {})
    spec, given = Spec.of(merged), merged["remedy"]
    choice = choose(results.rows, spec)
    report = RemedyReport(
        str(results.folder),
        spec.scenario.name,
        spec.scenario.summary,
        results.status,
        "",
        "",
        totals.rounds_of(totals.samples(results.rows, VERDICT), [spec.baseline]),
        choice.needed,
        spec.dead_band,
        before=list(given["before"]),
        refused=[Note(**note) for note in given["refused"]],
    )
    report.actors = _actors(results, spec, given)
    report.remedies = judge(results, spec)
    report.best, report.conclusion = conclude(report.remedies, spec.scenario.critical)
    report.untested = _untested(results, spec, choice, program)
    report.untested += [Note(**note) for note in given["shed"]]
    report.rejected = [
        Note(mix, f"{r.rejected} of {r.tried} samples invalid: {r.reasons[-1]}")
        for mix, r in results.rejections.items()
    ]
    report.notes = [*results.plan.get("notes", []), *_notes(results, spec, choice, report)]
    names = ("journal.ndjson", "pyperf.json", "host.json", "plan.toml")
    report.files = [str(results.folder / n) for n in names if (results.folder / n).exists()]
    if results.status != "done":
        report.next_commands.append(f"{program} remedy --resume {results.folder}")
    return report


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
        name: _Decided(totals_decided[name], actors[name], _among_spinners(results, spec, name))
        for name in names
    }


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
        if rejections and rejections.share > MOST_REJECTED:
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
        tuple(results.plan["options"]["remedy"]["notes"].get(name, ())),
    )


def conclude(remedies: Sequence[RemedyResult], critical: str) -> tuple[str, str]:
    """Remedy to use, or none, and the sentence that says so."""
    tested = [r for r in remedies if r.tested]
    if not tested:
        return "", "nothing was tested: no conclusion"
    helping = [r for r in tested if r.total.verdict == "helps" and r.critical.verdict != "hurts"]
    if helping:
        best = max(helping, key=lambda r: gain(r.total)[0])
        return best.name, f"{best.name} pays: {told(best.total)} of total work" + _why(best)
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
    return f"{min(known):.1%} to {max(known):.1%}" if known else "unknown"


# ---- what is left --------------------------------------------------------------------------------


def _actors(results: Results, spec: Spec, given: Mapping[str, Any]) -> list[ActorResult]:
    rows = [r for r in results.rows if r["mix"] == spec.baseline]
    found = []
    for name in spec.scenario.measured_names:
        position = spec.scenario.position(name)
        own = [r["gbps"] for r in rows if r["actor"] == position and math.isfinite(r["gbps"])]
        actor = spec.scenario.mix.actors[position]
        params = ",".join(f"{key}={value}" for key, value in actor.params)
        shared = any(r["oversubscribed"] for r in rows if r["actor"] == position)
        found.append(
            ActorResult(
                name,
                f"{actor.kernel}[{params}]" if params else actor.kernel,
                spec.scenario.weights[name],
                name == spec.scenario.critical,
                float(np.median(own)) if own else math.nan,
                given["alone"].get(name, math.nan),
                f"{actor.threads}t{'*' if shared else ''}",
            )
        )
    return found


def _untested(results: Results, spec: Spec, choice: Choice, program: str) -> list[Note]:
    notes = []
    measured = {row["mix"] for row in results.rows if row["block"] == VERDICT}
    source = results.plan["options"]["remedy"]["source"]
    more = f"{program} remedy {source} --budget {_longer(results)}"
    for name, mix in spec.mixes.items():
        if mix in measured:
            continue
        if mix in results.skipped:
            notes.append(Note(name, results.skipped[mix]))
        elif mix in results.rejections and mix not in {row["mix"] for row in results.rows}:
            notes.append(Note(name, results.rejections[mix].reasons[-1]))
        elif name in choice.left_out:
            notes.append(Note(name, "only piloted: no time for fresh samples", more))
        elif len(spec.parts[name]) > 1:
            continue
        else:
            notes.append(Note(name, "not measured", more))
    untried = [n for n in spec.combinations if spec.mixes[n] not in measured]
    if untried:
        told_ = ", ".join(untried[:6]) + (f" and {len(untried) - 6} more" if untried[6:] else "")
        notes.append(Note(f"{len(untried)} pairs", f"{told_}: hurting parts, or no time", more))
    return notes


def _longer(results: Results) -> str:
    """Three times the budget it had, in minutes."""
    return f"{max(1, math.ceil(results.plan['options']['remedy']['budget_s'] * 3 / 60))}m"


def _notes(results: Results, spec: Spec, choice: Choice, report: RemedyReport) -> list[str]:
    notes = []
    if choice.rounds < choice.needed:
        notes.append(
            f"{choice.rounds} samples each; at this spread it takes about {choice.needed} to make"
            f" intervals as narrow as the dead band of {spec.dead_band:.0%}"
        )
    if report.rounds < choice.rounds:
        notes.append(f"{report.rounds} of {choice.rounds} samples of the verdict stage were taken")
    if any(r["oversubscribed"] for r in results.rows if r["mix"] == spec.baseline):
        notes.append("marked *: shares its CPUs with another actor; that is not sharing memory")
    return notes
