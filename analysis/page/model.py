"""What a page is made of, before it becomes HTML, Markdown or JSON.

A section holds blocks: paragraphs, lists, facts, commands, tables, matrices and charts. Texts are
plain: whoever lays them out escapes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Align = Literal["text", "number", "bar"]
LOOKS = {"helps": "helps", "hurts": "hurts", "neutral": "neutral", "cannot tell": "unclear"}
"""Verdict -> how it looks."""


@dataclass(frozen=True)
class Axis:
    """One axis of a chart or of the bars in a column."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False


@dataclass(frozen=True)
class Bar:
    """A measured value with its interval, drawn on the axis of its column."""

    value: float
    low: float
    high: float
    verdict: str
    predicted: float | None = None
    """Drawn beside what was measured."""


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    text: str
    value: float | None = None
    """What to sort by; None: the text."""
    look: str = ""
    """One of ``LOOKS``: never by colour alone, the text says it too."""
    hint: str = ""
    """More digits, or how many samples."""
    bar: Bar | None = None


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    align: Align = "text"
    axis: Axis | None = None
    """Of a column of bars."""
    band: tuple[float, float] | None = None
    """Of bars: between these, changes are of no interest."""
    sortable: bool = True


@dataclass(frozen=True)
class Table:
    """Rows under a caption; the first column names the row."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class MatrixCell:
    """One cell of a matrix."""

    text: str
    value: float
    """NaN: not measured."""
    hint: str = ""


@dataclass(frozen=True)
class Matrix:
    """Every row against every column, shaded by value."""

    caption: str
    corner: str
    """What rows and columns are."""
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[MatrixCell, ...], ...]
    legend: str
    """What the shades mean."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Point:
    """One measured point; the interval is NaN where samples are too few for one."""

    x: float
    y: float
    low: float
    high: float
    hint: str
    hollow: bool = False
    """Not a part of the curve."""


@dataclass(frozen=True)
class Series:
    """One curve of a chart."""

    name: str
    style: int
    """Index into `analysis.drawing.STYLES`."""
    points: tuple[Point, ...] = ()
    marker: str = ""
    """As in `analysis.drawing.Style`; empty: the points are joined and not marked."""
    line: tuple[tuple[float, float], ...] = ()
    """Of a fit; empty: the points are joined."""
    band: tuple[tuple[float, float, float], ...] = ()
    """(x, low, high) of the line."""
    stepped: bool = False
    dash: str = "-"
    """As in `analysis.drawing.Style`."""


@dataclass(frozen=True)
class Chart:
    """Curves on two axes."""

    title: str
    summary: str
    """What it shows, for those who do not see it."""
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    marks: tuple[tuple[float, str], ...] = ()
    """Vertical lines with names."""


@dataclass(frozen=True)
class Charts:
    """Charts side by side where there is room."""

    charts: tuple[Chart, ...]


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Listing:
    """Items under a title."""

    title: str
    items: tuple[str, ...]


@dataclass(frozen=True)
class Item:
    """What was left out, why, and the command that changes it."""

    what: str
    reason: str
    way_out: str = ""
    """In words."""
    command: str = ""
    """That can be pasted."""


@dataclass(frozen=True)
class Items:
    """Such items under a title."""

    title: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Commands:
    """Commands to be copied, each with what it does."""

    title: str
    commands: tuple[tuple[str, str], ...]
    """(command, what for)."""


Block = Charts | Commands | Facts | Items | Listing | Matrix | Table | Text


@dataclass(frozen=True)
class Source:
    """A run that figures are from, and how to make it again."""

    name: str
    command: str
    """Empty where that is not known."""
    digest: str
    """Of its plan; empty where there is none."""


@dataclass(frozen=True)
class Section:
    """One part of a page."""

    id: str
    title: str
    lead: str
    """What it is about, in a sentence."""
    blocks: tuple[Block, ...]
    sources: tuple[Source, ...] = ()
    """Runs that it is made from."""


@dataclass(frozen=True)
class Answer:
    """An answer to one question of those that a page begins with."""

    question: str
    short: str
    """In a few words."""
    text: str
    look: str = ""
    command: str = ""
    """What would answer it, where nothing does."""
    untried: str = ""
    """What no run has tried, where that is why there is no answer."""


@dataclass(frozen=True)
class HostPage:
    """Everything about one host."""

    name: str
    summary: str
    """Processor and memory, in a line."""
    verdict: str
    """In a sentence."""
    answers: tuple[Answer, ...]
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Page:
    """A whole report."""

    title: str
    made_with: str
    """Version of this package."""
    hosts: tuple[HostPage, ...]
    overview: tuple[Block, ...] = ()
    """Of several hosts: the table that compares them."""


def cells(*texts: str) -> tuple[Cell, ...]:
    """Cells of text."""
    return tuple(Cell(text) for text in texts)


def columns(*names: str) -> tuple[Column, ...]:
    """Columns by name; one that begins with ``#`` holds numbers, with ``-`` is not sorted by."""
    return tuple(
        Column(
            name.lstrip("#-"),
            "number" if name[:1] in ("#", "-") else "text",
            sortable=name[:1] != "-",
        )
        for name in names
    )


def table(
    caption: str,
    heads: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    notes: Sequence[str] = (),
) -> tuple[Table, ...]:
    """One table, or none where there are no rows."""
    if not rows:
        return ()
    return (Table(caption, tuple(heads), tuple(map(tuple, rows)), tuple(notes)),)
