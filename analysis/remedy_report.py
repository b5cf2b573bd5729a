"""What ``bench remedy`` found, as data: the closing table, before anybody lays it out."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from analysis import totals
from analysis.displayed import Displayed
from analysis.load import Results, load
from analysis.remedy import RemedyResult, conclude, judge
from analysis.remedy_stages import VERDICT, Choice, Spec, choose
from analysis.report import Note


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


@dataclass
class RemedyReport(Displayed):
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
