"""Matrix Market files (``.mtx``, ``.mtx.gz``) converted to the rows that kernel spmv reads.

Coordinate files of real, integer or pattern entries, general, symmetric or skew-symmetric. The text
is parsed block by block; about 30 bytes of memory an entry are needed to sort it into rows.
"""

import gzip
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bench.errors import UsageError

# The binary: a header of 64 bytes, row starts (u4) and columns (u4), each padded to 64 bytes, and
# values (f8; none of a pattern); little endian. csrc/kernels/spmv_matrix.h reads it.
MAGIC = b"pagestorm csr 1\n"
HAS_VALUES, WHOLE = 1, 2
_HEADER = struct.Struct("<16s6Q")
_BLOCK_BYTES = 16 << 20
_MAX = 2**32 - 1
_FIELDS = ("real", "integer", "pattern")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")
_KINDS = "coordinate files of real, integer or pattern entries can be used"


@dataclass(frozen=True)
class Header:
    """First line of the file, size line, and where the entries begin."""

    field: str
    symmetry: str
    n_rows: int
    n_cols: int
    n_entries: int
    """As stored: a symmetric file holds one triangle."""
    line: int
    """Number of the size line, counted from 1."""


def convert(source: Path, out: BinaryIO) -> None:
    """Write the binary form of a Matrix Market file.

    Entries of one position are added up, and both triangles of a symmetric matrix are written.

    Raises
    ------
    UsageError
        Where the file is not what it says, with the number of the line.
    """
    with _opened(source) as stream:
        header = read_header(source, stream)
        try:
            rows, columns, values = _read_entries(source, stream, header)
            rows, columns, values = _mirrored(header, rows, columns, values)
            if len(rows) > _MAX:
                raise UsageError(
                    f"{source}: {len(rows)} entries are more than 4 B columns can count"
                )
            _write(out, header, rows, columns, values)
        except MemoryError:
            raise UsageError(
                f"{source}: line {header.line}: not enough memory for {header.n_rows} rows and"
                f" {header.n_entries} entries",
                "use a smaller matrix, or a host with more memory",
            ) from None


def read_header(source: Path, stream: BinaryIO) -> Header:
    """Banner, comments and size line; raises UsageError with the number of the line."""
    words = stream.readline(1024).decode("latin-1").split()
    if not words or words[0] != "%%MatrixMarket":
        raise UsageError(f"{source}: line 1 does not begin with %%MatrixMarket", _KINDS)
    if len(words) != 5:
        raise UsageError(f"{source}: line 1 has {len(words)} words, not 5", _KINDS)
    thing, form, field, symmetry = (word.lower() for word in words[1:])
    if thing != "matrix" or form != "coordinate":
        raise UsageError(f"{source}: line 1 says {thing} {form}, not matrix coordinate", _KINDS)
    if field not in _FIELDS:
        raise UsageError(f"{source}: line 1 says {field} entries", _KINDS)
    if symmetry not in _SYMMETRIES or (field == "pattern" and symmetry == "skew-symmetric"):
        raise UsageError(
            f"{source}: line 1 says {field} {symmetry}", f"known: {', '.join(_SYMMETRIES)}"
        )
    line = 1
    while True:
        text = stream.readline(1 << 20)
        line += 1
        if not text:
            raise UsageError(f"{source}: ends before the size line")
        if text.strip() and not text.startswith(b"%"):
            break
    n_rows, n_cols, n_entries = _sizes(f"{source}: line {line}", text)
    if symmetry != "general" and n_rows != n_cols:
        raise UsageError(
            f"{source}: line {line}: a {symmetry} matrix is square, not {n_rows} x {n_cols}"
        )
    return Header(field, symmetry, n_rows, n_cols, n_entries, line)


def _sizes(where: str, text: bytes) -> tuple[int, int, int]:
    words = text.decode("latin-1").split()
    if len(words) != 3 or not all(word.isdecimal() for word in words):
        raise UsageError(f"{where} should hold rows, columns and entries: {' '.join(words)[:80]!r}")
    n_rows, n_cols, n_entries = map(int, words)
    if not n_rows or not n_cols or not n_entries:
        raise UsageError(f"{where}: the matrix is empty ({n_rows} x {n_cols}, {n_entries} entries)")
    # One more row start than rows; its value is the number of entries.
    if n_rows >= _MAX or n_cols > _MAX or n_entries > _MAX:
        raise UsageError(f"{where}: dimensions and entries must be below 2^32")
    return n_rows, n_cols, n_entries


@contextmanager
def _opened(source: Path) -> Iterator[BinaryIO]:
    """The text as a stream of bytes; what is wrong with the file itself is a UsageError."""
    try:
        with source.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            if packed:
                with gzip.open(file) as stream:
                    yield stream  # type: ignore[misc]  # reads like any binary file
            else:
                yield file
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise UsageError(f"{source}: cannot be unpacked: {error}") from None
    except OSError as error:
        raise UsageError(f"cannot read input file {source}: {error.strerror}") from None


# ---- entries -------------------------------------------------------------------------------------

Entries = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64] | None]


def _read_entries(source: Path, stream: BinaryIO, header: Header) -> Entries:
    """Rows and columns from 0 on, and values (None of a pattern), in the order of the file."""
    # Grown as entries arrive: the size line may promise more than the file or this host holds.
    parts: list[Entries] = []
    filled, line = 0, header.line + 1
    for block in _blocks(stream):
        numbers, lines = _parse(source, block, line, 2 if header.field == "pattern" else 3)
        if filled + len(numbers) > header.n_entries:
            extra = lines[header.n_entries - filled]
            raise UsageError(
                f"{source}: line {extra}: more than the {header.n_entries} entries of line "
                f"{header.line}"
            )
        _check(source, header, numbers, lines)
        rows, columns = ((numbers[:, i] - 1).astype(np.uint32) for i in (0, 1))
        parts.append((rows, columns, None if header.field == "pattern" else numbers[:, 2].copy()))
        filled += len(numbers)
        line += block.count(b"\n")
    if filled < header.n_entries:
        raise UsageError(
            f"{source}: ends after {filled} of the {header.n_entries} entries of line {header.line}"
        )
    values = [part[2] for part in parts if part[2] is not None]
    return (
        np.concatenate([part[0] for part in parts]),
        np.concatenate([part[1] for part in parts]),
        np.concatenate(values) if values else None,
    )


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Pieces of whole lines; the last one may lack its newline."""
    rest = b""
    while block := stream.read(_BLOCK_BYTES):
        whole, newline, tail = (rest + block).rpartition(b"\n")
        rest = tail
        if newline:
            yield whole + newline
    if rest:
        yield rest


def _parse(
    source: Path, block: bytes, first_line: int, n_words: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Numbers of a block, one row an entry, and the number of the line each is from."""
    counts = _words_by_line(block)
    if b"%" in block:
        kept = block.split(b"\n")
        comments = [i for i, text in enumerate(kept) if text.lstrip().startswith(b"%")]
        for i in comments:
            kept[i] = b""
        block = b"\n".join(kept)
        counts[comments] = 0
    wrong = np.flatnonzero((counts != 0) & (counts != n_words))
    if len(wrong):
        raise UsageError(
            f"{source}: line {first_line + wrong[0]} has {counts[wrong[0]]} words, not {n_words}"
        )
    lines = first_line + np.flatnonzero(counts)
    try:
        with warnings.catch_warnings():
            # What cannot be read to its end is a warning in some versions, an error in others.
            warnings.simplefilter("error")
            numbers = np.fromstring(block.decode("latin-1"), dtype=np.float64, sep=" ")
    except (ValueError, DeprecationWarning):
        numbers = np.empty(0)
    if len(numbers) != len(lines) * n_words:
        raise _not_a_number(source, block, first_line)
    return numbers.reshape(-1, n_words), lines


def _words_by_line(block: bytes) -> NDArray[np.int64]:
    """How many words each line has."""
    letters = np.frombuffer(block, np.uint8)
    space = letters <= 32
    begins = ~space
    begins[1:] &= space[:-1]
    ends = np.flatnonzero(letters == 10) + 1
    starts = np.concatenate(([0], ends[ends < len(letters)]))
    return np.add.reduceat(begins, starts, dtype=np.int64)


def _not_a_number(source: Path, block: bytes, first_line: int) -> UsageError:
    for i, text in enumerate(block.split(b"\n")):
        for word in text.decode("latin-1").split():
            try:
                float(word)
                if "_" in word:
                    raise ValueError
            except ValueError:
                return UsageError(f"{source}: line {first_line + i}: not a number: {word[:40]!r}")
    return UsageError(f"{source}: lines from {first_line} on cannot be read as numbers")


def _check(source: Path, header: Header, numbers: NDArray[Any], lines: NDArray[np.int64]) -> None:
    """Refuse the first entry that is outside the matrix, or that its symmetry does not allow."""

    def refuse(bad: NDArray[np.bool_], say: str) -> None:
        at = int(np.argmax(bad))
        if bad[at]:
            row, column = (f"{number:.17g}" for number in numbers[at, :2])
            entry = say.format(row=row, column=column, value=numbers[at, -1])
            raise UsageError(f"{source}: line {lines[at]}: {entry}")

    if not len(numbers):
        return
    row, column = numbers[:, 0], numbers[:, 1]
    for index, name, size in ((row, "row", header.n_rows), (column, "column", header.n_cols)):
        # Written so that what is not a number is refused, too.
        bad = ~((index >= 1) & (index <= size) & (index == np.floor(index)))
        refuse(bad, f"{name} {{{name}}} is not one of 1 to {size}")
    if header.field != "pattern":
        refuse(~np.isfinite(numbers[:, 2]), "value {value} is not finite")
    if header.field == "integer":
        refuse(numbers[:, 2] != np.floor(numbers[:, 2]), "value {value} of an integer matrix")
    if header.symmetry != "general":
        above = "row {row}, column {column}: a " + header.symmetry + " file holds entries on or "
        refuse(row < column, above + "below the diagonal only")
    if header.symmetry == "skew-symmetric":
        refuse(row == column, "row {row}: a skew-symmetric matrix has a diagonal of zeros")


# ---- rows ----------------------------------------------------------------------------------------


def _mirrored(
    header: Header,
    rows: NDArray[np.uint32],
    columns: NDArray[np.uint32],
    values: NDArray[np.float64] | None,
) -> Entries:
    """Both triangles."""
    if header.symmetry == "general":
        return rows, columns, values
    other = np.flatnonzero(rows != columns)
    if values is not None:
        sign = -1.0 if header.symmetry == "skew-symmetric" else 1.0
        values = np.concatenate((values, sign * values[other]))
    return (
        np.concatenate((rows, columns[other])),
        np.concatenate((columns, rows[other])),
        values,
    )


def _write(
    out: BinaryIO,
    header: Header,
    rows: NDArray[np.uint32],
    columns: NDArray[np.uint32],
    values: NDArray[np.float64] | None,
) -> None:
    from scipy.sparse import coo_array

    pattern = values is None
    data = np.ones(len(rows), np.int8) if values is None else values
    shape = (header.n_rows, header.n_cols)
    matrix = coo_array((data, (rows, columns)), shape=shape).tocsr()
    matrix.sum_duplicates()
    whole = pattern or bool(
        np.all((matrix.data == np.floor(matrix.data)) & (np.abs(matrix.data) < 2.0**53))
    )
    flags = (0 if pattern else HAS_VALUES) | (WHOLE if whole else 0)
    out.write(_HEADER.pack(MAGIC, *shape, matrix.nnz, flags, 0, 0))
    for array in (matrix.indptr.astype("<u4"), matrix.indices.astype("<u4")):
        out.write(array.tobytes())
        out.write(bytes(-array.nbytes % 64))
    if not pattern:
        out.write(matrix.data.astype("<f8").tobytes())
