"""How bandwidth grows with threads, and where it stops."""

from collections import Counter

from analysis.page.figures import bandwidth_charts
from analysis.page.model import Block, Cell, Charts, Listing, Section, columns, table
from analysis.page.source import Host
from analysis.wording import number, saturation
from bench.units import format_size

LEAD = (
    "Bandwidth of a kernel alone by number of threads. A curve is a model that was fitted, with its"
    " 95 % band; without one the points are joined."
)


def section(host: Host) -> Section | None:
    """Curves with fits, and the best number of threads."""
    blocks: list[Block] = []
    sources = []
    for run, report in host.reports:
        if not report.best:
            continue
        sources.append(run.source)
        charts = bandwidth_charts(run.results)
        if charts:
            blocks.append(Charts(charts))
        blocks += table(
            f"Best number of threads{run.tag}",
            columns(
                "kernel", "#size", "pages", "#best", "#GB/s", "#95 % from", "-tried", "saturation"
            ),
            [
                (
                    Cell(b.label),
                    Cell(format_size(b.size), b.size),
                    Cell(b.pages),
                    Cell(str(b.threads), b.threads),
                    Cell(number(b.gbps), b.gbps),
                    Cell(str(b.enough), b.enough),
                    Cell(", ".join(map(str, b.tried))),
                    Cell(saturation(b)),
                )
                for b in report.best
            ],
        )
        reasons = Counter(b.unfitted for b in report.best if b.unfitted)
        if reasons:
            told = tuple(f"{n} of them: {why}" for why, n in reasons.items())
            blocks.append(Listing("Saturation not fitted", told))
    if not blocks:
        return None
    return Section("scaling", "Threads", LEAD, tuple(blocks), tuple(sources))
