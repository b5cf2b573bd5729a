"""Finds the fields of records in a block of text, all lines at once.

It answers only for blocks in which every record has the plain form; anything else gives None, and
the block is read line by line (`analysis.timeline.records`). Fields are told apart by a 64-bit hash
of their bytes: two different names of one log would have to collide by chance.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.intervals import Floats

Places = NDArray[np.int64]
Hashes = NDArray[np.uint64]

# Longer numbers are not exact as floats; longer fields are no names.
MOST_DIGITS = 15
MOST_BYTES = 256
# Bytes that may be read past the end of a block: the rest of a word, or of the longest number.
_PAD = 16
_MARK = np.frombuffer(b"TIMELINE", "<u8")[0]
_MS = np.uint64(int.from_bytes(b"_ms=", "little"))
_LOW = np.array([(1 << 8 * k) - 1 for k in range(9)], dtype=np.uint64)
# Odd, with no pattern in their bits: multiplying by them spreads every bit upwards.
_SPREAD = np.array(
    [0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64
)  # fmt: skip


class Field(NamedTuple):
    """One column of all records: where it stands, and its hash."""

    start: Places
    length: Places
    hash: Hashes


class Tokens(NamedTuple):
    """The records of a block."""

    line: Places
    """Number of the line in the block, from 0."""
    ms: Floats
    decimals: int
    """Most digits after the point of a time."""
    event: Field
    job: Field
    detail: Field
    """Without the digits of a figure at its end."""
    figure: Floats
    """Number at the end of the details, after ``_ms=``; NaN: none."""

    def rows(self, chosen: NDArray[np.bool_]) -> "Tokens":
        """Some of the records."""
        event, job, detail = (
            Field._make(part[chosen] for part in column)
            for column in (self.event, self.job, self.detail)
        )
        return Tokens(
            self.line[chosen], self.ms[chosen], self.decimals, event, job, detail,
            self.figure[chosen],
        )  # fmt: skip


def tokens(text: bytes) -> Tokens | None:
    """Records of a block of whole lines, or None where one of them is not plain."""
    if b"\x1b" in text:
        return None
    data = np.frombuffer(text + bytes(_PAD), np.uint8)
    # A word of 8 bytes at every place; numpy reads them unaligned.
    words = np.ndarray((len(text),), "<u8", buffer=data.data, strides=(1,))
    commas = np.flatnonzero(data == ord(","))
    marked = np.flatnonzero(commas >= 8)
    marked = marked[words[commas[marked] - 8] == _MARK]
    if not marked.size:
        return _nothing()
    ends = np.flatnonzero(data == ord("\n"))
    commas = np.concatenate([commas, np.full(3, len(text))])
    zero, first, second, third = (commas[marked + k] for k in range(4))
    line = np.searchsorted(ends, zero)
    end = ends[line]
    for _ in range(2):
        end = end - np.isin(data[end - 1], (13, 32))
    if (second >= end).any() or (line[1:] == line[:-1]).any() or _is_space(data[end - 1]).any():
        return None
    third = np.minimum(third, end)
    time = _numbers(data, zero + 1, first - zero - 1)
    if time is None:
        return None
    event = _field(words, first + 1, second - first - 1)
    job = _field(words, second + 1, third - second - 1)
    start = np.minimum(third + 1, end)
    digits = _digits_before(data, start, end)
    is_figure = (digits > 0) & (end - digits - 4 >= start) & (digits <= MOST_DIGITS)
    is_figure &= (words[np.maximum(end - digits - 4, 0)] & _LOW[4]) == _MS
    figure = np.full(line.size, np.nan)
    read = _numbers(data, (end - digits)[is_figure], digits[is_figure])
    detail = _field(words, start, end - start - np.where(is_figure, digits, 0), least=0)
    if event is None or job is None or detail is None or read is None:
        return None
    figure[is_figure] = read[0]
    return Tokens(line, *time, event, job, detail, figure)


def _nothing() -> Tokens:
    none = np.zeros(0, dtype=np.int64)
    field = Field(none, none, none.astype(np.uint64))
    return Tokens(none, none.astype(np.float64), 0, field, field, field, none.astype(np.float64))


def _is_space(byte: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return np.asarray(byte <= 32)


def _numbers(data: NDArray[np.uint8], start: Places, length: Places) -> tuple[Floats, int] | None:
    """Values of digits with at most one point inside, and most decimals; None for anything else.

    Exactly what ``float`` makes of them: both the digits and the power of ten are exact.
    """
    if not length.size:
        return np.zeros(0), 0
    longest = int(length.max())
    if length.min() < 1 or longest > MOST_DIGITS:
        return None
    value = np.zeros(length.size)
    point = np.full(length.size, -1)
    for k in range(longest):
        within = length > k
        digit = data[start + k].astype(np.int64) - ord("0")
        is_point = within & (digit == ord(".") - ord("0"))
        if is_point.any():
            if ((point >= 0) & is_point).any() or k == 0:
                return None
            point[is_point] = k
        is_digit = within & ~is_point
        if ((digit < 0) | (digit > 9))[is_digit].any():
            return None
        value = np.where(is_digit, 10 * value + digit, value)
    has_point = point >= 0
    if not has_point.any():
        return value, 0
    decimals = np.where(has_point, length - 1 - point, 0)
    if (decimals[has_point] == 0).any():
        return None
    return value / 10.0**decimals, int(decimals.max())


def _digits_before(data: NDArray[np.uint8], start: Places, end: Places) -> Places:
    """How many digits end there, at most one more than a number may have."""
    count = np.zeros(end.size, dtype=np.int64)
    still = np.ones(end.size, dtype=bool)
    for k in range(1, MOST_DIGITS + 2):
        digit = data[np.maximum(end - k, 0)] - np.uint8(ord("0"))
        still &= (digit <= 9) & (end - k >= start)
        if not still.any():
            break
        count += still
    return count


def _field(words: Hashes, start: Places, length: Places, least: int = 1) -> Field | None:
    """Hash of the bytes of a column; None where one is empty or too long for a name."""
    longest = int(length.max())
    if length.min() < least or longest > MOST_BYTES:
        return None
    head = words[start] & _LOW[np.minimum(length, 8)]
    found = (head ^ length.astype(np.uint64)) * _SPREAD[0]
    for k in range(8, longest, 8):
        # The last word ends where the field ends, and overlaps the one before.
        at = start + np.minimum(k, np.maximum(length - 8, 0))
        mixed = (found ^ (found >> np.uint64(29)) ^ words[at]) * _SPREAD[1]
        found = np.where(length > k, mixed, found)
    found = (found ^ (found >> np.uint64(32))) * _SPREAD[2]
    return Field(start, length, found)
