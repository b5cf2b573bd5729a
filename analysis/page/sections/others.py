"""Comparisons of other questions: parameters, kernels, placement, processes, aliasing."""

from analysis.page.comparing import comparison_table
from analysis.page.model import Block, Section
from analysis.page.source import Host

ELSEWHERE = ("pages", "beside")
"""Questions with sections of their own."""
LEAD = "What else the runs compared, pair by pair, against the baseline of each block."


def section(host: Host) -> Section | None:
    """One table a question."""
    blocks: list[Block] = []
    sources = []
    for run, report in host.reports:
        tested = [c for c in report.comparisons if c.decision.n and c.question not in ELSEWHERE]
        for question in dict.fromkeys(c.question for c in tested):
            own = [c for c in tested if c.question == question]
            blocks += comparison_table(f"By {question}{run.tag}", own)
        if tested:
            sources.append(run.source)
    if not blocks:
        return None
    return Section("others", "Other comparisons", LEAD, tuple(blocks), tuple(sources))
