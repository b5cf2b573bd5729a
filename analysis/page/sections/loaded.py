"""Latency while others move memory."""

from analysis.page.figures import loaded_chart
from analysis.page.model import Block, Cell, Charts, Listing, Section, columns, table
from analysis.page.source import Host
from analysis.wording import asked, number, read_from
from bench.units import format_size

LEAD = "Latency of a dependent load beside traffic at several rates."


def section(host: Host) -> Section | None:
    """A curve and a table for each kind of traffic."""
    blocks: list[Block] = []
    sources = []
    for run, report in host.reports:
        if not report.loaded:
            continue
        sources.append(run.source)
        chart = loaded_chart(run.results)
        if chart is not None:
            blocks.append(Charts((chart,)))
        for curve in report.loaded:
            blocks += table(
                f"{curve.victim} {format_size(curve.size)} {curve.pages} beside {curve.loader}"
                f" {curve.threads}t{run.tag}",
                columns(
                    "GB/s asked of a thread",
                    "#traffic GB/s",
                    "#ns per load",
                    "-95 % interval",
                    "#of idle",
                ),
                [
                    (
                        Cell(asked(point.pace_gb_per_s, i == 0)),
                        Cell(number(point.gb_per_s) if i else "0", point.gb_per_s),
                        Cell(
                            number(point.latency_ns),
                            point.latency_ns,
                            hint=f"{point.latency_ns:.5g}, {point.n} samples",
                        ),
                        Cell(
                            ""
                            if point.low_ns != point.low_ns
                            else f"[{number(point.low_ns)}, {number(point.high_ns)}]"
                        ),
                        Cell(f"{point.latency_ns / curve.points[0].latency_ns:.2f}"),
                    )
                    for i, point in enumerate(curve.points)
                ],
            )
            blocks.append(Listing("Read from it", tuple(read_from(curve))))
    if not blocks:
        return None
    return Section("loaded", "Latency under load", LEAD, tuple(blocks), tuple(sources))
