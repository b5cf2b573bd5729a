"""A chart as SVG: colours come from the page's style, so that it follows light and dark."""

import math
from collections.abc import Iterable, Sequence

from analysis.page.markup import Html, join, tag
from analysis.page.model import Axis, Bar, Chart, Point, Series

WIDTH, HEIGHT = 460.0, 280.0
RIGHT, TOP, BOTTOM = 14.0, 12.0, 44.0
DASHES = {"-": None, "--": "7 4", "-.": "8 3 2 3", ":": "2 3"}
BAR_WIDTH, BAR_HEIGHT = 190.0, 20.0
_MARK_ROOM = 7.4
"""Width of a character of an axis' labels, about."""


class Scale:
    """From values of one axis to positions."""

    def __init__(self, axis: Axis, first: float, last: float) -> None:
        self.axis, self.first, self.last = axis, first, last
        self._low = self._at(axis.low)
        self._span = self._at(axis.high) - self._low

    def __call__(self, value: float) -> float:
        """Position of a value."""
        share = (self._at(value) - self._low) / self._span
        return round(self.first + share * (self.last - self.first), 1)

    def clipped(self, value: float) -> float:
        """Position of a value, of one outside the axis at its end."""
        return self(min(max(value, self.axis.low), self.axis.high))

    def _at(self, value: float) -> float:
        return math.log(value) if self.axis.log else value


def chart_svg(chart: Chart, name: str) -> Html:
    """Draw a chart; ``name`` begins the ids of its parts."""
    longest = max((len(text) for _, text in chart.y.ticks), default=1)
    x = Scale(chart.x, 30 + _MARK_ROOM * longest, WIDTH - RIGHT)
    y = Scale(chart.y, HEIGHT - BOTTOM, TOP)
    title, summary = f"{name}-title", f"{name}-summary"
    return tag(
        "svg",
        tag("title", chart.title, id=title),
        tag("desc", chart.summary, id=summary),
        _grid(x, y),
        _marks(chart, x),
        (_curve(series, x, y) for series in chart.series),
        class_="chart",
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="img",
        aria_labelledby=f"{title} {summary}",
        tabindex="0",
    )


def key_svg(series: Series) -> Html:
    """Line and marker of a series, for the legend."""
    line = tag("line", class_="line", x1=1, y1=7, x2=29, y2=7, stroke_dasharray=DASHES[series.dash])
    mark = _marker(series.marker, 15, 7) if series.marker else ""
    return tag(
        "svg", line, mark, class_=f"key s{series.style}", viewBox="0 0 30 14", aria_hidden="true"
    )


# ---- axes ----------------------------------------------------------------------------------------


def _grid(x: Scale, y: Scale) -> Html:
    bottom, left = HEIGHT - BOTTOM, x.first
    parts = []
    for value, text in y.axis.ticks:
        at = y(value)
        parts.append(tag("line", class_="grid", x1=left, x2=WIDTH - RIGHT, y1=at, y2=at))
        parts.append(tag("text", text, x=left - 6, y=at + 4, text_anchor="end"))
    for value, text in _with_room(x):
        at = x(value)
        parts.append(tag("line", class_="axis", x1=at, x2=at, y1=bottom, y2=bottom + 4))
        parts.append(tag("text", text, x=at, y=bottom + 17, text_anchor="middle"))
    parts.append(tag("line", class_="axis", x1=left, x2=WIDTH - RIGHT, y1=bottom, y2=bottom))
    middle = (TOP + bottom) / 2
    parts.append(
        tag(
            "text",
            y.axis.label,
            class_="label",
            x=12,
            y=middle,
            text_anchor="middle",
            transform=f"rotate(-90 12 {middle:g})",
        )
    )
    parts.append(
        tag(
            "text",
            x.axis.label,
            class_="label",
            x=(left + WIDTH - RIGHT) / 2,
            y=HEIGHT - 8,
            text_anchor="middle",
        )
    )
    return tag("g", parts, class_="axes")


def _with_room(scale: Scale) -> list[tuple[float, str]]:
    """Ticks whose labels do not run into each other."""
    shown: list[tuple[float, str]] = []
    end = -math.inf
    for value, text in scale.axis.ticks:
        half = len(text) * _MARK_ROOM / 2
        if scale(value) - half > end:
            shown.append((value, text))
            end = scale(value) + half + 8
    return shown


def _marks(chart: Chart, x: Scale) -> Html:
    parts = []
    for at, text in chart.marks:
        place = x(at)
        # A curve that rises leaves room on top in the left half, else at the bottom.
        on_top = place < (x.first + x.last) / 2
        y = TOP + 4 if on_top else HEIGHT - BOTTOM - 6
        parts.append(tag("line", class_="mark", x1=place, x2=place, y1=TOP, y2=HEIGHT - BOTTOM))
        parts.append(
            tag(
                "text",
                text,
                class_="mark",
                x=place - 4,
                y=y,
                text_anchor="end" if on_top else "start",
                transform=f"rotate(-90 {place - 4:g} {y:g})",
            )
        )
    return join(parts)


# ---- curves --------------------------------------------------------------------------------------


def _curve(series: Series, x: Scale, y: Scale) -> Html:
    solid = [point for point in series.points if not point.hollow]
    line = series.line or tuple((point.x, point.y) for point in solid)
    shape = _steps(line, x, y) if series.stepped else _path((x(a), y.clipped(b)) for a, b in line)
    return tag(
        "g",
        tag("path", class_="band", d=_band(series, x, y)) if series.band else "",
        tag("path", class_="line", d=shape, stroke_dasharray=DASHES[series.dash]),
        (_whisker(point, x, y) for point in series.points if math.isfinite(point.low)),
        (_spot(series, point, x, y) for point in series.points),
        class_=f"s{series.style}",
    )


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + " L".join(f"{a:g} {b:g}" for a, b in points)


def _steps(line: Sequence[tuple[float, float]], x: Scale, y: Scale) -> str:
    parts = [f"M{x(line[0][0]):g} {y.clipped(line[0][1]):g}"]
    parts += (f"H{x(a):g} V{y.clipped(b):g}" for a, b in line[1:])
    return " ".join(parts)


def _band(series: Series, x: Scale, y: Scale) -> str:
    there = [(x(a), y.clipped(high)) for a, _, high in series.band]
    back = [(x(a), y.clipped(low)) for a, low, _ in reversed(series.band)]
    return _path([*there, *back]) + " Z"


def _whisker(point: Point, x: Scale, y: Scale) -> Html:
    at, low, high = x(point.x), y.clipped(point.low), y.clipped(point.high)
    shape = f"M{at:g} {low:g} V{high:g} M{at - 3:g} {low:g} h6 M{at - 3:g} {high:g} h6"
    return tag("path", class_="whisker", d=shape)


def _spot(series: Series, point: Point, x: Scale, y: Scale) -> Html:
    """Marker, or an unseen place to point at where points are joined only."""
    at, height = x(point.x), y.clipped(point.y)
    mark = (
        _marker(series.marker, at, height, hollow=point.hollow)
        if series.marker
        else tag("circle", class_="unseen", cx=at, cy=height, r=4)
    )
    return tag("g", tag("title", point.hint), mark, class_="pt", data_value=f"{point.y:.5g}")


def _marker(marker: str, x: float, y: float, *, hollow: bool = False) -> Html:
    kind = "dot hollow" if hollow else "dot"
    if marker == "o":
        return tag("circle", class_=kind, cx=x, cy=y, r=3.6)
    if marker == "s":
        return tag("rect", class_=kind, x=x - 3.3, y=y - 3.3, width=6.6, height=6.6)
    shapes = {
        "^": "M0 -4.4 L4.2 3.2 H-4.2 Z",
        "v": "M0 4.4 L4.2 -3.2 H-4.2 Z",
        "D": "M0 -4.6 L4.6 0 L0 4.6 L-4.6 0 Z",
        "d": "M0 -4.6 L3.4 0 L0 4.6 L-3.4 0 Z",
        "P": "M-1.5 -4.2 h3 v2.7 h2.7 v3 h-2.7 v2.7 h-3 v-2.7 h-2.7 v-3 h2.7 Z",
        "X": "M-4 -2.4 L-2.4 -4 L0 -1.6 L2.4 -4 L4 -2.4 L1.6 0 L4 2.4 L2.4 4 L0 1.6 L-2.4 4"
        " L-4 2.4 L-1.6 0 Z",
    }
    return tag("path", class_=kind, d=shapes[marker], transform=f"translate({x:g} {y:g})")


# ---- bars in tables ------------------------------------------------------------------------------

_VERDICT_MARKS = {"helps": "s", "hurts": "v", "neutral": "o", "cannot tell": "d"}


def bar_svg(bar: Bar, axis: Axis, band: tuple[float, float] | None) -> Html:
    """Draw one interval; the texts beside it say the same."""
    x = Scale(axis, 4, BAR_WIDTH - 4)
    middle = BAR_HEIGHT / 2
    low, high = x.clipped(bar.low), x.clipped(bar.high)
    parts = [_backdrop(x, band)]
    parts.append(tag("line", class_="line", x1=low, x2=high, y1=middle, y2=middle))
    if bar.low < axis.low:
        parts.append(tag("path", class_="dot", d=f"M{low:g} {middle:g} l5 -3.5 v7 Z"))
    if bar.high > axis.high:
        parts.append(tag("path", class_="dot", d=f"M{high:g} {middle:g} l-5 -3.5 v7 Z"))
    if bar.predicted is not None:
        at = x.clipped(bar.predicted)
        parts.append(tag("line", class_="foreseen", x1=at, x2=at, y1=2, y2=BAR_HEIGHT - 2))
    parts.append(_marker(_VERDICT_MARKS.get(bar.verdict, "o"), x.clipped(bar.value), middle))
    look = bar.verdict.replace(" ", "-")
    return _bar(parts, look)


def bar_axis_svg(axis: Axis) -> Html:
    """Labels above a column of bars."""
    x = Scale(axis, 4, BAR_WIDTH - 4)
    parts = []
    for value, text in _with_room(x):
        half = len(text) * _MARK_ROOM / 2
        at = min(max(x(value), half), BAR_WIDTH - half)
        parts.append(tag("text", text, x=at, y=12, text_anchor="middle"))
        parts.append(tag("line", class_="axis", x1=x(value), x2=x(value), y1=16, y2=BAR_HEIGHT))
    return _bar(parts, "scale")


def _backdrop(x: Scale, band: tuple[float, float] | None) -> Html:
    parts = []
    if band is not None:
        first, last = (x.clipped(end) for end in band)
        width = max(last - first, 1)
        parts.append(tag("rect", class_="dead", x=first, y=0, width=width, height=BAR_HEIGHT))
    if x.axis.low <= 1 <= x.axis.high:
        parts.append(tag("line", class_="zero", x1=x(1), x2=x(1), y1=0, y2=BAR_HEIGHT))
    return join(parts)


def _bar(parts: Sequence[Html], look: str) -> Html:
    return tag(
        "svg",
        parts,
        class_=f"gauge {look}",
        viewBox=f"0 0 {BAR_WIDTH:g} {BAR_HEIGHT:g}",
        aria_hidden="true",
    )
