"""Which remedy pays for a workload, with what was predicted beside what was measured."""

import math
from collections.abc import Sequence

from analysis.page.comparing import bar_cell, bar_column, gain_axis, gain_cell, verdict_cell
from analysis.page.model import (
    Block,
    Cell,
    Column,
    Item,
    Items,
    Listing,
    Section,
    Text,
    columns,
    table,
)
from analysis.page.source import Host
from analysis.remedy import RemedyResult
from analysis.remedy_report import RemedyReport
from analysis.wording import actor_cell, cause, gain_cells, number, percent

LEAD = (
    "Fresh samples decide, after a pilot chose what to try; total work counts every actor in units"
    " of its own usual speed. A dashed line in a bar is what was predicted before anything ran."
)


def section(host: Host) -> Section | None:
    """The conclusion, the workload as it is, and every remedy."""
    blocks: list[Block] = []
    sources = []
    for run, report in host.of(RemedyReport):
        sources.append(run.source)
        blocks.append(Text(f"{report.scenario}: {report.conclusion}."))
        blocks += _workload(report, run.tag)
        if report.before:
            blocks.append(Listing("Before anything was tried", tuple(report.before)))
        tested = [r for r in report.remedies if r.tested]
        blocks += _gains(report, tested, run.tag)
        if len(report.actors) > 1:
            blocks += _by_actor(report, tested, run.tag)
        blocks += _left(host, report, tested)
    if not blocks:
        return None
    return Section("remedies", "Remedies", LEAD, tuple(blocks), tuple(sources))


def _workload(report: RemedyReport, tag: str) -> tuple[Block, ...]:
    return table(
        f"{report.scenario} as it is{tag}",
        columns("actor", "kernel", "#threads", "#weight", "#GB/s useful", "#speed of alone"),
        [
            (
                Cell(f"{actor.name}{' (critical)' if actor.critical else ''}"),
                Cell(actor.label),
                Cell(actor.waits.replace("t", "")),
                Cell(f"{actor.weight:.0%}", actor.weight),
                Cell(number(actor.gbps) if actor.gbps else "-", actor.gbps),
                Cell("-" if math.isnan(actor.alone) else f"{actor.alone:.0%}", actor.alone),
            )
            for actor in report.actors
        ],
    )


def _gains(report: RemedyReport, tested: Sequence[RemedyResult], tag: str) -> tuple[Block, ...]:
    axis = gain_axis([r.total for r in tested], [r.predicted for r in tested])
    bars = [bar_column(axis, report.dead_band)] if axis else []
    return table(
        f"Change of total work, {report.rounds} fresh samples{tag}",
        [
            *columns("remedy", "#gain", "-95 % interval"),
            *bars,
            *columns("#predicted", "verdict", "cause"),
        ],
        [
            (
                Cell(r.name),
                gain_cell(r.total),
                Cell(gain_cells(r.total)[1]),
                *([bar_cell(r.total, r.predicted)] if axis else []),
                Cell("-" if math.isnan(r.predicted) else percent(r.predicted), r.predicted),
                verdict_cell(r.total),
                Cell(cause(r)),
            )
            for r in tested
        ],
    )


def _by_actor(report: RemedyReport, tested: Sequence[RemedyResult], tag: str) -> tuple[Block, ...]:
    critical = next((actor.name for actor in report.actors if actor.critical), "")
    heads: list[Column] = [
        *columns("remedy"),
        *(Column(actor.name, "number", sortable=False) for actor in report.actors),
    ]
    return table(
        f"Speed of each actor{tag}",
        heads,
        [
            (
                Cell(r.name),
                *(
                    Cell(actor_cell(r.critical if a.name == critical else r.bystanders.get(a.name)))
                    for a in report.actors
                ),
            )
            for r in tested
        ],
        ("+ shown to help, - to hurt, = neutral, no sign: cannot tell",),
    )


def _left(host: Host, report: RemedyReport, tested: Sequence[RemedyResult]) -> list[Block]:
    """What no verdict covers, and why."""
    blocks: list[Block] = []
    lists = (
        ("No prediction", [Item(r.name, r.prediction) for r in tested if r.prediction]),
        ("Cannot tell", [Item(r.name, r.total.reason) for r in tested if not r.total.decided]),
        ("Read with care", [Item(r.name, note) for r in tested for note in r.notes]),
        ("No verdict", [Item(r.name, r.total.reason) for r in report.remedies if not r.tested]),
        ("Does not apply", [host.item(n) for n in report.refused]),
        ("Not tested", [host.item(n) for n in report.untested]),
    )
    for title, items in lists:
        if items:
            blocks.append(Items(title, tuple(items)))
    return blocks
