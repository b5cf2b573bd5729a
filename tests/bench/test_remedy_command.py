"""``bench remedy`` from the outside: two plans in one folder, tables, JSON, and a kill."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest
from faked import Fake

ROOT = Path(__file__).parents[2]
DRIVER = Path(__file__).with_name("remedy_driver.py")


def drive(folder, fake, *args, **options):
    environment = {**fake.environment(), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, str(DRIVER), str(folder), *args],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finished(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def bench(*args):
    return subprocess.run(
        [sys.executable, "-m", "bench", *args],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Folder and document of a whole run in which larger pages save a fifth of the time."""
    folder = tmp_path_factory.mktemp("remedy")
    fake = Fake(folder / "fake")
    code, out, err = finished(drive(folder / "out", fake))
    assert code == 0, err
    return folder / "out", json.loads(out), fake


def test_a_planted_gain_is_found_by_the_whole_machinery(done):
    _, found, _ = done
    assert found["best"] == "thp"
    (thp,) = [r for r in found["remedies"] if r["name"] == "thp"]
    assert thp["total"]["verdict"] == "helps"
    assert 1 / thp["total"]["ratio"] == pytest.approx(1.25, rel=0.02)
    assert thp["total"]["n"] == found["rounds"]
    assert thp["cause"] == "memory"


def test_predictions_were_written_before_the_measurement(done):
    folder, found, _ = done
    from bench.planfile import read_plan

    plan_written = (folder / "plan.toml").stat().st_mtime
    first = json.loads((folder / "journal.ndjson").read_text().splitlines()[1])
    assert first["kind"] == "sample"
    assert plan_written <= datetime.fromisoformat(first["time"]).timestamp() + 0.01
    _, options = read_plan(folder)
    predicted = options["remedy"]["predictions"]["thp"]["total"]
    # Alone both are a quarter faster, too; nothing of that is lost in the mix.
    assert predicted == pytest.approx(0.25, rel=0.1)
    (thp,) = [r for r in found["remedies"] if r["name"] == "thp"]
    assert thp["predicted"] == predicted


def test_the_table_can_be_printed_again(done):
    folder, found, _ = done
    again = bench("verdict", str(folder))
    assert again.returncode == 0, again.stderr
    assert "thp pays" in again.stdout
    assert "as it is" in again.stdout
    assert json.loads(bench("verdict", "--json", str(folder)).stdout) == found


def test_pyperf_has_the_samples_of_the_verdict(done):
    import pyperf

    folder, found, _ = done
    suite = pyperf.BenchmarkSuite.load(str(folder / "pyperf.json"))
    counts = {b.get_nvalue() for b in suite.get_benchmarks() if "/thp/" in b.get_name()}
    assert found["rounds"] in counts


@pytest.mark.parametrize("after_s", [1.0, 3.0])
def test_a_killed_run_goes_on_and_ends_as_it_would_have(tmp_path, after_s):
    fake = Fake(tmp_path / "fake")
    process = drive(tmp_path / "out", fake, start_new_session=True)
    time.sleep(after_s)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    code, out, err = finished(drive(tmp_path / "out", fake, "resume"))
    if not (tmp_path / "out").exists():
        assert code == 2  # nothing was begun
        return
    assert code == 0, err
    assert json.loads(out)["best"] == "thp"


def test_a_folder_in_use_is_not_overwritten(done):
    folder, _, fake = done
    before = (folder / "journal.ndjson").read_bytes()
    code, _, err = finished(drive(folder, fake))
    assert code == 2
    assert f"remedy --resume {folder}" in err
    assert (folder / "journal.ndjson").read_bytes() == before


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("nowhere.toml",), "cannot read nowhere.toml"),
        (("prover", "--remedies", "mutxe"), "mutex"),
        (("prover", "--samples", "3"), "--samples 6"),
        (("prover", "--pages", "tph"), "thp"),
        (("provver",), "prover"),
        (("--resume", "nowhere", "--budget", "1m"), "keeps to its plan"),
        (("--resume", "nowhere"), "nowhere"),
    ],
)
def test_wrong_usage_is_exit_2_and_names_the_way_out(args, told):
    done = bench("remedy", *args)
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_dry_run_of_the_default_measures_nothing():
    done = bench("remedy", "--dry-run")
    assert done.returncode == 0, done.stderr
    for word in ("spmv", "msm", "storm", "prep", "interlock", "courtesy=pause"):
        assert word in done.stdout
