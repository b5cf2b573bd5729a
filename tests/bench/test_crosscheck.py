"""``bench crosscheck`` matches the work, keeps every pair, and survives what peers do."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bench import cli, crosscheck, peerrun, spmvpair
from bench.commands.crosscheck import summary
from bench.errors import HostError, PagestormError, UsageError
from bench.peer import Job, ToolError
from bench.peers import peers
from bench.spawn import Outcome

LIKWID = """Test: copy_avx
Group: 0 Thread 0 Global Thread 0 running on hwthread 0 - Vector length 8000000 Offset 0
Time:			2.000000e-01 sec
Iterations per thread:	20
Data volume (Byte):	2560000000
"""
ONE = (1,)


def program(folder, name, body):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def likwid(tmp_path, monkeypatch):
    """A likwid-bench that prints the text above and holds no memory worth a look."""
    found = program(tmp_path, "likwid-bench", f"cat <<'END'\n{LIKWID}END")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(peerrun, "_huge_share", lambda process, n_bytes, deadline: 0.0)
    monkeypatch.setattr(crosscheck.worker, "pingpong", lambda cpus: 90.0)
    return found


def worker_that_does(useful_bytes, seconds, requests):
    def run(request, timeout_s):
        requests.append(request)
        evidence = {"after": {"known": 100, "matching": 100}}
        actor = {"useful_bytes": useful_bytes, "seconds": seconds, "evidence": evidence, "ops": 0}
        return Outcome({"actors": [actor]}, 0.0, "")

    return run


def compared(names, settings):
    results = []
    crosscheck.compare(crosscheck.chosen(names), settings, results)
    return results


def test_every_round_is_one_pair_on_their_cpus_with_their_work(likwid, monkeypatch):
    requests = []
    monkeypatch.setattr(crosscheck, "run_worker", worker_that_does(128_000_000, 0.005, requests))
    settings = crosscheck.Settings(rounds=8, threads=ONE, n_bytes=128_000_000)
    (result,) = compared(["likwid:copy_avx"], settings)
    assert len(result.pairs) == 8
    assert {pair.state for pair in result.pairs} == {"one"}
    assert {pair.ours_first for pair in result.pairs} == {True, False}
    assert all(request["place"] == [[0]] for request in requests)
    # Half a second at 12.8 GB/s, in passes of 128 MB.
    assert all(request["fixed_passes"] == 50 for request in requests)
    assert all("/base/1t/" in request["mix"] for request in requests)
    assert all("joined=True" in request["mix"] for request in requests)
    row = summary(result)
    assert row["ratio"] == pytest.approx(128e6 / 0.005 / 12.8e9) == pytest.approx(2.0)
    assert row["low"] == row["high"] == pytest.approx(2.0)
    assert row["finding"] == "ours faster"
    json.dumps(row)


def test_threads_that_wait_for_nobody_are_compared_with_ours_that_do_not(likwid, monkeypatch):
    requests = []
    monkeypatch.setattr(crosscheck, "run_worker", worker_that_does(128_000_000, 0.005, requests))
    alone = replace(peers()["likwid"], joins=False)
    settings = crosscheck.Settings(rounds=1, threads=ONE)
    crosscheck.compare([(alone, alone.test("copy_avx"))], settings, [])
    (request,) = requests
    assert request["fixed_passes"] == 0
    assert request["window_s"] == settings.seconds
    assert "joined" not in request["mix"]


def test_unequal_work_is_an_error_and_no_ratio(likwid, monkeypatch):
    monkeypatch.setattr(crosscheck, "run_worker", worker_that_does(100_000_000, 0.005, []))
    with pytest.raises(PagestormError, match="100000000 bytes"):
        compared(["copy_avx"], crosscheck.Settings(threads=ONE))


def test_mixed_or_unknown_pages_are_skipped_with_the_reason(likwid, monkeypatch):
    for share, reason in ((0.4, "40%"), (None, "before /proc showed")):
        monkeypatch.setattr(peerrun, "_huge_share", lambda process, n, deadline, s=share: s)
        with pytest.raises(HostError, match=reason):
            compared(["copy_avx"], crosscheck.Settings(threads=ONE))


def test_a_pair_on_other_pages_than_before_does_not_count(likwid, monkeypatch):
    monkeypatch.setattr(crosscheck, "run_worker", worker_that_does(128_000_000, 0.005, []))
    shares = iter([0.0, 0.0, 1.0, 0.3, 0.0])
    monkeypatch.setattr(peerrun, "_huge_share", lambda process, n, deadline: next(shares))
    (result,) = compared(["copy_avx"], crosscheck.Settings(rounds=4, threads=ONE))
    assert (len(result.pairs), result.other_pages) == (2, 2)


def test_a_peer_that_fails_later_keeps_its_pairs_and_the_others_go_on(
    likwid, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(crosscheck, "run_worker", worker_that_does(128_000_000, 0.005, []))
    body = f"echo >> {tmp_path}/calls; [ $(wc -l < {tmp_path}/calls) -le 4 ] || exit 7\ncat <<'END'"
    program(tmp_path, "likwid-bench", f"{body}\n{LIKWID}END")
    assert cli.main(["crosscheck", "copy_avx", "--threads", "1", "--rounds", "5"]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "failed on the way" in printed
    assert "ended with 7" in printed
    assert "2.000 [?, ?]" in printed, "two pairs: version, trial and two rounds"


def test_an_interrupt_prints_what_is_known(likwid, monkeypatch, capsys):
    calls = []

    def interrupted(request, timeout_s):
        calls.append(request)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return worker_that_does(128_000_000, 0.005, [])(request, timeout_s)

    monkeypatch.setattr(crosscheck, "run_worker", interrupted)
    assert cli.main(["crosscheck", "copy_avx", "--threads", "1"]) == 130
    assert "2.000" in capsys.readouterr().out


def test_without_other_tools_the_way_out_is_named(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert cli.main(["crosscheck", "likwid", "mbw", "chase"]) == 3
    message = capsys.readouterr().err
    assert "apt install likwid" in message
    assert "apt install mbw" in message
    assert "C compiler" in message


def test_the_list_names_every_peer_and_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert cli.main(["crosscheck", "--list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["peer"] for row in rows] == list(peers())
    assert all(row["here"] or row["way_out"] for row in rows)
    assert cli.main(["crosscheck", "mbw", "--list"]) == 0
    assert "apt install mbw" in capsys.readouterr().out


def test_wrong_arguments_are_usage_errors():
    with pytest.raises(UsageError, match="load_axv"):
        crosscheck.chosen(["load_axv"])
    for words in (["--threads", "one"], ["--rounds", "0"], ["--tool", "mbw"], ["--tool", "mwb=x"]):
        assert cli.main(["crosscheck", *words]) == 2


def test_names_choose_a_peer_or_a_test_of_it():
    def names(*words):
        return [f"{peer.name}:{test.name}" for peer, test in crosscheck.chosen(words)]

    assert names("mbw") == ["mbw:memcpy", "mbw:dumb"]
    assert names("sysbench:read", "dumb") == ["sysbench:read", "mbw:dumb"]
    assert "lmbench:lat_mem_rd" not in names()
    assert names("lmbench:lat_mem_rd") == ["lmbench:lat_mem_rd"]


def test_too_few_pairs_give_no_interval():
    result = crosscheck.Comparison("chase", "loads", 1, unit="load")
    result.pairs = [crosscheck.Pair(2e7, 1e7, True, "one")] * 5
    row = summary(result)
    assert math.isclose(row["ratio"], 2.0)
    assert "low" not in row
    assert row["finding"] == "cannot tell"


@pytest.mark.parametrize(
    ("texts", "share"),
    [
        (["Rss:     1000 kB\nPss: 1 kB\nAnonHugePages:       0 kB\n"], 0.0),
        (["Rss:     1000 kB\nAnonHugePages:     750 kB\n"], 0.75),
        (["Rss: 500 kB\nAnonHugePages: 500 kB\n", "Rss: 500 kB\nAnonHugePages: 0 kB\n"], 0.5),
        (["Rss:     1000 kB\n", ""], None),
        (["Rss:        0 kB\nAnonHugePages:       0 kB\n"], None),
    ],
)
def test_pages_are_a_share_of_what_all_processes_hold(texts, share):
    assert peerrun.parse_rollups(texts) == share


def test_a_peer_has_the_c_locale_its_cpus_and_no_input(tmp_path):
    cpu = min(os.sched_getaffinity(0))
    found = program(tmp_path, "tool", "echo $LC_ALL $MORE; taskset -cp $$; cat")
    text, _ = peerrun.watched([str(found)], 0, {cpu}, {"MORE": "yes"})
    assert text.splitlines()[0] == "C yes"
    assert text.splitlines()[1].endswith(f": {cpu}")


def test_a_peer_that_hangs_is_ended_with_its_children(tmp_path):
    found = program(tmp_path, "tool", f"sleep 1000 & echo $! > {tmp_path}/child; wait")
    began = time.monotonic()
    with pytest.raises(ToolError, match="did not end within"):
        peerrun.watched([str(found)], 1 << 40, {0}, {}, timeout_s=0.5)
    assert time.monotonic() - began < 60
    child = int((tmp_path / "child").read_text())
    for _ in range(100):
        if not gone(child):
            time.sleep(0.05)
    assert gone(child)


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_how_a_peer_failed_is_said(tmp_path):
    crash = program(tmp_path, "crash", "echo broken; kill -SEGV $$")
    with pytest.raises(ToolError, match=r"SIGSEGV: broken"):
        peerrun.watched([str(crash)], 0, {0}, {})
    none = program(tmp_path, "none", "exit 3")
    with pytest.raises(ToolError, match="ended with 3: it said nothing"):
        peerrun.watched([str(none)], 0, {0}, {})
    (tmp_path / "data").write_text("no program")
    with pytest.raises(HostError, match="no program that can be run"):
        peerrun.ready(peers()["mbw"], tmp_path, str(tmp_path / "data"))


def test_an_interrupt_leaves_no_peer_behind(tmp_path):
    found = program(tmp_path, "tool", f"echo $$ > {tmp_path}/pid; exec sleep 1000")
    code = f"from bench import peerrun\npeerrun.watched([{str(found)!r}], 1 << 40, {{0}}, {{}})\n"
    driver = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert driver.poll() is None
        time.sleep(0.05)
    driver.send_signal(signal.SIGINT)
    driver.wait(60)
    assert gone(int((tmp_path / "pid").read_text()))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="not installed: gcc")
def test_the_independent_chase_compiles_and_walks(tmp_path):
    made = peerrun.ready(peers()["chase"], tmp_path)
    cpu = min(os.sched_getaffinity(0))
    done = subprocess.run(
        [made.program, str(cpu), str(1 << 20), "10000"], capture_output=True, text=True, check=True
    )
    assert float(done.stdout.split()[0]) > 0


@pytest.mark.parametrize("library", ["scipy", "mkl"])
def test_a_librarys_product_is_ours_on_the_same_arrays(library):
    """The pair itself refuses a product that differs."""
    peer = peers()[library]
    assert peer.missing is not None
    if why := peer.missing():
        pytest.skip(why)
    cpu = min(os.sched_getaffinity(0))
    for test in peer.tests:
        job = Job(8 << 20, 1, (cpu,), 3, 0.01)
        reading, _ = peerrun.Ready(peer, "", "").run(test, job)
        assert reading.rate > 0
        assert reading.ours > 0
    with pytest.raises(ToolError, match="printed"):
        spmvpair.parse('{"ours": 1, "th', peer.tests[0], job)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mbw:memcpy", "sysbench:read", "likwid:load_avx"])
def test_a_peer_that_is_here_can_be_compared_with(name, capsys):
    peer = peers()[name.partition(":")[0]]
    if not any(shutil.which(found) for found in peer.programs):
        pytest.skip(f"not installed: {peer.programs[0]}; {peer.install}")
    words = ["crosscheck", name, "--threads", "1", "--rounds", "1", "--size", "64MiB", "--json"]
    assert cli.main(words) == 0
    (row,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert row["skipped"] == ""
    assert row["ratio"] > 0
