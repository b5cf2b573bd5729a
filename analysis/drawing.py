"""Pieces of plots: how a page policy looks, points with intervals, axes in KiB and percent.

Nothing here imports matplotlib: the axes come from `analysis.plot`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analysis.intervals import Floats, median_interval, pairs_needed
from analysis.measured import MeasuredCurve, fit_curve
from analysis.paired import Comparison
from analysis.stats import Decision
from bench.units import format_size

if TYPE_CHECKING:
    from analysis.plot import Axes, Axis


class Style(NamedTuple):
    """How one thing looks, in colour and without."""

    color: str
    marker: str
    linestyle: str


# Colours that colour-blind readers tell apart: M. Okabe, K. Ito, "Color Universal Design" (2008).
STYLES = (
    Style("#000000", "o", "-"),
    Style("#0072B2", "s", "--"),
    Style("#D55E00", "^", "-."),
    Style("#009E73", "D", ":"),
    Style("#CC79A7", "v", "-"),
    Style("#E69F00", "P", "--"),
    Style("#56B4E9", "X", "-."),
)
_POLICIES = {"base": 0, "thp": 1, "2m": 2, "1g": 3}
VERDICTS = {
    "helps": Style("#0072B2", "s", "-"),
    "hurts": Style("#D55E00", "v", "-"),
    "neutral": Style("#000000", "o", "-"),
    "cannot tell": Style("#888888", "d", "-"),
}
GRAY = "0.55"
MOST_TICKS = 9
# Of a logarithmic axis, up to which 2 and 5 get a label too.
FINE_DECADES = 3
# Between two labels of an axis, as a share of it.
LEAST_ROOM = 0.17


def policy_style(policy: str) -> Style:
    """Look of a page policy: the same in every plot."""
    known = _POLICIES.get(policy)
    return STYLES[known if known is not None else 4 + sum(policy.encode()) % 3]


def styled(curves: list[MeasuredCurve]) -> list[tuple[MeasuredCurve, Style, str, float]]:
    """Each curve with the look of its policy, a name, and a shift that keeps intervals apart.

    Curves of one policy differ in marker.
    """
    shifts = iter(0.012 * (i - (len(curves) - 1) / 2) for i in range(len(curves)))
    several_hosts = len({curve.host for curve in curves}) > 1
    several_variants = len({curve.variant for curve in curves}) > 1
    seen: dict[str, int] = {}
    found = []
    for curve in sorted(curves, key=lambda c: (_POLICIES.get(c.pages, 9), c.pages, c.host)):
        nth = seen[curve.pages] = seen.get(curve.pages, -1) + 1
        style = policy_style(curve.pages)
        marker = style.marker if nth == 0 else STYLES[(nth + 3) % len(STYLES)].marker
        parts = (
            curve.pages,
            curve.variant if several_variants else "",
            curve.host if several_hosts else "",
        )
        name = " ".join(filter(None, parts))
        found.append((curve, style._replace(marker=marker), name, next(shifts)))
    return found


def draw_points(
    axes: "Axes", curve: MeasuredCurve, look: tuple[Style, str], shift: float, *, joined: bool
) -> None:
    """Draw the median at each x with its 95 % interval, where the samples are enough for one.

    ``shift`` is a share of the range of x.
    """
    style, label = look
    x = np.array(curve.x)
    if axes.get_xscale() == "log":
        x = x * (x.max() / x.min()) ** shift
    else:
        x = x + shift * (x.max() - x.min())
    y = np.array(curve.y)
    low, high = np.array([ends(samples) for samples in curve.samples]).T
    axes.errorbar(
        x,
        y,
        yerr=[y - low, high - y],
        color=style.color,
        marker=style.marker,
        markersize=5,
        linestyle=style.linestyle if joined else "none",
        linewidth=1.2,
        elinewidth=0.9,
        capsize=2.5,
        label=label,
    )


def ends(samples: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the median of the samples of one point; NaN where those are too few."""
    if len(samples) < pairs_needed():
        return math.nan, math.nan
    found = median_interval(samples)
    return found.low, found.high


class Fitted(NamedTuple):
    """The chosen model of a curve and its 95 % band, at evenly spaced x."""

    model: str
    x: Floats
    y: Floats
    low: Floats
    high: Floats


def fitted(curve: MeasuredCurve, points: int = 200) -> Fitted | None:
    """Line and band of the model chosen for a curve; None where none was chosen."""
    fit = fit_curve(curve).best
    if fit is None or fit.not_identifiable:
        return None
    x = np.linspace(fit.x.min(), fit.x.max(), points)
    return Fitted(fit.model.NAME, x, fit.predict(x), *fit.predict_band(x))


def draw_fit(axes: "Axes", curve: MeasuredCurve, style: Style) -> bool:
    """Draw the chosen model with its 95 % band; False where none was chosen."""
    found = fitted(curve)
    if found is None:
        return False
    axes.plot(found.x, found.y, color=style.color, linestyle=style.linestyle, linewidth=1.2)
    axes.fill_between(found.x, found.low, found.high, color=style.color, alpha=0.15, linewidth=0)
    return True


def draw_marks(axes: "Axes", marks: Mapping[str, float]) -> None:
    """Draw vertical lines with their names, inside the range that is shown.

    Names stand where a curve that rises leaves room: on top in the left half, else at the bottom.
    """
    first, last = axes.get_xlim()
    for text, at in marks.items():
        if first < at < last:
            on_top = at < math.sqrt(first * last)
            axes.axvline(at, color=GRAY, linewidth=0.8, linestyle=(0, (4, 3)))
            axes.annotate(
                text,
                (at, 1 if on_top else 0),
                xycoords=("data", "axes fraction"),
                xytext=(-3, -4 if on_top else 4),
                textcoords="offset points",
                rotation=90,
                ha="right",
                va="top" if on_top else "bottom",
                fontsize="x-small",
                color="0.3",
            )


def limits_of_ratios(intervals: Sequence[tuple[float, ...]]) -> tuple[float, float]:
    """Range of an axis: all medians (median, low, high), and intervals unless they dwarf those."""
    middles, lows, highs = zip(*intervals, strict=True)
    far = 1.5 * max(max(middles), 1 / min(middles), 1.1)
    return max(min(*lows, 0.97) / 1.03, 1 / far), min(max(*highs, 1.03) * 1.03, far)


def named_decisions(
    gains: Sequence[Comparison] | Mapping[str, Decision],
) -> tuple[str, list[tuple[str, Decision]]]:
    """Title and names of what is compared; what all have in common is in the title."""
    if isinstance(gains, Mapping):
        return "", list(gains.items())
    changes = {c.change for c in gains}
    named = [
        (
            f"{c.label} {format_size(c.size)} {c.threads}t"
            + ("" if len(changes) == 1 else f"\n{c.change}"),
            c.decision,
        )
        for c in gains
    ]
    return changes.pop() if len(changes) == 1 else "", named


def ticks_in_bytes(axes: "Axes") -> None:
    """Label a base-2 x axis with KiB, MiB and GiB: every power of two, or of four, or of 16."""
    ticks = byte_ticks(*axes.get_xlim())
    axes.set_xticks(ticks, [format_size(int(tick)) for tick in ticks])
    axes.set_xticks([], minor=True)


def byte_ticks(low: float, high: float) -> list[float]:
    """Powers of two, or of four, or of 16: few enough to be labelled."""
    first, last = (math.log2(max(end, 1.0)) for end in (low, high))
    step = next(step for step in (1, 2, 4, 8) if (last - first) / step <= MOST_TICKS)
    powers = range(math.ceil(first), math.floor(last) + 1)
    return [2.0**k for k in powers if k % step == 0]


def ticks_in_numbers(axis: "Axis") -> None:
    """Label a logarithmic axis with 1, 2, 5, 10 and so on instead of powers."""
    ticks = log_ticks(*axis.get_view_interval())
    axis.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10 and so on; of many decades their ends alone."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if math.log10(high / low) < FINE_DECADES else (1,)
    return [n * 10.0**k for k in decades for n in steps if low <= n * 10.0**k <= high]


def ticks_in_percent(axes: "Axes") -> None:
    """Label a logarithmic axis of ratios with changes in percent."""
    ratios = change_ticks(*axes.get_xlim())
    axes.set_xticks(ratios, [change_label(ratio) for ratio in ratios])
    axes.set_xticks([], minor=True)


def change_label(ratio: float) -> str:
    """Label of a ratio of speeds: ``+25 %``."""
    return f"{100 * (ratio - 1):+.0f} %" if ratio != 1 else "0"


def change_ticks(low: float, high: float) -> list[float]:
    """Ratios of speeds worth a label, of those between two limits."""
    width = math.log(high / low)
    ratios = [1.0]
    for step in (2, 5, 10, 1.5, 1.25, 1.1, 1.05, 1.02, 20, 50, 100):
        for ratio in (step, 1 / step):
            room = min(abs(math.log(ratio / other)) for other in ratios)
            if low <= ratio <= high and room > LEAST_ROOM * width:
                ratios.append(ratio)
    return sorted(ratios)


def finish(axes: "Axes", title: str, *, legend_inside: bool = False) -> None:
    """Title, legend and a light grid."""
    axes.set_title(title, fontsize="medium", loc="left")
    if legend_inside:
        axes.legend(fontsize="small", frameon=False)
    else:
        legend_above(axes)
    axes.grid(color="0.92", linewidth=0.6)
    clean(axes)


def legend_above(axes: "Axes") -> None:
    """Put the legend where no data can be, on the right above the axes."""
    axes.legend(
        fontsize="small",
        frameon=False,
        loc="lower right",
        bbox_to_anchor=(1.0, 0.985),
        ncols=4,
        borderaxespad=0.2,
        columnspacing=1.2,
        handletextpad=0.5,
    )


def clean(axes: "Axes") -> None:
    """Leave out what says nothing: the frame's top and right."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
