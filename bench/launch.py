"""Become a user's command: apply what is scoped to a process, say when, and exec.

Started as ``python -I -S launch.py ORDER_FD REPORT_FD``. The order is JSON (``bench.tryrun`` writes
it); the report is one JSON object, written just before exec, or one that says what failed. Nothing
of this process is left in the command but what was asked for: a shim instead of a hook between
fork and exec, because hooks run Python in a copy of a large process, and instead of a wrapper,
because signals, exit code and process number are then the command's own.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
from typing import Any, NoReturn

_PR_SET_PDEATHSIG, _PR_SET_THP_DISABLE = 1, 41
SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}
MODES = {"bind": 2, "interleave": 3}
NOT_STARTED = 127


def main(order_fd: int, report_fd: int) -> NoReturn:
    """Read the order, obey, exec."""
    os.set_inheritable(order_fd, False)
    os.set_inheritable(report_fd, False)
    order = json.loads(os.pread(order_fd, os.fstat(order_fd).st_size, 0))
    stage = "settings"
    try:
        if os.getppid() != order["driver"]:
            os._exit(NOT_STARTED)
        _apply(order)
        stage = "start"
        # Python ignores these in itself, and what is ignored stays so over exec.
        for name in ("SIGPIPE", "SIGXFSZ"):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        os.chdir(_bytes(order["cwd"]))
        used = resource.getrusage(resource.RUSAGE_SELF)
        report = {
            # So far: what of the command's own figures is this process's.
            "user_s": used.ru_utime,
            "system_s": used.ru_stime,
            "minor_faults": used.ru_minflt,
            "major_faults": used.ru_majflt,
            # The kernel hands the largest size of the process before down over fork and exec.
            "peak_kib": used.ru_maxrss,
        }
        environment = {_bytes(key): _bytes(value) for key, value in order["env"]}
        path, argv = _bytes(order["path"]), [_bytes(word) for word in order["argv"]]
        report["began_s"] = time.monotonic()
        os.write(report_fd, json.dumps(report).encode())
        os.execve(path, argv, environment)
    except OSError as error:
        what = os.fsdecode(error.filename or "CPU affinity")
        _fail(report_fd, stage, f"{error.strerror}: {what}")


def _bytes(text: str) -> bytes:
    """A string as the order holds it: a character a byte, whatever this locale makes of bytes."""
    return text.encode("latin-1")


def _apply(order: dict[str, Any]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    # A killed driver must not leave a command running.
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if order["no_thp"] and libc.prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0):
        _refused("prctl(PR_SET_THP_DISABLE)")
    if order["memory"]:
        _set_memory_policy(libc, *order["memory"])
    if order["cpus"]:
        os.sched_setaffinity(0, order["cpus"])


def _set_memory_policy(libc: ctypes.CDLL, mode: str, nodes: list[int]) -> None:
    words = max(nodes) // 64 + 1
    mask = (ctypes.c_ulong * words)()
    for node in nodes:
        mask[node // 64] |= 1 << node % 64
    number = ctypes.c_long(SET_MEMPOLICY[os.uname().machine])
    # The kernel reads one bit less than it is told.
    if libc.syscall(number, MODES[mode], mask, ctypes.c_ulong(64 * words + 1)):
        _refused(f"set_mempolicy({mode})")


def _refused(what: str) -> NoReturn:
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code), what)


def _fail(report_fd: int, stage: str, message: str) -> NoReturn:
    os.write(report_fd, b"\n" + json.dumps({"stage": stage, "error": message}).encode())
    os._exit(NOT_STARTED)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
