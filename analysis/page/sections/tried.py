"""What remedies bring to a command of the user's own."""

import math

from analysis.page.comparing import bar_cell, bar_column, gain_axis, gain_cell, verdict_cell
from analysis.page.model import Block, Cell, Item, Items, Listing, Section, Text, columns, table
from analysis.page.source import Host
from analysis.tried import Tried
from analysis.tryreport import HEADS, TryReport, figure_text, verdict_text
from analysis.wording import gain_cells, number
from bench.units import format_duration

LEAD = (
    "Whole runs of the command, each a fresh process, in random order. Evidence is what was seen of"
    " a remedy from outside while it ran."
)


def section(host: Host) -> Section | None:
    """Conclusion, gains, what was seen from outside, and what was left out."""
    blocks: list[Block] = []
    sources = []
    for run, report in host.of(TryReport):
        sources.append(run.source)
        better = "more" if report.higher_is_better else "less"
        blocks.append(Text(f"{report.conclusion}."))
        blocks.append(Text(f"{report.command}: {report.metric}, {better} is better."))
        blocks += _gains(report, run.tag)
        blocks += _seen(report, run.tag)
        blocks += _lists(host, report)
    if not blocks:
        return None
    return Section("tried", "Your command", LEAD, tuple(blocks), tuple(sources))


def _gains(report: TryReport, tag: str) -> tuple[Block, ...]:
    axis = gain_axis([r.decision for r in report.remedies if r.tested])
    bars = [bar_column(axis, report.dead_band)] if axis else []
    nothing = Cell("")
    rows = [
        (
            Cell("baseline"), _value(report.baseline, report), nothing, nothing,
            *([nothing] if axis else []), nothing,
        ),
        *(
            (
                Cell(r.name),
                _value(r.median, report),
                gain_cell(r.decision) if r.tested else Cell("-"),
                Cell(gain_cells(r.decision)[1]),
                *([bar_cell(r.decision)] if axis else []),
                verdict_cell(r.decision, verdict_text(r)),
            )
            for r in report.remedies
        ),
    ]  # fmt: skip
    told = f"{report.rounds} fresh runs each" if report.rounds else "pilot only, no verdict yet"
    heads = (*columns("remedy", "#median", "#gain", "-95 % interval"), *bars, *columns("verdict"))
    return table(f"{report.metric} under each remedy, {told}{tag}", heads, rows)


def _value(value: float, report: TryReport) -> Cell:
    if math.isnan(value):
        return Cell("-")
    return Cell(format_duration(value) if report.unit == "second" else number(value), value)


def _seen(report: TryReport, tag: str) -> tuple[Block, ...]:
    keys = [key for key in HEADS if key in report.figures]
    everybody = [("baseline", report.figures), *((r.name, r.figures) for r in report.remedies)]
    rows = [
        (
            Cell(name),
            *(Cell(figure_text(k, own[k]), own[k]) if k in own else Cell("-") for k in keys),
        )
        for name, own in everybody
        if keys
    ]
    heads = columns("remedy", *(f"#{HEADS[key]}" for key in keys))
    return table(f"Seen from outside, medians of the pilot{tag}", heads, rows)


def _lists(host: Host, report: TryReport) -> list[Block]:
    blocks: list[Block] = []
    told = (
        ("Evidence", report.effects.items()),
        ("What they change", report.told.items()),
        ("Cannot tell", [(r.name, r.decision.reason) for r in _unclear(report)]),
    )
    for title, pairs in told:
        items = tuple(Item(name, text) for name, text in pairs)
        if items:
            blocks.append(Items(title, items))
    notes = (
        ("Fails under this remedy", report.failures),
        ("Does not apply", report.refused),
        ("Not tested", report.untested),
    )
    for title, listed in notes:
        if listed:
            blocks.append(Items(title, tuple(map(host.item, listed))))
    return [*blocks, Listing("Notes", tuple(report.notes))] if report.notes else blocks


def _unclear(report: TryReport) -> list[Tried]:
    return [r for r in report.remedies if r.tested and not r.decision.decided]
