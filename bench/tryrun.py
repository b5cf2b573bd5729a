"""Run a user's command once, as it would run by itself, and measure it from outside.

It gets a session of its own, its output goes to files, and it starts through ``bench.launch``. Its
time is from exec to exit. Processes of its group that it leaves behind are killed.
"""

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from bench import disturbance, launch
from bench.blocks import Block, Entry
from bench.change import Change, environment
from bench.errors import UsageError
from bench.journal import Line
from bench.looks import Looker
from bench.metric import Metric, tail
from bench.runner import Runner
from bench.spawn import sleep_until_ended

GRACE_S = 5.0
"""Between the signal that asks a command to end, and the kill."""


@dataclass(frozen=True)
class Command:
    """What to run, and how."""

    argv: tuple[str, ...]
    path: str
    """Of the program."""
    cwd: str
    stdin: str = os.devnull
    timeout_s: float | None = None
    show_output: bool = False
    show_on_stderr: bool = False
    """stdout is the data's."""

    @classmethod
    def of(cls, argv: list[str], **options: Any) -> "Command":  # noqa: ANN401 - of the fields' types
        """Command that can be started from here."""
        if not argv or not argv[0]:
            raise UsageError("no command to try", "put it after --: bench try -- sort big.txt")
        try:
            "".join(argv).encode()
        except UnicodeEncodeError:
            raise UsageError(
                "the command has bytes that are no UTF-8, which plan.toml cannot hold",
                "put it into a script, and try that",
            ) from None
        path = shutil.which(argv[0])
        if path is None:
            there = Path(argv[0]).exists()
            raise UsageError(
                f"{argv[0]}: {'not a program that may be run' if there else 'command not found'}",
                "chmod +x it, or name its interpreter" if there else "check the name and PATH",
            )
        return cls(tuple(argv), str(Path(path).absolute()), str(Path.cwd()), **options)


@dataclass
class Ran:
    """How one run went. Times in seconds."""

    seconds: float = 0.0
    status: int = 0
    """Exit code; a signal's number, negative."""
    timed_out: bool = False
    usage: dict[str, Any] = field(default_factory=dict)
    looks: dict[str, Any] = field(default_factory=dict)
    disturbed: dict[str, float] = field(default_factory=dict)
    wall_s: float = 0.0
    """With the shim's start."""
    problem: str = ""
    """Why it never ran."""

    @property
    def processor_s(self) -> float:
        """In user mode and in the kernel, of all its processes that were waited for."""
        return float(self.usage["user_s"] + self.usage["system_s"])

    @property
    def failure(self) -> str:
        """How it failed; empty where it did not."""
        if self.problem:
            return self.problem
        if self.timed_out:
            return f"did not end within {self.seconds:.3g} s and was killed"
        if self.status < 0:
            known = -self.status in set(signal.Signals)
            return signal.Signals(-self.status).name if known else f"signal {-self.status}"
        return f"exit code {self.status}" if self.status else ""


def run_once(
    command: Command,
    change: Change,
    stdout: Path,
    stderr: Path,
    wake_fd: int | None = None,
    looker: Looker | None = None,
    timeout_s: float | None = None,
) -> Ran | None:
    """Run the command under a remedy; None where a signal came: the command got it, and ended."""
    ran = Ran()
    before = _probe()
    began = time.monotonic()
    with _started(command, change, stdout, stderr) as (process, report):
        if "error" in report:
            process.wait()
            ran.problem = f"could not be started ({report['stage']}): {report['error']}"
            ran.wall_s = time.monotonic() - began
            return ran
        why, ended = _wait(process.pid, report["began_s"], timeout_s, wake_fd, looker)
        if why == "woken":
            _ask_to_end(process.pid, wake_fd)
            return None
        ran.timed_out = why == "late"
        _kill_group(process.pid)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        ran.wall_s = time.monotonic() - began
    ran.seconds, ran.status = ended - report["began_s"], process.returncode
    ran.usage = {
        "user_s": round(max(0.0, used.ru_utime - report["user_s"]), 6),
        "system_s": round(max(0.0, used.ru_stime - report["system_s"]), 6),
        "minor_faults": max(0, used.ru_minflt - report["minor_faults"]),
        "major_faults": max(0, used.ru_majflt - report["major_faults"]),
        "switches": used.ru_nvcsw,
        "forced_switches": used.ru_nivcsw,
    }
    if used.ru_maxrss > report["peak_kib"]:  # else it is the driver's
        ran.usage["peak_bytes"] = used.ru_maxrss * 1024
    ran.looks = looker.summary() if looker else {}
    probes = {path: (text, after) for (path, text), after in zip(before, _texts(), strict=True)}
    ran.disturbed = disturbance.deltas(probes, ran.wall_s, [-1])
    return ran


def _probe() -> list[tuple[str, str]]:
    return list(zip(disturbance.PATHS, _texts(), strict=True))


def _texts() -> list[str]:
    texts = []
    for path in disturbance.PATHS:
        try:
            texts.append(Path(path).read_text())
        except OSError:
            texts.append("")
    return texts


@contextlib.contextmanager
def _started(
    command: Command, change: Change, stdout: Path, stderr: Path
) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """A command that has just begun, and its shim's report; its group is dead at the end."""
    order = {
        "driver": os.getpid(),
        "path": _raw(command.path),
        "argv": [_raw(word) for word in command.argv],
        "cwd": _raw(command.cwd),
        "env": [(_raw(k), _raw(v)) for k, v in environment(change, _own_environment()).items()],
        "no_thp": change.no_thp,
        "cpus": list(change.cpus),
        "memory": [change.memory[0], list(change.memory[1])] if change.memory else None,
    }
    order_fd = os.memfd_create("pagestorm")
    read_fd, write_fd = os.pipe2(os.O_CLOEXEC)
    os.write(order_fd, json.dumps(order).encode())
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, order_fd)
        reader: BinaryIO = stack.enter_context(os.fdopen(read_fd, "rb"))
        try:
            out, err = _outputs(command, stdout, stderr, stack)
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", launch.__file__, str(order_fd), str(write_fd)],
                stdin=stack.enter_context(Path(command.stdin).open("rb")),
                stdout=out,
                stderr=err,
                pass_fds=(order_fd, write_fd),
                start_new_session=True,
            )
        finally:
            os.close(write_fd)
        try:
            # Ends with exec, which closes the other side.
            last = reader.read().rpartition(b"\n")[2]
            yield process, json.loads(last or b'{"stage": "start", "error": "the shim died"}')
        finally:
            if process.returncode is None:
                _kill_group(process.pid)
                process.wait()


def _raw(text: str) -> str:
    """Bytes of a name or value, a character each: JSON holds them all, and so does any locale."""
    return os.fsencode(text).decode("latin-1")


def _outputs(command: Command, stdout: Path, stderr: Path, stack: contextlib.ExitStack) -> Any:  # noqa: ANN401 - two files, or None for ours
    if command.show_output:
        return (sys.stderr.fileno() if command.show_on_stderr else None), None
    return (stack.enter_context(path.open("wb")) for path in (stdout, stderr))


def _own_environment() -> dict[str, str]:
    """What this process was started with: Python adds LC_CTYPE to its own in the C locale."""
    own = dict(os.environ)
    with contextlib.suppress(OSError):
        given = Path("/proc/self/environ").read_bytes()
        if not any(item.startswith(b"LC_CTYPE=") for item in given.split(b"\0")):
            own.pop("LC_CTYPE", None)
    return own


def _wait(
    pid: int, began: float, timeout_s: float | None, wake_fd: int | None, looker: Looker | None
) -> tuple[str, float]:
    """Wait for the end; returns why the wait is over, and when that was."""
    latest = began + (timeout_s or float("inf"))
    next_look = looker.look(pid) + time.monotonic() if looker else float("inf")
    while True:
        now = time.monotonic()
        # A poll cannot wait for ever by a number.
        pause = min(latest - now, next_look - now, 1e6)
        why = sleep_until_ended(pid, max(0.0, pause), wake_fd)
        now = time.monotonic()
        if why != "late" or now >= latest:
            return why, now
        if looker and now >= next_look:
            next_look = looker.look(pid) + time.monotonic()


def _ask_to_end(pid: int, wake_fd: int | None) -> None:
    """Pass the signal that came on to the command, once; it has a while to end by itself."""
    number: int = signal.SIGINT
    if wake_fd is not None:
        with contextlib.suppress(OSError, IndexError):
            number = os.read(wake_fd, 1)[0] or number
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)
    sleep_until_ended(pid, GRACE_S, None)


def _kill_group(pid: int) -> None:
    """Kill what is left of a command, before its number can be anybody else's."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


@dataclass
class CommandRunner(Runner):
    """A runner whose samples are runs of a command."""

    work: Command = field(default_factory=lambda: Command((), "", ""))
    changes: Mapping[str, Change] = field(default_factory=dict)
    metric: Metric = field(default_factory=Metric)
    looked_at: frozenset[str] = frozenset()
    """Blocks in which commands are looked at while they run: not those that decide."""
    first: str = ""
    """Block of the run that says how long others may take."""
    nodes: bool = False
    """Look where memory lies."""
    budget_for_first_s: float | None = None
    """A first run that takes longer leaves no time for any other."""

    PATIENCE = 20
    """A run that takes so many times the usual time, and at least a minute, hangs."""

    def measure(self, block: Block, entry: Entry) -> Line | None:
        """Run the command once."""
        folder = self.journal.path.parent / "output"
        folder.mkdir(exist_ok=True)
        stdout, stderr = (folder / f"{entry.name}.{kind}" for kind in ("out", "err"))
        usual_s = self._usual_s()
        looker = None
        if block.id in self.looked_at:
            looker = Looker(usual_s, self.nodes, allocator=block.id == self.first)
        timeout_s = self.work.timeout_s
        if timeout_s is None and usual_s:
            timeout_s = max(60.0, self.PATIENCE * usual_s)
        if block.id == self.first and self.budget_for_first_s:
            timeout_s = min(timeout_s or math.inf, self.budget_for_first_s)
        fd = self.stop.fd if self.stop.fd >= 0 else None
        change = self.changes[entry.name]
        ran = run_once(self.work, change, stdout, stderr, fd, looker, timeout_s)
        if ran is None:
            return None
        found: Line = {
            "wall_s": round(ran.wall_s, 6),
            "disturbed": ran.disturbed,
            "run": self._result(ran, stdout, stderr),
        }
        if found["run"].get("failure") and not self.work.show_output:
            _keep(folder, stdout, stderr)
        return found

    def _usual_s(self) -> float:
        samples = self.journal.state.samples.get((self.first, 0), [])
        return float(samples[0]["run"]["seconds"]) if samples else 0.0

    def _result(self, ran: Ran, stdout: Path, stderr: Path) -> dict[str, Any]:
        result: dict[str, Any] = {"seconds": ran.seconds, "status": ran.status}
        failure = ran.failure
        if self.metric.pattern and not failure:
            value: tuple[float, str] | str = ran.processor_s, "second"
            if self.metric.printed:
                value = self.metric.read(stdout, stderr)
            if isinstance(value, str):
                failure = result["no_metric"] = value
            elif value[0] <= 0:
                failure = f"{self.metric.name} is {value[0]:g}: a ratio needs more than 0"
            else:
                result["metric"], result["metric_unit"] = value
        if ran.timed_out:
            result["timed_out"] = True
        if failure:
            result["failure"] = failure
            result["said"] = tail(stderr) or tail(stdout)
        return {**result, "usage": ran.usage, "looks": ran.looks}


def _keep(folder: Path, *paths: Path) -> None:
    """Keep the output of a run that failed; the next run of the same remedy has its own."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.replace(folder / f"{path.stem}.failed{path.suffix}")
