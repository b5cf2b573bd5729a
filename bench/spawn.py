"""Start one worker, sleep until it has ended, and say in words how it ended.

The driver must not disturb what is measured: request, answer and messages go through memory files,
so that nothing has to be read while the worker runs, and the driver sleeps in one system call
until the worker is gone, the time is up, or a signal comes.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

# -P: a folder named bench where the user happens to be must not be taken for this package.
WORKER = (sys.executable, "-P", "-m", "bench.worker")
PACKAGE_ROOT = Path(__file__).resolve().parent.parent

_PR_SET_PDEATHSIG = 1
_MESSAGE_BYTES = 4000


@dataclass(frozen=True)
class Outcome:
    """How one worker ended."""

    response: dict[str, Any]
    """The worker's answer, or ``{"error": {"kind", "stage", "message"}}`` made here."""
    wall_s: float
    """Start of the process to its end, as the driver saw it."""
    messages: str
    """What the worker wrote to stderr, its end at most."""


def run_worker(
    request: dict[str, Any],
    timeout_s: float,
    command: Sequence[str] = WORKER,
    wake_fd: int | None = None,
) -> Outcome | None:
    """Run one worker in a session of its own; kill it and all its processes after ``timeout_s``.

    None where ``wake_fd`` became readable first: the worker was killed and nothing is known.
    """
    began = time.monotonic()
    killed_before = _oom_kills()
    with _memory_file() as question, _memory_file() as answer, _memory_file() as messages:
        # One clock for all processes of a host: the worker can say what starting it took.
        os.write(question, json.dumps({**request, "spawned_s": began}).encode())
        os.lseek(question, 0, os.SEEK_SET)
        process = subprocess.Popen(
            command,
            stdin=question,
            stdout=answer,
            stderr=messages,
            start_new_session=True,
            env=_environment(),
            preexec_fn=_die_with_driver(),
        )
        try:
            why = sleep_until_ended(process.pid, timeout_s, wake_fd)
        finally:
            # Before the worker is waited for: until then nobody else can get its number. Also
            # after a normal end, for processes it may have left.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        wall_s = time.monotonic() - began
        text = _read(messages)[-_MESSAGE_BYTES:].decode(errors="replace").strip()
        if why == "woken":
            return None
        if why == "late":
            response = _failure("deadline", f"did not end within {timeout_s:.0f} s and was killed")
        elif process.returncode != 0:
            out_of_memory = _oom_kills() > killed_before
            response = _failure("ended", _describe(process.returncode, out_of_memory, text))
        else:
            response = _parse(_read(answer), text)
    return Outcome(response, wall_s, text)


def sleep_until_ended(
    pid: int, timeout_s: float, wake_fd: int | None
) -> Literal["ended", "woken", "late"]:
    """Why the sleep is over. No processor time is used meanwhile."""
    fd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if wake_fd is not None:
            poll.register(wake_fd, select.POLLIN)
        ready = [number for number, _ in poll.poll(timeout_s * 1000)]
        if fd in ready:
            return "ended"
        return "woken" if ready else "late"
    finally:
        os.close(fd)


def _die_with_driver() -> Callable[[], None]:
    """Make a hook for the child: a killed driver must not leave a worker measuring."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    driver = os.getpid()

    def hook() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != driver:  # it was gone before the hook was set
            _leave()

    return hook


def _leave() -> NoReturn:
    os._exit(1)


def _environment() -> dict[str, str]:
    """Ours, with the package found first, wherever the program was started from."""
    paths = [str(PACKAGE_ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@contextlib.contextmanager
def _memory_file() -> Any:  # noqa: ANN401 - a descriptor, by way of a generator
    fd = os.memfd_create("pagestorm")
    try:
        yield fd
    finally:
        os.close(fd)


def _read(fd: int) -> bytes:
    return os.pread(fd, os.fstat(fd).st_size, 0)


def _parse(data: bytes, messages: str) -> dict[str, Any]:
    try:
        response = json.loads(data, parse_constant=_refuse_constant)
    except ValueError as error:
        said = messages or data[:200].decode(errors="replace") or "nothing"
        return _failure("answer", f"answer is not JSON ({error}); it said: {said}")
    if not isinstance(response, dict):
        return _failure("answer", "answer is not a JSON object")
    return response


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _failure(stage: str, message: str) -> dict[str, Any]:
    return {"error": {"kind": "fail", "stage": stage, "message": f"the worker {message}"}}


def _describe(code: int, out_of_memory: bool, messages: str) -> str:
    said = f"; it said: {messages.splitlines()[-1]}" if messages else ""
    if code >= 0:
        return f"ended with exit code {code}{said}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    if -code == signal.SIGKILL:
        # The counter is the host's: it does not say whose limit was reached, nor who was killed.
        why = (
            "out of memory, of the host or of a control group's limit"
            if out_of_memory
            else "by someone else; no kill for want of memory was counted"
        )
        return f"was killed ({name}): {why}{said}"
    return f"crashed ({name}){said}"


def _oom_kills() -> int:
    """Processes killed for want of memory since boot, by limits of control groups (v1, v2) too."""
    try:
        text = Path("/proc/vmstat").read_text()
    except OSError:
        return 0
    for row in text.splitlines():
        if row.startswith("oom_kill "):
            return int(row.split()[1])
    return 0
