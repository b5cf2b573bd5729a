"""What a log says in words and tables: one description for console, page, notebook and Markdown."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from analysis.timeline.effects import Effect
from analysis.timeline.littles_law import Stated
from analysis.timeline.reading import Log
from analysis.timeline.steady import Mean
from analysis.timeline.summary import RunSummary, TimelineReport
from analysis.timeline.timings import Timing
from analysis.timeline.utilisation import GAP_EDGES_S, Gap, Utilisation
from bench.units import counted

LEAST_COMPANY = 0.005
"""Spans at once, on average, that are worth naming."""
MOST_WORKERS = 16
"""Workers of a phase listed one by one."""


@dataclass
class Section:
    """A title, a table, and lines under it; with neither, it heads the sections that follow."""

    title: str
    columns: Sequence[str] = ()
    """A leading ``|`` makes text of a column, which is set to the left."""
    rows: list[list[str]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def report_sections(report: TimelineReport) -> list[Section]:
    """Sections of a whole report."""
    found = [log_section(report.log)] if report.log.sources else []
    for run in report.runs:
        if len(report.runs) > 1:
            found.append(Section(f"run from {run.name}"))
        found += run_sections(run)
    if report.across:
        a, b = report.across
        found.append(
            Section(
                f"over {len(report.runs)} runs",
                lines=[f"total = {_mean(a)} s + {_mean(b)} s a job"],
            )
        )
    if report.timings:
        found.append(timings_section(report.timings))
    if report.stated:
        found.append(stated_section(report.stated))
    return found


def log_section(log: Log) -> Section:
    """What was read, and what was wrong with it."""
    lines = [f"{log.lines} lines, {counted(log.records, 'record')}, {log.used} of them used"]
    for fault in log.faults:
        more = ", ..." if fault.count > len(fault.lines) else ""
        lines.append(
            f"{fault.kind}: {fault.count} ({fault.meaning}): {', '.join(fault.lines)}{more}"
        )
    return Section(f"log {', '.join(log.sources)}", lines=lines + log.notes)


def run_sections(run: RunSummary) -> list[Section]:
    """Sections of one run."""
    sections = [
        _phases(run),
        _overlap(run),
        _effects(run),
        _utilisation(run),
        _gaps(run),
        _throughput(run),
        _flows(run),
    ]
    if run.stated:
        sections.append(stated_section(run.stated))
    return [section for section in sections if section.rows or section.lines]


def _phases(run: RunSummary) -> Section:
    jobs = counted(run.throughput.jobs, "job")
    section = Section(
        f"phases, seconds ({jobs} in {run.run.seconds:.4g} s)",
        ("|phase", "n", "mean", "|95 %", "p50", "p90", "p99", "longest", "at once", "most"),
    )
    for p in run.phases:
        section.rows.append(
            [
                p.phase + ("*" if p.waiting else ""),
                str(p.spans),
                number(p.mean_s.value),
                _ends(p.mean_s),
                number(p.p50_s),
                number(p.p90_s),
                number(p.p99_s),
                number(p.most_s),
                number(p.mean_at_once),
                str(p.most_at_once),
            ]
        )
    if any(p.waiting for p in run.phases):
        section.lines.append("*: waits; nothing is done in it")
    section.lines += run.notes
    return section


def _overlap(run: RunSummary) -> Section:
    o = run.overlap
    shown = [j for j in range(len(o.phases)) if o.busy_s[j] > 0]
    section = Section(
        "overlap: share of the row's time with at least one of the column's (seconds)",
        ("|", "busy s", *(o.phases[j] for j in shown)),
    )
    for i, name in ((j, o.phases[j]) for j in shown):
        cells = [f"{_share(o.share[i, j])} ({number(o.both_s[i, j])})" for j in shown]
        section.rows.append([name, number(o.busy_s[i]), *cells])
    section.lines = ["of a phase with itself: at least two at once"]
    return section


def _effects(run: RunSummary) -> Section:
    section = Section(
        "longer or shorter beside others (much against little company, of other items)",
        ("|phase", "|beside", "at once", "time", "|interval", "one more", "|verdict"),
    )
    told = [e for e in run.effects if e.told]
    for e in told:
        section.rows.append(
            [
                e.phase,
                _beside(e),
                f"{e.little:.2g} to {e.much:.2g}",
                percent(e.ratio - 1),
                f"[{percent(e.low - 1)}, {percent(e.high - 1)}]",
                percent(e.per_one - 1),
                e.verdict,
            ]
        )
    if told:
        section.lines.append("association in this log, not proof of a cause")
    section.lines += _untold(run.effects)
    section.lines += [
        f"{e.phase} beside {_beside(e)}: {e.reason}"
        for e in told
        if e.verdict == "cannot tell" and e.reason
    ]
    return section


def _beside(effect: Effect) -> str:
    return f"other {effect.beside}" if effect.beside == effect.phase else effect.beside


def _untold(found: list[Effect]) -> list[str]:
    """Effects without a number; a reason that holds for all of a phase is said once."""
    lines: dict[tuple[str, str], list[str]] = {}
    for e in found:
        if not e.told:
            lines.setdefault((e.phase, e.reason), []).append(_beside(e))
    return [
        f"{phase} beside {', '.join(others)}: cannot tell: {why}"
        for (phase, why), others in lines.items()
    ]


def _utilisation(run: RunSummary) -> Section:
    edges = [_seconds(edge) for edge in GAP_EDGES_S]
    classes = [*(f"to {edge}" for edge in edges), f"over {edges[-1]}"]
    section = Section(
        "workers busy, merged spans; gaps between them by length",
        ("|phase", "|worker", "busy", "steady", "gaps", "idle s", *classes),
    )
    for u in _listed(run.utilisation):
        section.rows.append(
            [
                u.phase,
                u.worker or "any",
                _share(u.share),
                _share(u.steady_share),
                str(u.gaps),
                number(u.idle_s),
                *(str(n) for n in u.classes),
            ]
        )
    return section


def _listed(found: list[Utilisation]) -> list[Utilisation]:
    """All together always; single workers where they are not too many to read."""
    return [
        u
        for u in found
        if not u.worker or sum(o.phase == u.phase for o in found) <= MOST_WORKERS + 1
    ]


def _gaps(run: RunSummary) -> Section:
    section = Section(
        "longest gaps of a phase, all workers together",
        ("|phase", "at s", "seconds", "|meanwhile, on average"),
    )
    for u in run.utilisation:
        if not u.worker:
            section.rows += [
                [u.phase, number(g.start_s), number(g.seconds), _meanwhile(g, u.phase)]
                for g in u.longest[:3]
            ]
    return section


def _meanwhile(gap: Gap, own: str) -> str:
    others = [
        f"{n:.2g} {name}" for name, n in gap.beside.items() if name != own and n >= LEAST_COMPANY
    ]
    return ", ".join(others) or "nothing"


def _throughput(run: RunSummary) -> Section:
    s, t = run.steady, run.throughput
    lines = [
        f"fill {number(s.fill_s)} s (until the first {s.sink} ends), steady"
        f" {number(s.end - s.start)} s, drain {number(s.drain_s)} s (from the last start of"
        f" {s.source})"
    ]
    if math.isfinite(t.s_per_job.value):
        lines.append(
            f"steady: {_mean(t.s_per_item)} s an item, {_mean(t.s_per_job)} s a job"
            f" ({t.items_per_job:.3g} items)"
        )
        lines.append(f"total = {_mean(t.offset_s)} s + {_mean(t.s_per_job)} s a job")
    if t.reason:
        lines.append(t.reason)
    return Section("throughput", lines=lines)


def _flows(run: RunSummary) -> Section:
    section = Section(
        "Little's law, N = X R, in steady state; Z: how long a place waits for an item",
        ("|phase", "N", "X a s", "R s", "X R", "places", "Z s"),
    )
    for f in run.flows:
        section.rows.append(
            [
                f.phase,
                number(f.mean_at_once),
                number(f.per_s),
                number(f.residence_s),
                number(f.per_s * f.residence_s),
                str(f.most_at_once),
                number(f.idle_s),
            ]
        )
    if run.flows and not run.steady.exists:
        section.lines = ["over the whole run: it was never steady"]
    return section


def timings_section(timings: Sequence[Timing]) -> Section:
    """Figures without a time."""
    section = Section(
        "figures without a time, in their own units",
        ("|figure", "n", "mean", "p50", "p90", "p99", "total"),
    )
    for t in timings:
        values = (number(v) for v in (t.mean, t.p50, t.p90, t.p99, t.total))
        section.rows.append([t.key, str(t.n), *values])
    return section


def stated_section(stated: Stated) -> Section:
    """What became of stated figures."""
    lines = [f"conflict: {c.text}" for c in stated.conflicts]
    lines += [f"agrees: {text}" for text in stated.agreed]
    lines += [f"open: {text}" for text in stated.unknown]
    return Section("stated figures", lines=lines)


# ---- pages ---------------------------------------------------------------------------------------


def report_html(report: TimelineReport) -> str:
    """Body of a page, or of a notebook cell."""
    return "".join(map(_html, report_sections(report)))


def run_html(run: RunSummary) -> str:
    """The same for one run."""
    return "".join(map(_html, run_sections(run)))


def report_markdown(report: TimelineReport) -> str:
    """Markdown, for a pull request or a note."""
    return "\n".join(map(_markdown, report_sections(report)))


def _html(section: Section) -> str:
    head = "".join(f"<th>{escape(name.lstrip('|'))}</th>" for name in section.columns)
    sides = ["left" if name.startswith("|") else "right" for name in section.columns]
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{side}">{escape(cell)}</td>'
            for side, cell in zip(sides, row, strict=True)
        )
        + "</tr>"
        for row in section.rows
    )
    table = f"<table><tr>{head}</tr>{body}</table>" if section.rows else ""
    lines = "".join(f"<p>{escape(line)}</p>" for line in section.lines)
    return f"<h3>{escape(section.title)}</h3>{table}{lines}"


def _markdown(section: Section) -> str:
    made = [f"### {_cell(section.title)}", ""]
    if section.rows:
        sides = ("---" if name.startswith("|") else "--:" for name in section.columns)
        made.append("| " + " | ".join(_cell(name.lstrip("|")) for name in section.columns) + " |")
        made.append("|" + "|".join(sides) + "|")
        made += ["| " + " | ".join(map(_cell, row)) + " |" for row in section.rows]
        made.append("")
    made += [f"- {_cell(line)}" for line in section.lines]
    return "\n".join(made) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


# ---- numbers -------------------------------------------------------------------------------------


def number(value: float) -> str:
    """Three digits; ``-`` for what is not known."""
    if not math.isfinite(value):
        return "-"
    if not value:
        return "0"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:#.3g}"


def percent(share: float) -> str:
    """``+18%``, ``-1.3%``."""
    return f"{share:+.0%}" if abs(share) >= 0.1 else f"{share:+.1%}"


def _share(value: float) -> str:
    return f"{value:.0%}" if math.isfinite(value) else "-"


def _seconds(value: float) -> str:
    return f"{value * 1e3:g}ms" if value < 1 else f"{value:g}s"


def _ends(mean: Mean) -> str:
    if not math.isfinite(mean.low):
        return f"n={mean.n}"
    return f"[{number(mean.low)}, {number(mean.high)}]"


def _mean(mean: Mean) -> str:
    if not math.isfinite(mean.low):
        return number(mean.value)
    return f"{number(mean.value)} {_ends(mean)}"
