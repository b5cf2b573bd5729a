"""What was skipped, rejected and disturbed: how far the rest can be relied on."""

from collections import Counter

from analysis.attribution import AttributionReport
from analysis.corun import CorunReport
from analysis.page.model import Block, Cell, Items, Listing, Section, columns, table
from analysis.page.source import Host, Run
from analysis.remedy_report import RemedyReport
from analysis.report import Note, Report
from analysis.wording import flags, placements

LEAD = "Nothing below is dropped silently: what did not count is named here, with its reason."


def section(host: Host) -> Section | None:
    """Skips, rejections, disturbances and notes of every run."""
    blocks: list[Block] = []
    for run in host.runs:
        blocks += _of_run(host, run)
    blocks = [*_disturbed(host), *blocks]
    return Section("limits", "Limits of these results", LEAD, tuple(blocks)) if blocks else None


def _of_run(host: Host, run: Run) -> list[Block]:
    report = run.report
    lists: list[tuple[str, list[Note]]] = []
    told: list[tuple[str, list[str]]] = []
    if isinstance(report, Report):
        lists = [
            ("Skipped", report.skipped),
            ("Rejected", report.rejected),
            ("Not tested", host.open_ended(report.not_tested)),
        ]
        told = [
            ("Read with care", flags(report)),
            ("By placement of the CPUs", placements(report)),
            ("Notes", report.notes),
        ]
    elif isinstance(report, CorunReport):
        lists = [("Not measured", report.not_measured), ("Rejected", report.rejected)]
        told = [("Notes", report.notes)]
    elif isinstance(report, RemedyReport):
        lists = [("Rejected", report.rejected)]
        told = [("Notes", report.notes)]
    elif isinstance(report, AttributionReport):
        told = [("Notes", report.notes)]
    blocks: list[Block] = [
        Items(f"{title}{run.tag}", tuple(map(host.item, notes))) for title, notes in lists if notes
    ]
    return blocks + [Listing(f"{title}{run.tag}", tuple(lines)) for title, lines in told if lines]


def _disturbed(host: Host) -> tuple[Block, ...]:
    """How many values of each run something disturbed; none is removed for that."""
    rows = []
    for run in host.runs:
        values = run.results.rows
        if not values:
            continue
        by_cause = Counter(name for r in values for name in r["disturbed"].split(",") if name)
        touched = sum(bool(r["disturbed"]) for r in values)
        rejected = sum(r.rejected for r in run.results.rejections.values())
        causes = ", ".join(f"{name} in {n}" for name, n in by_cause.most_common())
        rows.append(
            (
                Cell(run.name),
                Cell(str(len(values)), len(values)),
                Cell(str(touched), touched),
                Cell(causes or "none"),
                Cell(str(rejected), rejected),
                Cell(run.results.status or "killed, or not over"),
            )
        )
    return table(
        "Values, those disturbed while they were taken, and samples that did not count",
        columns("run", "#values", "#disturbed", "by what", "#rejected", "ended"),
        rows,
    )
