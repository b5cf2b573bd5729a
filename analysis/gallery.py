"""Which plots a run gives: every one that its samples suffice for, and nothing else."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import plot
from analysis.interference import Slowdown, slowdowns
from analysis.intervals import pairs_needed
from analysis.load import Results, steps
from analysis.measured import measured_curves
from analysis.paired import Comparison, gain
from analysis.plot_forecasts import Foretold, plot_forecasts
from analysis.report import Report

if TYPE_CHECKING:
    from analysis.corun import Cell
    from analysis.plot import Axes

Draw = Callable[["Axes"], Any]
CHURNING = ("storm", "fault", "append")
"""Kernels that map and release memory: what runs beside them is looked at for stalls."""
ELSEWHERE = ("beside",)
"""Questions with plots of their own."""
ROW_INCHES = 0.36
"""Height of one line of a forest plot."""


@dataclass(frozen=True)
class Picture:
    """One plot, not drawn yet."""

    name: str
    """Of its file, without the ending."""
    panels: tuple[Draw, ...]
    size: tuple[float, float] = (6.4, 4.0)
    """Inches."""

    def write(self, folder: Path) -> Path:
        """Draw it into a PNG file."""
        path = folder / f"{self.name}.png"
        plot.write_png(path, *self.panels, size=self.size)
        return path


def gallery(results: Results, report: Report) -> list[Picture]:
    """List the pictures of a run."""
    for key, draw in (("remedy", remedies), ("corun", matrices)):
        if key in results.plan.get("options", {}):
            return draw(results.folder)
    rows = results.rows
    curves = measured_curves(rows)
    found = []
    if _labels(curves, "bandwidth") and _drawable(report.comparisons, "pages"):
        found.append(first_look(results, report))
    found += [
        Picture(
            f"bandwidth-{_file_name(label)}",
            (partial(plot.plot_bandwidth, rows, label=label),),
        )
        for label in _labels(curves, "bandwidth")
    ]
    for subject in ("caches", "tlb"):
        marks = results.marks if subject == "caches" else None
        found += (
            Picture(
                f"latency-{_file_name(label)}",
                (partial(plot.plot_latency, rows, label=label, marks=marks),),
            )
            for label in _labels(curves, subject)
        )
    if _labels(curves, "loaded latency"):
        found.append(Picture("loaded-latency", (partial(plot.plot_loaded_latency, rows),)))
    found += _gains(results, report)
    if any(" GB/s" not in s.beside for s in slowdowns(rows)):
        found.append(Picture("interference", (partial(plot.plot_interference, rows),)))
    found += _stalls(results)
    return found


def first_look(results: Results, report: Report, label: str | None = None) -> Picture:
    """Put what pages bring and bandwidth by threads side by side.

    Parameters
    ----------
    label : str, optional
        Kernel of the bandwidth panel.
    """
    drawn = _drawable(report.comparisons, "pages")
    return Picture(
        "first-look",
        (
            partial(plot.plot_gains, drawn, dead_band=_dead_band(results)),
            partial(plot.plot_bandwidth, results.rows, label=label),
        ),
        (10.0, max(3.2, 1.2 + ROW_INCHES * len(drawn))),
    )


def _gains(results: Results, report: Report) -> list[Picture]:
    found = []
    questions = dict.fromkeys(c.question for c in report.comparisons)
    for question in (q for q in questions if q not in ELSEWHERE):
        drawn = _drawable(report.comparisons, question)
        if drawn:
            found.append(
                Picture(
                    f"gains-{_file_name(question)}",
                    (partial(plot.plot_gains, drawn, dead_band=_dead_band(results)),),
                    (7.2, 1.2 + ROW_INCHES * len(drawn)),
                )
            )
    return found


def _stalls(results: Results) -> list[Picture]:
    """Each kernel alone and beside churning memory, which is what stalls come from."""
    blocks = {
        row["block"] for row in results.rows if any(name in row["beside"] for name in CHURNING)
    }
    rows = steps(results.folder) if blocks else []
    found = []
    for block in sorted(blocks):
        name = f"stalls-{_file_name(block)}"
        of_block = [row for row in rows if row["block"] == block]
        found.append(Picture(name, (partial(plot.plot_stalls, of_block),)))
    return found


def remedies(folder: Path) -> list[Picture]:
    """What each remedy brings to the total work of a scenario, of a run of ``bench remedy``."""
    from analysis.remedy_report import build

    report = build(folder)
    decisions = {r.name: r.total for r in report.remedies if r.tested and r.total.low > 0}
    if not decisions:
        return []
    draw = partial(plot.plot_gains, decisions, dead_band=report.dead_band)
    found = [Picture("remedies", (draw,), (6.4, 1.2 + ROW_INCHES * len(decisions)))]
    tested = [
        Foretold(r.name, 1 + r.predicted, 1 + middle, 1 + low, 1 + high)
        for r in report.remedies
        if r.tested and math.isfinite(r.predicted)
        for middle, low, high in [gain(r.total)]
    ]
    if tested:
        show = partial(plot_forecasts, {"model": tested}, what="total work / without the remedy")
        found.append(Picture("forecasts", (show,)))
    return found


def matrices(folder: Path) -> list[Picture]:
    """Who slows whom, by split and address space, and the forecasts; of ``bench corun``."""
    from analysis.corun import build

    report = build(folder)
    found = []
    groups: dict[tuple[tuple[int, int], str], list[Cell]] = {}
    for cell in report.cells:
        if math.isfinite(cell.alone.ratio):
            groups.setdefault((cell.threads, cell.space), []).append(cell)
    for (threads, space), cells in groups.items():
        name = f"interference-{threads[0]}-{threads[1]}-{space}"
        draw = partial(plot.plot_interference, [_slowdown(cell) for cell in cells])
        n = len(report.kernels)
        found.append(Picture(name, (draw,), (3.6 + 1.1 * n, 2.2 + 0.5 * n)))
    forecasts = {
        "law of shares": _foretold(report.cells, "law"),
        "sensitivity x pressure": _foretold(report.cells, "fit"),
    }
    if any(forecasts.values()):
        found.append(Picture("forecasts", (partial(plot_forecasts, forecasts),), (6.4, 5.2)))
    return found


def _foretold(cells: "Sequence[Cell]", forecast: str) -> list[Foretold]:
    return [
        Foretold(
            f"{cell.victim} beside {cell.aggressor}",
            getattr(cell, forecast),
            cell.alone.ratio,
            cell.alone.low,
            cell.alone.high,
        )
        for cell in cells
        if cell.victim != cell.aggressor
        and cell.space == "shared"
        and math.isfinite(getattr(cell, forecast))
    ]


def _slowdown(cell: "Cell") -> Slowdown:
    d = cell.alone
    known = d.n >= pairs_needed()
    low, high = (d.low, d.high) if known else (math.nan, math.nan)
    return Slowdown(cell.victim, 0, "", cell.aggressor, d.ratio, low, high, d.n)


def _drawable(comparisons: Sequence[Comparison], question: str) -> list[Comparison]:
    return [
        c for c in comparisons if c.question == question and c.decision.n and c.decision.low > 0
    ]


def _dead_band(results: Results) -> float:
    return float(results.plan.get("options", {}).get("dead_band", 0.02))


def _labels(curves: list[Any], subject: str) -> list[str]:
    return list(dict.fromkeys(curve.label for curve in curves if curve.subject == subject))


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")
