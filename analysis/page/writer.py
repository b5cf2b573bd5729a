"""Sections and their blocks as HTML: what a page and a notebook have in common."""

import math
import re
from collections.abc import Iterable
from itertools import count

from analysis.page.chart import bar_axis_svg, bar_svg, chart_svg, key_svg
from analysis.page.markup import Html, join, tag
from analysis.page.model import (
    Answer,
    Block,
    Cell,
    Chart,
    Charts,
    Column,
    Commands,
    Facts,
    Item,
    Items,
    Listing,
    Matrix,
    MatrixCell,
    Section,
    Source,
    Table,
    Text,
)
from analysis.wording import number

LONG_LIST = 5
"""Longer ones are folded."""
LONG_TEXT = 18
"""Characters; longer texts get room before they wrap."""
LONG_TABLE = 24
"""Rows; longer ones scroll under their head."""
FULL_SHADE = 2.0
"""Where shades of a matrix end at the least: a few percent must not look like the worst."""


class Writer:
    """Lays out sections; counts what needs an id, and begins each with ``prefix``."""

    def __init__(self, level: int, prefix: str = "") -> None:
        self.heading = f"h{level}"
        self._below = f"h{level + 1}"
        self._prefix = prefix
        self._count = count(1)

    def name(self) -> str:
        """Return a name that nothing else has."""
        return f"{self._prefix}s{next(self._count)}"

    def section(self, section: Section, name: str) -> Html:
        """One part of the page."""
        label = f"{name}-title"
        return tag(
            "section",
            tag(self.heading, section.title, id=label),
            tag("p", section.lead, class_="lead"),
            self.blocks(section.blocks),
            self._sources(section.sources),
            id=name,
            aria_labelledby=label,
        )

    def blocks(self, blocks: Iterable[Block]) -> Html:
        """Blocks one after the other."""
        return join([self._block(block) for block in blocks])

    def _block(self, block: Block) -> Html:
        match block:
            case Text():
                return tag("p", block.text)
            case Table():
                return self._table(block)
            case Matrix():
                return self._matrix(block)
            case Charts():
                return tag("div", [self._chart(c) for c in block.charts], class_="charts")
            case Facts():
                return tag("dl", [join(tag("dt", k), tag("dd", v)) for k, v in block.facts])
            case Listing():
                items = tag("ul", [tag("li", item) for item in block.items])
                return self._list(block.title, items, len(block.items))
            case Items():
                items = tag("ul", [tag("li", _item(item)) for item in block.items])
                return self._list(block.title, items, len(block.items))
            case Commands():
                items = tag(
                    "ul",
                    [tag("li", what, _command(command)) for command, what in block.commands],
                    class_="commands",
                )
                return self._list(block.title, items, 0)

    def _list(self, title: str, items: Html, n: int) -> Html:
        if n <= LONG_LIST:
            return tag("div", tag(self._below, title), items, class_="list")
        return tag("details", tag("summary", f"{title}: {n}"), items, class_="list")

    def _sources(self, sources: Iterable[Source]) -> Html:
        listed = [
            tag(
                "li",
                f"{source.name}, plan {source.digest}" if source.digest else source.name,
                _command(source.command) if source.command else "",
            )
            for source in sources
        ]
        if not listed:
            return Html("")
        summary = tag("summary", "How to reproduce these figures")
        return tag("details", summary, tag("ul", listed, class_="commands"), class_="source")

    # ---- tables ----

    def _table(self, table: Table) -> Html:
        label = f"{self._prefix}t{next(self._count)}"
        heads = tag("tr", [_head(column) for column in table.columns])
        rows = [
            tag("tr", [_cell(c, col, i == 0) for i, (c, col) in enumerate(_pairs(row, table))])
            for row in table.rows
        ]
        return join(
            tag(
                "div",
                tag(
                    "table",
                    _caption(table.caption, label),
                    tag("thead", heads),
                    tag("tbody", rows),
                ),
                class_="box tall" if len(rows) > LONG_TABLE else "box",
                role="region",
                aria_labelledby=label,
            ),
            (tag("p", note, class_="note") for note in table.notes),
        )

    def _matrix(self, matrix: Matrix) -> Html:
        label = f"{self._prefix}t{next(self._count)}"
        known = [c.value for row in matrix.cells for c in row if not math.isnan(c.value)]
        most = max([FULL_SHADE, *known])
        heads = [
            tag("th", matrix.corner, scope="col", class_="corner"),
            *(tag("th", breakable(name), scope="col") for name in matrix.columns),
        ]
        rows = [
            tag("tr", tag("th", breakable(name), scope="row"), [_heat(c, most) for c in row])
            for name, row in zip(matrix.rows, matrix.cells, strict=True)
        ]
        scale = tag(
            "p",
            tag("span", "1.00"),
            tag("span", class_="ramp", aria_hidden="true"),
            tag("span", f"{most:.2f}"),
            f" {matrix.legend}. ",
            " ".join(matrix.notes),
            class_="note legend",
        )
        return join(
            tag(
                "div",
                tag(
                    "table",
                    _caption(matrix.caption, label),
                    tag("thead", tag("tr", heads)),
                    tag("tbody", rows),
                    class_="matrix",
                ),
                class_="box",
                role="region",
                aria_labelledby=label,
            ),
            scale,
        )

    # ---- charts ----

    def _chart(self, chart: Chart) -> Html:
        name = f"{self._prefix}f{next(self._count)}"
        legend = [tag("li", key_svg(series), series.name) for series in chart.series]
        return tag(
            "figure",
            tag("figcaption", chart.title),
            chart_svg(chart, name),
            tag("ul", legend, class_="keys"),
            self._chart_values(chart),
        )

    def _chart_values(self, chart: Chart) -> Html:
        """The same in a table, for those who would rather read numbers."""
        rows = [
            (Cell(series.name), Cell(p.hint.rpartition(": ")[0].removeprefix(f"{series.name}, ")),
             Cell(number(p.y), p.y), Cell(_ends(p.low, p.high)))
            for series in chart.series
            if not series.stepped
            for p in series.points
        ]  # fmt: skip
        if not rows:
            return Html("")
        columns = (
            Column("curve"),
            Column(chart.x.label, sortable=False),
            Column(chart.y.label, "number"),
            Column("95 % interval", "number", sortable=False),
        )
        table = self._table(Table(f"Values of {chart.title}", columns, tuple(rows)))
        return tag("details", tag("summary", "Values"), table)


def _caption(text: str, label: str) -> Html:
    # The span stays in view where the table is wider than its box.
    return tag("caption", tag("span", text, id=label))


def breakable(text: str) -> Html:
    """Text of a name, which may wrap before its parameters and between them."""
    pieces = re.split(r"(?<=,)|(?=\[)", text)
    return join(*(piece if i == 0 else join(tag("wbr"), piece) for i, piece in enumerate(pieces)))


def _pairs(row: tuple[Cell, ...], table: Table) -> Iterable[tuple[Cell, Column]]:
    return zip(row, table.columns, strict=True)


def _ends(low: float, high: float) -> str:
    return "" if math.isnan(low) else f"[{number(low)}, {number(high)}]"


def _head(column: Column) -> Html:
    content = join(column.name, bar_axis_svg(column.axis) if column.axis else "")
    return tag(
        "th",
        content,
        scope="col",
        class_=column.align,
        data_sort=True if column.sortable else None,
        aria_sort="none" if column.sortable else None,
    )


def _cell(cell: Cell, column: Column, first: bool) -> Html:
    content: str = breakable(cell.text) if column.align == "text" else cell.text
    if cell.bar is not None and column.axis is not None:
        content = bar_svg(cell.bar, column.axis, column.band)
    long = "long" if column.align == "text" and len(cell.text) > LONG_TEXT else ""
    value = cell.value
    known = value is not None and math.isfinite(value)
    return tag(
        "th" if first else "td",
        content,
        scope="row" if first else None,
        class_=" ".join(filter(None, (column.align, cell.look, long))),
        data_value=f"{value:.6g}" if known and column.sortable else None,
        data_tip=cell.hint or None,
    )


def _heat(cell: MatrixCell, most: float) -> Html:
    if math.isnan(cell.value):
        return tag("td", cell.text, class_="number")
    share = max(0.0, math.log(cell.value) / math.log(most)) if cell.value > 0 else 0.0
    return tag(
        "td",
        cell.text,
        class_="number heat",
        style=f"--v:{share:.3f}",
        data_value=f"{cell.value:.4g}",
        data_tip=cell.hint or None,
    )


def _item(item: Item) -> Html:
    return join(
        tag("b", item.what),
        f": {item.reason}" if item.reason else "",
        tag("div", f"→ {item.way_out}") if item.way_out else "",
        _command(item.command) if item.command else "",
    )


def answer_card(answer: Answer) -> Html:
    """One answer, with the command that would give a better one."""
    return tag(
        "div",
        tag("p", answer.question, class_="question"),
        tag("p", answer.short[:1].upper() + answer.short[1:], class_=f"short {answer.look}"),
        tag("p", answer.text, class_="why"),
        _command(answer.command) if answer.command else "",
        class_="answer",
    )


def _command(command: str) -> Html:
    return tag("div", tag("code", command, tabindex="0"), class_="command")
