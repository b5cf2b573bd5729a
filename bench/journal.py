"""The journal of a run: append-only NDJSON, on disk before the next sample starts.

A kill at any moment loses at most the block that was running: a torn last line is cut off on
resume, and samples count only once their block closed ``ok``. ``State`` is all a run knows, and is
a function of the lines alone, so that a resumed run continues as if nothing had happened.
"""

import errno
import fcntl
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.errors import NoSpaceError, PagestormError, UsageError
from bench.schema import JOURNAL, SCHEMA, upgrade_line

Line = dict[str, Any]
MAX_RETRIES = 2
"""Repeats of a block after invalid samples, before its round is given up."""

_MAKE_SPACE = "make space there"
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass
class Tally:
    """Samples of one mix in one block, over all attempts."""

    tried: int = 0
    rejected: int = 0
    reasons: list[str] = field(default_factory=list)

    @property
    def rejected_share(self) -> float:
        """0 to 1."""
        return self.rejected / self.tried if self.tried else 0.0


@dataclass(frozen=True)
class Drop:
    """Why a mix is not measured any more."""

    reason: str
    skip: bool
    """The host cannot give it; otherwise its worker failed time after time."""


@dataclass
class State:
    """What the lines of a journal say."""

    starts: list[Line] = field(default_factory=list)
    status: str = ""
    """Of the last ``end``; empty while a run goes on, or was killed."""
    closed: dict[str, dict[int, str]] = field(default_factory=dict)
    """Block id -> round -> ``ok`` or ``failed``."""
    samples: dict[tuple[str, int], list[Line]] = field(default_factory=dict)
    """(block, round) -> samples of the attempt that closed ``ok``."""
    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)
    """(block, mix) -> tally."""
    dropped: dict[str, Drop] = field(default_factory=dict)
    """Mix -> why it is left out from here on."""
    attempts: dict[tuple[str, int], int] = field(default_factory=dict)
    """(block, round) -> attempts begun, cut-off ones included."""
    walls: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    """(block, mix) -> seconds its valid samples took, worker start to end, in order."""
    _running: dict[tuple[str, int], list[Line]] = field(default_factory=dict)
    _culprits: dict[tuple[str, int], list[str]] = field(default_factory=dict)

    def apply(self, line: Line) -> None:
        """Take one more line into account."""
        kind = line["kind"]
        if kind == "start":
            self.starts.append(line)
            self.status = ""
        elif kind == "sample":
            self._apply_sample(line)
        elif kind == "block":
            self._apply_block(line)
        elif kind == "end":
            self.status = line["status"]

    def _apply_sample(self, line: Line) -> None:
        where = (line["block"], line["round"])
        if self.attempts.get(where, 0) <= line["attempt"]:
            self.attempts[where] = line["attempt"] + 1
            self._running[where] = []
        mix, error = line["mix"], line.get("error") or {}
        if error.get("kind") == "skip":
            self.dropped[mix] = Drop(error["message"], skip=True)
            return
        tally = self.tallies.setdefault((line["block"], mix), Tally())
        tally.tried += 1
        if line.get("invalid"):
            tally.rejected += 1
            tally.reasons.append(line["invalid"])
            culprits = self._culprits.setdefault(where, [])
            culprits.append(mix)
            if culprits[-MAX_RETRIES - 1 :] == [mix] * (MAX_RETRIES + 1):
                self.dropped[mix] = Drop(
                    f"invalid {MAX_RETRIES + 1} times in a row: {line['invalid']}", skip=False
                )
                culprits.clear()
        else:
            self._running[where].append(line)
            self.walls.setdefault((line["block"], mix), []).append(line["wall_s"])

    def _apply_block(self, line: Line) -> None:
        where = (line["block"], line["round"])
        running = self._running.pop(where, [])
        if line["status"] == "rejected":
            return
        self.closed.setdefault(line["block"], {})[line["round"]] = line["status"]
        if line["status"] == "ok":
            self.samples[where] = running

    def next_round(self, block: str) -> int:
        """Number of the block's first round that is not closed."""
        rounds = self.closed.get(block, {})
        return next(i for i in range(len(rounds) + 1) if i not in rounds)

    def next_attempt(self, block: str, round_: int) -> int:
        """Number of the next attempt at a round; a cut-off attempt has used its number."""
        return self.attempts.get((block, round_), 0)

    def may_retry(self, block: str, round_: int) -> bool:
        """Whether a rejected block is to be repeated in the same round."""
        return len(self._culprits.get((block, round_), [])) <= MAX_RETRIES

    def running(self, block: str, round_: int) -> list[str]:
        """Mixes that have a valid sample in the attempt that is going on."""
        return [line["mix"] for line in self._running.get((block, round_), [])]

    def complete_rounds(self, blocks: Iterable[str]) -> int:
        """Rounds that every one of these blocks has closed."""
        return min((self.next_round(block) for block in blocks), default=0)


class Journal:
    """An open journal: the only writer of its folder while it lives."""

    def __init__(self, folder: Path) -> None:
        """Open or create; cuts off a torn last line."""
        self.path = folder / JOURNAL
        self.state = State()
        _make_folder(folder)
        existed = self.path.exists()
        try:
            self._fd = os.open(
                self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
            )
        except OSError as error:
            raise PagestormError(f"cannot write {self.path}: {error.strerror}") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise UsageError(
                f"another run is writing to {folder}", "wait for it, or choose another -o"
            ) from error
        try:
            lines, self._size = read_lines(self.path)
            os.ftruncate(self._fd, self._size)
        except BaseException:
            os.close(self._fd)
            raise
        for line in lines:
            self.state.apply(line)
        if not existed:
            sync_folder(folder)

    def append(self, line: Line) -> None:
        """Write one line and wait until it is on disk.

        Raises
        ------
        PagestormError
            Where the disk is full; the lines before are kept, and half a line is not left.
        """
        data = memoryview((json.dumps(line, allow_nan=False) + "\n").encode())
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, data[written:])
            os.fsync(self._fd)
        except OSError as error:
            os.ftruncate(self._fd, self._size)
            if error.errno not in _NO_SPACE:
                raise PagestormError(f"cannot write {self.path}: {error.strerror}") from error
            raise NoSpaceError(
                f"no space left for {self.path}: {error.strerror}; every closed block is kept",
                _MAKE_SPACE,
            ) from error
        self._size += written
        self.state.apply(line)

    def close(self) -> None:
        """Give the folder free for another writer."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_lines(path: Path) -> tuple[list[Line], int]:
    """Lines of a journal, and the bytes they take: what follows is a line torn by a kill.

    Lines of older versions are brought up to this one.

    Raises
    ------
    PagestormError
        Where a line before the last cannot be read; names it.
    UsageError
        Where a newer version wrote the journal.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PagestormError(f"cannot read {path}: {error.strerror}") from error
    rows = data.split(b"\n")
    # Without the newline at its end the last row is torn; with it the last row is empty.
    torn = rows.pop()
    lines: list[Line] = []
    version = SCHEMA
    size = len(data) - len(torn)
    for number, row in enumerate(rows, start=1):
        try:
            lines.append(_parse_line(row))
        except ValueError as error:
            if number == len(rows) and not torn:
                # A power cut can leave a last row of the right length with part of it unwritten.
                size -= len(row) + 1
                break
            raise PagestormError(
                f"{path}, line {number}: not a journal line ({error})",
                "restore the file from a copy, or cut it before that line to keep what is above",
            ) from None
        if lines[-1]["kind"] == "start":
            version = lines[-1].get("schema", SCHEMA)
        if version > SCHEMA:
            raise UsageError(
                f"{path} has format {version}; this version reads up to {SCHEMA}",
                "use the version that wrote it",
            )
        upgrade_line(lines[-1], version)
    return lines, size


def read_state(folder: Path) -> State:
    """State of a folder's journal, without opening it for writing."""
    path = folder / JOURNAL
    if not path.exists():
        raise UsageError(f"no {JOURNAL} in {folder}", "give the output directory of a run")
    state = State()
    for line in read_lines(path)[0]:
        state.apply(line)
    return state


def sync_folder(folder: Path) -> None:
    """Make new names in a folder survive a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace_file(path: Path, data: bytes) -> None:
    """Write a whole file so that a reader, or a kill, sees the old one or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        full = error.errno in _NO_SPACE
        kind = NoSpaceError if full else PagestormError
        raise kind(f"cannot write {path}: {error.strerror}", _MAKE_SPACE if full else "") from error


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    try:
        folder.mkdir(parents=True)
        sync_folder(folder.parent)
    except OSError as error:
        raise UsageError(
            f"cannot create {folder}: {error.strerror}", "choose another -o"
        ) from error


def _parse_line(row: bytes) -> Line:
    line = json.loads(row)
    if not isinstance(line, dict) or not isinstance(line.get("kind"), str):
        raise ValueError("no kind")
    return line
