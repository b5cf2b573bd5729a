"""Reads logs of any length in one pass: plain or gzip, files or standard input.

Kept in memory are 40 bytes a span (its start and end, job and item, worker, the writer's own
figure), a name a job, and what is open; never the text.
"""

import gzip
import io
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from analysis.timeline.events import WAITS
from analysis.timeline.faults import Fault, Faults
from analysis.timeline.pairing import MARK, Pairing
from analysis.timeline.spans import Run
from analysis.timeline.timings import FIELDS, TIMING, Timing, Timings
from bench.errors import PagestormError, UsageError

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

    Files are parts of one log as long as time goes on; where it starts anew with other jobs, a new
    run begins.

    Parameters
    ----------
    waits : iterable of str
        Phases in which nothing is done.

    Raises
    ------
    UsageError
        No such file, or a directory.
    PagestormError
        A file that cannot be read.
    """
    faults = Faults()
    timings = Timings()
    pairing = Pairing(faults, frozenset(waits))
    log = Log()
    for path in paths:
        faults.source = str(path)
        log.sources.append(str(path))
        pairing.begin_file()
        log.lines += _read(path, pairing, timings, faults)
    pairing.finish()
    log.runs, log.notes = pairing.runs, pairing.notes
    log.records, log.used = pairing.records, pairing.used
    log.faults, log.timings = faults.found, timings.distributions()
    if timings.unreadable:
        log.notes.append(f"{timings.unreadable} figures without a time are no numbers: left out")
    return log


def _read(path: str | Path, pairing: Pairing, timings: Timings, faults: Faults) -> int:
    """Feed one file; returns how many lines it has."""
    number, rest, skipping = 1, b"", False
    with _opened(path) as stream:
        for chunk in _chunks(stream, path, faults):
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            if skipping and lines:
                lines[0], skipping = b"", False
            if len(rest) > LONGEST:
                if not skipping:
                    faults.add("overlong", number + len(lines))
                rest, skipping = b"", True
            pairing.feed(_records(lines, number, timings, faults))
            number += len(lines)
    if rest and not skipping:
        if MARK in rest:
            pairing.records += rest.count(MARK)
            faults.add("truncated", number, count=rest.count(MARK))
        return number
    return number - 1


def _records(
    lines: list[bytes], number: int, timings: Timings, faults: Faults
) -> Iterator[tuple[int, bytes]]:
    """Lines with the mark, numbered; figures are taken out on the way."""
    for at, line in enumerate(lines, number):
        if MARK in line:
            if len(line) <= LONGEST:
                yield at, line
            else:
                faults.add("overlong", at)
        elif b"=" in line and (TIMING in line or any(name in line for name in FIELDS)):
            timings.take(line)


def _opened(path: str | Path) -> io.BufferedIOBase:
    try:
        if str(path) == "-":
            stream = io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
        else:
            stream = io.BufferedReader(io.FileIO(path))
        packed = stream.peek(2)[:2] == _GZIP
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist", "give a log file, or - for stdin") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "give a log file") from None
    return gzip.GzipFile(fileobj=stream) if packed else stream


def _chunks(stream: io.BufferedIOBase, path: str | Path, faults: Faults) -> Iterator[bytes]:
    """Contents; an archive that is cut off gives what is there."""
    while True:
        try:
            chunk = stream.read1(CHUNK)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            faults.add("damaged archive", 0)
            return
        except OSError as error:
            raise PagestormError(f"cannot read {path}: {error}", "copy it and try again") from error
        if not chunk:
            return
        yield chunk
