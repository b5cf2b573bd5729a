"""What larger pages bring: the verdicts."""

from analysis.page.comparing import arrow, comparison_table
from analysis.page.model import Block, Item, Items, Section
from analysis.page.source import Host
from analysis.paired import Comparison
from analysis.wording import comparison_name, way_out
from bench.units import format_size

LEAD = (
    "Pairs of samples of the same few seconds, equal but for their pages. A verdict needs an"
    " interval that lies wholly on one side of the shaded band, or inside it."
)


def section(host: Host) -> Section | None:
    """Comparisons of page policies, and what would decide those that are open."""
    blocks: list[Block] = []
    sources = []
    for run, report in host.reports:
        asked = [c for c in report.comparisons if c.question == "pages"]
        if not asked:
            continue
        sources.append(run.source)
        tested = [c for c in asked if c.decision.n]
        blocks += comparison_table(
            f"Page policies against the baseline of their block{run.tag}", tested
        )
        unclear = [c for c in tested if c.decision.verdict == "cannot tell"]
        if unclear:
            items = tuple(Item(arrow(comparison_name(c)), way_out(c)) for c in unclear)
            blocks.append(Items("Cannot tell", items))
        untested = [c for c in asked if not c.decision.n and not c.skipped]
        if untested:
            blocks.append(Items("No verdict", _without(untested)))
    if not blocks:
        return None
    return Section("pages", "Page sizes", LEAD, tuple(blocks), tuple(sources))


def _without(untested: list[Comparison]) -> tuple[Item, ...]:
    """Comparisons without a verdict; those that differ in size only are one item."""
    alike: dict[tuple[str, int, str, str, str], list[str]] = {}
    for c in untested:
        key = (c.label, c.threads, c.change, c.decision.reason, c.decision.command)
        alike.setdefault(key, []).append(format_size(c.size))
    return tuple(
        Item(f"{label} {threads}t {arrow(change)} at {', '.join(sizes)}", reason, command=command)
        for (label, threads, change, reason, command), sizes in alike.items()
    )
