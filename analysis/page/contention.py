"""What runs of ``corun`` and ``attribute`` answer, for the verdict."""

from analysis.attribution import PARTS, AttributionReport
from analysis.corun import CorunReport
from analysis.corun_matrix import SPIN
from analysis.page.model import Answer
from analysis.page.source import Host
from analysis.wording import ratio, ratio_interval


def answers(host: Host) -> tuple[Answer, ...]:
    """Who slows whom, and why: of the last run of each kind."""
    found = [_slowed(report) for _, report in host.of(CorunReport)[-1:] if report.cells]
    found += [_why(report) for _, report in host.of(AttributionReport)[-1:] if report.contrasts]
    return tuple(found)


def _slowed(report: CorunReport) -> Answer:
    question = "Who slows whom?"
    cells = [c for c in report.cells if c.space == "shared" and c.alone.n and c.victim != SPIN]
    slow = sorted((c for c in cells if c.alone.verdict == "hurts"), key=lambda c: -c.alone.ratio)
    if not slow:
        return Answer(question, "no kernel is shown to slow another", f"Of {len(cells)} pairs.")
    worst = slow[0]
    told = "; ".join(
        f"{c.victim} beside {c.aggressor} takes {ratio(c.alone)} times as long"
        f" {ratio_interval(c.alone)}"
        for c in slow[:3]
    )
    short = f"most slowed is {worst.victim}, {ratio(worst.alone)} times as long beside"
    text = f"Slower for certain: {len(slow)} of {len(cells)} victims beside an aggressor. {told}."
    return Answer(question, f"{short} {worst.aggressor}", text)


def _why(report: AttributionReport) -> Answer:
    pair = f"{report.victim} beside {report.aggressor}"
    question = f"Why is {pair} slow?"
    parts = [c for c in report.contrasts if c.name in PARTS]
    told = "; ".join(str(contrast) for contrast in report.contrasts[:1] + parts)
    costs = [c for c in parts if c.resolved and c.ratio > 1]
    if not costs:
        return Answer(question, f"why {pair} is slow is not resolved", f"{told}.", "unclear")
    most = max(costs, key=lambda c: c.ratio)
    short = f"{most.name} costs {pair} most, {most.ratio - 1:+.0%} of time"
    return Answer(question, short, f"{told}.")
