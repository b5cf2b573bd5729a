"""Tables of comparisons: each row a gain in speed with its interval, drawn on one axis."""

import math
from collections.abc import Sequence

from analysis.drawing import change_label, change_ticks, limits_of_ratios
from analysis.page.model import LOOKS, Axis, Bar, Cell, Column, Table, columns, table
from analysis.paired import Comparison, gain
from analysis.stats import Decision
from analysis.wording import comparison_interval, finding, gain_cells, sized


def gain_axis(decisions: Sequence[Decision], predicted: Sequence[float] = ()) -> Axis | None:
    """Axis that all these gains fit on; None where none has an interval."""
    ratios = [tuple(1 + share for share in gain(d)) for d in decisions if drawable(d)]
    if not ratios:
        return None
    low, high = limits_of_ratios(ratios)
    known = [1 + share for share in predicted if math.isfinite(share) and share > -1]
    low, high = min([low, *known]), max([high, *known])
    ticks = tuple((ratio, change_label(ratio)) for ratio in change_ticks(low, high))
    return Axis("change in speed", low, high, ticks, log=True)


def arrow(change: str) -> str:
    """``base → thp``."""
    return change.replace(" -> ", " → ")


def drawable(decision: Decision) -> bool:
    """Whether it has an interval to draw."""
    return bool(decision.n) and decision.low > 0 and math.isfinite(decision.high)


def bar_column(axis: Axis, dead_band: float) -> Column:
    """Column of bars; changes within the dead band are of no interest."""
    band = (1 / (1 + dead_band), 1 + dead_band)
    return Column("change in speed, 95 % interval", "bar", axis, band, sortable=False)


def bar_cell(decision: Decision, predicted: float = math.nan) -> Cell:
    """Cell with the bar of a decision; empty where there is no interval."""
    if not drawable(decision):
        return Cell("")
    middle, low, high = (1 + share for share in gain(decision))
    foreseen = 1 + predicted if math.isfinite(predicted) else None
    return Cell("", middle, bar=Bar(middle, low, high, decision.verdict, foreseen))


def verdict_cell(decision: Decision, text: str = "") -> Cell:
    """Cell with a verdict."""
    return Cell(
        text or decision.verdict, look=LOOKS.get(decision.verdict, ""), hint=decision.reason
    )


def gain_cell(decision: Decision) -> Cell:
    """Cell with the gain, to sort by."""
    middle = gain(decision)[0]
    hint = f"{counted_pairs(decision)}, {middle:+.2%}" if math.isfinite(middle) else ""
    return Cell(gain_cells(decision)[0], middle, hint=hint)


def counted_pairs(decision: Decision) -> str:
    """How many pairs a decision rests on."""
    return "1 pair" if decision.n == 1 else f"{decision.n} pairs"


def comparison_table(
    caption: str, compared: Sequence[Comparison], *, head: str = "change", without: str = ""
) -> tuple[Table, ...]:
    """Table of comparisons that have samples; none where there are none.

    ``without``: what all changes begin with, which ``head`` says already.
    """
    tested = [c for c in compared if c.decision.n]
    if not tested:
        return ()
    axis = gain_axis([c.decision for c in tested])
    bars = [bar_column(axis, tested[0].decision.dead_band)] if axis else []
    heads = (
        *columns("kernel", "#size", "#threads", head, "#gain", "-95 % interval"),
        *bars,
        *columns("verdict"),
    )
    rows = [
        (
            Cell(c.label),
            Cell(sized(c.size), c.size),
            Cell(str(c.threads), c.threads),
            Cell(arrow(c.change.removeprefix(without))),
            gain_cell(c.decision),
            Cell(comparison_interval(c)),
            *([bar_cell(c.decision)] if axis else []),
            verdict_cell(c.decision, finding(c)),
        )
        for c in tested
    ]
    return table(caption, heads, rows)
