"""Reads logs of any length in one pass: plain or gzip, files or standard input.

Kept in memory are 32 bytes a span (its start and end, job and item, worker, the writer's own
figure), a name a job, and what is open; never the text.
"""

import contextlib
import gzip
import io
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from analysis.timeline.events import WAITS
from analysis.timeline.faults import NOT_USED, Fault, Faults
from analysis.timeline.pairing import Pairing
from analysis.timeline.records import MARK, Reader
from analysis.timeline.spans import Run
from analysis.timeline.timings import Timing, Timings
from bench.errors import UsageError
from bench.units import counted

CHUNK = 1 << 20
LONGEST = 1 << 16
"""Bytes of a line; a longer one is no record but something binary."""
_GZIP = b"\x1f\x8b"


@dataclass
class Log:
    """Everything read."""

    sources: list[str] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    lines: int = 0
    records: int = 0
    """Lines, or parts of lines, that claim to be records."""
    used: int = 0
    """Records that count; the others are faults of one kind each."""
    faults: list[Fault] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def count(self, kind: str) -> int:
        """Faults of a kind."""
        return next((fault.count for fault in self.faults if fault.kind == kind), 0)


def read_log(*paths: str | Path, waits: Iterable[str] = WAITS) -> Log:
    """Read logs one after another; ``-`` is standard input.

    Files are parts of one log as long as time goes on; where it starts anew, a new run begins.

    Parameters
    ----------
    waits : iterable of str
        Phases in which nothing is done.

    Raises
    ------
    UsageError
        A file that is not there, cannot be read, or is given twice.
    """
    if twice := [str(path) for path in paths if list(map(str, paths)).count(str(path)) > 1]:
        raise UsageError(f"{twice[0]} is given twice", "name each log once")
    faults = Faults()
    timings = Timings()
    reader = Reader(faults)
    pairing = Pairing(faults, reader.names, frozenset(waits))
    log = Log()
    for path in paths:
        faults.begin_file(str(path))
        log.sources.append(str(path))
        pairing.begin_file()
        for number, text in _blocks(path, log, reader, faults):
            timings.take(text)
            records = reader.read(text, number)
            pairing.take(records._replace(line=faults.code(records.line)))
    pairing.finish(reader.decimals)
    log.runs, log.notes = pairing.runs, pairing.notes
    log.records, log.faults = reader.records, faults.found
    log.used = log.records - sum(map(log.count, NOT_USED))
    log.timings = timings.distributions()
    if timings.unreadable:
        told = counted(timings.unreadable, "figure")
        log.notes.append(f"{told} without a time: no number, left out")
    return log


def _blocks(
    path: str | Path, log: Log, reader: Reader, faults: Faults
) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines of a file, each with the number of its first line."""
    number, rest, skipping = 1, b"", False
    with _opened(path) as stream:
        for chunk in _chunks(stream, path, faults):
            cut = chunk.rfind(b"\n") + 1
            if not cut:
                rest = b"" if skipping else rest + chunk
            else:
                head = chunk[:cut]
                if skipping:
                    head = head[head.find(b"\n") :]
                yield number, rest + head
                number += chunk.count(b"\n")
                rest, skipping = chunk[cut:], False
            if len(rest) > LONGEST:
                faults.add("overlong", number)
                rest, skipping = b"", True
    log.lines += number - 1 + bool(rest or skipping)
    if marks := rest.count(MARK):
        reader.records += marks
        faults.add("truncated", number, count=marks)


@contextlib.contextmanager
def _opened(path: str | Path) -> Iterator[io.BufferedIOBase]:
    """Contents of a file, unpacked."""
    try:
        standard = str(path) == "-"
        raw = io.FileIO(sys.stdin.fileno() if standard else path, closefd=not standard)
        with io.BufferedReader(raw) as stream:
            packed = stream.peek(2)[:2] == _GZIP
            yield gzip.GzipFile(fileobj=stream) if packed else stream
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist", "give a log file, or - for stdin") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot read {path}: {reason}", "give a log file") from None


def _chunks(stream: io.BufferedIOBase, path: str | Path, faults: Faults) -> Iterator[bytes]:
    """Contents; an archive that is cut off gives what is there."""
    while True:
        try:
            chunk = stream.read1(CHUNK)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            faults.add("damaged archive", 0)
            return
        if not chunk:
            return
        yield chunk
