"""Measured curves -> charts, with the looks, fits and intervals that `analysis.plot` draws too."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from analysis.drawing import (
    STYLES,
    Style,
    byte_ticks,
    ends,
    fitted,
    log_ticks,
    styled,
)
from analysis.gallery import churning_blocks, labels
from analysis.load import Results, Row, steps
from analysis.measured import MeasuredCurve, measured_curves, of_label
from analysis.page.model import Axis, Chart, Point, Series
from analysis.stalls import STEPS_FOR_A_QUANTILE, Tail, tails
from analysis.wording import number
from bench.units import format_size

LINE_POINTS = 60
"""Of a fitted line: as many as a figure of this width can show."""
MOST_STEPS = 150
"""Of a tail: finer steps cannot be seen."""
_COLORS = [style.color for style in STYLES]


def bandwidth_charts(results: Results) -> tuple[Chart, ...]:
    """Bandwidth against threads, one chart a kernel."""
    curves = measured_curves(results.rows, "bandwidth")
    charts = []
    for label in labels(curves, "bandwidth"):
        own = of_label(curves, label, "bandwidth")
        series = [_series(curve, style, name, "GB/s") for curve, style, name, _ in styled(own)]
        counts = sorted({point.x for one in series for point in one.points})
        x = _counts("threads", counts)
        y = _from_zero("GB/s of useful bytes", _highest(series))
        title = f"{label}, {format_size(own[0].size)}"
        charts.append(_chart(title, x, y, series))
    return tuple(charts)


def latency_charts(results: Results) -> tuple[Chart, ...]:
    """Latency against working set, one chart a kernel."""
    charts = []
    for subject in ("caches", "tlb"):
        curves = measured_curves(results.rows, subject)
        for label in labels(curves, subject):
            own = of_label(curves, label, "latency")
            series = [
                _series(curve, style, name, "ns", fits=False, x_text=_size_text)
                for curve, style, name, _ in styled(own)
            ]
            x = _bytes("working set", [p.x for one in series for p in one.points])
            y = _decades("ns per load", _all_y(series))
            marks = results.marks if subject == "caches" else {}
            charts.append(_chart(label, x, y, series, _inside(marks, x)))
    return tuple(charts)


def loaded_chart(results: Results) -> Chart | None:
    """Latency against the bandwidth that the traffic beside it reached."""
    curves = measured_curves(results.rows, "loaded latency")
    if not curves:
        return None
    own = of_label(curves, None, "loaded latency")
    series = [
        _series(curve, style, name, "ns", x_text=lambda x: f"beside {number(x)} GB/s")
        for curve, style, name, _ in styled(own)
    ]
    most = max(point.x for one in series for point in one.points)
    kernel, _, traffic = own[0].label.partition(" beside ")
    title = f"{kernel}, {format_size(own[0].size)}, beside {traffic}"
    x = _from_zero("GB/s of useful bytes beside it", most)
    return _chart(title, x, _from_zero("ns per load", _highest(series)), series)


def stall_charts(results: Results) -> tuple[Chart, ...]:
    """How often steps took longer than x, alone and beside churning memory, one chart a block."""
    blocks = churning_blocks(results)
    rows = steps(results.folder) if blocks else []
    charts = []
    for block in blocks:
        made = _stall_chart(row for row in rows if row["block"] == block)
        if made is not None:
            charts.append(made)
    return tuple(charts)


def _stall_chart(rows: Iterable[Row]) -> Chart | None:
    drawn = tails(rows)
    series = [made for nth, tail in enumerate(drawn) if (made := _tail(tail, nth)).points]
    if not series:
        return None
    one = {(tail.label, tail.size, tail.pages) for tail in drawn}
    titles = [
        ", ".join(filter(None, (label, format_size(size) if size else "", pages)))
        for label, size, pages in sorted(one)
    ]
    points = [point for one_series in series for point in one_series.points]
    x = _decades("µs a step", [point.x for point in points])
    y = _decades("longer steps a second", [point.y for point in points])
    return _chart("; ".join(titles), x, y, series)


def _tail(tail: Tail, nth: int) -> Series:
    seen = np.flatnonzero((tail.steps >= STEPS_FOR_A_QUANTILE) & (tail.longer_than_ns > 0))
    if seen.size > MOST_STEPS:
        seen = seen[np.unique(np.linspace(0, seen.size - 1, MOST_STEPS).round().astype(int))]
    name = f"beside {tail.beside}" if tail.beside else "alone"
    points = tuple(
        Point(
            float(tail.longer_than_ns[i] / 1e3),
            float(tail.per_s[i]),
            math.nan,
            math.nan,
            f"{name}: {number(float(tail.per_s[i]))} steps a second over"
            f" {number(float(tail.longer_than_ns[i] / 1e3))} µs",
        )
        for i in seen
    )
    looks = len(STYLES)
    # Beyond as many as there are colours, the same colour comes with another line.
    dash = STYLES[(nth + nth // looks) % looks].linestyle
    return Series(name, nth % looks, points, stepped=True, dash=dash)


# ---- series --------------------------------------------------------------------------------------


def _series(
    curve: MeasuredCurve,
    style: Style,
    name: str,
    unit: str,
    *,
    fits: bool = True,
    x_text: Callable[[float], str] = lambda x: f"{x:g} threads" if x != 1 else "1 thread",
) -> Series:
    points = [
        _point(x, samples, f"{name}, {x_text(x)}", unit)
        for x, samples in zip(curve.x, curve.samples, strict=True)
    ]
    points += [
        _point(p.x, p.samples, f"{name}, {x_text(p.x)}, {p.why}", unit, hollow=True)
        for p in curve.outside
    ]
    line: tuple[tuple[float, float], ...] = ()
    band: tuple[tuple[float, float, float], ...] = ()
    found = fitted(curve, LINE_POINTS) if fits else None
    if found is not None:
        line = tuple(zip(map(float, found.x), map(float, found.y), strict=True))
        band = tuple(
            zip(map(float, found.x), map(float, found.low), map(float, found.high), strict=True)
        )
        name = f"{name}, {found.model}"
    return Series(
        name,
        _COLORS.index(style.color),
        tuple(points),
        style.marker,
        line,
        band,
        dash=style.linestyle,
    )


def _point(
    x: float, samples: Sequence[float], text: str, unit: str, *, hollow: bool = False
) -> Point:
    middle = float(np.median(samples))
    low, high = ends(samples)
    told = f"[{number(low)}, {number(high)}]" if math.isfinite(low) else f"n={len(samples)}"
    return Point(x, middle, low, high, f"{text}: {number(middle)} {unit} {told}", hollow)


def _chart(
    title: str,
    x: Axis,
    y: Axis,
    series: Sequence[Series],
    marks: tuple[tuple[float, str], ...] = (),
) -> Chart:
    told = []
    for one in series:
        solid = [point for point in one.points if not point.hollow] or list(one.points)
        told.append(f"{one.name}: {number(solid[0].y)} at first, {number(solid[-1].y)} at last")
    summary = f"{y.label} against {x.label}. {'; '.join(told)}."
    return Chart(title, summary, x, y, tuple(series), marks)


# ---- axes ----------------------------------------------------------------------------------------


def _all_y(series: Sequence[Series]) -> list[float]:
    return [
        value
        for one in series
        for point in one.points
        for value in (point.y, point.low, point.high)
        if math.isfinite(value) and value > 0
    ]


def _highest(series: Sequence[Series]) -> float:
    lines = [y for one in series for _, y in one.line]
    return max([*_all_y(series), *lines])


def _counts(label: str, counts: Sequence[float]) -> Axis:
    room = 0.06 * max(counts[-1] - counts[0], 1)
    shown = [counts[0]]
    least = (counts[-1] - counts[0]) / 9
    shown += [n for n in counts[1:-1] if n - shown[-1] >= least and counts[-1] - n >= least]
    shown += counts[-1:] if len(counts) > 1 else []
    ticks = tuple((n, f"{n:g}") for n in shown)
    return Axis(label, counts[0] - room, counts[-1] + room, ticks)


def _from_zero(label: str, highest: float) -> Axis:
    step = _round_step(highest / 5)
    ticks = [i * step for i in range(int(highest * 1.04 / step) + 1)]
    return Axis(label, 0.0, highest * 1.06, tuple((t, f"{t:.6g}") for t in ticks))


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= least * 0.999)


def _decades(label: str, values: Sequence[float]) -> Axis:
    low, high = min(values), max(values)
    room = (high / low) ** 0.05 if high > low else 1.3
    low, high = low / room, high * room
    ticks = log_ticks(low, high)
    while len(ticks) < 2:  # the range lies between two round numbers
        low, high = low / 1.5, high * 1.5
        ticks = log_ticks(low, high)
    return Axis(label, low, high, tuple((t, _grouped(t)) for t in ticks), log=True)


def _grouped(value: float) -> str:
    """``100 000``: no powers of ten on an axis."""
    return f"{value:,.0f}".replace(",", "\u202f") if value >= 1e4 else f"{value:g}"


def _bytes(label: str, values: Sequence[float]) -> Axis:
    low, high = min(values) / 1.25, max(values) * 1.25
    ticks = tuple((t, format_size(int(t))) for t in byte_ticks(low, high))
    return Axis(label, low, high, ticks, log=True)


def _size_text(n_bytes: float) -> str:
    return format_size(int(n_bytes))


def _inside(marks: Mapping[str, float], x: Axis) -> tuple[tuple[float, str], ...]:
    return tuple((at, text) for text, at in marks.items() if x.low < at < x.high)
