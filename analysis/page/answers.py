"""The verdict on a host in a sentence, and the questions behind it.

Which page size, how many threads, whether keeping phases apart pays, and what the runs cannot tell;
who slows whom, and why, where a run looked into that.
Verdicts are those of the comparisons; here they are counted and quoted, and nothing is decided.
"""

import math
import re
from collections.abc import Callable, Sequence

from analysis.concurrency import Concurrency
from analysis.corun import CorunReport
from analysis.page import contention
from analysis.page.comparing import arrow
from analysis.page.model import LOOKS, Answer
from analysis.page.source import NOT_IN_VALUES, Host
from analysis.paired import Comparison, gain
from analysis.proxy import ProxyReport
from analysis.remedy import RemedyResult
from analysis.remedy_report import RemedyReport
from analysis.report import Report
from analysis.stats import Decision
from analysis.tryreport import TryReport
from analysis.wording import gain_cells, number, percent
from bench.units import counted, format_size

NOT_TESTED = "not tested"
_POLICIES = ("base", "thp", "2m", "1g")
_UNTRIED = "interlocks were not tried"
TOTAL = "total work"


def answers(host: Host) -> tuple[Answer, ...]:
    """Answer these questions as far as the runs of a host can."""
    reports = [report for _, report in host.reports]
    remedies = [report for _, report in host.of(RemedyReport)]
    program = host.options.program
    return (
        _elsewhere(host, _pages(reports, remedies, program), _names_pages),
        _threads(reports, program),
        _elsewhere(host, _apart(remedies, program), _names_interlock),
        *contention.answers(host),
        *_unknown(host, reports, remedies),
    )


def sentence(found: Sequence[Answer]) -> str:
    """Put the short answers into one sentence."""
    told = [answer.short for answer in found if not answer.untried]
    untried = [answer.untried for answer in found if answer.untried]
    if untried:
        *most, last = untried
        told.append(f"{' and '.join(filter(None, [', '.join(most), last]))} were not tried")
    return f"{_capital('; '.join(told))}."


# ---- page size -----------------------------------------------------------------------------------


def _pages(reports: Sequence[Report], remedies: Sequence[RemedyReport], program: str) -> Answer:
    question = "Which page size?"
    asked = [c for r in reports for c in r.comparisons if c.question == "pages"]
    tested = [c for c in asked if c.decision.verdict != NOT_TESTED]
    if not tested:
        unplanned = [n for r in reports for n in r.not_tested if n.what == NOT_IN_VALUES]
        if unplanned and not asked:
            text = f"Nothing was compared: {unplanned[0].reason}."
            short = "whether page sizes matter is not in these files"
            return _by_remedy(question, remedies) or Answer(question, short, text, "unclear")
        why = asked[0].decision.reason if asked else "no run compares page sizes"
        command = next((c.decision.command for c in asked if c.decision.command), f"{program} run")
        text = f"{_capital(why)}."
        return _by_remedy(question, remedies) or Answer(
            question, "page sizes were not tried", text, command=command, untried="page sizes"
        )
    changes = list(dict.fromkeys(c.change for c in tested))
    told = " ".join(_of_change(change, tested) for change in changes)
    sizes = sorted({c.size for c in tested})
    told += f" Tested at {_range(sizes)}."
    if whole := _by_remedy(question, remedies):
        told += f" {whole.text}"
    helped = {change: _with(tested, change, "helps") for change in changes}
    hurt = {change: _with(tested, change, "hurts") for change in changes}
    pays = [change for change in changes if helped[change] and not hurt[change]]
    if pays:
        best = max(pays, key=lambda c: (len(helped[c]), max(x.gain[0] for x in helped[c])))
        kernels = _kernels(helped[best])
        others = [_policy(change) for change in pays if change != best]
        also = f" ({', '.join(others)} helps too)" if others else ""
        return Answer(question, f"use {_policy(best)} for {kernels}{also}", told, "helps")
    mixed = [change for change in changes if helped[change]]
    if mixed:
        one = mixed[0]
        short = f"use {_policy(one)} for {_kernels(helped[one])} and not for {_kernels(hurt[one])}"
        return Answer(question, short, told, "unclear")
    if all(c.decision.verdict == "neutral" for c in tested):
        return Answer(question, "page size makes no difference", told, "neutral")
    if any(hurt.values()):
        worst = next(change for change in changes if hurt[change])
        baseline = worst.partition(" -> ")[0]
        short = f"stay with {baseline}: {_policy(worst)} slows {_kernels(hurt[worst])}"
        return Answer(question, short, told, "hurts")
    return Answer(question, "which page size is faster cannot be told yet", told, "unclear")


def _by_remedy(question: str, remedies: Sequence[RemedyReport]) -> Answer | None:
    """What page policies bring to the total work of a scenario; None where none was tried."""
    found = [
        (report.scenario, r)
        for report in remedies
        for r in report.remedies
        if r.tested and all(map(_is_policy, _parts(r.name)))
    ]
    if not found:
        return None
    told = " ".join(
        f"{name} as a whole with {r.name}: {' '.join(gain_cells(r.total))}, {r.total.verdict}."
        for name, r in found
    )
    helping = [one for one in found if one[1].total.verdict == "helps"]
    if helping:
        name, best = max(helping, key=lambda one: gain(one[1].total)[0])
        return Answer(question, f"use {best.name} for {name}", told, "helps")
    if all(r.total.decided for _, r in found):
        return Answer(question, "larger pages do not pay", told, "neutral")
    return Answer(question, "which page size is faster cannot be told yet", told, "unclear")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _of_change(change: str, tested: Sequence[Comparison]) -> str:
    """``base -> thp helps 2 of 5 cases (most: chase 2GiB 1t, +74% [+64%, +79%]), cannot …``."""
    own = [c for c in tested if c.change == change]
    parts = []
    for verdict in ("helps", "hurts", "neutral", "cannot tell"):
        same = _with(own, change, verdict)
        if not same:
            continue
        if verdict in ("helps", "hurts"):
            most = max(same, key=lambda c: abs(c.gain[0]))
            middle, ends = gain_cells(most.decision)
            where = f"{most.label} {format_size(most.size)} {most.threads}t"
            parts.append(f"{verdict} {len(same)} (most: {where}, {middle} {ends})")
        else:
            said = "makes no difference to" if verdict == "neutral" else "cannot be told for"
            parts.append(f"{said} {len(same)}")
    return f"Of {counted(len(own), 'case')}, {arrow(change)} {', '.join(parts)}."


def _with(found: Sequence[Comparison], change: str, verdict: str) -> list[Comparison]:
    return [c for c in found if c.change == change and c.decision.verdict == verdict]


def _policy(change: str) -> str:
    return change.rpartition(" -> ")[2]


def _kernels(found: Sequence[Comparison]) -> str:
    names = list(dict.fromkeys(c.label for c in found))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")


def _range(sizes: Sequence[int]) -> str:
    first, last = format_size(sizes[0]), format_size(sizes[-1])
    return first if first == last else f"{first} to {last}"


# ---- threads -------------------------------------------------------------------------------------


def _threads(reports: Sequence[Report], program: str) -> Answer:
    question = "How many threads?"
    found = [best for report in reports for best in report.best]
    if not found:
        text = "No kernel was measured with several numbers of threads."
        command = f"{program} run --threads ladder"
        short = "numbers of threads were not tried"
        return Answer(question, short, text, command=command, untried="numbers of threads")
    by_kernel: dict[str, Concurrency] = {}
    for best in found:
        known = by_kernel.get(best.label)
        if known is None or best.gbps > known.gbps:
            by_kernel[best.label] = best
    top = max(by_kernel.values(), key=lambda b: b.gbps)
    told = [
        f"{b.label} {number(b.gbps)} GB/s with {b.threads} (95 % of it from {b.enough} on)"
        for b in sorted(by_kernel.values(), key=lambda b: -b.gbps)[:4]
    ]
    tried = sorted({n for b in found for n in b.tried})
    text = f"Most bandwidth of kernels alone, medians: {'; '.join(told)}."
    text += f" Tried: {', '.join(map(str, tried))}."
    if top.saturation is not None:
        limit = top.saturation
        text += (
            f" {top.label} saturates at {number(limit.gbps)} GB/s"
            f" [{number(limit.low)}, {number(limit.high)}] by {limit.model}."
        )
    enough = sorted({b.enough for b in by_kernel.values()})
    command = ""
    if enough[0] == max(tried):
        short = f"use {enough[0]} threads, the most tried"
        if len(tried) == 2 and tried[1] > tried[0] + 1:
            text += " Fewer may be enough: nothing between was tried."
            command = f"{program} run --threads ladder"
    elif len(enough) == 1:
        short = f"{counted(enough[0], 'thread')} move all there is"
    else:
        others = [b for b in by_kernel.values() if b.enough != top.enough]
        other = max(others, key=lambda b: b.enough)
        short = f"use {top.enough} threads for {top.label}, {other.enough} for {other.label}"
    return Answer(question, short, text, "neutral", command)


# ---- keeping phases apart ------------------------------------------------------------------------


def _apart(remedies: Sequence[RemedyReport], program: str) -> Answer:
    question = "Does an interlock pay?"
    if not remedies:
        text = "It takes a workload of several actors: one kernel at a time cannot show it."
        command = f"{program} remedy"
        return Answer(question, _UNTRIED, text, command=command, untried="interlocks")
    report = remedies[-1]
    text = f"{report.scenario}: {report.conclusion}."
    tried = [found for r in report.remedies if r.tested for found in _interlocks(r)]
    untested = [note.what for note in report.untested if any(map(_keeps_apart, _parts(note.what)))]
    command = next((n.remedy for n in report.untested if n.remedy.startswith(program)), "")
    if untested:
        text += f" Not tested: {', '.join(untested)}."
    if not tried:
        command = command or f"{program} remedy"
        return Answer(question, _UNTRIED, text, command=command, untried="interlocks")
    helping = [found for found in tried if found[1].verdict == "helps"]
    if helping:
        name, decision, of = max(helping, key=lambda found: gain(found[1])[0])
        middle, ends = gain_cells(decision)
        return Answer(question, f"{name} pays, {middle} {ends} of {of}", text, "helps")
    hurting = [name for name, decision, of in tried if decision.verdict == "hurts" and of == TOTAL]
    if hurting:
        text += f" Slower for certain: {', '.join(hurting)}."
    rest = " of those tested" if untested else ""
    hurt = f", and {len(hurting)} of {len(tried)} hurt" if hurting else ""
    if all(decision.decided for _, decision, _ in tried):
        return Answer(question, f"no interlock{rest} pays{hurt}", text, "neutral", command)
    return Answer(question, f"no interlock{rest} is shown to pay{hurt}", text, "unclear", command)


def _interlocks(r: RemedyResult) -> list[tuple[str, Decision, str]]:
    """What a remedy says of keeping phases apart: its name, the decision, and on what.

    Of a combination with something else, only what it brings beyond that.
    """
    parts = _parts(r.name)
    others = [part for part in parts if not _keeps_apart(part)]
    if not others:
        found = [(r.name, r.total, TOTAL)]
        if r.total.verdict != "helps" and r.critical.verdict == "helps":
            found.append((r.name, r.critical, "the critical actor's speed"))
        return found
    locks = "+".join(part for part in parts if _keeps_apart(part))
    beyond = r.beyond.get(others[0]) if len(others) == 1 and locks else None
    return [(f"{locks} beside {others[0]}", beyond, TOTAL)] if beyond is not None else []


def _elsewhere(host: Host, answer: Answer, names: Callable[[str], bool]) -> Answer:
    """The answer; where nothing was tried, but by settings of a pipeline, that it was there."""
    found = [
        report.pipeline
        for _, report in host.of(ProxyReport)
        if any(names(word) for s in report.settings for word in re.split(r"[ ,+]", s.name))
    ]
    if not answer.untried or not found:
        return answer
    short = f"{answer.untried} were tried in {found[-1]} only"
    text = "Its settings are compared below. Of kernels and scenarios no run says anything."
    return Answer(answer.question, short, text, command=answer.command)


def _names_pages(word: str) -> bool:
    return ".pages=" in word or _is_policy(word.partition(":")[0])


def _names_interlock(word: str) -> bool:
    return word.partition(":")[0] in ("cap", "mutex", "sem", "yield", "pause", "apart")


def _parts(name: str) -> list[str]:
    return name.split("+")


def _keeps_apart(part: str) -> bool:
    """Whether a remedy is about when actors run, and not about pages or released memory."""
    return part != "pool" and not _is_policy(part)


def _is_policy(part: str) -> bool:
    return part in _POLICIES or part.startswith("mthp")


# ---- what is left --------------------------------------------------------------------------------


def _unknown(
    host: Host, reports: Sequence[Report], remedies: Sequence[RemedyReport]
) -> tuple[Answer, ...]:
    question = "What can these results not tell?"
    tried = [c for r in reports for c in r.comparisons if c.decision.n and c.question != "kernels"]
    decisions = [c.decision for c in tried]
    decisions += [r.total for report in remedies for r in report.remedies if r.tested]
    decisions += [s.against for _, p in host.of(ProxyReport) for s in p.settings if s.against.n]
    decisions += [r.decision for _, t in host.of(TryReport) for r in t.remedies if r.tested]
    decisions += [c.alone for _, report in host.of(CorunReport) for c in report.cells if c.alone.n]
    if not decisions:
        return ()
    unclear = [d for d in decisions if d.verdict == "cannot tell"]
    parts = []
    if unclear:
        smallest = sorted(d.smallest_effect for d in unclear)
        middle = smallest[len(smallest) // 2]
        parts.append(
            f"{'Half of those' if unclear[1:] else 'That one'} could not have seen an effect under"
            f" {percent(middle).lstrip('+')}."
            if math.isfinite(middle)
            else "Most of those have too few samples for an interval."
        )
    caveats = [note for report in reports for note in report.notes if "hypervisor" in note]
    parts += [f"{_capital(note)}." for note in dict.fromkeys(caveats)]
    parts += dict.fromkeys(
        f"Not tested: {note.what}."
        for report in reports
        for note in host.open_ended(report.not_tested)
    )
    left_out = sum(len(r.skipped) for r in reports)
    if left_out:
        parts.append(f"Left out: {counted(left_out, 'thing')}, listed below.")
    if unclear:
        verb = "stays" if len(unclear) == 1 else "stay"
        short = f"{len(unclear)} of {counted(len(decisions), 'comparison')} {verb} open"
    else:
        short = "all that was compared is decided"
    look = LOOKS["cannot tell"] if unclear else ""
    command = _more_samples(host)
    text = " ".join(parts) or "Everything compared was decided."
    return (Answer(question, short, text, look, command),)


def _more_samples(host: Host) -> str:
    """Command that would decide more, of the last run that proposes one."""
    for _, report in reversed(host.reports):
        for command in report.next_commands:
            if " --samples " in command:
                return command
    return ""
