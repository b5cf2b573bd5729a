"""Runs a peer: on given CPUs, in the C locale, with an end, and with a look at its pages.

Which pages its memory got is looked up in ``/proc`` while it runs, of all its processes together.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.errors import HostError
from bench.peer import Job, Peer, PeerTest, Reading, ToolError
from bench.spawn import PACKAGE_ROOT

TIMEOUT_S = 120.0
LOOK_EVERY_S = 0.005
"""Between looks at a tool's memory; they end once it has touched it, before it measures."""
_VERSION = re.compile(r"\d+(?:\.\d+)+\S*")


@dataclass(frozen=True)
class Ready:
    """A peer that can be run."""

    peer: Peer
    program: str
    version: str
    """As it prints it; ``unknown`` where it cannot."""

    def run(
        self, test: PeerTest, job: Job, timeout_s: float = TIMEOUT_S
    ) -> tuple[Reading, float | None]:
        """Run one test; the reading, and the share of huge pages in its memory, if that was seen.

        Raises
        ------
        ToolError
            It failed, took too long, or printed what cannot be read.
        """
        command = self.peer.command(self.program, test, job)
        extra = self.peer.environment(job)
        text, share = watched(command, job.n_bytes, job.cpus, extra, timeout_s)
        return self.peer.parse(text, test, job), share


def ready(peer: Peer, folder: Path, path: str = "") -> Ready:
    """Find a peer, at ``path`` where one is given; what must be compiled goes to ``folder``.

    Raises
    ------
    HostError
        It is not there; the remedy says how to get it.
    """
    if path and not peer.programs:
        raise HostError(f"{peer.name} is no program, so it has no path")
    if path:
        found = shutil.which(path)
        if found is None:
            raise HostError(f"{path} is no program that can be run", f"--tool {peer.name}=PATH")
        return Ready(peer, str(Path(found).absolute()), version(peer, found))
    if peer.make:
        return Ready(peer, peer.make(folder), "ours")
    if peer.missing:
        if why := peer.missing():
            raise HostError(why, peer.install)
        return Ready(peer, "", _package_version(peer.name))
    for name in peer.programs:
        if found := shutil.which(name):
            return Ready(peer, found, version(peer, found))
    raise HostError(f"{peer.programs[0]} is not installed", peer.install)


def version(peer: Peer, program: str) -> str:
    """What the program says of its version."""
    if not peer.version_flags:
        return "unknown"
    try:
        done = subprocess.run(
            [program, *peer.version_flags],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    match = _VERSION.search(done.stdout + done.stderr)
    return match[0].rstrip(",") if match else "unknown"


def _package_version(name: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"


def watched(
    command: Sequence[str],
    n_bytes: int,
    cpus: Collection[int],
    extra: Mapping[str, str],
    timeout_s: float = TIMEOUT_S,
) -> tuple[str, float | None]:
    """Output of a program, and how much of its memory was huge once it had touched most of it.

    It and its children are killed when it takes too long, and when we are interrupted.
    """
    paths = [str(PACKAGE_ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        **extra,
        "LC_ALL": "C",  # a decimal point in figures, English words
    }
    deadline = time.monotonic() + timeout_s
    with _group(command, environment, _stay_on(cpus)) as process:
        share = _huge_share(process, n_bytes, deadline)
        try:
            text, _ = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise ToolError(f"{command[0]} did not end within {timeout_s:.0f} s") from None
    if process.returncode < 0:
        name = signal.Signals(-process.returncode).name
        raise ToolError(f"{command[0]} was ended by {name}: {_end(text)}")
    if process.returncode:
        raise ToolError(f"{command[0]} ended with {process.returncode}: {_end(text)}")
    return text, share


@contextlib.contextmanager
def _group(
    command: Sequence[str], environment: Mapping[str, str], before: Callable[[], None]
) -> Iterator["subprocess.Popen[str]"]:
    """Start a program in a group of its own, of which nothing is left afterwards."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
            start_new_session=True,
            preexec_fn=before,
        )
    except OSError as error:
        raise ToolError(f"{command[0]} cannot be started: {error.strerror}") from None
    with process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _stay_on(cpus: Collection[int]) -> Callable[[], None]:
    def before() -> None:
        os.sched_setaffinity(0, cpus)

    return before


def _end(text: str) -> str:
    return text[-300:].strip() or "it said nothing"


def _huge_share(process: "subprocess.Popen[str]", n_bytes: int, deadline: float) -> float | None:
    page = os.sysconf("SC_PAGE_SIZE")
    while process.poll() is None and time.monotonic() < deadline:
        folders = [Path("/proc") / str(pid) for pid in family(process.pid)]
        resident = sum(_resident_pages(folder) for folder in folders) * page
        if resident >= 0.9 * n_bytes:
            texts = [_read(folder / "smaps_rollup") for folder in folders]
            return parse_rollups(texts)
        time.sleep(LOOK_EVERY_S)
    return None


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    found = [pid]
    for parent in found:
        children = _read(Path(f"/proc/{parent}/task/{parent}/children"))
        found.extend(int(child) for child in children.split())
    return found


def _resident_pages(folder: Path) -> int:
    words = _read(folder / "statm").split()
    return int(words[1]) if len(words) > 1 else 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it ended meanwhile
        return ""


def parse_rollups(texts: Sequence[str]) -> float | None:
    """AnonHugePages over Rss of ``smaps_rollup`` files; None where they do not say."""
    resident = huge = 0
    for text in texts:
        rows = dict(re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE))
        if "AnonHugePages" in rows:
            resident += int(rows.get("Rss", 0))
            huge += int(rows["AnonHugePages"])
    return huge / resident if resident else None
