"""``bench compare`` from the outside: what it prints and returns."""

import json
import os
import shutil

import pytest
from faked import Fake, pages_plan, run

from bench.cli import main
from bench.journal import Journal
from bench.planfile import write_plan
from bench.results import write_pyperf


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A run, and the same with another 30 % of time for each scan."""
    monkeypatch.setenv("FAKE_WORKER", str(tmp_path / "fake"))
    Fake(tmp_path / "fake")
    plan = pages_plan(rounds=10)
    folder = tmp_path / "old"
    folder.mkdir()
    with Journal(folder) as journal:
        journal.append({"kind": "start", "schema": 1, "time": "2026-12-01T00:00:00.000Z"})
    _, state = run(folder, plan)
    write_plan(folder, plan, {})
    write_pyperf(folder, state, [plan.blocks])
    slow = tmp_path / "new"
    slow.mkdir()
    shutil.copy(folder / "plan.toml", slow)
    lines = [json.loads(line) for line in (folder / "journal.ndjson").read_text().splitlines()]
    for line in lines:
        if line["kind"] == "start":
            line["time"] = "2026-12-02T00:00:00.000Z"
        if line.get("mix", "").startswith("scan"):
            line["actors"][0]["seconds"] *= 1.3
    (slow / "journal.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder, slow


def test_a_regression_fails_only_where_asked_to(runs, capsys):
    old, new = map(str, runs)
    assert main(["compare", old, new]) == 0
    text = capsys.readouterr().out
    assert "slower" in text
    assert "not measured side by side" in text
    assert main(["compare", old, new, "--fail-if-slower", "5%"]) == 1
    assert "2 of 4 cases are slower by more than 5.0%" in capsys.readouterr().out
    assert main(["compare", old, new, "--fail-if-slower", "50%"]) == 0
    assert "no case is slower by more than 50%" in capsys.readouterr().out
    assert main(["compare", new, old, "--fail-if-slower", "5%"]) == 0, "faster is no failure"


def test_a_file_and_a_directory_of_one_run_are_the_same(runs, capsys):
    old, _ = runs
    assert main(["compare", str(old), str(old / "pyperf.json"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {change["verdict"] for change in data["changes"]} == {"same"}


def test_policies_of_one_run_are_paired_by_block(tmp_path, runs, capsys):
    old, _ = runs
    main(["export", str(old), "--by", "pages"])
    files = capsys.readouterr().out.splitlines()[:2]
    assert main(["compare", *files, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [change["paired"] for change in data["changes"]] == [True, True]
    assert [change["verdict"] for change in data["changes"]] == ["faster", "faster"]
    assert data["changes"][0]["gain"]["value"] == pytest.approx(0.25, abs=0.03)


def test_tables_fit_80_columns(runs, capsys):
    main(["compare", *map(str, runs)])
    for line in capsys.readouterr().out.splitlines():
        assert len(line.rstrip()) <= 80 or os.sep in line


def test_what_cannot_be_compared_is_a_usage_error(runs, tmp_path, capsys):
    old, new = runs
    text = (new / "journal.ndjson").read_text().replace("/1GiB", "/2GiB")
    (new / "journal.ndjson").write_text(text)
    assert main(["compare", str(old), str(new)]) == 2
    assert "size: 1GiB -> 2GiB" in capsys.readouterr().err
    assert main(["compare", str(old), str(tmp_path / "nowhere")]) == 2
    assert main(["compare", str(old), str(new), "--fail-if-slower", "much"]) == 2
    (new / "journal.ndjson").write_text("rubbish\nmore\n")
    assert main(["compare", str(old), str(new)]) == 1
    assert "journal.ndjson, line 1" in capsys.readouterr().err
