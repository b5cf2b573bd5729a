"""Pictures of a log: Gantt, concurrency over time, overlap, effects.

Every function takes ``ax`` and returns it, and imports matplotlib late, as in `analysis.plot`.
"""

from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.drawing import GRAY, STYLES, clean, finish, legend_above
from analysis.intervals import Floats
from analysis.plot import new_axes, write_png
from analysis.timeline.beside import concurrency
from analysis.timeline.spans import NONE, Run, Spans
from analysis.timeline.summary import RunSummary

if TYPE_CHECKING:
    from analysis.plot import Axes

MOST_BARS = 400
"""Spans in a Gantt chart: more cannot be told apart, and take long to draw."""
MOST_LANES = 40
CURVE_BINS = 80
"""Pieces of time in a curve: finer ones show single spans, which the Gantt chart shows better."""


def plot_gantt(
    run: Run, ax: "Axes | None" = None, *, window: tuple[float, float] | None = None
) -> "Axes":
    """Draw each span as a bar, phase under phase, in a lane a worker or as many as it takes.

    Parameters
    ----------
    window : (float, float), optional
        Seconds after the start of the run; by default all, or the beginning where there are more
        spans than can be seen.
    """
    axes = new_axes(ax)
    phases = run.working
    first, last = window or (0.0, _visible(phases, run))
    labels: list[tuple[float, str]] = []
    bottom = 0.0
    for (name, spans), style in zip(phases.items(), cycle(STYLES[1:] + STYLES[:1])):
        shown = spans.where((spans.end >= run.start + first) & (spans.start <= run.start + last))
        lanes, count = _lanes(shown)
        kept = lanes < MOST_LANES
        count = min(count, MOST_LANES)
        starts = shown.start[kept] - run.start
        axes.barh(
            bottom + lanes[kept] + 0.5,
            shown.duration[kept],
            left=starts,
            height=0.8,
            color=style.color,
            alpha=0.75,
            edgecolor="white",
            linewidth=0.4,
        )
        more = "" if kept.all() else f"\n(first {MOST_LANES} lanes)"
        labels.append((bottom + count / 2, name + more))
        bottom += count + 0.8
        axes.axhline(bottom - 0.4, color="0.9", linewidth=0.6)
    axes.set_ylim(bottom, -0.4)
    axes.set_xlim(first, last)
    axes.set_yticks([at for at, _ in labels], [text for _, text in labels])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("seconds")
    cut = window is None and last < run.seconds
    part = f", the first {last:.3g} of {run.seconds:.3g} s" if cut else ""
    axes.set_title(f"spans by phase{part}", fontsize="medium", loc="left")
    clean(axes)
    return axes


def plot_concurrency(summary: RunSummary, ax: "Axes | None" = None) -> "Axes":
    """Draw how many spans of each phase there are at once; fill and drain are shaded."""
    axes = new_axes(ax)
    run, steady = summary.run, summary.steady
    edges, curves = concurrency(run.working, (run.start, run.end), CURVE_BINS)
    for (name, curve), style in zip(curves.items(), cycle(STYLES[1:] + STYLES[:1])):
        axes.stairs(
            curve, edges - run.start, color=style.color, linewidth=1.4, label=name, baseline=None
        )
    if steady.exists:
        axes.axvspan(0, steady.start - run.start, color="0.93", linewidth=0, zorder=0)
        axes.axvspan(steady.end - run.start, run.seconds, color="0.93", linewidth=0, zorder=0)
    axes.set_xlim(0, run.seconds)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds (gray: fill and drain)" if steady.exists else "seconds")
    axes.set_ylabel("at once")
    finish(axes, "concurrency")
    return axes


def plot_overlap(summary: RunSummary, ax: "Axes | None" = None) -> "Axes":
    """Draw the share of each phase's time in which at least one of another runs."""
    axes = new_axes(ax)
    found = summary.overlap
    # A phase that takes no time overlaps nothing.
    shown = np.flatnonzero(found.busy_s > 0)
    names = [found.phases[k] for k in shown]
    n = len(names)
    shares = found.share[np.ix_(shown, shown)]
    image = axes.imshow(shares, cmap="cividis_r", vmin=0, vmax=1, aspect="auto")
    for i in range(n):
        for j in range(n):
            share = shares[i, j]
            if np.isfinite(share):
                color = "white" if share > 0.5 else "black"
                axes.text(
                    j, i, f"{share:.0%}", ha="center", va="center", color=color, fontsize="small"
                )
    axes.set_xticks(range(n), names, fontsize="small", rotation=30 if n > 5 else 0)
    axes.set_yticks(range(n), names, fontsize="small")
    axes.set_xlabel("with at least one of (itself: two)")
    axes.figure.colorbar(image, ax=axes, label="share of the row's time")
    axes.set_title("overlap", fontsize="medium", loc="left")
    return axes


def plot_effects(summary: RunSummary, ax: "Axes | None" = None) -> "Axes":
    """Draw what one more span beside does to a duration, where the log could tell."""
    from analysis.drawing import VERDICTS

    axes = new_axes(ax)
    told = [e for e in summary.effects if e.told]
    axes.axvline(0, color=GRAY, linewidth=0.8)
    for y, e in enumerate(told):
        style = VERDICTS[e.verdict]
        low, high, middle = (100 * (v - 1) for v in (e.low, e.high, e.ratio))
        axes.plot([low, high], [y, y], color=style.color, linewidth=1.6)
        axes.plot(middle, y, style.marker, color=style.color, markersize=6)
    names = [f"{e.phase} beside {e.beside}" for e in told]
    axes.set_yticks(range(len(told)), names, fontsize="small")
    axes.set_ylim(max(len(told), 4) - 0.4, -0.6)
    axes.set_xlabel("% longer beside much than beside little, with interval")
    for verdict, style in VERDICTS.items():
        if any(e.verdict == verdict for e in told):
            axes.plot([], [], style.marker, color=style.color, label=verdict)
    title = "effects" if told else "effects: none could be told"
    axes.set_title(title, fontsize="medium", loc="left")
    if told:
        legend_above(axes)
    clean(axes)
    return axes


def write_plots(summary: RunSummary, path: Path) -> None:
    """Write Gantt, concurrency, overlap and effects into one picture, two by two."""
    write_png(
        path,
        lambda ax: plot_gantt(summary.run, ax),
        lambda ax: plot_concurrency(summary, ax),
        lambda ax: plot_overlap(summary, ax),
        lambda ax: plot_effects(summary, ax),
        size=(13.0, 9.0),
        columns=2,
    )


def _visible(phases: dict[str, Spans], run: Run) -> float:
    """Seconds from the start within which there are not too many spans to see."""
    starts = np.sort(np.concatenate([spans.start for spans in phases.values()]))
    return float(starts[MOST_BARS] - run.start) if starts.size > MOST_BARS else run.seconds


def _lanes(spans: Spans) -> tuple[Floats, int]:
    """Lane of each span, and how many: by worker, each with as many lanes as overlap needs."""
    lanes = np.zeros(len(spans))
    free: dict[int, list[tuple[float, int]]] = {}
    count = 0
    for i in np.lexsort((spans.start, spans.worker)):
        worker = int(spans.worker[i]) if spans.worker[i] != NONE else NONE
        own = free.setdefault(worker, [])
        for k, (until, lane) in enumerate(own):
            if until <= spans.start[i]:
                own[k] = (float(spans.end[i]), lane)
                lanes[i] = lane
                break
        else:
            own.append((float(spans.end[i]), count))
            lanes[i] = count
            count += 1
    return lanes, max(count, 1)
