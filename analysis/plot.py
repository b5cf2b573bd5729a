"""Plots of analysis results; matplotlib is imported when one is drawn, never before.

Every function takes ``ax`` and returns it, sets no global style and shows nothing. ``data`` is a
DataFrame of `analysis.load.frame`, or the rows behind it. Page policies differ in colour, marker
and line, so that a plot can be read in print and whatever colours a reader sees.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.drawing import (
    GRAY,
    STYLES,
    VERDICTS,
    clean,
    draw_fit,
    draw_marks,
    draw_points,
    finish,
    legend_above,
    limits_of_ratios,
    named_decisions,
    styled,
    ticks_in_bytes,
    ticks_in_numbers,
    ticks_in_percent,
)
from analysis.fitted import Fit
from analysis.interference import Slowdown, slowdowns
from analysis.measured import MeasuredCurve, measured_curves
from analysis.paired import Comparison, gain
from analysis.rows import Row
from analysis.stalls import STEPS_FOR_A_QUANTILE, tails
from analysis.stats import DEAD_BAND, Decision
from bench.errors import UsageError
from bench.units import format_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes  # the types in signatures elsewhere
    from matplotlib.axis import Axis as Axis
    from pandas import DataFrame

    Data = Iterable[Row] | DataFrame


def new_axes(ax: "Axes | None") -> "Axes":
    """Return ``ax``, or fresh axes where there are none."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def plot_fit(fit: Fit, ax: "Axes | None" = None) -> "Axes":
    """Draw the measured points, the fitted curve and the 95 % band of the curve."""
    axes = new_axes(ax)
    sizes = fit.model.SUBJECT == "tlb"
    x = (np.geomspace if sizes else np.linspace)(fit.x.min(), fit.x.max(), 200)
    if sizes:
        axes.set_xscale("log", base=2)
    if fit.scale == "log":
        axes.set_yscale("log")
    low, high = fit.predict_band(x)
    color, dot, _ = STYLES[1]
    axes.plot(x, fit.predict(x), color=color, linewidth=1.2, label=fit.model.NAME)
    axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
    if fit.groups is not None:
        for at, group in zip(fit.x, fit.groups, strict=True):
            axes.plot(np.full(group.size, at), group, ".", color="0.7", markersize=3)
    axes.plot(fit.x, fit.y, dot, color=color, markersize=5, label="measured")
    if fit.scale == "log":
        ticks_in_numbers(axes.yaxis)
    else:
        axes.set_ylim(bottom=min(0.0, float(fit.y.min())))
    if sizes:
        ticks_in_bytes(axes)
    finish(axes, fit.model.SUBJECT)
    return axes


def plot_bandwidth(
    data: "Data", ax: "Axes | None" = None, *, label: str | None = None, fits: bool = True
) -> "Axes":
    """Draw bandwidth against threads, a curve a page policy.

    Points are medians with 95 % intervals, hollow where they do not belong to the fit. Where a
    model was chosen, its curve and band are drawn too.

    Parameters
    ----------
    label : str, optional
        Kernel with its parameters: ``scan[op=triad]``; by default the one with most points, and
        then with most bandwidth.
    fits : bool
        Whether to fit.
    """
    curves = _of_label(measured_curves(data, "bandwidth"), label, "bandwidth")
    axes = new_axes(ax)
    for curve, style, name, shift in styled(curves):
        fitted = fits and draw_fit(axes, curve, style)
        draw_points(axes, curve, (style, name), shift, joined=not fitted)
        for point in curve.outside:
            axes.plot(
                point.x, np.median(point.samples), style.marker, color=style.color, fillstyle="none"
            )
    if any(curve.outside for curve in curves):
        axes.plot([], [], "o", color=GRAY, fillstyle="none", label="not in the fit")
    axes.set_xlabel("threads")
    axes.set_ylabel("GB/s of useful bytes")
    axes.set_ylim(bottom=0)
    counts = sorted({x for curve in curves for x in (*curve.x, *(p.x for p in curve.outside))})
    if len(counts) <= 16:
        axes.set_xticks(counts, [f"{x:g}" for x in counts])
    axes.margins(x=0.08)
    finish(axes, f"{curves[0].label}, {format_size(curves[0].size)}")
    return axes


def plot_latency(
    data: "Data",
    ax: "Axes | None" = None,
    *,
    label: str | None = None,
    marks: Mapping[str, float] | None = None,
) -> "Axes":
    """Draw latency against working set, a curve a page policy.

    Parameters
    ----------
    label : str, optional
        Kernel with its parameters, such as ``chase[stride=4160]`` for one line a page.
    marks : mapping of text to bytes, optional
        Vertical lines: sizes of caches, reach of the TLB.
    """
    curves = measured_curves(data, "caches") + measured_curves(data, "tlb")
    curves = _of_label(curves, label, "latency")
    axes = new_axes(ax)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    for curve, style, name, shift in styled(curves):
        draw_points(axes, curve, (style, name), shift, joined=True)
    ticks_in_bytes(axes)
    ticks_in_numbers(axes.yaxis)
    axes.set_xlabel("working set")
    axes.set_ylabel("ns a load")
    draw_marks(axes, marks or {})
    finish(axes, curves[0].label)
    return axes


def plot_loaded_latency(data: "Data", ax: "Axes | None" = None, *, fits: bool = True) -> "Axes":
    """Draw latency against the bandwidth that the traffic beside it reached."""
    curves = _of_label(measured_curves(data, "loaded latency"), None, "loaded latency")
    axes = new_axes(ax)
    for curve, style, name, shift in styled(curves):
        fitted = fits and draw_fit(axes, curve, style)
        draw_points(axes, curve, (style, name), shift, joined=not fitted)
    axes.set_xlabel("GB/s of useful bytes beside it")
    axes.set_ylabel("ns a load")
    axes.set_ylim(bottom=0)
    kernel, _, traffic = curves[0].label.partition(" beside ")
    finish(axes, f"{kernel}, {format_size(curves[0].size)}, beside {traffic}")
    return axes


def plot_gains(
    gains: Sequence[Comparison] | Mapping[str, Decision],
    ax: "Axes | None" = None,
    *,
    dead_band: float = DEAD_BAND,
) -> "Axes":
    """Draw what each alternative brings, in percent of speed with its interval (a forest plot).

    Colour and marker are the verdict. Intervals that leave the picture end in an arrow; what was
    not tested is not drawn.

    Parameters
    ----------
    gains : sequence of Comparison, or mapping of name to Decision
        ``comparisons`` of an `analysis.report.Report`, or decisions on time by name.
    dead_band : float
        Shaded: changes of no interest.
    """
    title, named = named_decisions(gains)
    tested = [(name, d) for name, d in named if d.n and d.low > 0][::-1]
    if not tested:
        raise UsageError(
            "no comparison to draw: none has an interval", "measure six rounds or more"
        )
    axes = new_axes(ax)
    axes.set_xscale("log")
    ratios = [tuple(1 + share for share in gain(d)) for _, d in tested]
    low, high = limits_of_ratios(ratios)
    axes.set_xlim(low, high)
    axes.axvspan(1 / (1 + dead_band), 1 + dead_band, color="0.9", linewidth=0)
    axes.axvline(1, color=GRAY, linewidth=0.8)
    for y, ((_, d), (middle, first, last)) in enumerate(zip(tested, ratios, strict=True)):
        style = VERDICTS[d.verdict]
        axes.plot([max(first, low), min(last, high)], [y, y], color=style.color, linewidth=1.6)
        for end, beyond, arrow in ((high, last > high, ">"), (low, first < low, "<")):
            if beyond:
                axes.plot(end, y, arrow, color=style.color, markersize=5, clip_on=False)
        axes.plot(middle, y, style.marker, color=style.color, markersize=6)
    axes.set_yticks(range(len(tested)), [name for name, _ in tested], fontsize="small")
    axes.set_ylim(-0.6, len(tested) - 0.4)
    ticks_in_percent(axes)
    axes.set_xlabel("change in speed, 95 % interval")
    axes.set_title(title, fontsize="medium", loc="left")
    for verdict, style in VERDICTS.items():
        if any(d.verdict == verdict for _, d in tested):
            axes.plot([], [], style.marker, color=style.color, label=verdict)
    legend_above(axes)
    clean(axes)
    return axes


def plot_interference(
    data: "Sequence[Slowdown] | Iterable[Row] | DataFrame", ax: "Axes | None" = None
) -> "Axes":
    """Draw what each kernel loses beside each neighbour: time beside over time alone.

    A question mark stands where the interval includes "no change". Neighbours at a set rate have
    a plot of their own.
    """
    found = [s for s in _slowdowns(data) if " GB/s" not in s.beside and math.isfinite(s.ratio)]
    if not found:
        raise UsageError(
            "nothing was measured beside anything", "sweep with beside: docs/sweeps.md"
        )
    shared = Counter(s.beside for s in found)
    if max(shared.values()) > 1:  # a neighbour of one victim alone makes no matrix
        found = [s for s in found if shared[s.beside] > 1]
    axes = new_axes(ax)
    victims = sorted({_victim(s) for s in found})
    neighbours = sorted({s.beside for s in found})
    cells = np.full((len(victims), len(neighbours)), np.nan)
    for s in found:
        cells[victims.index(_victim(s)), neighbours.index(s.beside)] = s.ratio
    bottom, top = min(1.0, float(np.nanmin(cells))), max(2.0, float(np.nanmax(cells)))
    image = axes.imshow(cells, cmap="cividis_r", vmin=bottom, vmax=top, aspect="auto")
    for s in found:
        at = neighbours.index(s.beside), victims.index(_victim(s))
        dark = (s.ratio - bottom) / (top - bottom) > 0.5
        text = f"{s.ratio:.2f}" + ("" if s.resolved else "?")
        axes.text(*at, text, ha="center", va="center", color="white" if dark else "black")
    names = [re.sub(r" |(?=\[)|(?<=,)", "\n", n, count=2) for n in neighbours]
    axes.set_xticks(range(len(neighbours)), names, fontsize="small")
    axes.set_yticks(range(len(victims)), victims, fontsize="small")
    axes.set_xlabel("beside")
    axes.figure.colorbar(image, ax=axes, label="time beside / time alone")
    axes.set_title("? : the 95 % interval includes 1", fontsize="small", loc="left")
    return axes


def plot_stalls(steps: Iterable[Row], ax: "Axes | None" = None) -> "Axes":
    """Draw how often steps took longer than x, a line a case.

    Parameters
    ----------
    steps : iterable of rows
        From `analysis.load.steps`; choose the cases to compare.
    """
    drawn = tails(steps)
    if not drawn:
        raise UsageError("no step times: they are in journals only", "give an output directory")
    axes = new_axes(ax)
    for case, style in zip(drawn, cycle(STYLES), strict=False):
        seen = case.steps >= STEPS_FOR_A_QUANTILE
        axes.step(
            case.longer_than_ns[seen] / 1e3,
            case.per_s[seen],
            where="post",
            color=style.color,
            linestyle=style.linestyle,
            label=f"beside {case.beside}" if case.beside else "alone",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks_in_numbers(axes.xaxis)
    ticks_in_numbers(axes.yaxis)
    axes.set_xlabel("µs a step")
    axes.set_ylabel("longer steps, a second of one thread")
    one = {(case.label, case.size, case.pages) for case in drawn}
    titles = [f"{label}, {format_size(size)}, {pages}" for label, size, pages in sorted(one)]
    title = titles[0] if len(titles) == 1 else "steps by how long they took"
    finish(axes, title, legend_inside=True)
    return axes


def write_png(
    path: Path,
    *draw: "Callable[[Axes], Any]",
    size: tuple[float, float] = (6.4, 4.0),
    dpi: int = 120,
    columns: int = 0,
) -> None:
    """Draw one panel a function, all side by side or in rows, into a file; no display is needed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    across = columns or len(draw)
    panels = figure.subplots(-(-len(draw) // across), across, squeeze=False).flat
    for axes, one in zip(panels, draw, strict=False):
        one(axes)
    figure.savefig(path)


# ---- parts ---------------------------------------------------------------------------------------


def _slowdowns(data: Any) -> list[Slowdown]:  # noqa: ANN401 - slowdowns, rows or a DataFrame
    given = [item for item in data if isinstance(item, Slowdown)]
    return given or slowdowns(data)


def _victim(s: Slowdown) -> str:
    return f"{s.victim}\n{format_size(s.size)} {s.pages}" if s.size else s.victim


def _of_label(curves: list[MeasuredCurve], label: str | None, what: str) -> list[MeasuredCurve]:
    if not curves:
        raise UsageError(f"nothing to draw: no {what} curve in these results")
    if label is None:
        label = max(curves, key=lambda curve: (len(curve.x), max(curve.y))).label
    chosen = [curve for curve in curves if curve.label == label]
    if not chosen:
        known = ", ".join(dict.fromkeys(curve.label for curve in curves))
        raise UsageError(f"no {what} curve of {label!r}", f"there are: {known}")
    size = max(chosen, key=lambda curve: len(curve.x)).size
    return [curve for curve in chosen if curve.size == size]
