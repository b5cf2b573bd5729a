"""``bench run`` and ``bench verdict`` from the outside, with the real worker on tiny arenas."""

import json
import os
import subprocess
import sys
from pathlib import Path

import hosttrees
import pyperf
import pytest

ROOT = Path(__file__).parents[2]
TINY = (
    *("--kernel", "scan[op=copy]", "--pages", "base", "--threads", "1", "--size", "1MiB"),
    *("--window", "10ms", "--samples", "6"),
)


def bench(*args, cwd=ROOT):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "bench", *args],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Output folder of a small real run, and the finished process."""
    folder = tmp_path_factory.mktemp("run") / "out"
    done = bench("run", *TINY, "-o", str(folder))
    assert done.returncode == 0, done.stderr
    return folder, done


def test_a_run_ends_with_a_table_and_its_files(tiny):
    folder, done = tiny
    for told in ("scan[op=copy]", "GB/s", "6 of 6 rounds", "not tested", "locks, caps", "next"):
        assert told in done.stdout
    for name in ("journal.ndjson", "pyperf.json", "host.json", "plan.toml"):
        assert (folder / name).exists()
        assert str(folder / name) in done.stdout
    suite = pyperf.BenchmarkSuite.load(str(folder / "pyperf.json"))
    for benchmark in suite.get_benchmarks():
        assert benchmark.get_nvalue() == 6


def test_progress_goes_to_stderr(tiny):
    _, done = tiny
    assert "round 1/6" in done.stderr
    assert "round 1/6" not in done.stdout
    assert "after the first round" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_verdict_prints_the_same_table_again(tiny):
    folder, done = tiny
    assert bench("verdict", str(folder)).stdout == done.stdout


def test_json_is_one_document_on_stdout(tiny, tmp_path):
    folder, _ = tiny
    report = json.loads(bench("verdict", "--json", str(folder)).stdout)
    assert report["status"] == "done"
    assert {"cases", "comparisons", "skipped", "not_tested", "files", "next_commands"} <= set(
        report
    )
    done = bench("run", *TINY, "--json", "-o", str(tmp_path / "out"))
    assert json.loads(done.stdout)["rounds"] == 6


def test_a_folder_made_by_default_is_named_by_host_and_time(tmp_path):
    done = bench("run", *TINY, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "pagestorm-out").iterdir()
    assert folder.name.startswith(os.uname().nodename)


def test_a_dry_run_prints_the_plan_and_leaves_nothing(tmp_path):
    folder = tmp_path / "out"
    done = bench("run", *TINY, "--dry-run", "-o", str(folder))
    assert done.returncode == 0, done.stderr
    assert "scan[op=copy]" in done.stdout
    assert "about" in done.stdout
    assert not folder.exists()
    plan = json.loads(bench("run", *TINY, "--dry-run", "--json").stdout)
    assert plan["rounds"] == 6
    assert plan["blocks"][0]["entries"][0]["mix"].startswith("scan[op=copy]")


def test_a_plan_for_another_host(tmp_path):
    hosttrees.expand("threadripper", tmp_path)
    done = bench("run", "--dry-run", "--topology", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "192t" in done.stdout


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--resume", "DIR", "--pages", "thp"), "--pages: a resumed run keeps to its plan"),
        (("--topology", "/"), "--dry-run"),
        (("--sweep", "x.toml", "--preset", "quick"), "two plans"),
        (("--resume", "nowhere"), "no plan.toml in nowhere"),
        (("--kernel", "scam"), "scan"),
        (("--samples", "3"), "samples"),
        (("--dead-band", "much"), "dead-band"),
        (("--preset", "quik"), "quick"),
    ],
)
def test_wrong_usage_is_exit_2_and_names_the_way_out(tiny, args, told):
    folder, _ = tiny
    done = bench("run", *(str(folder) if arg == "DIR" else arg for arg in args))
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_in_use_is_not_overwritten(tiny):
    folder, _ = tiny
    before = (folder / "journal.ndjson").read_bytes()
    done = bench("run", *TINY, "-o", str(folder))
    assert done.returncode == 2
    assert f"run --resume {folder}" in done.stderr
    assert (folder / "journal.ndjson").read_bytes() == before


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from bench.cli import make_parser; make_parser();"
        "print([m for m in ('rich', 'pydantic', 'numpy', 'scipy', 'pyperf', 'analysis', 'ctypes')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("args", [["verdict", "DIR"], ["run", "--help"], ["list"], ["host"]])
def test_a_reader_that_goes_away_is_no_failure(tiny, args):
    """As ``| head`` does, at the first line."""
    folder, _ = tiny
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "bench", *(str(folder) if arg == "DIR" else arg for arg in args)],
        cwd=ROOT,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=120,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
