"""``bench corun`` on a folder: measured in two sittings, printed, drawn; other folders refused."""

import argparse
import json

import pytest
from faked import WORKER, Fake
from hosttrees import expand
from simulated import cpus

from bench import native
from bench.blocks import Settings
from bench.cli import main
from bench.commands import corun
from bench.commands._session import Session, resumed
from bench.corunplan import Subject, make
from bench.errors import UsageError
from bench.mix import Actor
from bench.mixplan import MixPlanner
from bench.resources import read_resources
from bench.units import parse_duration

KERNELS = ("scan", "chase", "storm")
ROUNDS = 8


def session(folder, fake, monkeypatch, budget_s):
    monkeypatch.setenv("FAKE_WORKER", str(fake.folder))
    subjects = [
        Subject(name, Actor(name, native.kernel(name).variants[0].name, "base", 1, 16 << 20))
        for name in KERNELS
    ]
    planner = MixPlanner(native, cpus(2))
    settings = Settings(0.01, 0.0, deadline_s=1.0)
    made = make(subjects, [(1, 1)], "churn", planner, settings, ROUNDS, 6, 1e9, 1)
    return Session(
        folder,
        made.plan,
        corun.options(made, 0.02),
        budget_s=budget_s,
        tables=False,
        command=WORKER,
    )


def resume_arguments(folder, **given):
    usual = {"command": "corun", "resume": str(folder), "json": True, "budget": None, "seed": None}
    return argparse.Namespace(**(usual | given))


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Folder of a run that its budget stopped, and that was then resumed."""
    folder = tmp_path_factory.mktemp("corun")
    fake = Fake(folder / "fake", scan=["ok:0.01"])
    with pytest.MonkeyPatch.context() as patch:
        first = session(folder / "out", fake, patch, budget_s=1.0)
        assert first.run() == 0
        assert first.status == "budget"
        calls = len(fake.calls)
        second = resumed(resume_arguments(folder / "out"), "corun")
        second.command, second.tables = WORKER, False
        assert second.run() == 0
    return folder / "out", calls, len(fake.calls), sum(len(b.entries) for b in first.plan.blocks)


def test_a_resumed_run_measures_what_is_left_and_no_more(done, capsys):
    folder, first, all_, mixes = done
    assert 0 < first < all_
    assert all_ < mixes * (ROUNDS + 1), "at most the running block was lost"
    assert main(["corun", "--resume", str(folder), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["status"], report["rounds"]) == ("done", ROUNDS)
    assert report["kernels"] == list(KERNELS)
    victims = {(cell["victim"], cell["aggressor"]) for cell in report["cells"]}
    assert {("scan", "storm"), ("storm", "scan"), ("spin", "storm")} <= victims
    assert {a["forecast"] for a in report["accuracy"]} == {"law", "fit", "none"}


def test_the_plan_says_which_kernels_release_memory(done):
    folder, *_ = done
    assert resumed(resume_arguments(folder), "corun").options["churn"] == ["storm"]


def test_the_table_names_what_each_forecast_is(done, capsys):
    folder, *_ = done
    assert main(["corun", "--resume", str(folder)]) == 0
    told = capsys.readouterr().out
    assert "forecasts against measured speeds" in told
    assert "law: shares of bandwidth" in told


def test_the_matrix_and_the_forecasts_are_drawn(done, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    folder, *_ = done
    assert main(["plot", str(folder), "-o", str(tmp_path)]) == 0
    capsys.readouterr()
    drawn = {path.stem for path in tmp_path.glob("*.png")}
    assert drawn == {"interference-1-1-shared", "interference-1-1-own", "forecasts"}


def test_another_command_and_other_flags_are_refused(done):
    folder, *_ = done
    with pytest.raises(UsageError, match="a run of corun, not of attribute") as caught:
        resumed(resume_arguments(folder), "attribute")
    assert f"corun --resume {folder}" in caught.value.remedy
    with pytest.raises(UsageError, match="--split, --max-memory: a resumed run keeps"):
        resumed(resume_arguments(folder, split="1:1", max_memory="1GiB"), "corun")


def planned(host, monkeypatch, folder, *flags):
    """Plan of the defaults and these flags, for a stored host."""
    resources = read_resources(expand(host, folder))
    monkeypatch.setattr("bench.resources.read_resources", lambda: resources)
    parser = argparse.ArgumentParser()
    corun.add_arguments(parser)
    args = parser.parse_args([*flags, "--dry-run"])
    return corun.plan(args, parse_duration(args.budget or corun.BUDGET)).plan


@pytest.mark.parametrize("host", ["vm2", "threadripper", "snc4"])
def test_the_default_matrix_takes_less_than_five_minutes_on_any_host(host, monkeypatch, tmp_path):
    plan = planned(host, monkeypatch, tmp_path)
    assert plan.estimate_s <= parse_duration(corun.BUDGET)
    assert not plan.shed
    assert plan.rounds >= 6


def test_a_shorter_budget_sheds_and_still_has_six_rounds(monkeypatch, tmp_path):
    plan = planned("vm2", monkeypatch, tmp_path, "--budget", "1m")
    (block,) = plan.blocks
    assert 6 * block.estimate_s <= 60
    assert plan.shed
