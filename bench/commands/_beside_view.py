"""Tables of what ran beside something: latency under load, and how long steps stalled."""

import math
from typing import TYPE_CHECKING

from analysis import wording
from bench.units import format_duration, format_size

if TYPE_CHECKING:
    from rich.console import Console

    from analysis.loaded import LoadedCurve
    from analysis.report import Report


def show(console: "Console", report: "Report") -> None:
    """Print both, where there is any."""
    for curve in report.loaded:
        _loaded(console, curve)
    _stalls(console, report)


def _loaded(console: "Console", curve: "LoadedCurve") -> None:
    from bench.commands._tables import number, print_list, table

    table(
        console,
        f"{curve.victim} {format_size(curve.size)} {curve.pages} beside {curve.loader}"
        f" {curve.threads}t",
        ("asked GB/s a thread", "traffic GB/s", "ns", "", "of idle"),
        (
            [
                wording.asked(point.pace_gb_per_s, first=i == 0),
                number(point.gb_per_s) if i else "0",
                number(point.latency_ns),
                ""
                if math.isnan(point.low_ns)
                else f"[{number(point.low_ns)}, {number(point.high_ns)}]",
                f"{point.latency_ns / curve.points[0].latency_ns:.2f}",
            ]
            for i, point in enumerate(curve.points)
        ),
    )
    print_list(console, "read from it", wording.read_from(curve))


def _stalls(console: "Console", report: "Report") -> None:
    from bench.commands._tables import table

    for victim in dict.fromkeys(s.label for s in report.stalls):
        own = [s for s in report.stalls if s.label == victim]
        quantiles, limits = list(own[0].quantiles_s), list(own[0].over_per_s)
        table(
            console,
            f"steps of {victim}: quantiles, and how many a second took longer",
            (
                "<beside",
                *(f"p{100 * q:g}" for q in quantiles),
                *(f"> {format_duration(limit)}" for limit in limits),
            ),
            (
                [
                    s.beside or "alone",
                    *(wording.duration(s.quantiles_s[q]) for q in quantiles),
                    *(_rate(s.over_per_s[limit]) for limit in limits),
                ]
                for s in own
            ),
        )


def _rate(value: float) -> str:
    return "0" if not value else f"{value:.3g}"
