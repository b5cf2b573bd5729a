"""Lays out an ``analysis.report.Report`` for people: 80 columns, no colour needed to read it."""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from analysis import wording
from analysis.wording import number as number
from analysis.wording import percent as percent
from analysis.wording import percent_interval as percent_interval
from bench.commands import _beside_view, _phases_view
from bench.units import counted, format_size

if TYPE_CHECKING:
    from rich.console import Console

    from analysis.paired import Comparison
    from analysis.report import CaseResult, Note, Report
    from bench.blocks import Skip

WIDTH = 80
"""Of output that no terminal limits; ``COLUMNS`` makes it wider."""


def show(report: "Report", stream: TextIO | None = None, brief: bool = False) -> None:
    """Print a report; ``brief`` is the table after the first round: values only."""
    console = make_console(stream or sys.stdout)
    _values(console, report)
    if brief:
        return
    _verdicts(console, report)
    _phases_view.show(console, report)
    _beside_view.show(console, report)
    print_notes(console, "skipped", report.skipped)
    print_notes(console, "rejected", report.rejected)
    print_notes(console, "not tested", report.not_tested)
    print_list(console, "notes", report.notes)
    print_list(console, "files", report.files)
    print_list(console, "next", report.next_commands)


def make_console(stream: TextIO) -> "Console":
    """Console of a stream: rich knows the width of a terminal only."""
    from rich.console import Console

    class Piped(Console):
        """Leaves a reader that went away to ``bench.cli``: rich would exit with a failure."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    # COLUMNS says how wide a page the output is for; a terminal knows by itself.
    asked = os.environ.get("COLUMNS", "")
    page = max(WIDTH, int(asked)) if asked.isdigit() else WIDTH
    return Piped(file=stream, width=None if stream.isatty() else page, highlight=False)


def table(
    console: "Console", title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Print a table. A column ``<name`` is text that may wrap, ``|name`` text that does not."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    # As Text: kernels have brackets in their names, which rich would read as markup.
    made = Table(title=Text(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    made.padding = (0, 1, 0, 0)
    made.pad_edge = False
    for column in columns:
        made.add_column(
            column.lstrip("<|"),
            justify="left" if column[:1] in ("<", "|") else "right",
            overflow="fold",
            no_wrap=column[:1] != "<",
        )
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    if made.row_count:
        console.print(made)


def _values(console: "Console", report: "Report") -> None:
    planned = report.planned_rounds
    done = f"{report.rounds} of {counted(planned, 'round')}" if planned else "no rounds"
    bandwidth = [case for case in report.cases if not case.latency_ns.n]
    latency = [case for case in report.cases if case.latency_ns.n]
    table(
        console,
        f"bandwidth, median and 95 % interval ({done})",
        ("<kernel", "<size", "|pages", "", "GB/s useful", "", "GB/s bus"),
        (
            [*_case(case), number(case.gbps.value), wording.interval(case.gbps), wording.bus(case)]
            for case in bandwidth
        ),
    )
    for op in dict.fromkeys(case.op for case in latency):
        table(
            console,
            f"latency, median and 95 % interval ({done})",
            ("<kernel", "<size", "|pages", "", f"ns/{op or 'operation'}", "", "GB/s useful"),
            (
                [
                    *_case(case),
                    number(case.latency_ns.value),
                    wording.interval(case.latency_ns),
                    number(case.gbps.value),
                ]
                for case in latency
                if case.op == op
            ),
        )
    if not report.cases:
        console.print("nothing was measured")


def _case(case: "CaseResult") -> list[str]:
    return [case.label, wording.size_used(case), case.pages, wording.threads(case)]


def _verdicts(console: "Console", report: "Report") -> None:
    tested = [c for c in report.comparisons if c.decision.n]
    remedial = [c for c in tested if c.question != "kernels"]
    table(
        console,
        "against the baseline of the same block (gain in speed, 95 % interval)",
        ("<kernel", "size", "", "<change", "gain", "", "|verdict"),
        (
            [
                c.label,
                format_size(c.size),
                f"{c.threads}t",
                c.change,
                percent(c.gain[0]),
                wording.comparison_interval(c),
                wording.finding(c),
            ]
            for c in tested
        ),
    )
    unclear = [c for c in remedial if c.decision.verdict == "cannot tell"]
    print_list(
        console,
        "cannot tell",
        [f"{wording.comparison_name(c)}: {wording.way_out(c)}" for c in unclear],
    )
    unequal = sum(c.unequal_states for c in report.comparisons)
    if unequal:
        told = "1 pair ran" if unequal == 1 else f"{unequal} pairs ran"
        console.print(f"{told} in different placements and so made no comparison")
    untested = [c for c in report.comparisons if not c.decision.n and not c.skipped]
    _no_verdict(console, untested)
    _concurrency(console, report)
    print_list(console, "by placement of the CPUs", wording.placements(report))
    print_list(console, "read with care", wording.flags(report))


def _concurrency(console: "Console", report: "Report") -> None:
    table(
        console,
        "best concurrency",
        ("<kernel", "size", "|pages", "best", "GB/s", "95 % from", "<tried", "<saturation"),
        (
            [
                b.label,
                format_size(b.size),
                b.pages,
                f"{b.threads}t",
                number(b.gbps),
                f"{b.enough}t",
                ", ".join(map(str, b.tried)),
                wording.saturation(b),
            ]
            for b in report.best
        ),
    )
    reasons = Counter(b.unfitted for b in report.best if b.unfitted)
    print_list(
        console, "saturation not fitted", [f"{n} of them: {why}" for why, n in reasons.items()]
    )


def _no_verdict(console: "Console", untested: Sequence["Comparison"]) -> None:
    """Print why, and once what would give one: many comparisons may share a command."""
    commands: dict[str, list[Comparison]] = {}
    for comparison in untested:
        commands.setdefault(comparison.decision.command, []).append(comparison)
    if untested:
        console.print("no verdict:", style="bold")
    for command, comparisons in commands.items():
        for c in comparisons:
            console.print(f"  {wording.comparison_name(c)}: {c.decision.reason}", markup=False)
        if command:
            console.print(f"    -> {command}", markup=False, soft_wrap=True)


def print_notes(console: "Console", title: str, notes: Sequence["Note"] | Sequence["Skip"]) -> None:
    """Print what was left out, why, and the way out; nothing for an empty list."""
    if not notes:
        return
    console.print(f"{title}:", style="bold")
    for note in notes:
        console.print(f"  {note.what}: {note.reason}", markup=False)
        if note.remedy:
            # A command that is broken over two lines cannot be pasted.
            console.print(f"    -> {note.remedy}", markup=False, soft_wrap=True)


def print_list(console: "Console", title: str, lines: Sequence[str]) -> None:
    """Print lines under a title; nothing where there are none."""
    if not lines:
        return
    console.print(f"{title}:", style="bold")
    for line in lines:
        console.print(f"  {line}", markup=False, soft_wrap=title in ("files", "next"))
