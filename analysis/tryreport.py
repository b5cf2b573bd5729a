"""What ``bench try`` found, as data: the closing table, before anybody lays it out."""

import math
import os
import shlex
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.displayed import Displayed
from analysis.files import Line, find_journal, journal_lines, read_toml
from analysis.paired import gain
from analysis.remedy_stages import FEW_ROUNDS, GAP_S, PILOT, VERDICT, Choice
from analysis.report import Note
from analysis.stats import DEAD_BAND, Decision
from analysis.tried import (
    FIGURES,
    Change,
    Effect,
    Spec,
    Tried,
    choose,
    failing,
    judge,
    runs,
    samples,
    usual_figures,
)
from bench.blocks import BASELINE
from bench.errors import UsageError
from bench.schema import PLAN, disturbances
from bench.units import about, counted, format_size


@dataclass
class TryReport(Displayed):
    """Everything the closing table says."""

    folder: str
    command: str
    metric: str
    """``time``, or the expression."""
    unit: str
    higher_is_better: bool
    status: str
    conclusion: str
    best: str
    """Remedy to use; empty: none of them."""
    rounds: int
    needed: int
    """Fresh runs that the pilot's spread asks for."""
    dead_band: float
    baseline: float
    """Median of the command as it is."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Of the command as it is."""
    malloc: str = ""
    remedies: list[Tried] = field(default_factory=list)
    told: Mapping[str, str] = field(default_factory=dict)
    """Remedy -> what it changes."""
    effects: Mapping[str, str] = field(default_factory=dict)
    """Remedy -> what it did to the command, in words."""
    refused: list[Note] = field(default_factory=list)
    untested: list[Note] = field(default_factory=list)
    failures: list[Note] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    next_commands: list[str] = field(default_factory=list)


UNKNOWN = "none known"
"""As ``bench.looks`` says it."""


def build(
    folder: str | Path,
    program: str = "python -m bench",
    options: Mapping[str, Any] | None = None,
) -> TryReport:
    """Build the report of an output directory of ``bench try``.

    ``options`` go before those of the plan: ``dead_band``.
    """
    journal = find_journal(folder)
    whole = journal.parent
    plan = read_toml(whole / PLAN)
    merged = plan["options"] | dict(options or {})
    if "try" not in merged:
        raise UsageError(f"{folder} is not a run of try", f"{program} verdict {folder}")
    spec, given = Spec.of(merged), merged["try"]
    every = journal_lines(journal)
    lines = samples(every)
    choice = choose(lines, spec)
    found = judge(lines, spec)
    pilot, fresh = (runs(lines, block, spec) for block in (PILOT, VERDICT))
    values = [run.value for run in (fresh or pilot).get(BASELINE, {}).values() if not run.failure]
    report = TryReport(
        str(whole),
        shlex.join(given["command"]),
        given["metric"] or "time",
        _unit(lines),
        spec.higher_is_better,
        _status(every),
        "",
        "",
        len(fresh.get(BASELINE, {})),
        choice.needed,
        spec.dead_band,
        float(sorted(values)[len(values) // 2]) if values else math.nan,
        usual_figures(pilot, BASELINE),
        _malloc(lines),
        found,
        {name: one["told"] for name, one in given["remedies"].items()},
        {one.name: effect_text(one.effect) for one in found if not one.failure},
        refused=[Note(**skip) for skip in plan["skips"]],
    )
    report.best, report.conclusion = conclude(found, report.effects)
    report.failures = [Note(one.name, one.failure) for one in found if one.failure]
    usual_s = [_usual_wall_s(lines, name) for name in (BASELINE, *spec.shows)]
    command = _again(given, spec.planned_band, usual_s, program)
    report.untested = [
        Note(one.name, one.decision.reason + ": no time for more", command)
        for one in found
        if not one.tested and not one.failure and report.status == "done"
    ]
    report.notes = [*plan["notes"], *_notes(lines, spec, choice, report, given)]
    names = ("journal.ndjson", "pyperf.json", "output", "host.json", "plan.toml")
    report.files = [str(whole / name) for name in names if (whole / name).exists()]
    if report.status != "done":
        report.next_commands.append(f"{program} try --resume {shlex.quote(str(whole))}")
    return report


def conclude(found: Sequence[Tried], effects: Mapping[str, str]) -> tuple[str, str]:
    """Remedy that helps most, and one sentence."""
    helping = [one for one in found if one.decision.verdict == "helps"]
    if helping:
        best = helping[0]
        middle, low, high = gain(best.decision)
        told = f"{best.name} helps: {_percent(middle)} [{_percent(low)}, {_percent(high)}]"
        if best.effect.took is False:
            told += "; but nothing was seen of its effect, so ask what else differed"
        return best.name, told
    tested = [one for one in found if one.tested]
    if not tested:
        return "", "nothing was decided"
    unclear = [one.name for one in tested if not one.decision.decided]
    if unclear:
        return "", f"no remedy is shown to help; cannot tell of {', '.join(unclear)}"
    return "", "no remedy helps: leave the command as it is"


def _percent(share: float) -> str:
    return f"{share:+.0%}" if abs(share) >= 0.1 else f"{share:+.1%}"


HEADS = {
    "resident": "resident",
    "huge": "huge",
    "faults": "faults",
    "busy": "CPUs busy",
    "threads": "threads",
    "cpus": "seen on",
    "nodes": "one node",
}
"""Figures seen from outside, in the words of a table's head."""


def verdict_text(one: Tried) -> str:
    """Verdict of a remedy; a failure is one, too."""
    return "fails" if one.failure else one.decision.verdict


# ---- words ---------------------------------------------------------------------------------------


def effect_text(effect: Effect) -> str:
    """``took effect: huge pages 0% -> 87%``; ``had no effect on this program``."""
    told = ", ".join(_change_text(change) for change in effect.changes)
    some = max(effect.changes, key=lambda change: change.changed / change.n, default=None)
    often = f" in {some.changed} of {some.n} runs" if some and 0 < some.changed < some.n else ""
    if effect.took:
        return f"took effect{often}: {told}"
    if effect.took is False:
        return f"had no effect on this program: {told}"
    if effect.reason:
        return f"{effect.reason}{': ' if told else ''}{told}"
    return f"not clear{',' if often else ''}{often}: {told}"


def _change_text(change: Change) -> str:
    label = FIGURES[change.figure].label
    before, after = (figure_text(change.figure, v) for v in (change.before, change.after))
    return f"{label} {before}" if before == after else f"{label} {before} -> {after}"


def figure_text(figure: str, value: float) -> str:
    """A figure as people read it."""
    if FIGURES[figure].share:
        return f"{value:.0%}"
    if figure in ("virtual", "resident"):
        return about(int(value))
    if figure == "busy":
        return f"{value:.2f}"
    return f"{value:.0f}" if value < 10_000 else f"{value / 1000:.0f}k"


def _unit(lines: Sequence[Line]) -> str:
    units = {line["run"]["metric_unit"] for line in lines if "metric_unit" in line["run"]}
    return " or ".join(sorted(units)) if units else "second"


def _status(lines: Sequence[Line]) -> str:
    ends = [line.get("status", "") for line in lines if line["kind"] in ("start", "end")]
    return ends[-1] if ends else ""


def _usual_wall_s(lines: Sequence[Line], name: str) -> float:
    """What one run takes; as long as one without it where a remedy was never run."""
    for one in (name, BASELINE):
        walls = [line["wall_s"] for line in lines if line["mix"] == one]
        if walls:
            return float(statistics.median(walls))
    return 0.0


def _malloc(lines: Sequence[Line]) -> str:
    found = [line["run"]["looks"].get("malloc", "") for line in lines if line["run"].get("looks")]
    return next(filter(None, found), "")


def _again(
    given: Mapping[str, Any], dead_band: float, walls_s: Sequence[float], program: str
) -> str:
    """The same trial with time enough that no remedy is left out."""
    needed_s = (given["pilot_rounds"] + FEW_ROUNDS) * sum(wall + GAP_S for wall in walls_s)
    words = ["--budget", f"{math.ceil(max(3 * given['budget_s'], 1.5 * needed_s) / 60)}m"]
    words += ["--remedies", ",".join(given["remedies"])]
    if given["metric"]:
        words += ["--metric", given["metric"]]
    if given["higher_is_better"]:
        words.append("--higher-is-better")
    if given["stdin"] != os.devnull:
        words += ["--stdin", given["stdin"]]
    if given["timeout_s"]:
        words += ["--timeout", f"{given['timeout_s']:g}s"]
    if dead_band != DEAD_BAND:
        words += ["--dead-band", f"{dead_band:g}"]
    if given["show_output"]:
        words.append("--show-output")
    reserved = sum(int(size) * pages for size, pages in given.get("reserve", {}).items())
    if reserved:
        words += ["--reserve-hugepages", format_size(reserved)]
    return f"{program} try {shlex.join([*words, '--', *given['command']])}"


def _notes(
    lines: Sequence[Line],
    spec: Spec,
    choice: Choice,
    report: TryReport,
    given: Mapping[str, Any],
) -> list[str]:
    notes = []
    unclear = any(one.tested and not one.decision.decided for one in report.remedies)
    if unclear and choice.rounds < choice.needed:
        notes.append(
            f"{counted(choice.rounds, 'run')} each; at this spread it takes about {choice.needed}"
            f" to make intervals as narrow as the dead band of {spec.dead_band:.0%}"
        )
    if report.rounds < choice.rounds:
        notes.append(f"{report.rounds} of {choice.rounds} rounds that decide were run")
    told = [n for n, one in given["remedies"].items() if "GLIBC_TUNABLES" in one["told"]]
    if told and report.malloc not in ("", "glibc"):
        notes.append(
            "it maps no C library that is known, as static programs and those of Go: where malloc"
            f" is not glibc's, {', '.join(told)} cannot reach it"
            if report.malloc == UNKNOWN
            else f"its malloc is not glibc's ({report.malloc}): {', '.join(told)} cannot reach it"
        )
    for name, one in given["remedies"].items():
        if one["replaced"]:
            notes.append(f"{name} replaces what you have set: {', '.join(one['replaced'])}")
    pilot, fresh = (runs(lines, block, spec) for block in (PILOT, VERDICT))
    for name in (BASELINE, *spec.shows):
        n = sum(bool(r.failure) for block in (pilot, fresh) for r in block.get(name, {}).values())
        if n and not failing([pilot, fresh], name):
            notes.append(f"{name}: {counted(n, 'run')} failed, and took part in no ratio")
    disturbed = Counter(
        name
        for line in lines
        if line["block"] == VERDICT
        if line["disturbed"]
        for name in disturbances(line)
    )
    if disturbed:
        n = sum(line["block"] == VERDICT for line in lines)
        told_ = ", ".join(f"{name} in {k}" for name, k in disturbed.most_common())
        notes.append(f"while they ran the host had, of {n} runs that decide: {told_}")
    units = {line["run"].get("metric_unit") for line in lines if "failure" not in line["run"]}
    if len(units) > 1:
        notes.append("the unit that the command printed was not always the same kind")
    return notes


__all__ = ["Decision", "TryReport", "build", "effect_text", "verdict_text"]
