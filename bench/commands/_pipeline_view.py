"""Lays out an ``analysis.proxy.ProxyReport`` for people."""

import math
from typing import TYPE_CHECKING, TextIO

from bench.commands._tables import make_console, number, percent, print_list, table
from bench.units import format_duration

if TYPE_CHECKING:
    from analysis.proxy import PoolTime, ProxyReport, SettingResult, TaskTime, Throughput


def show(report: "ProxyReport", stream: TextIO) -> None:
    """Print a report."""
    console = make_console(stream)
    several = len(report.settings) > 1
    table(
        console,
        f"{report.pipeline}: seconds per job, filling left out",
        ("<setting", "s/job", "95 % interval", "<of", "jobs", *(("gain", "<verdict") * several)),
        (
            [
                s.name,
                number(s.throughput.seconds),
                interval(s.throughput),
                f"{s.throughput.n} {s.throughput.of}",
                str(s.throughput.jobs),
                *(_against(s) if several else ()),
            ]
            for s in report.settings
        ),
    )
    for setting in report.settings:
        title = f" ({setting.name})" if several else ""
        table(
            console,
            f"tasks{title}: milliseconds of work on an item",
            ("<task", "alone", "loaded", "quartiles", "loaded/alone", "at once", "items"),
            (_task(task) for task in setting.tasks),
        )
        table(
            console,
            f"pools{title}",
            ("<pool", "tokens", "used", "wait of a take"),
            (_pool(pool) for pool in setting.pools),
        )
        print_list(console, "notes", setting.notes)
    print_list(console, "left out", report.notes)
    print_list(console, "files", [f"{name}: {path}" for name, path in report.timelines.items()])


def interval(found: "Throughput") -> str:
    """Interval of seconds per job."""
    if math.isnan(found.low):
        return "too few"
    return f"[{number(found.low)}, {number(found.high)}]"


def _against(setting: "SettingResult") -> tuple[str, str]:
    found = setting.against
    if math.isnan(found.ratio):
        return "", ""
    return percent(1 / found.ratio - 1), found.verdict


def _task(task: "TaskTime") -> list[str]:
    return [
        task.name,
        number(task.alone_s * 1e3),
        number(task.median_s * 1e3),
        f"[{number(task.low_s * 1e3)}, {number(task.high_s * 1e3)}]",
        f"{task.median_s / task.alone_s:.2f}" if task.alone_s > 0 else "-",
        f"{task.at_once:.2f}",
        str(task.n),
    ]


def _pool(pool: "PoolTime") -> list[str]:
    used = "-" if math.isnan(pool.used) else f"{pool.used:.0%}"
    wait = "-" if math.isnan(pool.wait_s) else format_duration(pool.wait_s)
    return [pool.name, str(pool.tokens), used, wait]
