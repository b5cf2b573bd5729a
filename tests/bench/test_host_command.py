"""``bench host`` as a person and as a program use it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import hugepages, pool_records
from bench.cli import main
from bench.commands import _hostpage
from bench.host import facts

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """Keep other runs' state files out of the tests."""
    folder = tmp_path / "state"
    folder.mkdir()
    monkeypatch.setattr(pool_records, "state_dirs", lambda: [folder])
    monkeypatch.setattr("bench.reservation.state_dirs", lambda: [folder])
    return folder


def leave(folder, pages):
    """Write the note of a run that was killed; the pool holds ``pages`` of its."""
    pool = hugepages.read_pool(Path("/"), 2 * 1024**2, None)
    share = {
        "size_bytes": 2 * 1024**2,
        "node": None,
        "before": 0,
        "base": 0,
        "wanted": pages,
        "added": pages,
        "target": None,
    }
    note = {
        "version": 1,
        "path": None,
        "boot_id": facts().boot_id,
        "pid": 4194305,
        "started": 1,
        "made_at": 0.0,
        "shares": [share],
    }
    (folder / "hugepages-4194305-0.json").write_text(json.dumps(note))
    return pool.persistent or 0


def test_page_names_every_part(capsys):
    assert main(["host"]) == 0
    page = capsys.readouterr().out
    for title, rows in _hostpage.sections(facts()):
        assert title in page
        for label, _ in rows:
            assert label in page
    assert "\x1b" not in page


def test_json_is_data_only(capsys):
    assert main(["host", "--json"]) == 0
    out = capsys.readouterr()
    data = json.loads(out.out)
    assert set(data) == {"facts", "digest", "advice", "leftovers"}
    assert data["facts"]["kernel"]["page_bytes"] == os.sysconf("SC_PAGESIZE")
    assert out.err == ""


def test_nothing_to_undo(capsys):
    assert main(["host", "--undo"]) == 0
    assert "nothing was left" in capsys.readouterr().out


def test_leftovers_are_shown_with_both_ways_to_undo_them(state, capsys, monkeypatch):
    leave(state, 2)
    monkeypatch.setattr("bench.reservation._persistent", lambda _root, _share: 5)
    assert main(["host"]) == 0
    page = capsys.readouterr().out
    assert "2 pages of 2MiB" in page
    assert "host --undo" in page
    assert "echo 3 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages" in page
    assert main(["host", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["leftovers"][0]["pages"] == 2


def test_undo_without_root_is_refused_with_the_remedy(state, capsys, monkeypatch):
    leave(state, 2)
    monkeypatch.setattr("bench.reservation._persistent", lambda _root, _share: 5)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert main(["host", "--undo"]) == 3
    assert "needs root" in capsys.readouterr().err


def test_probe_results_are_printed_and_kept_in_the_data(capsys, monkeypatch):
    results = {
        "clock_resolution_ns": 30.0,
        "cache_ladder": [{"size": "1MiB", "ns": 4.25}],
        "tlb_reach": {"base": "8MiB", "thp": None},
    }
    probe = type(sys)("bench.probe")
    probe.run_probe = lambda: results
    monkeypatch.setitem(sys.modules, "bench.probe", probe)
    assert main(["host", "--probe"]) == 0
    page = capsys.readouterr().out
    assert "Measured: cache ladder" in page
    assert "size 1MiB, ns 4.25" in page
    assert "unknown" in page
    assert main(["host", "--probe", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["probe"] == results


AS_NOBODY = """
import contextlib, io, os, sys
from bench.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    main(sys.argv[1:])  # imports everything: nobody may be unable to read the interpreter's files
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
@pytest.mark.root
@pytest.mark.parametrize("arguments", [["host"], ["host", "--json"], ["host", "--undo"]])
def test_nobody_can_look(arguments):
    """Also with a home folder that may not be looked into."""
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout


def test_terminal_page_wraps_in_tables(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    _hostpage.show([("Title", [("label", "[not markup] value")])])
    assert "[not markup] value" in capsys.readouterr().out
