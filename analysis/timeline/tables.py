"""What a log says in words and tables: one description for console, page, notebook and Markdown."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from analysis.timeline.effects import Effect
from analysis.timeline.littles_law import Stated
from analysis.timeline.reading import Log
from analysis.timeline.steady import Mean
from analysis.timeline.summary import RunSummary, TimelineReport
from analysis.timeline.timings import Timing
from analysis.timeline.utilisation import GAP_EDGES_S, Gap, Utilisation
from analysis.wording import percent
from bench.units import counted

LEAST_COMPANY = 0.05
"""Spans at once, on average, that are worth naming."""
MOST_WORKERS = 4
"""Workers of a phase listed one by one."""
MOST_SIDE_BY_SIDE = 5
"""Phases whose names and seconds fit side by side."""


@dataclass
class Section:
    """A title, a table, and lines under it; with neither, it heads the sections that follow."""

    title: str
    columns: Sequence[str] = ()
    """A leading ``|`` makes text of a column, set to the left; ``<`` text that may be broken."""
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
        ("|phase", "n", "mean", "±95 %", "p50", "p90", "p99", "longest", "at once", "most"),
    )
    for p in run.phases:
        section.rows.append(
            [
                p.phase + ("*" if p.waiting else ""),
                str(p.spans),
                number(p.mean_s.value),
                number((p.mean_s.high - p.mean_s.low) / 2),
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
    """A matrix; with seconds where there are few phases, by number where there are many."""
    o = run.overlap
    shown = [j for j in range(len(o.phases)) if o.busy_s[j] > 0]
    many = len(shown) > MOST_SIDE_BY_SIDE
    heads = [str(k) if many else o.phases[j] for k, j in enumerate(shown, 1)]
    section = Section(
        "overlap: share of the row's time with at least one of the column's"
        + ("" if many else " (seconds)"),
        ("|phase", "busy s", *heads),
        lines=["of a phase with itself: at least two at once"],
    )
    for k, i in enumerate(shown, 1):
        pairs = [(o.share[i, j], o.both_s[i, j]) for j in shown]
        cells = [_share(x) if many else f"{_share(x)} ({number(s)})" for x, s in pairs]
        name = f"{k} {o.phases[i]}" if many else o.phases[i]
        section.rows.append([name, number(o.busy_s[i]), *cells])
    return section


def _effects(run: RunSummary) -> Section:
    section = Section(
        "longer or shorter beside others (much against little company, of other items)",
        ("<phase", "<beside", "at once", "time", "|interval", "one more", "|verdict"),
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
    """Effects without a number; reasons one by one only where there are few phases."""
    lines: dict[tuple[str, str], list[str]] = {}
    many = len({e.phase for e in found}) > MOST_SIDE_BY_SIDE
    for e in found:
        if not e.told:
            lines.setdefault((e.phase, "" if many else f": {e.reason}"), []).append(_beside(e))
    told = [
        f"{phase} beside {', '.join(others)}: cannot tell{why}"
        for (phase, why), others in lines.items()
    ]
    return [*told, "the reason of each is in --json"] if many and told else told


def _utilisation(run: RunSummary) -> Section:
    edges = [_seconds(edge) for edge in GAP_EDGES_S]
    section = Section(
        "workers busy, merged spans; gaps between them by length",
        ("|phase", "|worker", "busy", "steady", "gaps", "idle s",
         *(f"≤{edge}" for edge in edges), "more"),
    )  # fmt: skip
    for all_together, workers in _by_phase(run.utilisation):
        section.rows.append(_busy(all_together, "any"))
        if len(workers) <= MOST_WORKERS:
            section.rows += [_busy(u, u.worker) for u in workers]
        else:
            busiest, idlest = (f(workers, key=lambda u: u.share) for f in (max, min))
            for what, u in (("most", busiest), ("least", idlest)):
                section.rows.append(_busy(u, f"{what} of {len(workers)}"))
    return section


def _busy(u: Utilisation, worker: str) -> list[str]:
    classes = (str(n) for n in u.classes)
    busy = (_share(u.share), _share(u.steady_share), str(u.gaps), number(u.idle_s))
    return [u.phase, worker, *busy, *classes]


def _by_phase(found: list[Utilisation]) -> list[tuple[Utilisation, list[Utilisation]]]:
    """Of each phase all workers together, and each of them."""
    return [
        (u, [other for other in found if other.phase == u.phase and other.worker])
        for u in found
        if not u.worker
    ]


def _gaps(run: RunSummary) -> Section:
    section = Section(
        "longest gaps of a phase, all workers together",
        ("|phase", "at s", "seconds", "<meanwhile, on average"),
    )
    together = [u for u in run.utilisation if not u.worker]
    named = 3 if len(together) <= MOST_SIDE_BY_SIDE else 1
    for u in together:
        section.rows += [
            [u.phase, number(g.start_s), number(g.seconds), _meanwhile(g, u.phase)]
            for g in u.longest[:named]
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
    for f in (f for f in run.flows if f.most_at_once):
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


# ---- numbers -------------------------------------------------------------------------------------


def number(value: float) -> str:
    """Three digits, one below a thousandth; ``-`` for what is not known."""
    if not math.isfinite(value):
        return "-"
    if abs(value) < 1e-12:
        return "0"
    if abs(value) < 1e-3:
        return f"{value:.0e}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:#.3g}"


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
