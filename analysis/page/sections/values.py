"""Bandwidth and latency of every case, with intervals."""

from analysis.page.figures import latency_charts
from analysis.page.model import Block, Cell, Charts, Section, columns, table
from analysis.page.source import Host
from analysis.report import CaseResult, Estimate
from analysis.wording import bus, interval, number, size_used, threads

LEAD = (
    "Medians over fresh processes with 95 % intervals. Useful bytes are those the kernel asked for;"
    " bus bytes crossed the memory bus with them."
)


def section(host: Host) -> Section | None:
    """Tables of values, and latency against working set."""
    blocks: list[Block] = []
    sources = []
    for run, report in host.reports:
        if not report.cases:
            continue
        sources.append(run.source)
        done = f"{report.rounds} of {report.planned_rounds} rounds"
        bandwidth = [case for case in report.cases if not case.latency_ns.n]
        latency = [case for case in report.cases if case.latency_ns.n]
        blocks += table(
            f"Bandwidth, {done}{run.tag}",
            columns(*_CASE, "#GB/s useful", "-95 % interval", "#GB/s bus"),
            [
                (*_case(c), _value(c.gbps), Cell(interval(c.gbps)), Cell(bus(c), c.bus_max_gbps))
                for c in bandwidth
            ],
        )
        charts = latency_charts(run.results)
        if charts:
            blocks.append(Charts(charts))
        for op in dict.fromkeys(case.op for case in latency):
            blocks += table(
                f"Latency, {done}{run.tag}",
                columns(*_CASE, f"#ns per {op or 'operation'}", "-95 % interval", "#GB/s useful"),
                [
                    (
                        *_case(c),
                        _value(c.latency_ns),
                        Cell(interval(c.latency_ns)),
                        Cell(number(c.gbps.value), c.gbps.value),
                    )
                    for c in latency
                    if c.op == op
                ],
            )
    if not blocks:
        return None
    return Section("values", "Bandwidth and latency", LEAD, tuple(blocks), tuple(sources))


_CASE = ("kernel", "#size", "pages", "#threads")


def _case(case: CaseResult) -> tuple[Cell, ...]:
    return (
        Cell(case.label, hint="; ".join(case.flags)),
        Cell(size_used(case), case.size),
        Cell(case.pages),
        Cell(threads(case).replace("t", ""), case.threads),
    )


def _value(found: Estimate) -> Cell:
    return Cell(number(found.value), found.value, hint=f"{found.value:.5g}, {found.n} samples")
