"""Lays out an ``analysis.remedy_report.RemedyReport`` for people."""

import math
from typing import TYPE_CHECKING, TextIO

from bench.commands._tables import _list, _notes, _number, make_console, table

if TYPE_CHECKING:
    from analysis.remedy import RemedyResult
    from analysis.remedy_report import RemedyReport
    from analysis.stats import Decision


def show(report: "RemedyReport", stream: TextIO) -> None:
    """Print what pays first, then how that was found."""
    console = make_console(stream)
    console.print(report.conclusion, style="bold", markup=False)
    _list(console, "before anything was tried", report.before)
    table(
        console,
        f"{report.scenario} as it is",
        ("<actor", "<kernel", "", "weight", "GB/s useful", "speed of alone"),
        (
            [
                f"{actor.name}{' (critical)' if actor.critical else ''}",
                actor.label,
                actor.waits,
                f"{actor.weight:.0%}",
                _number(actor.gbps) if actor.gbps else "-",
                "-" if math.isnan(actor.alone) else f"{actor.alone:.0%}",
            ]
            for actor in report.actors
        ),
    )
    tested = [r for r in report.remedies if r.tested]
    table(
        console,
        f"change of total work, {report.rounds} fresh samples",
        ("<remedy", "gain", "", "predicted", "|verdict", "|cause"),
        (
            [
                remedy.name,
                *gain_cells(remedy.total),
                "-" if math.isnan(remedy.predicted) else _percent(remedy.predicted),
                remedy.total.verdict,
                _cause(remedy),
            ]
            for remedy in tested
        ),
    )
    names = [actor.name for actor in report.actors]
    if len(names) > 1:
        table(
            console,
            "speed of each actor: + shown to help, - to hurt, = neutral",
            ("<remedy", *names),
            (
                [remedy.name, *(_actor_cell(report, remedy, name) for name in names)]
                for remedy in tested
            ),
        )
    _list(console, "no prediction", _unpredicted(tested))
    unclear = [r for r in tested if not r.total.decided]
    _list(console, "cannot tell", [f"{r.name}: {r.total.reason}" for r in unclear])
    _list(console, "read with care", [f"{r.name}: {note}" for r in tested for note in r.notes])
    _list(
        console,
        "no verdict",
        [f"{r.name}: {r.total.reason}" for r in report.remedies if not r.tested],
    )
    _notes(console, "does not apply", report.refused)
    _notes(console, "not tested", report.untested)
    _notes(console, "rejected", report.rejected)
    _list(console, "notes", report.notes)
    _list(console, "files", report.files)
    _list(console, "next", report.next_commands)


def gain_cells(decision: "Decision") -> tuple[str, str]:
    """Gain in speed and its interval."""
    from analysis.remedy import gain

    middle, low, high = gain(decision)
    if math.isnan(middle):
        return "-", ""
    if not math.isfinite(high) or decision.low <= 0:
        return _percent(middle), ""
    return _percent(middle), f"[{_percent(low)}, {_percent(high)}]"


_MARKS = {"helps": " +", "hurts": " -", "neutral": " ="}


def _actor_cell(report: "RemedyReport", remedy: "RemedyResult", name: str) -> str:
    critical = next((a.name for a in report.actors if a.critical), "")
    decision = remedy.critical if name == critical else remedy.bystanders.get(name)
    if decision is None:
        return "-"
    if decision.verdict == "not tested":
        return "stood still" if "stood still" in decision.reason else "-"
    return gain_cells(decision)[0] + _MARKS.get(decision.verdict, "")


def _cause(remedy: "RemedyResult") -> str:
    if remedy.total.verdict not in ("helps", "hurts"):
        return ""
    return remedy.cause


def _unpredicted(tested: "list[RemedyResult]") -> list[str]:
    return [f"{r.name}: {r.prediction}" for r in tested if r.prediction]


def _percent(share: float) -> str:
    return f"{share:+.0%}" if abs(share) >= 0.1 else f"{share:+.1%}"
