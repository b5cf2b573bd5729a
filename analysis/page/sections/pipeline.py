"""A pipeline of tasks and pools: seconds per job, and where they go."""

import math
from collections.abc import Sequence

from analysis.page.comparing import bar_cell, bar_column, gain_axis, gain_cell, verdict_cell
from analysis.page.model import Block, Cell, Listing, Section, columns, table
from analysis.page.source import Host
from analysis.proxy import ProxyReport, SettingResult
from analysis.stats import Decision
from analysis.wording import duration, gain_cells, number, throughput_interval

LEAD = (
    "Real kernels in the tasks of a pipeline, linked by its pools. Seconds per job are those at the"
    " sink, filling and draining left out."
)


def section(host: Host) -> Section | None:
    """Every setting, and the tasks and pools of each."""
    blocks: list[Block] = []
    sources = []
    for run, report in host.of(ProxyReport):
        sources.append(run.source)
        blocks += _settings(report, run.tag)
        blocks += _tasks(report.settings, run.tag)
        blocks += _pools(report.settings, run.tag)
        for setting in report.settings:
            if setting.notes:
                title = f" ({setting.name})" if len(report.settings) > 1 else ""
                blocks.append(Listing(f"Notes{title}", tuple(setting.notes)))
        if report.notes:
            blocks.append(Listing(f"Left out{run.tag}", tuple(report.notes)))
    if not blocks:
        return None
    return Section("pipeline", "Pipeline", LEAD, tuple(blocks), tuple(sources))


def _settings(report: ProxyReport, tag: str) -> tuple[Block, ...]:
    decisions = [s.against for s in report.settings if s.against.n]
    axis = gain_axis(decisions)
    bars = [bar_column(axis, decisions[0].dead_band)] if axis else []
    heads = (
        *columns("setting", "#seconds per job", "-95 % interval", "over", "#jobs"),
        *(columns("#gain", "-95 % interval of it") if decisions else ()),
        *bars,
        *(columns("verdict") if decisions else ()),
    )
    rows = [
        (
            Cell(s.name),
            Cell(number(s.throughput.seconds), s.throughput.seconds),
            Cell(throughput_interval(s.throughput)),
            Cell(f"{s.throughput.n} {s.throughput.of}"),
            Cell(str(s.throughput.jobs), s.throughput.jobs),
            *(_against(s.against, bars=axis is not None) if decisions else ()),
        )
        for s in report.settings
    ]
    return table(f"{report.pipeline}: seconds per job{tag}", heads, rows)


def _against(decision: Decision, *, bars: bool) -> tuple[Cell, ...]:
    if not decision.n:
        return (Cell("-"), Cell(""), *([Cell("")] if bars else []), Cell("baseline"))
    return (
        gain_cell(decision),
        Cell(gain_cells(decision)[1]),
        *([bar_cell(decision)] if bars else []),
        verdict_cell(decision),
    )


def _tasks(settings: Sequence[SettingResult], tag: str) -> tuple[Block, ...]:
    names = ("task", "#alone", "#loaded", "-quartiles", "#loaded/alone", "#at once", "#items")
    return table(
        f"Tasks, milliseconds of work on an item{tag}",
        columns(*_first(settings), *names),
        [
            (
                *_named(settings, setting),
                Cell(task.name),
                Cell(number(task.alone_s * 1e3), task.alone_s),
                Cell(number(task.median_s * 1e3), task.median_s),
                Cell(f"[{number(task.low_s * 1e3)}, {number(task.high_s * 1e3)}]"),
                _ratio(task.median_s, task.alone_s),
                Cell(f"{task.at_once:.2f}", task.at_once),
                Cell(str(task.n), task.n),
            )
            for setting in settings
            for task in setting.tasks
        ],
    )


def _first(settings: Sequence[SettingResult]) -> tuple[str, ...]:
    return ("setting",) if len(settings) > 1 else ()


def _named(settings: Sequence[SettingResult], setting: SettingResult) -> tuple[Cell, ...]:
    return (Cell(setting.name),) if len(settings) > 1 else ()


def _ratio(loaded: float, alone: float) -> Cell:
    return Cell(f"{loaded / alone:.2f}", loaded / alone) if alone > 0 else Cell("-")


def _pools(settings: Sequence[SettingResult], tag: str) -> tuple[Block, ...]:
    return table(
        f"Pools{tag}",
        columns(*_first(settings), "pool", "#tokens", "#used", "#wait of a take"),
        [
            (
                *_named(settings, setting),
                Cell(pool.name),
                Cell(str(pool.tokens), pool.tokens),
                Cell("-" if math.isnan(pool.used) else f"{pool.used:.0%}", pool.used),
                Cell(duration(pool.wait_s), pool.wait_s),
            )
            for setting in settings
            for pool in setting.pools
        ],
    )
