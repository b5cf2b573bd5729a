"""What runs of ``corun``, ``attribute`` and ``try`` answer, for the verdict."""

from analysis.attribution import PARTS, AttributionReport
from analysis.corun import CorunReport
from analysis.corun_matrix import SPIN
from analysis.page.model import Answer
from analysis.page.source import Host
from analysis.tryreport import TryReport
from analysis.wording import gain_cells, ratio, ratio_interval


def answers(host: Host) -> tuple[Answer, ...]:
    """Who slows whom, why, and what helps a command: of the last run of each kind."""
    found = [_slowed(report) for _, report in host.of(CorunReport)[-1:] if report.cells]
    found += [_why(report) for _, report in host.of(AttributionReport)[-1:] if report.contrasts]
    found += [_command(report) for _, report in host.of(TryReport)[-1:]]
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


def _command(report: TryReport) -> Answer:
    question = "What helps your command?"
    text = f"{report.command}: {report.conclusion}."
    helping = [r for r in report.remedies if r.decision.verdict == "helps"]
    tested = [r for r in report.remedies if r.tested]
    command = next((note.remedy for note in report.untested if note.remedy), "")
    if helping:
        found = " ".join(gain_cells(helping[0].decision))
        return Answer(question, f"{helping[0].name} helps your command, {found}", text, "helps")
    if not tested:
        short = "no remedy of your command has fresh runs yet"
        return Answer(question, short, text, "unclear", command)
    if all(r.decision.decided for r in tested):
        return Answer(question, "no remedy tested helps your command", text, "neutral")
    return Answer(question, "no remedy is shown to help your command", text, "unclear", command)
