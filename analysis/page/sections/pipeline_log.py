"""What the log of a pipeline says about overlap, gaps and throughput."""

from analysis.page.model import Block, Cell, Listing, Section, columns, table
from analysis.page.source import Host
from analysis.timeline.reading import read_log
from analysis.timeline.summary import summarise
from analysis.timeline.tables import Section as Told
from analysis.timeline.tables import report_sections

LOGS = "timeline*.log"
"""Beside a run's journal."""
LEAD = (
    "From the log of every operation: which phases ran together and what that did, when workers had"
    " nothing to do, and how fast jobs came out."
)


def section(host: Host) -> Section | None:
    """The tables of ``bench timeline``, of the logs that lie beside a run."""
    blocks: list[Block] = []
    sources = []
    for run in host.runs:
        logs = sorted(run.results.folder.glob(LOGS)) if run.results.folder.is_dir() else []
        for log in logs:
            report = summarise(read_log(str(log)))
            if report.runs:
                blocks += _blocks(report_sections(report), f", {log.stem}{run.tag}")
                sources.append(run.source)
    if not blocks:
        return None
    return Section("log", "Overlap of phases", LEAD, tuple(blocks), tuple(dict.fromkeys(sources)))


def _blocks(told: list[Told], tag: str) -> list[Block]:
    blocks: list[Block] = []
    for one in told:
        heads = columns(*(c[1:] if c[:1] == "|" else f"#{c}" for c in one.columns))
        rows = [tuple(map(_cell, row)) for row in one.rows]
        blocks += table(f"{one.title}{tag}", heads, rows, one.lines)
        if one.lines and not rows:
            blocks.append(Listing(one.title, tuple(one.lines)))
    return blocks


def _cell(text: str) -> Cell:
    number = text.rstrip("%s").strip()
    try:
        return Cell(text, float(number))
    except ValueError:
        return Cell(text)
