"""Plot of forecasts beside the measurements that tested them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING

from analysis.drawing import GRAY, STYLES, finish, ticks_in_numbers
from analysis.plot import new_axes
from bench.errors import UsageError

if TYPE_CHECKING:
    from analysis.plot import Axes


WIDE = 4
"""Between the ends of an axis, from which it is logarithmic."""


@dataclass(frozen=True)
class Foretold:
    """A ratio that was foretold, then measured with its interval; NaN ends: none."""

    name: str
    forecast: float
    measured: float
    low: float = math.nan
    high: float = math.nan


def plot_forecasts(
    forecasts: Mapping[str, Sequence[Foretold]],
    ax: "Axes | None" = None,
    *,
    what: str = "time beside / time alone",
    most_names: int = 4,
) -> "Axes":
    """Draw forecasts against measurements, on the line where they are right or off it.

    Parameters
    ----------
    forecasts : mapping of text to Foretold
        By the model that made them.
    what : str
        The ratio.
    most_names : int
        How many of the points that are furthest off, of all models, are named.
    """
    known = {
        model: [p for p in points if math.isfinite(p.forecast) and math.isfinite(p.measured)]
        for model, points in forecasts.items()
    }
    every = [p for points in known.values() for p in points]
    if not every:
        raise UsageError("no forecast to draw: none was tested", "measure six rounds or more")
    axes = new_axes(ax)
    values = [v for p in every for v in (p.forecast, p.measured)]
    low, high = min(values) / 1.1, max(values) * 1.1
    if high / low > WIDE:
        for axis, set_scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
            set_scale("log")
            ticks_in_numbers(axis)
    axes.plot([low, high], [low, high], color=GRAY, linewidth=0.8)
    for (model, points), style in zip(known.items(), cycle(STYLES[1:]), strict=False):
        for p in points:
            if math.isfinite(p.low) and math.isfinite(p.high) and p.low > 0:
                axes.plot([p.forecast] * 2, [p.low, p.high], color=style.color, linewidth=0.7)
        if points:
            axes.plot(
                [p.forecast for p in points],
                [p.measured for p in points],
                style.marker,
                color=style.color,
                markersize=5,
                label=model,
            )
    furthest = sorted(every, key=lambda p: -abs(math.log(p.measured / p.forecast)))
    named = {p.name: p for p in reversed(furthest[:most_names])}
    for name, p in named.items():
        right = math.log(p.forecast / low) > 0.6 * math.log(high / low)
        axes.annotate(
            name,
            (p.forecast, p.measured),
            xytext=(-5 if right else 5, 0),
            textcoords="offset points",
            ha="right" if right else "left",
            va="center",
            fontsize="x-small",
        )
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_xlabel(f"{what}: foretold")
    axes.set_ylabel("measured, 95 % interval")
    finish(axes, "on the line: as foretold", legend_inside=True)
    return axes
