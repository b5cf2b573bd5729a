"""How long steps stall beside others, and where the time of mapping and releasing goes."""

from analysis.page.figures import stall_charts
from analysis.page.model import Block, Cell, Charts, Section, columns, table
from analysis.page.source import Host, Run
from analysis.phases import Phases
from analysis.report import Report
from analysis.stalls import Stalls
from analysis.wording import duration, number
from bench.units import format_duration, format_size, natural

LEAD = (
    "Memory that is mapped and released interrupts those who keep theirs. Stalls are compared by"
    " how many steps a second took longer than a limit."
)


def section(host: Host) -> Section | None:
    """Tails, quantiles and phases."""
    blocks: list[Block] = []
    sources = []
    for run, report in host.reports:
        if not (report.stalls or report.phases):
            continue
        sources.append(run.source)
        charts = stall_charts(run.results)
        if charts:
            blocks.append(Charts(charts))
        alike: dict[tuple[str, int, str], list[Stalls]] = {}
        for one in report.stalls:
            alike.setdefault((one.label, one.size, one.pages), []).append(one)
        for own in alike.values():
            blocks += _quantiles(sorted(own, key=lambda s: natural(s.beside)), run)
        blocks += _phases(report, run)
    if not blocks:
        return None
    return Section("stalls", "Stalls and released memory", LEAD, tuple(blocks), tuple(sources))


def _quantiles(own: list[Stalls], run: Run) -> tuple[Block, ...]:
    quantiles, limits = list(own[0].quantiles_s), list(own[0].over_per_s)
    return table(
        f"Steps of {own[0].label} {format_size(own[0].size)} {own[0].pages}: quantiles, and how"
        f" many a second took longer{run.tag}",
        columns(
            "beside",
            "#steps",
            *(f"#p{100 * q:g}" for q in quantiles),
            *(f"#> {format_duration(limit)}" for limit in limits),
        ),
        [
            (
                Cell(s.beside or "alone"),
                Cell(f"{s.steps:,}".replace(",", "\u202f"), s.steps),
                *(Cell(duration(s.quantiles_s[q]), s.quantiles_s[q]) for q in quantiles),
                *(Cell(_rate(s.over_per_s[limit]), s.over_per_s[limit]) for limit in limits),
            )
            for s in own
        ],
    )


def _rate(value: float) -> str:
    return "0" if not value else number(value)


def _phases(report: Report, run: Run) -> list[Block]:
    found: list[Block] = []
    for names in dict.fromkeys(tuple(one.ns_per_op) for one in report.phases):
        own = [one for one in report.phases if tuple(one.ns_per_op) == names]
        units = " or ".join(dict.fromkeys(one.op for one in own))
        found += table(
            f"Where the time went, ns by {units}; TLB: interrupts received{run.tag}",
            columns("case", *(f"#{name}" for name in names), "#touch/page", "#TLB/s", "#TLB/op"),
            [_phase_row(one, names) for one in own],
        )
    return found


def _phase_row(one: Phases, names: tuple[str, ...]) -> tuple[Cell, ...]:
    values = [*(one.ns_per_op[n] for n in names), one.touch_ns_per_fault, one.tlb_per_s]
    return (
        Cell(f"{one.label} {format_size(one.size)} {one.pages} {one.threads}t"),
        *(Cell(number(value), value) for value in (*values, one.tlb_per_op)),
    )
