"""Lays out an ``analysis.remedy_report.RemedyReport`` for people."""

import math
from typing import TYPE_CHECKING, TextIO

from analysis import wording
from bench.commands._tables import make_console, number, percent, print_list, print_notes, table

if TYPE_CHECKING:
    from analysis.remedy import RemedyResult
    from analysis.remedy_report import RemedyReport


def show(report: "RemedyReport", stream: TextIO) -> None:
    """Print what pays first, then how that was found."""
    console = make_console(stream)
    console.print(report.conclusion, style="bold", markup=False)
    print_list(console, "before anything was tried", report.before)
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
                number(actor.gbps) if actor.gbps else "-",
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
                *wording.gain_cells(remedy.total),
                "-" if math.isnan(remedy.predicted) else percent(remedy.predicted),
                remedy.total.verdict,
                wording.cause(remedy),
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
    print_list(console, "no prediction", _unpredicted(tested))
    unclear = [r for r in tested if not r.total.decided]
    print_list(console, "cannot tell", [f"{r.name}: {r.total.reason}" for r in unclear])
    print_list(console, "read with care", [f"{r.name}: {note}" for r in tested for note in r.notes])
    print_list(
        console,
        "no verdict",
        [f"{r.name}: {r.total.reason}" for r in report.remedies if not r.tested],
    )
    print_notes(console, "does not apply", report.refused)
    print_notes(console, "not tested", report.untested)
    print_notes(console, "rejected", report.rejected)
    print_list(console, "notes", report.notes)
    print_list(console, "files", report.files)
    print_list(console, "next", report.next_commands)


def _actor_cell(report: "RemedyReport", remedy: "RemedyResult", name: str) -> str:
    critical = next((a.name for a in report.actors if a.critical), "")
    decision = remedy.critical if name == critical else remedy.bystanders.get(name)
    return wording.actor_cell(decision)


def _unpredicted(tested: "list[RemedyResult]") -> list[str]:
    return [f"{r.name}: {r.prediction}" for r in tested if r.prediction]
