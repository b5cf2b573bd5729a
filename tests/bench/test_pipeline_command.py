"""``bench pipeline`` from the outside: real runs of a small pipeline, files, tables, JSON."""

import json
import math

import pytest
from test_remedy_command import bench

from analysis import calibration
from bench.commands import pipeline
from bench.journal import read_state

LINE = """
items = 2
in_flight = 2
dead_band = "5%"

[[pool]]
name = "pw"
tokens = 2

[[pool]]
name = "gpu"
tokens = 1

[[task]]
name = "mv"
kernel = "scan[op=read]"
size = "1MiB"
passes = 4
takes = "pw"
puts = "pw"

[[task]]
name = "gpu"
after = "mv"
seconds = "4ms"
threads = 0
takes = "gpu"
puts = "gpu"

[[task]]
name = "join"
after = "gpu"
seconds = "1ms"
whole = true

[timeline]
SYNTH_START = "mv.start"
SYNTH_END = "mv.end"
"""


@pytest.fixture
def line(tmp_path):
    path = tmp_path / "line.toml"
    path.write_text(LINE)
    return path


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """One run that several tests look at."""
    folder = tmp_path_factory.mktemp("pipeline")
    path = folder / "line.toml"
    path.write_text(LINE)
    out = folder / "out"
    done = bench(
        *("pipeline", "run", str(path), "--remedy", "mutex:mv", "--samples", "6"),
        *("-o", str(out), "--json"),
    )
    assert done.returncode == 0, done.stderr
    return out, json.loads(done.stdout)


def test_subcommands_that_are_there_are_offered():
    assert list(pipeline.available())[:2] == ["run", "check"]
    done = bench("pipeline", "--help")
    assert done.returncode == 0
    assert all(f"{name} " in done.stdout for name in pipeline.available())


def test_a_run_says_seconds_per_job_and_where_they_go(ran):
    _, report = ran
    base, locked = report["settings"]
    assert (base["name"], locked["name"]) == ("as it is", "mutex:mv")
    found = base["throughput"]
    assert found["of"] == "samples"
    assert found["low"] <= found["seconds"] <= found["high"]
    # Two items of a job go one after the other through a GPU that each holds for 4 ms.
    assert found["seconds"] >= 0.008
    assert {task["name"] for task in base["tasks"]} == {"mv", "gpu", "join"}
    gpu = next(task for task in base["tasks"] if task["name"] == "gpu")
    assert gpu["median_s"] >= gpu["alone_s"] == 0.004
    assert next(task for task in base["tasks"] if task["name"] == "mv")["alone_s"] > 0
    used = {pool["name"]: pool["used"] for pool in base["pools"]}
    assert 0 < used["gpu"] <= 1
    assert "interlock" in {pool["name"] for pool in locked["pools"]}
    assert locked["against"]["n"] == 6


def test_the_result_is_a_file_of_pyperf_with_seconds_per_job(ran):
    import pyperf

    folder, report = ran
    suite = pyperf.BenchmarkSuite.load(str(folder / "pyperf.json"))
    job = next(
        b for b in suite if "gpu_to_join" in b.get_name() and "interlock" not in b.get_name()
    )
    assert job.get_nrun() == 6
    assert job.median() == pytest.approx(report["settings"][0]["throughput"]["seconds"])


def test_samples_keep_their_log_and_filling_is_left_out(ran):
    folder, _ = ran
    lines = [x for xs in read_state(folder).samples.values() for x in xs if "log" in x]
    assert len(lines) == 12
    assert all(x["log"]["lost"] == 0 and x["actors"][-1]["passes"] >= 4 for x in lines)


def test_the_timeline_pairs_up(ran):
    folder, report = ran
    text = (folder / "timeline-as-it-is.log").read_text()
    assert str(folder / "timeline-as-it-is.log") in report["timelines"].values()
    rows = [row.split(",", 4) for row in text.splitlines()]
    starts = [row for row in rows if row[2] == "TASK_START"]
    ends = {(row[3], row[4]) for row in rows if row[2] == "TASK_END"}
    assert {(row[3], row[4]) for row in starts} == ends
    assert len(starts) >= 6 * 5
    assert any(row[2] == "SYNTH_END" for row in rows)


def test_a_finished_run_is_not_measured_again(ran):
    folder, report = ran
    done = bench("pipeline", "run", "--resume", str(folder), "--json")
    assert done.returncode == 0
    assert "nothing is left" in done.stderr
    assert json.loads(done.stdout)["settings"] == report["settings"]


def test_a_resumed_run_keeps_to_its_plan(ran):
    done = bench("pipeline", "run", "--resume", str(ran[0]), "--set", "pw=1")
    assert done.returncode == 2
    assert "keeps to its plan" in done.stderr


def test_a_result_is_printed_again_and_belongs_to_its_command(ran):
    folder, report = ran
    again = bench("verdict", "--json", str(folder))
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["settings"] == report["settings"]
    other = bench("pipeline", "check", "--resume", str(folder))
    assert other.returncode == 2
    assert f"pipeline run --resume {folder}" in other.stderr


def test_a_comparison_names_settings_not_mixes(ran):
    done = bench("compare", str(ran[0]), str(ran[0]))
    assert done.returncode == 0, done.stderr
    assert "line, mutex:mv" in done.stdout
    assert "script=" not in done.stdout


def test_a_dry_run_names_settings_not_mixes(line):
    done = bench("pipeline", "run", str(line), "--sweep", "pw=1..2", "--dry-run")
    assert done.returncode == 0
    assert "pw=1: " in done.stdout
    assert "script=" not in done.stdout


def planned(line, *flags, command="run"):
    done = bench("pipeline", command, str(line), *flags, "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_budget_sheds_settings_from_the_end_then_tasks_alone(line):
    sweep = ("--sweep", "pw=1..4", "--jobs", "40")
    everything = planned(line, *sweep)
    assert not everything["shed"]
    enough = everything["estimate_s"] + 1
    assert planned(line, *sweep, "--budget", f"{enough}s")["digest"] == everything["digest"]
    some = planned(line, *sweep, "--budget", f"{enough * 0.6}s")
    assert [skip["what"] for skip in some["shed"]] == ["pw=3", "pw=4"]
    assert [block["id"] for block in some["blocks"]] == ["pipeline", "alone"]
    assert some["rounds"] == everything["rounds"]
    assert some["estimate_s"] <= enough * 0.6
    assert not some["notes"]
    few = planned(line, *sweep, "--budget", "1s")
    assert [block["id"] for block in few["blocks"]] == ["pipeline"]
    assert few["shed"][0]["what"] == "tasks alone"
    assert "over the budget of 1s" in few["notes"][0]


def test_a_check_keeps_its_tasks_alone_within_any_budget(line):
    few = planned(line, "--sweep", "pw=1..2", "--budget", "1s", command="check")
    assert [block["id"] for block in few["blocks"]] == ["pipeline", "alone"]
    assert [skip["what"] for skip in few["shed"]] == ["pw=2"]
    assert "and tasks alone" in few["notes"][0]


def test_jobs_that_a_budget_has_room_for_do_fit(line):
    flags = ("--set", "gpu.seconds=100ms", "--samples", "2", "--budget", "10s")
    (note,) = planned(line, *flags, "--jobs", "200")["notes"]
    jobs = note.partition("--jobs ")[2].split()[0]
    assert not planned(line, *flags, "--jobs", jobs)["notes"]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--set", "px=1"), "known: "),
        (("--set", "pw=0"), "standstill"),
        (("--remedy", "mutex:nobody"), "nobody"),
        (("--sweep", "pw"), "NAME=VALUE"),
        (("--samples", "0"), "one sample"),
        (("--jobs", "0"), "--jobs is 1 to"),
        (("--jobs", "999999999"), "--jobs is 1 to"),
    ],
)
def test_faults_are_said_before_anything_runs(line, tmp_path, flags, says):
    done = bench("pipeline", "run", str(line), *flags, "-o", str(tmp_path / "out"))
    assert done.returncode == 2
    assert says in done.stderr
    assert not (tmp_path / "out").exists()


def test_remedy_says_what_to_use_for_a_pipeline(line):
    done = bench("remedy", str(line))
    assert done.returncode == 2
    assert "pipeline run" in done.stderr


def test_a_check_compares_and_keeps_the_error(line, tmp_path):
    out = tmp_path / "out"
    done = bench(
        *("pipeline", "check", str(line), "--sweep", "pw=1,2", "--set", "gpu.seconds=12ms"),
        *("--samples", "2", "-o", str(out)),
    )
    assert done.returncode == 0, done.stderr
    found = calibration.read(out)
    assert [c.setting for c in found.checked] == ["pw=1", "pw=2"]
    assert all(c.predicted > 0 and c.measured > 0 for c in found.checked)
    # The GPU is the bottleneck, and the same in both: 24 ms a job, whatever else happens.
    assert all(c.predicted == pytest.approx(0.024, rel=0.05) for c in found.checked)
    assert set(found.costs) == {"mv"}
    assert math.isfinite(found.median_error)
    assert f"{found.median_error:.1%}" in done.stdout
    assert found.costs["mv"].pass_s > 0


@pytest.mark.hw
@pytest.mark.slow
def test_locks_joins_and_channels_take_the_time_that_the_simulation_says(tmp_path):
    """Tasks that only rest: whatever is wrong then is wrong with the pools or the order."""
    rest = '[[task]]\nname = "{}"\nthreads = 0\nseconds = "{}"\nafter = {}\ntakes = {}\nputs = {}\n'
    tasks = [
        ("synth", "60ms", [], ["pw"], []),
        ("send", "", ["synth"], ["room"], ["pw"]),
        ("pickup", "", ["send"], ["gw"], ["room"]),
        ("prep", "17ms", ["pickup"], [], []),
        ("ntt", "7ms", ["pickup"], ["gpu"], []),
        ("batch", "11ms", ["ntt", "prep"], [], ["gpu"]),
        ("b_g2", "17ms", ["prep"], [], []),
        ("done", "", ["batch", "b_g2"], [], ["gw"]),
    ]
    path = tmp_path / "rests.toml"
    pools = "".join(
        f'[[pool]]\nname = "{name}"\ntokens = {n}\n'
        for name, n in (("pw", 3), ("room", 1), ("gw", 2), ("gpu", 1))
    )
    told = "".join(rest.format(*task) for task in tasks).replace('seconds = ""\n', "")
    path.write_text("items = 4\nin_flight = 3\n" + pools + told)
    out = tmp_path / "out"
    done = bench(
        *("pipeline", "check", str(path), "--sweep", "pw=1,2,4", "--sweep", "gw=1,2"),
        *("--samples", "2", "-o", str(out)),
    )
    assert done.returncode == 0, done.stderr
    found = calibration.read(out)
    assert len(found.errors) == 6
    assert found.median_error < 0.03
    assert found.worst_error < 0.10
