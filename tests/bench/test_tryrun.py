"""A command runs as it would run by itself, with what a remedy changes and nothing else."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.change import Change
from bench.errors import UsageError
from bench.looks import Looker
from bench.tryrun import Command, run_once

ROOT = Path(__file__).parents[2]


@pytest.fixture
def ran(tmp_path):
    """Runs a command; returns how it went, with its stdout and stderr."""

    def one(*argv, change=None, looker=None, timeout_s=20.0, **options):
        out, err = tmp_path / "out", tmp_path / "err"
        command = Command.of(list(argv), **options)
        found = run_once(command, change or Change(), out, err, None, looker, timeout_s)
        return found, out.read_text(), err.read_text()

    return one


def python(code):
    return (sys.executable, "-I", "-c", code)


def test_output_and_exit_code_are_its_own(ran):
    found, out, err = ran("sh", "-c", "echo to stdout; echo to stderr >&2; exit 3")
    assert (found.status, found.failure) == (3, "exit code 3")
    assert (out, err) == ("to stdout\n", "to stderr\n")


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGPIPE"])
def test_a_signal_that_ends_it_is_told(ran, name):
    found, *_ = ran("sh", "-c", f"kill -{name.removeprefix('SIG')} $$")
    assert found.status == -getattr(signal, name)
    assert found.failure == name


def test_signals_are_as_a_shell_would_leave_them(ran):
    """Python ignores SIGPIPE in itself: a command that inherits that writes on for ever."""
    _, out, _ = ran("grep", "-E", "SigIgn|SigBlk|SigCgt", "/proc/self/status")
    _, plain, _ = ran("sh", "-c", "exec grep -E 'SigIgn|SigBlk|SigCgt' /proc/self/status")
    assert out == plain
    assert int(out.split("SigIgn:")[1].split()[0], 16) & (1 << (signal.SIGPIPE - 1)) == 0


def test_the_environment_is_the_users(ran, monkeypatch):
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0")
    monkeypatch.setenv("A_VALUE", "two words, ünicode, =")
    monkeypatch.delenv("LC_CTYPE", raising=False)
    _, out, _ = ran("env", "-0")
    seen = dict(item.split("=", 1) for item in out.split("\0") if item)
    expected = {k: v for k, v in os.environ.items() if k != "_"}
    assert {k: v for k, v in seen.items() if k != "_"} == expected


def test_bytes_that_are_no_text_come_through(ran, tmp_path, monkeypatch):
    monkeypatch.setitem(os.environb, b"RAW", b"\xff\xfe")
    _, out, _ = ran(
        *python("import os; print(os.environb[b'RAW'].hex(), __import__('sys').argv[1])"), "ü"
    )
    assert out.split() == ["fffe", "ü"]
    with pytest.raises(UsageError, match="UTF-8"):
        Command.of(["echo", os.fsdecode(b"\xff")])


def test_folder_and_input_are_the_users_and_the_input_is_new_each_time(ran, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input").write_text("line\n")
    for _ in range(2):
        _, out, _ = ran("sh", "-c", "pwd; cat", stdin=str(tmp_path / "input"))
        assert out == f"{tmp_path.resolve()}\nline\n"
    _, out, _ = ran("cat")
    assert out == "", "nothing is read where nothing was given"


def test_no_file_of_ours_is_left_open_in_it(ran):
    _, out, _ = ran(*python("import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))"))
    assert json.loads(out)[:3] == [0, 1, 2]
    assert len(json.loads(out)) == 4, "and the folder it lists"


def test_its_name_is_as_typed_and_it_has_a_session_of_its_own(ran):
    code = "import os, sys; print(os.getsid(0) == os.getpid(), open('/proc/self/cmdline').read())"
    _, out, _ = ran(*python(code))
    own, name = out.split(None, 1)
    assert own == "True"
    assert name.startswith(sys.executable)


def test_time_is_from_exec_to_exit(ran):
    found, *_ = ran("sleep", "0.2")
    assert 0.2 <= found.seconds < found.wall_s
    assert found.usage["user_s"] < 0.1, "the shim's start is not the command's"
    assert found.disturbed["probed_s"] >= found.seconds


def test_what_has_no_form_that_runs_says_so(ran, tmp_path):
    script = tmp_path / "script"
    script.write_text("echo no interpreter named\n")
    script.chmod(0o755)
    found, *_ = ran(str(script))
    assert "Exec format error" in found.failure
    script.chmod(0o644)
    with pytest.raises(UsageError, match="not a program"):
        Command.of([str(script)])
    with pytest.raises(UsageError, match="not found"):
        Command.of(["no-such-command-here"])
    with pytest.raises(UsageError, match="no command"):
        Command.of([])


def test_late_ones_are_killed_with_their_children(ran, tmp_path):
    pid_file = tmp_path / "child"
    found, *_ = ran("sh", "-c", f"sleep 60 & echo $! > {pid_file}; wait", timeout_s=0.3)
    assert found.timed_out
    assert "did not end within" in found.failure
    assert gone(int(pid_file.read_text()))


def test_what_it_leaves_running_ends_with_it(ran, tmp_path):
    pid_file = tmp_path / "child"
    found, *_ = ran("sh", "-c", f"sleep 60 & echo $! > {pid_file}")
    assert found.failure == ""
    assert gone(int(pid_file.read_text()))


def gone(pid):
    """Whether a process ends soon; a zombie that nobody waits for counts as ended."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


DRIVER = """
import sys
from pathlib import Path
from bench.change import Change
from bench.stop import Stop
from bench.tryrun import Command, run_once
with Stop() as stop:
    out = Path(sys.argv[1])
    command = Command.of(sys.argv[2:])
    print(run_once(command, Change(), out, out.with_suffix(".err"), stop.fd))
"""


def driven(tmp_path, script):
    """A driver in a process of its own whose command has begun."""
    out = tmp_path / "out"
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(out), "sh", "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 20
    while not (out.exists() and out.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return driver, out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_us_reaches_the_command_once(tmp_path, number):
    name = signal.Signals(number).name.removeprefix("SIG")
    script = f"trap 'echo got {name}' {name}; echo $$; sleep 0.5 & wait; sleep 0.5 & wait"
    driver, out = driven(tmp_path, script)
    driver.send_signal(number)
    assert driver.communicate(timeout=20)[0] == "None\n"
    assert out.read_text().count(f"got {name}") == 1


def test_a_killed_driver_leaves_no_command(tmp_path):
    driver, out = driven(tmp_path, "echo $$; exec sleep 60")
    driver.kill()
    driver.communicate(timeout=20)
    assert gone(int(out.read_text()))


# ---- what a remedy changes -----------------------------------------------------------------------


def test_transparent_pages_are_off_for_it_and_its_children(ran):
    row = ("sh", "-c", "grep THP_enabled /proc/self/status; :")
    _, out, _ = ran(*row, change=Change(no_thp=True))
    assert out.split() == ["THP_enabled:", "0"]
    _, out, _ = ran(*row)
    assert out.split() == ["THP_enabled:", "1"]


def test_it_keeps_to_its_processors(ran):
    cpu = max(os.sched_getaffinity(0))
    _, out, _ = ran("grep", "Cpus_allowed_list", "/proc/self/status", change=Change(cpus=(cpu,)))
    assert out.split() == ["Cpus_allowed_list:", str(cpu)]


def test_its_memory_policy_is_the_remedys(ran):
    found, out, _ = ran("cat", "/proc/self/numa_maps", change=Change(memory=("interleave", (0,))))
    if "Function not implemented" in found.failure or "not permitted" in found.failure:
        pytest.skip(found.failure)
    assert "interleave:0" in out


def test_a_setting_that_is_refused_is_the_remedys_failure(ran):
    found, *_ = ran("true", change=Change(memory=("bind", (60,))))
    assert found.failure.startswith("could not be started (settings)")
    assert "set_mempolicy(bind)" in found.failure


def test_malloc_is_told(ran):
    code = "import ctypes, os; print(os.environ['GLIBC_TUNABLES'])"
    _, out, _ = ran(*python(code), change=Change({"malloc.arena_max": "1"}))
    assert out == "glibc.malloc.arena_max=1\n"


class UntilSeen(Looker):
    """Lets the command end once its memory was seen: how fast looks follow depends on the load."""

    def look(self, pid):
        pause = super().look(pid)
        if self.peak.resident > 64 << 20:
            self.flag.touch()
        return pause


def test_a_look_shows_pages_and_processors(ran, tmp_path):
    code = """
import mmap, os, sys, time
m = mmap.mmap(-1, 64 << 20, mmap.MAP_PRIVATE)
m.madvise(getattr(mmap, sys.argv[1]))
for i in range(0, 64 << 20, 4096):
    m[i] = 1
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
rows = dict(line.split(":") for line in open("/proc/self/smaps_rollup").readlines()[1:])
print(int(rows["AnonHugePages"].split()[0]) * 1024)
"""

    def seen(advice):
        looker = UntilSeen()
        looker.flag = tmp_path / advice
        found, out, _ = ran(*python(code), advice, str(looker.flag), looker=looker, timeout_s=60)
        assert found.failure == ""
        return looker.summary(), int(out)

    (small, none), (large, huge) = seen("MADV_NOHUGEPAGE"), seen("MADV_HUGEPAGE")
    assert small["resident_bytes"] > 64 << 20
    assert small["huge_bytes"] == none == 0
    assert set(large["cpus"]) <= os.sched_getaffinity(0)
    if huge < 32 << 20:
        pytest.skip(f"of 64 MiB this host gave {huge >> 20} MiB transparent huge pages")
    # It may have been seen before its last pages were there, but not long before.
    assert large["huge_bytes"] > huge - (16 << 20)
