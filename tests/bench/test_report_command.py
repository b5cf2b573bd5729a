"""``bench report``: formats, where it writes, and what it refuses."""

import json
from pathlib import Path

import pytest

from bench import cli

STORED = str(Path(__file__).parents[2] / "results" / "epyc-2cpu-vm")


def report(*words):
    return cli.main(["report", *words])


def test_the_ending_of_the_file_decides_the_format(tmp_path, capsys):
    for name, begins in (
        ("a.html", "<!doctype html>"),
        ("a.md", "# Memory of vm"),
        ("a.json", "{"),
    ):
        path = tmp_path / name
        assert report(STORED, "-o", str(path)) == 0
        assert capsys.readouterr().out == f"{path}\n"
        assert path.read_text(encoding="utf-8").startswith(begins)
    assert json.loads((tmp_path / "a.json").read_text())["title"] == "Memory of vm"


def test_without_a_file_it_goes_to_stdout_with_a_title(capsys):
    assert report(STORED, "--format", "md", "--title", "What we bought") == 0
    assert capsys.readouterr().out.startswith("# What we bought\n")


def test_a_folder_of_results_is_taken_whole(capsys):
    assert report(str(Path(STORED).parent), STORED, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    folders = [path for path in Path(STORED).parent.iterdir() if path.is_dir()]
    assert len(document["hosts"]) == len(folders), "the same result twice is one"


def test_the_dead_band_can_be_another(capsys):
    assert report(STORED, "--format", "md", "--dead-band", "90%") == 0
    assert "use thp for" not in capsys.readouterr().out


@pytest.mark.parametrize("words", [["none-there"], [STORED, "--dead-band", "much"]])
def test_what_cannot_be_done_is_a_usage_error(words, capsys):
    assert report(*words) == 2
    assert "error:" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_named(tmp_path, capsys):
    path = tmp_path / "no" / "a.html"
    assert report(STORED, "-o", str(path)) == 1
    assert f"cannot write {path}" in capsys.readouterr().err


def test_commands_on_the_page_are_in_the_form_invoked(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["pagestorm"])
    monkeypatch.setattr("bench.cli.program_name", lambda: "pagestorm")
    assert report(STORED, "--format", "md") == 0
    text = capsys.readouterr().out
    assert "`pagestorm run --sweep" in text
    assert "python -m bench" not in text
