"""Notes of what runs added to the huge-page pools, kept where a killed run's can be found again."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.errors import HostError
from bench.procfs import parse_process_stat
from bench.sysfs import entries, read_text

_VERSION = 1


@dataclass(frozen=True)
class Share:
    """What one run added to one pool."""

    size_bytes: int
    node: int | None
    before: int  # pages in the pool when the run came
    base: int  # the same without what other runs had added: never go below this
    wanted: int
    added: int | None = None  # None: killed before the result was written
    target: int | None = None  # where giving back was to end, written before it started

    def remaining(self, now: int) -> int:
        """Pages of this share still in a pool that now has ``now``."""
        if self.added is None:
            left = min(self.wanted, now - self.before)
        elif self.target is not None:
            left = min(self.added, now - self.target)
        else:
            left = self.added
        return max(0, min(left, now - self.base))


@dataclass(frozen=True)
class Record:
    """One run's state file."""

    path: Path
    boot_id: str | None
    pid: int
    started: int | None  # of the process, in clock ticks since boot: tells a reused pid
    made_at: float
    shares: tuple[Share, ...]

    def write(self) -> None:
        """Replace the file in one step; durable before this returns."""
        data = {**asdict(self), "path": None, "version": _VERSION}
        temporary = self.path.with_suffix(".tmp")
        try:
            with temporary.open("w") as stream:
                json.dump(data, stream)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(self.path)
        except OSError as error:
            raise HostError(
                f"cannot note the reservation in {self.path}: {error.strerror}",
                "free space there, or set XDG_STATE_HOME to a folder that can be written",
            ) from error


def state_dirs() -> list[Path]:
    """Folders for state files, best first.

    /run is seen by every user and ends with the boot, as the pools do.
    """
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111 - never raises
    return [Path("/run/pagestorm"), Path(home) / "pagestorm"]


def writable_state_dir(state_dir: Path | None) -> Path:
    """Make and return the folder to write to; raises HostError where there is none."""
    for folder in [state_dir] if state_dir else state_dirs():
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    raise HostError(
        "no folder to note the reservation in, without which a killed run could not be undone",
        "make /run/pagestorm or set XDG_STATE_HOME to a folder that can be written",
    )


def records(folders: list[Path], root: Path) -> Iterator[Record]:
    """Read the state files of this boot. After a reboot pools are new and files say nothing."""
    boot_id = read_text(root / "proc/sys/kernel/random/boot_id")
    for folder in folders:
        for path in entries(folder, "hugepages-*.json"):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                data: dict[str, Any] = json.loads(path.read_text())
                if data.pop("version") == _VERSION and data["boot_id"] == boot_id:
                    shares = tuple(Share(**share) for share in data.pop("shares"))
                    yield Record(**{**data, "path": path, "shares": shares})


def dead_records(folders: list[Path] | None, root: Path) -> list[Record]:
    """List notes whose run is gone; ``folders`` defaults to every place they are kept."""
    found = records(state_dirs() if folders is None else folders, root)
    return [record for record in found if not alive(record)]


def alive(record: Record) -> bool:
    """Whether the run that wrote the note still exists."""
    return record.started is not None and started_at(record.pid) == record.started


def started_at(pid: int) -> int | None:
    """Return a process's start in clock ticks since boot; None where there is no such process."""
    stat = parse_process_stat(read_text(Path(f"/proc/{pid}/stat")) or "")
    return None if stat is None or stat.state == "Z" else stat.started
