"""What runs of ``corun``, ``attribute``, ``try`` and ``pipeline`` answer, for the verdict."""

from analysis.attribution import PARTS, AttributionReport
from analysis.corun import CorunReport
from analysis.corun_matrix import SPIN
from analysis.page.model import Answer
from analysis.page.source import Host
from analysis.paired import gain
from analysis.proxy import ProxyReport, SettingResult
from analysis.tryreport import TryReport
from analysis.wording import gain_cells, number, ratio, ratio_interval, throughput_interval
from bench.units import counted

FASTEST = 3
"""Settings of a pipeline that an answer quotes; the tables have all."""


def answers(host: Host) -> tuple[Answer, ...]:
    """Who slows whom, why, what helps a command or a pipeline: of the last run of each kind."""
    found = [_slowed(report) for _, report in host.of(CorunReport)[-1:] if report.cells]
    found += _neighbours(host)
    found += [_why(report) for _, report in host.of(AttributionReport)[-1:] if report.contrasts]
    found += [_command(report) for _, report in host.of(TryReport)[-1:]]
    found += [_pipeline(r) for _, r in host.of(ProxyReport)[-1:] if r.settings]
    return tuple(found)


def _slowed(report: CorunReport) -> Answer:
    question = "Who slows whom?"
    cells = [c for c in report.cells if c.space == "shared" and c.alone.n and c.victim != SPIN]
    slow = sorted((c for c in cells if c.alone.verdict == "hurts"), key=lambda c: -c.alone.ratio)
    if not slow:
        unclear = sum(not c.alone.decided for c in cells)
        text = f"Of {counted(len(cells), 'victim')} beside an aggressor, {unclear} cannot be told."
        if not unclear:
            return Answer(question, "no kernel slows another", text, "neutral")
        return Answer(question, "no kernel is shown to slow another", text, "unclear")
    worst = slow[0]
    told = "; ".join(
        f"{c.victim} beside {c.aggressor} takes {ratio(c.alone)} times as long"
        f" {ratio_interval(c.alone)}"
        for c in slow[:3]
    )
    short = f"most slowed is {worst.victim}, {ratio(worst.alone)} times as long beside"
    text = f"Slower for certain: {len(slow)} of {len(cells)} victims beside an aggressor. {told}."
    return Answer(question, f"{short} {worst.aggressor}", text)


def _neighbours(host: Host) -> list[Answer]:
    """What plain runs say of kernels beside others; rates of a loaded-latency curve left out."""
    tested = [
        c
        for _, report in host.reports
        for c in report.comparisons
        if c.question == "beside" and c.decision.n and not report.loaded
    ]
    if not tested:
        return []
    question = "What does a neighbour cost?"
    slow = [c for c in tested if c.decision.verdict == "hurts"]
    text = f"Slower for certain: {len(slow)} of {counted(len(tested), 'case')}."
    if not slow:
        short = "no neighbour is shown to cost anything"
        return [Answer(question, short, text, "unclear")]
    worst = max(slow, key=lambda c: c.decision.ratio)
    neighbour = worst.change.removeprefix("alone -> ")
    short = f"{worst.label} takes {ratio(worst.decision)} times as long {neighbour}"
    return [Answer(question, short, f"{text} Most: {ratio_interval(worst.decision)} times.")]


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


def _pipeline(report: ProxyReport) -> Answer:
    question = f"How fast is {report.pipeline}?"
    first, *others = report.settings
    known = sorted(
        (s for s in others if s.throughput.seconds > 0), key=lambda s: s.throughput.seconds
    )
    text = f"{'; '.join(map(_seconds, (first, *known[:FASTEST])))}."
    if len(others) > FASTEST:
        text += f" These are the first and the fastest of {len(report.settings)}."
    helping = [s for s in known if s.against.verdict == "helps"]
    if helping:
        best = max(helping, key=lambda s: gain(s.against)[0])
        short = f"{best.name} speeds {report.pipeline} up, {' '.join(gain_cells(best.against))}"
        return Answer(question, short, text, "helps")
    short = f"{report.pipeline} takes {number(first.throughput.seconds)} s a job with {first.name}"
    if not others:
        return Answer(question, short, text)
    if all(s.against.decided for s in others):
        return Answer(question, f"{short}, and no other setting is faster", text, "neutral")
    open_ = [s for s in known if not s.against.decided and s.against.ratio < 1]
    if not open_:
        return Answer(question, f"{short}, and none is shown to be faster", text, "unclear")
    best = open_[0]
    short += f", and {number(best.throughput.seconds)} s with {best.name}, which is not decided"
    if best.against.reason:
        text += f" Not decided: {best.against.reason}."
    return Answer(question, short, text, "unclear")


def _seconds(setting: SettingResult) -> str:
    found = setting.throughput
    return f"{setting.name}: {number(found.seconds)} s a job {throughput_interval(found)}"
