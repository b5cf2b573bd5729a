"""``bench crosscheck`` reads other tools rightly, matches the work, and keeps every pair."""

import json
import math
import shutil

import pytest

from bench import cli, crosscheck, othertools
from bench.commands.crosscheck import summary
from bench.errors import HostError, PagestormError, UsageError
from bench.spawn import Outcome

LIKWID = """Allocate: Process running on hwthread 0 (Domain N) - Vector length 8000000/64000000
--------------------------------------------------------------------------------
Test: copy_avx
Using 2 threads
Group: 0 Thread 0 Global Thread 0 running on hwthread 4 - Vector length 4000000 Offset 0
Group: 0 Thread 1 Global Thread 1 running on hwthread 6 - Vector length 4000000 Offset 4000000
Cycles:			379483000
Time:			2.000000e-01 sec
Iterations:		40
Iterations per thread:	20
Size (Byte):		128000000
Data volume (Byte):	2560000000
MByte/s:		12800.00
"""


def test_a_reading_has_the_bytes_of_all_threads():
    reading = othertools.parse_likwid(LIKWID, 0.0)
    assert reading.rate == pytest.approx(12.8e9)
    assert reading.pass_bytes == 128_000_000
    assert reading.cpus == (4, 6)


def test_what_likwid_does_not_print_is_named():
    with pytest.raises(othertools.ToolError, match="Data volume"):
        othertools.parse_likwid("Time: 1.0 sec\n")


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Rss:     1000 kB\nPss: 1 kB\nAnonHugePages:       0 kB\n", 0.0),
        ("Rss:     1000 kB\nAnonHugePages:     750 kB\n", 0.75),
        ("Rss:     1000 kB\n", None),
        ("Rss:        0 kB\nAnonHugePages:       0 kB\n", None),
    ],
)
def test_pages_are_a_share_of_what_is_resident(text, share):
    assert othertools.parse_rollup(text) == share


@pytest.fixture
def likwid(tmp_path, monkeypatch):
    """A likwid-bench that prints the text above and holds no memory worth a look."""
    program = tmp_path / "likwid-bench"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{LIKWID}END\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(othertools, "_huge_share", lambda process, n_bytes: 0.0)
    monkeypatch.setattr(crosscheck.worker, "pingpong", lambda cpus: 90.0)
    return program


def worker_that_does(useful_bytes, seconds, requests):
    def run(request, timeout_s):
        requests.append(request)
        evidence = {"after": {"known": 100, "matching": 100}}
        actor = {"useful_bytes": useful_bytes, "seconds": seconds, "evidence": evidence}
        return Outcome({"actors": [actor]}, 0.0, "")

    return run


def test_every_round_is_one_pair_on_their_cpus_with_their_work(likwid, monkeypatch):
    requests = []
    monkeypatch.setattr(crosscheck, "run_worker", worker_that_does(128_000_000, 0.005, requests))
    settings = crosscheck.Settings(rounds=7, threads=(2,), n_bytes=128_000_000)
    (result,) = crosscheck.compare(("copy_avx",), settings)
    assert len(result.pairs) == 7
    assert {pair.state for pair in result.pairs} == {"near"}
    assert {pair.ours_first for pair in result.pairs} == {True, False}
    assert all(request["place"] == [[4, 6]] for request in requests)
    assert all(request["fixed_passes"] == settings.iterations for request in requests)
    assert all("/base/2t/" in request["mix"] for request in requests)
    assert all("joined=True" in request["mix"] for request in requests)
    row = summary(result)
    assert row["ratio"] == pytest.approx(128e6 / 0.005 / 12.8e9) == pytest.approx(2.0)
    assert row["low"] == row["high"] == pytest.approx(2.0)
    json.dumps(row)


def test_unequal_work_is_an_error_and_no_ratio(likwid, monkeypatch):
    monkeypatch.setattr(crosscheck, "run_worker", worker_that_does(100_000_000, 0.005, []))
    with pytest.raises(PagestormError, match="100000000 bytes"):
        crosscheck.compare(("copy_avx",), crosscheck.Settings(threads=(2,)))


def test_mixed_or_unknown_pages_are_skipped_with_the_reason(likwid, monkeypatch):
    for share, reason in ((0.4, "40%"), (None, "does not show")):
        monkeypatch.setattr(othertools, "_huge_share", lambda process, n_bytes, s=share: s)
        with pytest.raises(HostError, match=reason):
            crosscheck.compare(("copy_avx",), crosscheck.Settings(threads=(2,)))


def test_without_other_tools_the_way_out_is_named(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert cli.main(["crosscheck"]) == 3
    message = capsys.readouterr().err
    assert "apt install likwid" in message
    assert "C compiler" in message


def test_wrong_arguments_are_usage_errors():
    with pytest.raises(UsageError, match="load_axv"):
        crosscheck.chosen(["load_axv"])
    assert cli.main(["crosscheck", "--threads", "one"]) == 2
    assert cli.main(["crosscheck", "--rounds", "0"]) == 2


def test_too_few_pairs_give_no_interval():
    result = crosscheck.Comparison("chase", 1, unit="load")
    result.pairs = [crosscheck.Pair(2e7, 1e7, True, "one")] * 5
    row = summary(result)
    assert math.isclose(row["ratio"], 2.0)
    assert "low" not in row


@pytest.mark.skipif(shutil.which("gcc") is None, reason="not installed: gcc")
def test_the_independent_chase_compiles_and_walks():
    with othertools.own_chase() as own:
        reading = own.run(min(crosscheck.os.sched_getaffinity(0)), 1 << 20, 10_000)
    assert reading.rate > 0
