"""A sitting leaves nothing half done, and says how to go on."""

import shlex

import pytest
from faked import WORKER, Fake, pages_plan

from bench import reservation, results
from bench.cli import make_parser, program_name
from bench.commands import aa
from bench.commands._session import Session, open_session
from bench.errors import HostError, NoSpaceError
from bench.journal import Journal
from bench.mix import Actor


@pytest.fixture
def fake(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_WORKER", str(tmp_path / "fake"))
    return Fake(tmp_path / "fake")


def session(folder, **changes):
    made = Session(folder, pages_plan(), as_json=True, **changes)
    made.command = WORKER
    return made


def test_huge_pages_that_cannot_be_had_leave_no_folder(fake, tmp_path, monkeypatch):
    def refuse(wanted):
        raise HostError("only root may reserve huge pages")

    monkeypatch.setattr(reservation, "reserve", refuse)
    with pytest.raises(HostError):
        session(tmp_path / "out", reserve={2 << 20: 1}).run()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("where", ["pyperf.json", "journal.ndjson"])
def test_a_full_disk_says_how_to_go_on_once_there_is_space(fake, tmp_path, monkeypatch, where):
    def full(*_):
        raise NoSpaceError(f"cannot write {where}: No space left on device", "make space there")

    if where == "pyperf.json":
        monkeypatch.setattr(results, "replace_file", full)
    else:
        append = Journal.append
        monkeypatch.setattr(
            Journal, "append", lambda *a: (full if a[1]["kind"] == "sample" else append)(*a)
        )
    folder = tmp_path / "an out"
    with pytest.raises(NoSpaceError) as caught:
        session(folder).run()
    way_out, _, command = caught.value.remedy.partition(program_name())
    assert way_out == "make space there, then continue with "
    args = make_parser().parse_args(shlex.split(command))
    assert args.resume == str(folder)


def test_a_finished_run_has_nothing_to_announce(fake, tmp_path, capsys):
    session(tmp_path / "out").run()
    assert "24 samples in 6 rounds of 2 blocks" in capsys.readouterr().err
    again = open_session(str(tmp_path / "out"), as_json=True)
    again.command = WORKER
    assert again.run() == 0
    told = capsys.readouterr().err
    assert "nothing is left to measure" in told
    assert "samples in" not in told


# ---- bench aa -----------------------------------------------------------------------------------

SCAN = Actor("scan", "scalar", "base", 1, 32 << 20)


def aa_report(tmp_path, monkeypatch, capsys, pyperf_hides, **deeds):
    """Exit code and output of ``bench aa`` on 20 comparisons of the fake worker's."""
    Fake(tmp_path / "fake", **deeds)
    plan = aa.make_plan(SCAN, 20, 6, 0.01, 1, half_rate=1e9)
    made = Session(tmp_path / "out", plan, tables=False, name="aa")
    made.command = WORKER
    made.run()
    monkeypatch.setattr(aa, "not_significant", lambda *_: pyperf_hides)
    return aa.show(made.folder, made.options, as_json=False), capsys.readouterr().out


@pytest.mark.parametrize(("hidden", "code"), [(20, 0), (10, 1)])
def test_pyperf_s_count_is_part_of_the_verdict(fake, tmp_path, monkeypatch, capsys, hidden, code):
    monkeypatch.setattr(aa, "HALF_BLOCKS", 0)
    found, out = aa_report(tmp_path, monkeypatch, capsys, hidden)
    assert found == code, out


def test_a_dry_run_of_aa_measures_nothing(monkeypatch, capsys):
    def refuse(*_):
        raise AssertionError("a pilot was run")

    monkeypatch.setattr(aa, "_pilot_rate", refuse)
    args = make_parser().parse_args(["aa", "--dry-run", "--comparisons", "1"])
    assert args.run(args) == 0
    assert "5 blocks" in capsys.readouterr().out
