"""A run that was killed, stopped or told to go on: no closed block is lost, none is repeated."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from faked import Fake, names, pages_plan

from bench.journal import read_lines, read_state
from bench.planfile import read_plan

DRIVER = Path(__file__).with_name("faked_driver.py")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def fake(tmp_path):
    return Fake(tmp_path / "fake", scan=["slow:0.02"], chase=["slow:0.02"])


def start(fake, folder, rounds, *more):
    environment = {**fake.environment(), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, str(DRIVER), str(folder), str(rounds), *more],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process, timeout=120):
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def wait_for_calls(fake, n, process):
    while len(fake.calls) < n:
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)


def closed_blocks(folder):
    """(block, round) -> lines that closed it."""
    found = {}
    for line in read_lines(folder / "journal.ndjson")[0]:
        if line["kind"] == "block" and line["status"] != "rejected":
            key = line["block"], line["round"]
            found[key] = found.get(key, 0) + 1
    return found


def workers_of(folder):
    """Process ids of fake workers that write to this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"FAKE_WORKER={folder}".encode() in (process / "environ").read_bytes() and (
                b"fake_worker.py" in (process / "cmdline").read_bytes()
            ):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def test_no_closed_block_is_lost_or_repeated_by_kills_at_any_moment(fake, tmp_path):
    folder, rounds = tmp_path / "out", 8
    chance = random.Random(7)
    more = ()
    before = {}
    for _ in range(4):
        process = start(fake, folder, rounds, *more)
        wait_for_calls(fake, len(fake.calls) + chance.randrange(2, 7), process)
        time.sleep(chance.uniform(0, 0.05))
        process.kill()
        process.communicate()
        after = closed_blocks(folder)
        assert before.items() <= after.items(), "a closed block was lost"
        before = after
        more = ("resume",)
    code, out, err = finish(start(fake, folder, rounds, "resume"))
    assert code == 0, err
    plan = pages_plan(rounds)
    assert closed_blocks(folder) == {(b.id, i): 1 for b in plan.blocks for i in range(rounds)}
    state = read_state(folder)
    for block in plan.blocks:
        for i in range(rounds):
            mixes = sorted(line["mix"] for line in state.samples[block.id, i])
            assert mixes == sorted(names(block))
    wanted = rounds * sum(len(block.entries) for block in plan.blocks)
    assert len(fake.calls) - wanted <= 4 * 2, "a kill costs the running block, two samples here"
    assert json.loads(out)["rounds"] == rounds


def test_a_killed_driver_takes_its_worker_with_it(fake, tmp_path):
    fake.script(scan=["slow:1000"], chase=["slow:1000"])
    process = start(fake, tmp_path / "out", 2)
    wait_for_calls(fake, 1, process)
    assert workers_of(fake.folder)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 10
    while workers_of(fake.folder) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert workers_of(fake.folder) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_after_killing_the_worker_and_keeps_everything(fake, tmp_path, number):
    folder = tmp_path / "out"
    fake.script(scan=["ok"] * 8 + ["hang"], chase=["ok"] * 8 + ["hang"])
    process = start(fake, folder, 6)
    wait_for_calls(fake, 17, process)
    process.send_signal(number)
    code, out, err = finish(process, timeout=30)
    assert code == 130, err
    report = json.loads(out)
    assert report["status"] == "interrupted"
    assert report["rounds"] == 4
    assert any("--resume" in command for command in report["next_commands"])
    assert (folder / "pyperf.json").exists()
    assert read_lines(folder / "journal.ndjson")[0][-1]["status"] == "interrupted"
    fake.script(scan=["ok"], chase=["ok"])
    code, out, err = finish(start(fake, folder, 6, "resume"))
    assert code == 0, err
    assert set(closed_blocks(folder).values()) == {1}


def change_start(folder, **values):
    path = folder / "journal.ndjson"
    rows = path.read_text().splitlines()
    first = {**json.loads(rows[0]), **values}
    path.write_text("\n".join([json.dumps(first), *rows[1:]]) + "\n")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"boot_id": "another"}, "last boot"),
        ({"host_digest": "another"}, "not as it was"),
        ({"plan_digest": "another"}, "not the one its journal began with"),
    ],
)
def test_another_boot_host_or_plan_is_refused(fake, tmp_path, change, reason):
    folder = tmp_path / "out"
    assert finish(start(fake, folder, 1))[0] in (0, 1)
    change_start(folder, **change)
    before = (folder / "journal.ndjson").read_bytes()
    code, _, err = finish(start(fake, folder, 1, "resume"))
    assert code == 2
    assert reason in err
    assert "another -o" in err
    assert (folder / "journal.ndjson").read_bytes() == before


def test_a_folder_with_a_run_is_not_overwritten(fake, tmp_path):
    folder = tmp_path / "out"
    finish(start(fake, folder, 1))
    code, _, err = finish(start(fake, folder, 1))
    assert code == 2
    assert "--resume" in err


def test_a_finished_run_resumed_measures_nothing(fake, tmp_path):
    folder = tmp_path / "out"
    finish(start(fake, folder, 2))
    n = len(fake.calls)
    code, _, err = finish(start(fake, folder, 2, "resume"))
    assert code == 0, err
    assert len(fake.calls) == n


def test_the_folder_says_all_that_a_resume_needs(fake, tmp_path):
    folder = tmp_path / "out"
    finish(start(fake, folder, 2))
    assert sorted(path.name for path in folder.iterdir()) == [
        "host.json",
        "journal.ndjson",
        "plan.toml",
        "pyperf.json",
    ]
    plan, _ = read_plan(folder)
    assert plan.digest() == pages_plan(2).digest()
