"""Why a victim is slow beside an aggressor."""

import math

from analysis.attribution import AttributionReport
from analysis.page.model import Block, Cell, Item, Items, Section, Text, columns, table
from analysis.page.source import Host

LEAD = (
    "Contrasts of two mixes that differ in one thing: the ratio of the victim's times is the cost"
    " of that thing."
)


def section(host: Host) -> Section | None:
    """A table of contrasts a run."""
    blocks: list[Block] = []
    sources = []
    for run, report in host.of(AttributionReport):
        sources.append(run.source)
        blocks += table(
            f"{report.victim} beside {report.aggressor}, {report.rounds} rounds{run.tag}",
            columns(
                "what", "with it", "without it", "#ratio of times", "-95 % interval", "resolved"
            ),
            [
                (
                    Cell(c.name),
                    Cell(c.with_it),
                    Cell(c.without_it),
                    Cell(f"{c.ratio:.2f}", c.ratio, hint=f"{c.ratio:.4f}"),
                    Cell(f"[{c.low:.2f}, {c.high:.2f}]"),
                    Cell("yes") if c.resolved else Cell("not resolved", look="unclear"),
                )
                for c in report.contrasts
            ],
        )
        if math.isfinite(report.residual):
            blocks.append(
                Text(
                    f"Clock, bandwidth, cache and shootdown leave a ratio of {report.residual:.2f}"
                    " of the whole unexplained; 1 is nothing."
                )
            )
        if report.missing:
            items = tuple(Item(note.what, note.reason) for note in report.missing)
            blocks.append(Items("Not told", items))
    if not blocks:
        return None
    return Section("why", "Why it is slow", LEAD, tuple(blocks), tuple(sources))
