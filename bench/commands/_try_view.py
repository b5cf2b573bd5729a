"""Lays out an ``analysis.tryreport.TryReport`` for people."""

import math
from typing import TYPE_CHECKING, TextIO

from analysis.wording import gain_cells
from bench.commands._tables import make_console, number, percent, print_list, print_notes, table
from bench.units import counted, format_duration

if TYPE_CHECKING:
    from analysis.tried import Tried
    from analysis.tryreport import TryReport


def show(report: "TryReport", stream: TextIO) -> None:
    """Print what pays first, then how that was found."""
    from analysis.tryreport import HEADS, figure_text, verdict_text

    console = make_console(stream)
    console.print(report.conclusion, style="bold", markup=False)
    better = "more" if report.higher_is_better else "less"
    console.print(f"{report.command}: {report.metric}, {better} is better", markup=False)
    told = (
        f"{counted(report.rounds, 'fresh run')} each"
        if report.rounds
        else "pilot only, no verdict yet"
    )
    table(
        console,
        told,
        ("<remedy", "|", "gain", "", "|verdict"),
        (
            [
                ("baseline", _value(report.baseline, report), "", "", ""),
                *(
                    (
                        one.name,
                        _value(one.median, report),
                        *(gain_cells(one.decision) if one.tested else (_piloted(one), "")),
                        verdict_text(one),
                    )
                    for one in report.remedies
                ),
            ]
        ),
    )
    keys = [key for key in HEADS if key in report.figures]
    everybody = (
        []
        if not keys
        else [("baseline", report.figures), *((r.name, r.figures) for r in report.remedies)]
    )
    table(
        console,
        "seen from outside, medians of the pilot",
        ("<remedy", *(HEADS[key] for key in keys)),
        (
            [name, *(figure_text(key, own[key]) if key in own else "-" for key in keys)]
            for name, own in everybody
        ),
    )
    print_list(console, "evidence", [f"{name}: {t}" for name, t in report.effects.items()])
    print_list(console, "what they change", [f"{name}: {t}" for name, t in report.told.items()])
    unclear = [r for r in report.remedies if r.tested and not r.decision.decided]
    print_list(console, "cannot tell", [f"{r.name}: {r.decision.reason}" for r in unclear])
    print_notes(console, "fails under this remedy", report.failures)
    print_notes(console, "does not apply", report.refused)
    print_notes(console, "not tested", report.untested)
    print_list(console, "notes", report.notes)
    print_list(console, "files", report.files)
    print_list(console, "next", report.next_commands)


def _value(value: float, report: "TryReport") -> str:
    if math.isnan(value):
        return "-"
    if report.unit != "second":
        return number(value)
    # Whole milliseconds would hide what a gain of a short command is a gain of.
    return f"{value * 1e3:.3g}ms" if 1e-3 <= value < 0.1 else format_duration(value)


def _piloted(one: "Tried") -> str:
    """What the pilot seemed to show, in brackets: it decides nothing."""
    return "-" if math.isnan(one.pilot_gain) else f"({percent(one.pilot_gain)})"
