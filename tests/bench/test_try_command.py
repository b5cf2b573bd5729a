"""``bench try`` from the outside: verdicts, failures, interrupts, files. Commands take no time."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyperf
import pytest

from bench.results import unknown_keys

ROOT = Path(__file__).parents[2]
# It prints twice the rate where it is told of two threads: a busy machine cannot hide that.
RATE = 'echo "rate: $((${OMP_NUM_THREADS:-1} * 100)) op/s"; sleep 0.03'
BY_RATE = ("--metric", r"rate: (\d+ op/s)", "--higher-is-better")


def start(*words, cwd=ROOT, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "bench", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def bench(*words, **options):
    process = start(*words, **options)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def trial(folder, *words, command=("sh", "-c", RATE)):
    return bench("try", "-o", str(folder), *words, "--", *command)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Folder and document of a trial in which one remedy doubles the rate."""
    folder = tmp_path_factory.mktemp("try") / "out"
    flags = ("--remedies", "threads:2,none", "--rounds", "8", "--json", *BY_RATE)
    code, out, err = trial(folder, *flags)
    assert code == 0, err
    return folder, json.loads(out)


def test_a_planted_gain_is_found(done):
    _, found = done
    assert found["best"] == "threads:2"
    by_name = {one["name"]: one for one in found["remedies"]}
    decision = by_name["threads:2"]["decision"]
    assert (decision["verdict"], decision["n"]) == ("helps", found["rounds"])
    assert decision["ratio"] == pytest.approx(0.5)
    assert by_name["threads:2"]["median"] == 200
    assert by_name["none"]["decision"]["verdict"] == "neutral"
    assert by_name["none"]["effect"]["reason"] == "changes nothing"
    assert found["command"].startswith("sh -c ")


def test_rounds_hold_everybody_once_and_in_changing_order(done):
    folder, _ = done
    lines = [json.loads(row) for row in (folder / "journal.ndjson").read_text().splitlines()]
    runs = [line for line in lines if line["kind"] == "sample"]
    assert [line["block"] for line in runs[:2]] == ["first", "pilot"]
    orders = {}
    for line in runs:
        if line["block"] == "verdict":
            orders.setdefault(line["round"], []).append(line["mix"])
    assert all(sorted(order) == ["baseline", "none", "threads:2"] for order in orders.values())
    assert len(set(map(tuple, orders.values()))) > 1


def test_nobody_looks_at_the_runs_that_decide(done):
    folder, _ = done
    lines = [json.loads(row) for row in (folder / "journal.ndjson").read_text().splitlines()]
    runs = [line for line in lines if line["kind"] == "sample"]
    looked_at = {run["block"] for run in runs if run["run"]["looks"]}
    assert looked_at == {"first", "pilot"}


def test_the_pyperf_file_has_one_value_a_run(done):
    folder, found = done
    suite = pyperf.BenchmarkSuite.load(str(folder / "pyperf.json"))
    assert set(suite.get_benchmark_names()) == {"sh/baseline", "sh/none", "sh/threads:2"}
    for benchmark in suite.get_benchmarks():
        assert benchmark.get_nrun() == found["rounds"]
        assert benchmark.get_nvalue() == found["rounds"]
        metadata = benchmark.get_runs()[0].get_metadata()
        assert unknown_keys(metadata) == []
        assert metadata["ps_remedy"] == benchmark.get_name().partition("/")[2]
    # A rate becomes seconds for one of what is counted.
    assert set(suite.get_benchmark("sh/baseline").get_values()) == {0.01}
    assert set(suite.get_benchmark("sh/threads:2").get_values()) == {0.005}


def test_the_table_can_be_printed_again(done):
    folder, _ = done
    code, out, _ = bench("verdict", str(folder))
    assert code == 0
    assert "threads:2 helps" in out
    assert "OMP_NUM_THREADS=2 and 10 more variables" in out
    code, out, _ = bench("verdict", "--dead-band", "5%", "--json", str(folder))
    assert json.loads(out)["dead_band"] == 0.05


def test_other_commands_say_whose_folder_it_is(done):
    folder, _ = done
    for words in (("fit", str(folder)), ("run", "--resume", str(folder))):
        code, _, err = bench(*words)
        assert code == 2
        assert "Traceback" not in err
    code, _, err = bench("try", "--resume", str(folder))
    assert code == 0


def test_a_remedy_under_which_it_fails_is_a_result(tmp_path):
    job = 'if [ -n "$OMP_NUM_THREADS" ]; then echo "not with so few" >&2; exit 4; fi'
    flags = ("--remedies", "threads:1,none", "--rounds", "8")
    code, out, err = trial(tmp_path / "out", *flags, command=("sh", "-c", job))
    assert code == 0, err
    assert "threads:1: exit code 4 (not with so few), in 2 of 2 runs" in " ".join(out.split())
    kept = tmp_path / "out" / "output" / "threads:1.failed.err"
    assert kept.read_text() == "not with so few\n"


def test_a_command_that_fails_by_itself_ends_the_trial(tmp_path):
    job = "echo oops >&2; exit 3"
    code, out, err = trial(tmp_path / "out", "--remedies", "none", command=("sh", "-c", job))
    assert (code, out) == (1, "")
    assert "exit code 3, in 2 of 2 runs" in err
    assert "oops" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "no command"),
        (("--", "no-such-command"), "no-such-command"),
        (("--remedies", "fast", "--", "true"), "threads:K"),
        (("--metric", "abc", "--", "true"), "one group"),
        (("--metric", r"x(\d)", "--", "echo", "hello"), "hello"),
        (("--rounds", "3", "--", "true"), "--rounds"),
        (("--remedies", "bind:0", "--", "true"), "no remedy applies"),
        (("--higher-is-better", "--", "true"), "not better"),
        (("--stdin", "/no/such/file", "--", "cat"), "/no/such/file"),
        (("--budget", "1s", "--remedies", "none", "--", "sleep", "0.2"), "--budget"),
        (("--budget", "0", "--", "true"), "--budget 0"),
        (("--timeout", "0", "--", "true"), "--timeout 0"),
        (("--remedies", "", "--", "true"), "unknown remedy"),
        (("--remedies", "threads:²", "--", "true"), "not a count"),
        (("--", ""), "no command"),
    ],
)
def test_bad_requests_name_what_is_wrong(words, told, tmp_path):
    code, _, err = bench("try", *words, cwd=tmp_path)
    assert code == 2
    assert told in err
    assert "Traceback" not in err


def test_processor_time_leaves_sleep_out(tmp_path):
    flags = ("--remedies", "threads:1", "--rounds", "6", "--json", "--metric", "cpu")
    job = 'test -n "$OMP_NUM_THREADS" || { i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; }'
    code, out, err = trial(tmp_path / "out", *flags, command=("sh", "-c", f"{job}; sleep 0.05"))
    assert code == 0, err
    found = json.loads(out)
    assert found["best"] == "threads:1"
    assert found["remedies"][0]["median"] < 0.05


def test_no_kernel_is_asked_for(tmp_path, monkeypatch):
    """A command is measured from outside: the extension need not be built."""
    monkeypatch.setenv("PAGESTORM_EXTENSION", str(tmp_path / "not built"))
    code, _, err = trial(tmp_path / "out", "--remedies", "none", "--rounds", "6", command=("true",))
    assert code == 0, err
    assert "sleep" not in (tmp_path / "out" / "plan.toml").read_text()


def test_a_dry_run_runs_nothing(tmp_path):
    mark = tmp_path / "ran"
    words = ("--dry-run", "--remedies", "threads:3,bind:9", "--", "touch", str(mark))
    code, out, _ = bench("try", *words, cwd=tmp_path)
    assert code == 0
    assert "OMP_NUM_THREADS=3" in out
    assert "bind:9" in out
    assert list(tmp_path.iterdir()) == []


def journal_rows(folder):
    path = folder / "journal.ndjson"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_trial_goes_on_after_an_interrupt_or_a_kill(tmp_path, number):
    folder = tmp_path / "out"
    words = ("--remedies", "threads:2", "--rounds", "6", *BY_RATE)
    slower = f"{RATE}; sleep 0.2"  # there must be something left to interrupt
    process = start("try", "-o", str(folder), *words, "--", "sh", "-c", slower)
    deadline = time.monotonic() + 60
    while len(journal_rows(folder)) < 8 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    before = journal_rows(folder)
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "pilot only, no verdict yet" in out
        assert f"--resume {folder}" in out + err
    code, out, err = bench("try", "--resume", str(folder), "--json")
    assert code == 0, err
    assert json.loads(out)["best"] == "threads:2"
    after = journal_rows(folder)
    assert after[: len(before) - 1] == before[:-1]
    rounds = [json.loads(row) for row in after if '"kind": "block"' in row]
    closed = [(one["block"], one["round"]) for one in rounds if one["status"] == "ok"]
    assert len(set(closed)) == len(closed), "nothing that closed was run again"


def test_another_environment_is_another_trial(done, monkeypatch):
    folder, _ = done
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=1")
    code, _, err = bench("try", "--resume", str(folder))
    assert code == 2
    assert "GLIBC_TUNABLES" in err


def test_output_is_kept_in_files_or_shown(done, tmp_path):
    folder, _ = done
    assert (folder / "output" / "threads:2.out").read_text() == "rate: 200 op/s\n"
    flags = ("--remedies", "none", "--rounds", "6", "--show-output", "--json")
    code, out, err = trial(tmp_path / "out", *flags, command=("echo", "hello there"))
    assert code == 0
    assert json.loads(out)["metric"] == "time"
    assert err.count("hello there") > 12
    for benchmark in pyperf.BenchmarkSuite.load(str(tmp_path / "out/pyperf.json")).get_benchmarks():
        for one in benchmark.get_runs():
            assert one.values == (one.get_metadata()["ps_wall_s"],)


def test_a_command_that_never_ends_takes_no_more_than_the_budget(tmp_path):
    began = time.monotonic()
    flags = ("--budget", "1s", "--remedies", "none")
    code, _, err = trial(tmp_path / "out", *flags, command=("sleep", "1000"))
    assert code == 1
    assert "did not end within 1 s" in err
    assert "--budget" in err
    assert time.monotonic() - began < 60, "and is not tried twice"


def test_a_remedy_that_makes_it_slow_is_given_up_for_its_time(tmp_path):
    """Of thirty times the usual time the budget has no room: one round is enough to know."""
    job = '[ -z "$OMP_NUM_THREADS" ] || exec sleep 6'
    words = ("--remedies", "threads:1,none", "--budget", "25s", "--stdin", __file__, "--json")
    code, out, err = trial(tmp_path / "out", *words, command=("sh", "-c", job))
    assert code == 0, err
    rows = [json.loads(row) for row in journal_rows(tmp_path / "out")]
    slow = [row for row in rows if row["kind"] == "sample" and row["mix"] == "threads:1"]
    assert len(slow) == 1
    found = json.loads(out)
    by_name = {one["name"]: one["decision"]["verdict"] for one in found["remedies"]}
    assert by_name["threads:1"] == "not tested"
    assert by_name["none"] != "not tested"
    assert found["effects"]["threads:1"] == "too few runs to tell"
    (untested,) = found["untested"]
    minutes = int(untested["remedy"].split("--budget ")[1].split("m ")[0])
    assert 60 * minutes > 18 * 6, "time for a pilot of it and for runs that decide"
    assert f"--stdin {__file__}" in untested["remedy"]
