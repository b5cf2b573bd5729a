"""Programs with one planted behaviour, looked at from outside: it is named, and nothing else is.

What a busy machine does to a program is true of it, too: that others take its CPUs may be said.
"""

import os
import shutil
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.cli import main
from bench.hugepages import pool_available
from bench.observe.causes import findings
from bench.observe.figures import summarise
from bench.observe.known import read_known
from bench.observe.processors import OTHERS, OVERSUBSCRIPTION, THROTTLING
from bench.observe.sampler import Sampler, Settings
from bench.observe.target import group_target, process_target
from bench.observe.translation import FAULTS, SHOOTDOWN_WORST_S, SHOOTDOWNS, TLB
from bench.stop import Stop

MIB = 1 << 20
SECONDS = 2.0
ROOT = Path("/")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    made = tmp_path_factory.mktemp("plants") / "plant"
    source = Path(__file__).with_name("observe_plants.c")
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    subprocess.run([compiler, *flags, str(source), "-o", str(made)], check=True)
    return made


@contextmanager
def planted(program, *words):
    """Run a plant; what it prepares has been done when this is entered."""
    command = [str(program), *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        try:
            if not running.stdout.readline():
                pytest.skip(f"this host does not give {words}")
            yield running.pid
        finally:
            running.kill()


def observe(target, seconds=SECONDS):
    with Stop() as stop:
        seen = summarise(Sampler(target, Settings(seconds, 0.05)).run(stop))
    return seen, {found.mechanism: found for found in findings(seen, read_known())}


def could(found):
    """Mechanisms that could matter, without what is the machine's doing."""
    return {name for name, f in found.items() if f.verdict == "could matter"} - {OTHERS}


def test_idle(program):
    with planted(program, "idle", 64 * MIB) as pid:
        seen, found = observe(process_target(ROOT, pid))
    assert could(found) == set()
    assert {f.verdict for f in found.values()} == {"cannot"}
    assert seen.processes[0].memory.resident > 64 * MIB
    assert seen.cpus_used < 0.05


def minor_faults(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


def test_fault_storm(program):
    with planted(program, "faults", 4 * MIB) as pid:
        before = minor_faults(pid)
        seen, found = observe(process_target(ROOT, pid))
        after = minor_faults(pid)
    assert could(found) == {FAULTS}
    assert found[SHOOTDOWNS].verdict == "cannot"
    # Counted by hand around the window; the window is a part of that.
    counted = seen.processes[0].minor_per_s * seen.seconds
    assert 0 < counted <= after - before
    # All of it was given back: it holds 4 MiB at most.
    untraced = seen.processes[0].untraced_per_s * seen.seconds
    assert untraced >= counted - (5 * MIB) // os.sysconf("SC_PAGESIZE")


def test_a_large_working_set_on_small_pages(program):
    with planted(program, "small", 128 * MIB) as pid:
        seen, found = observe(process_target(ROOT, pid))
    assert could(found) == {TLB}
    assert "MADV_NOHUGEPAGE" in " ".join(found[TLB].because)
    assert seen.processes[0].memory.huge == 0


def rollup(pid, key):
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    return 0


def test_huge_pages(program):
    with planted(program, "huge", 64 * MIB) as pid:
        huge = rollup(pid, "AnonHugePages")
        if huge < 62 * MIB:
            pytest.skip(f"of 64 MiB the host gave {huge >> 20} MiB huge pages")
        seen, found = observe(process_target(ROOT, pid))
        assert (
            huge <= seen.processes[0].memory.kinds["anonymous"][1] <= rollup(pid, "AnonHugePages")
        )
    assert could(found) == set()
    assert found[TLB].verdict == "cannot"
    assert "resident is on huge pages" in found[TLB].because[0]


@pytest.mark.hugetlb
def test_hugetlb_pages(program):
    if (pool_available(2 * MIB) or 0) < 33:
        pytest.skip("no 33 pages of 2 MiB in the pool")
    with planted(program, "hugetlb", 64 * MIB) as pid:
        seen, found = observe(process_target(ROOT, pid))
    assert could(found) == set()
    assert found[TLB].verdict == "cannot"
    assert seen.processes[0].memory.kinds["hugetlb"] == (64 * MIB, 64 * MIB)


@pytest.mark.multicore
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_unmap_storm(program):
    with planted(program, "unmap", 16384) as pid:
        seen, found = observe(process_target(ROOT, pid))
    assert FAULTS in could(found)
    assert could(found) <= {FAULTS, SHOOTDOWNS}
    if seen.host.shootdowns is None:
        assert found[SHOOTDOWNS].verdict == "unknown"
        return
    # Neighbours may keep its two threads from ever running at the same time: then there was
    # nothing to shoot down, and the kernel's own count says so.
    enough = seen.host.shootdowns * SHOOTDOWN_WORST_S >= 0.02 * seen.cpus_used
    assert (found[SHOOTDOWNS].verdict == "could matter") == enough
    assert enough or seen.waiting > 0.2 or (seen.host.steal or 0.0) > 0.02


def test_more_threads_than_cpus(program):
    with planted(program, "crowd", 3) as pid:
        seen, found = observe(process_target(ROOT, pid))
    assert could(found) == {OVERSUBSCRIPTION}
    assert len(seen.cpus) == 1
    assert seen.processes[0].running > 2.5


@contextmanager
def quota(pid):
    """Hold a process to a fiftieth of a CPU, which even a busy machine would give it."""
    for parent, file, text in (
        ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "2000"),
        ("/sys/fs/cgroup", "cpu.max", "2000 100000"),
    ):
        folder = Path(parent) / f"pagestorm-test-{os.getpid()}"
        if not (Path(parent) / "cgroup.procs").exists():
            continue
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            try:
                (folder / file).write_text(text)
                (folder / "cgroup.procs").write_text(str(pid))
            except OSError:
                continue
            yield folder
            return
        finally:
            for member in (folder / "cgroup.procs").read_text().split():
                os.kill(int(member), 9)
            for _ in range(50):
                try:
                    folder.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)
    pytest.skip("no control group can be made here")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="makes a control group")
def test_throttled_group(program):
    with planted(program, "spin") as pid, quota(pid) as folder:
        seen, found = observe(process_target(ROOT, pid))
        assert could(found) == {THROTTLING}
        assert seen.group.quota == 0.02
        group, again = observe(group_target(ROOT, str(folder)), 1.0)
    assert could(again) == {THROTTLING}
    assert [process.pid for process in group.processes] == [pid]


def test_a_target_that_ends_is_a_result(capsys, monkeypatch):
    with subprocess.Popen(["sleep", "100"]) as running:
        look = Sampler.run

        def and_end(sampler, stop):
            """The window has begun, however long the way there took."""
            threading.Timer(1.0, running.kill).start()
            return look(sampler, stop)

        monkeypatch.setattr(Sampler, "run", and_end)
        assert main(["observe", "--pid", str(running.pid), "--for", "60s"]) == 0
    assert "ended after" in capsys.readouterr().out


def test_the_cost_of_looking_is_stated(program, capsys, tmp_path):
    scenario = tmp_path / "scenario.toml"
    with planted(program, "idle", MIB) as pid:
        words = ["--pid", str(pid), "--for", "1s", "-o", str(scenario)]
        assert main(["observe", *words]) == 0
    printed = capsys.readouterr().out
    assert "% of a CPU" in printed
    assert str(scenario) in printed
    assert scenario.exists()
