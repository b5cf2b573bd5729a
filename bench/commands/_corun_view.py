"""Lays out an ``analysis.corun.CorunReport`` for people."""

import math
from typing import TYPE_CHECKING, TextIO

from analysis import wording
from bench.commands._tables import make_console, print_list, print_notes, table
from bench.spinners import KERNEL as SPIN

if TYPE_CHECKING:
    from analysis.corun import Cell, CorunReport


def show(report: "CorunReport", stream: TextIO) -> None:
    """Print the matrices, then every pair with intervals and forecasts."""
    from analysis.corun import PUBLISHED_ERROR

    console = make_console(stream)
    # Labels are long, columns are many: aggressors are numbered as the victims are.
    numbers = {label: str(i + 1) for i, label in enumerate(report.kernels)}
    for one in report.tables():
        table(
            console,
            f"time of victims (rows) over alone; {wording.split(one.threads)},"
            f" {wording.SPACES[one.space]}",
            ("", "<victim", *(numbers[a] for a in report.kernels)),
            (
                [
                    numbers.get(victim, ""),
                    victim,
                    *(_times(one.cells.get((victim, a))) for a in report.kernels),
                ]
                for victim in one.victims
            ),
        )
    console.print(wording.WHAT_MARKS_ARE, markup=False)
    shared = [c for c in report.cells if c.space == "shared" and c.victim != SPIN]
    table(
        console,
        f"every pair in one address space, {report.rounds} rounds (time over the baseline's)",
        ("<victim", "<beside", "", "of alone", "", "of spin", "law", "fit"),
        (
            [
                cell.victim,
                cell.aggressor,
                f"{cell.threads[0]}:{cell.threads[1]}",
                wording.ratio(cell.alone),
                wording.ratio_interval(cell.alone),
                wording.ratio(cell.spin),
                wording.foretold(cell.law),
                wording.foretold(cell.fit),
            ]
            for cell in sorted(shared, key=lambda c: -_or_zero(c.alone.ratio))
        ),
    )
    table(
        console,
        "forecasts against measured speeds, pairs of different kernels in one address space",
        ("<forecast", "pairs", "median error", "worst", "<of"),
        (
            [
                wording.FORECASTS[a.forecast],
                *wording.accuracy(a),
            ]
            for a in report.accuracy
            if a.pairs or a.forecast == "law"
        ),
    )
    if any(a.pairs for a in report.accuracy):
        console.print(wording.WHAT_FORECASTS_ARE.format(published=PUBLISHED_ERROR), markup=False)
    if math.isfinite(report.half_width):
        console.print(
            f"the measurements themselves are known to ±{report.half_width:.0%} in the median",
            markup=False,
        )
    table(
        console,
        "one address space over two, for the same pair (time of the victim)",
        ("<victim", "<beside", "", "cost", "", "|verdict"),
        (
            [
                s.victim,
                s.aggressor,
                f"{s.threads[0]}:{s.threads[1]}",
                wording.ratio(s.cost),
                wording.ratio_interval(s.cost),
                "not resolved" if wording.unresolved(s.cost) else s.cost.verdict,
            ]
            for s in report.spaces
        ),
    )
    print_notes(console, "not measured", report.not_measured)
    print_notes(console, "rejected", report.rejected)
    print_list(console, "notes", report.notes)
    print_list(console, "files", report.files)
    print_list(console, "next", report.next_commands)


def _times(cell: "Cell | None") -> str:
    if cell is None or math.isnan(cell.alone.ratio):
        return "-"
    return f"{cell.alone.ratio:.2f}{wording.MARKS.get(cell.alone.verdict, ' ')}"


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value
