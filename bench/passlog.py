"""The log of a sample: every operation of every script, with its start and its end.

The engine notes it into memory set apart before; here it becomes text for the journal, and back.
"""

import base64
import sys
import zlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

_COLUMNS = (("actor", "H"), ("thread", "H"), ("op", "H"), ("cycle", "I"))


@dataclass(frozen=True, slots=True)
class Event:
    """One operation of a script that came to its end."""

    actor: int
    """Position in the mix."""
    thread: int
    """Where threads join, the first stands for all."""
    op: int
    """Position in the script."""
    cycle: int
    """How often this script had been through before."""
    start_ns: int
    """From the opening of the window: negative while warming up."""
    end_ns: int


def encode(events: Iterable[Event]) -> str:
    """Events as text: columns, times as differences, deflated, in base64."""
    rows = list(events)
    columns = [array(code, (getattr(row, name) for row in rows)) for name, code in _COLUMNS]
    starts = [row.start_ns for row in rows]
    columns.append(array("q", _differences(starts)))
    columns.append(array("q", (row.end_ns - row.start_ns for row in rows)))
    if sys.byteorder == "big":
        for column in columns:
            column.byteswap()
    data = b"".join(column.tobytes() for column in columns)
    return base64.b64encode(zlib.compress(data)).decode()


def decode(text: str) -> list[Event]:
    """Events of ``encode``; ValueError where the text is none."""
    try:
        data = zlib.decompress(base64.b64decode(text, validate=True))
    except zlib.error as error:
        raise ValueError(f"not a log: {error}") from None
    codes = [code for _, code in _COLUMNS] + ["q", "q"]
    sizes = [array(code).itemsize for code in codes]
    n, rest = divmod(len(data), sum(sizes))
    if rest:
        raise ValueError("not a log: a row is torn")
    columns, at = [], 0
    for code, size in zip(codes, sizes, strict=True):
        column = array(code)
        column.frombytes(data[at : at + n * size])
        if sys.byteorder == "big":
            column.byteswap()
        columns.append(column)
        at += n * size
    starts = _sums(columns[4])
    actors, threads, ops, cycles, _, lengths = columns
    return [
        Event(actor, thread, op, cycle, start, start + length)
        for actor, thread, op, cycle, start, length in zip(
            actors, threads, ops, cycles, starts, lengths, strict=True
        )
    ]


def _differences(values: list[int]) -> list[int]:
    return [value - before for value, before in zip(values, [0, *values], strict=False)]


def _sums(values: Iterable[int]) -> list[int]:
    found, total = [], 0
    for value in values:
        total += value
        found.append(total)
    return found
