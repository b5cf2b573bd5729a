"""``pipeline simulate`` and ``pipeline plan``: what they take, print and refuse."""

import json

import pytest

from analysis.ranking import claim
from bench.cli import main
from bench.commands._pipeline_model import Known
from bench.commands._pipeline_reach import Reach
from bench.errors import UsageError
from bench.mix import Actor, Pool
from bench.pipeline import Pipeline, Task

LINE = """
summary = "two stages"
items = 4
in_flight = 3

[[pool]]
name = "workers"
tokens = 2

[[pool]]
name = "gpu"
tokens = 1

[[task]]
name = "make"
seconds = "2s"
takes = "workers"
puts = "workers"

[[task]]
name = "use"
after = "make"
seconds = "1.5s"
threads = 0
takes = "gpu"
puts = "gpu"

[timeline]
SYNTH_START = "make.start"
SYNTH_END = "make.end"
GPU_START = "use.start"
GPU_END = "use.end"
"""


@pytest.fixture
def line(tmp_path):
    path = tmp_path / "line.toml"
    path.write_text(LINE)
    return str(path)


def run(capsys, *words):
    code = main(["pipeline", *words])
    return code, capsys.readouterr()


def document(capsys, *words):
    code, printed = run(capsys, *words, "--json")
    assert code == 0
    return json.loads(printed.out)


def test_simulate_says_seconds_per_job_and_what_binds(line, capsys):
    code, printed = run(capsys, "simulate", line, "--cpus", "0")
    assert code == 0
    assert "gpu at work 100%" in " ".join(printed.out.split())
    (setting,) = document(capsys, "simulate", line, "--cpus", "0")["settings"]
    assert setting["seconds_per_job"] == pytest.approx(6)
    assert setting["binding"]["name"] == "gpu"


def test_a_sweep_is_one_row_each(line, capsys):
    found = document(capsys, "simulate", line, "--cpus", "0", "--sweep", "gpu=1..3")
    seconds = {s["setting"]: s["seconds_per_job"] for s in found["settings"]}
    assert seconds == pytest.approx({"gpu=1": 6.0, "gpu=2": 4.0, "gpu=3": 4.0}, rel=0.01)


def test_cpus_are_shared_when_they_are_few(line, capsys):
    (one,) = document(capsys, "simulate", line, "--cpus", "1")["settings"]
    assert one["seconds_per_job"] == pytest.approx(8, rel=0.01)
    assert one["binding"]["name"] == "CPUs"


def test_simulate_writes_what_a_run_would_log(line, capsys, tmp_path):
    path = tmp_path / "timeline.log"
    run(capsys, "simulate", line, "--cpus", "0", "--jobs", "3", "-o", str(path))
    lines = [row.split(",", 4) for row in path.read_text().splitlines()]
    assert {row[0] for row in lines} == {"TIMELINE"}
    assert len([row for row in lines if row[2] == "SYNTH_END"]) == 12
    times = [float(row[1]) for row in lines]
    assert times == sorted(times)
    assert len({row[3] for row in lines}) == 3


def test_a_log_is_of_one_setting(line, capsys, tmp_path):
    code, printed = run(
        capsys, "simulate", line, "--sweep", "gpu=1,2", "-o", str(tmp_path / "x.log")
    )
    assert code == 2
    assert "one setting" in printed.err


def test_plan_ranks_and_names_what_binds_next(line, capsys):
    found = document(capsys, "plan", line, "--cpus", "0")
    ranked = {r["name"]: r for r in found["ranked"]}
    assert found["binding"]["name"] == "gpu"
    assert next(iter(ranked)) == "gpu=2"
    assert ranked["gpu=2"]["claim"] == "faster"
    assert ranked["gpu=2"]["binding"]["name"] == "workers"
    assert ranked["workers=3"]["claim"] == "nothing"
    gains = [r["gain"] for r in found["ranked"]]
    assert gains == sorted(gains, reverse=True)


def test_plan_says_how_far_the_model_may_be_off(line, capsys):
    code, printed = run(capsys, "plan", line, "--cpus", "0")
    assert code == 0
    assert "model's error: 10%" in printed.out


def test_a_kernel_needs_a_check_of_this_host(capsys, tmp_path):
    path = tmp_path / "kernel.toml"
    path.write_text('[[task]]\nname = "read"\nkernel = "scan[op=read]"\nsize = "8MiB"\n')
    code, printed = run(capsys, "simulate", str(path))
    assert code == 2
    assert "pipeline check" in printed.err


def test_costs_are_of_the_same_work_and_follow_the_threads():
    from analysis.rates import Alone

    actor = Actor("k", "v", "base", 2, 1 << 20)
    key = ("a", Actor("k", "v", "base", 1, 1 << 20))
    known = Known({key: (Alone(1.0, 5.0, 20.0), 2)})

    def line(**changes):
        values = {"policy": "base", "threads": 2, **changes}
        made = Actor("k", "v", values["policy"], values["threads"], 1 << 20, priority=3)
        return Pipeline("p", (Task("a", made),))

    assert actor.threads == 2
    assert known.of(line())["a"].pass_s == pytest.approx(1.0)
    assert known.of(line(threads=4))["a"].pass_s == pytest.approx(0.5)
    with pytest.raises(UsageError, match="pages thp"):
        known.of(line(policy="thp"))


def test_what_interrupts_take_is_read_from_an_attribution(tmp_path, monkeypatch):
    from analysis import attribution
    from analysis.verdict import Contrast
    from bench.commands._pipeline_model import _interrupts

    report = attribution.AttributionReport(str(tmp_path), "done", "scan", "storm", 6)
    monkeypatch.setattr(attribution, "build", lambda folder: report)
    line = Pipeline(
        "p",
        (
            Task("free", Actor("storm", "v", "base", 1, 0)),
            Task("read", Actor("scan", "v", "base", 1, 0)),
        ),
    )
    with pytest.raises(UsageError, match="no shootdown contrast"):
        _interrupts([f"free={tmp_path}"], line)
    report.contrasts.append(Contrast("shootdown", "with", "without", 1.25, 1.2, 1.3))
    assert _interrupts([f"free={tmp_path}"], line) == pytest.approx({"free": 0.2})
    report.contrasts[0] = Contrast("shootdown", "with", "without", 1.25, 0.9, 1.6)
    assert _interrupts([f"free={tmp_path}"], line) == {"free": 0.0}
    with pytest.raises(UsageError, match="read runs scan"):
        _interrupts([f"read={tmp_path}"], line)
    assert _interrupts(["free=3%"], line) == pytest.approx({"free": 0.03})


@pytest.mark.parametrize(
    ("gain", "says"),
    [(0.2, "faster"), (-0.2, "slower"), (0.05, "no claim"), (0.0, "nothing"), (1e-5, "nothing")],
)
def test_a_gain_within_the_models_error_is_no_claim(gain, says):
    assert claim(gain, 0.1).startswith(says)


def test_the_total_of_the_jobs_asked_for_is_printed_even_of_few(line, capsys):
    _, printed = run(capsys, "simulate", line, "--cpus", "0", "--jobs", "4")
    (setting,) = document(capsys, "simulate", line, "--cpus", "0", "--jobs", "4")["settings"]
    # Sixteen items of 1.5 s behind one another, and the first of them 2 s before.
    assert setting["total_s"] == pytest.approx(26)
    header, row = (
        next(row.split() for row in printed.out.splitlines() if row.split()[:1] == [first])
        for first in ("setting", "as")
    )
    assert header[-6:-3] == ["4", "jobs,", "s"]
    assert {"26.0", "6.50"} <= set(row)
    _, printed = run(capsys, "simulate", line, "--cpus", "0")
    assert "jobs, s" not in printed.out


def test_beyond_what_the_file_says_was_tested_nothing_is_claimed(tmp_path, capsys):
    path = tmp_path / "line.toml"
    path.write_text(f"{LINE}\n[tested]\nworkers = 3\n")
    beside = ("simulate", str(path), "--cpus", "0", "--sweep", "workers=2..4")
    code, printed = run(capsys, *beside)
    assert code == 0
    assert "workers=4: nothing tests the model beyond workers=3" in printed.out
    claims = {s["setting"]: s["no_claim"] for s in document(capsys, *beside)["settings"]}
    assert [name for name, why in claims.items() if why] == ["workers=4"]
    ranked = document(capsys, "plan", str(path), "--cpus", "0", "--sweep", "gpu=2,3")["ranked"]
    worth = {r["name"]: r["claim"] for r in ranked}
    assert worth["workers=4"].startswith("no claim: nothing tests")
    assert worth["gpu=2"] == "faster"
    base = document(capsys, "plan", str(path), "--cpus", "0", "--set", "workers=4")["ranked"]
    assert all(r["claim"].startswith("no claim: nothing tests") for r in base)


def test_a_check_vouches_for_twice_as_far_as_it_went():
    def line(tokens):
        return Pipeline("line", (Task("a", seconds=1.0),), (Pool("pw", tokens),))

    reach = Reach.of_check([line(2), line(4)])
    assert [bool(reach.beyond(line(n))) for n in (1, 8, 9)] == [False, False, True]


def test_a_file_may_not_vouch_for_what_it_does_not_have(tmp_path, capsys):
    path = tmp_path / "line.toml"
    path.write_text(f"{LINE}\n[tested]\nwokers = 3\n")
    code, printed = run(capsys, "simulate", str(path))
    assert code == 2
    assert "tested: no 'wokers'" in printed.err


def test_changes_are_not_ranked_by_jobs_too_few_for_a_rate(line, capsys):
    code, printed = run(capsys, "plan", line, "--jobs", "3")
    assert code == 2
    assert "too few" in printed.err


def test_interrupts_leave_something(line, capsys):
    code, printed = run(capsys, "simulate", line, "--interrupts", "make=200%")
    assert code == 2
    assert "nothing would be left" in printed.err
