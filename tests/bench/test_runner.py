"""Rounds, retries, skips and the ways a worker can end."""

import os
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest
from faked import SETTINGS, WORKER, Fake, Silent, block, entry, names, pages_plan, run

from bench import runner
from bench.errors import PagestormError
from bench.runner import check_blocks, in_rounds, make_request, time_limit_s
from bench.spawn import run_worker


@pytest.fixture
def fake(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_WORKER", str(tmp_path / "fake"))
    return Fake(tmp_path / "fake")


@pytest.fixture
def quick_kill(monkeypatch):
    """Setup allowances suit real workers; here a hang should be noticed within a second."""
    monkeypatch.setattr(runner, "SETUP_S", 0.3)
    monkeypatch.setattr(runner, "TOUCH_S_PER_BYTE", 0.0)


def test_every_block_runs_once_a_round_in_changing_order(fake, tmp_path):
    plan = pages_plan(rounds=5, kernels=("scan", "chase", "gather", "spin"))
    watcher = Silent()
    status, state = run(tmp_path / "out", plan, watcher)
    assert status == "done"
    assert state.status == "done"
    assert watcher.rounds == [1, 2, 3, 4, 5]
    orders = [[] for _ in range(5)]
    for line in watcher.lines:
        if line["block"] not in orders[line["round"]]:
            orders[line["round"]].append(line["block"])
    assert all(sorted(order) == sorted(b.id for b in plan.blocks) for order in orders)
    assert len({tuple(order) for order in orders}) > 1
    first = {(line["round"], line["block"]): line["mix"] for line in reversed(watcher.lines)}
    assert len({"thp" in mix for mix in first.values()}) == 2, "entries are shuffled as well"


def test_entries_of_a_block_run_back_to_back(fake, tmp_path):
    plan = pages_plan(rounds=3)
    watcher = Silent()
    run(tmp_path / "out", plan, watcher)
    blocks = [line["block"] for line in watcher.lines]
    assert all(blocks[i] == blocks[i + 1] for i in range(0, len(blocks), 2))


def test_the_order_is_a_function_of_seed_and_round(fake, tmp_path):
    plan = pages_plan(rounds=2, kernels=("scan", "chase", "gather"))
    run(tmp_path / "a", plan)
    first = fake.calls
    run(tmp_path / "b", plan)
    assert fake.calls == first * 2


def test_a_request_holds_what_the_worker_needs():
    e = entry("scan[matrix=file:abc]/avx2/thp/2t/1GiB", cpus=((0, 1),))
    request = make_request(e, SETTINGS, seed=5)
    assert request["mix"] == "scan[matrix=file:abc]/avx2/thp/2t/1GiB"
    assert request["place"] == ((0, 1),)
    assert request["files"] == {"abc": ""}
    assert request["seed"] == 5
    assert request["oversubscribed"] == (False,)
    crowded = replace(e, cpus=((0, 0), (1,)))
    assert make_request(crowded, SETTINGS, seed=5)["oversubscribed"] == (True, False)
    unpinned = replace(e, cpus=((-1,),))
    assert make_request(unpinned, SETTINGS, seed=5)["oversubscribed"] == (False,)


@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        ("exit", "exit code 7; it said: out of paper"),
        ("segv", "crashed (SIGSEGV)"),
        ("kill", "killed (SIGKILL)"),
        ("garbage", "not JSON"),
        ("silent", "not JSON"),
        ("nan", "not a number"),
        ("short", "lacks actors"),
        ("fail", "no page of 2 MiB"),
        ("wrong", "evidence: actor 0 has 50.0% of its bytes as base before"),
        ("wrong-after", "as base after"),
        ("misplaced", "25.0% of its bytes on another memory node"),
        ("misplaced-rest", "2.0% of its bytes on another memory node"),
        ("deadline", "deadline"),
    ],
)
def test_an_invalid_sample_repeats_its_block(fake, tmp_path, deed, reason):
    fake.script(scan=["ok", deed, "ok"])
    plan = pages_plan(rounds=2, kernels=("scan",))
    plan = replace(plan, blocks=(replace(plan.blocks[0], entries=plan.blocks[0].entries[:1]),))
    watcher = Silent()
    status, state = run(tmp_path / "out", plan, watcher)
    assert status == "done"
    rejected = [line for line in watcher.lines if "invalid" in line]
    assert len(rejected) == 1
    assert reason in rejected[0]["invalid"]
    assert [line["attempt"] for line in watcher.lines] == [0, 0, 1]
    assert len(state.samples) == 2
    (tally,) = state.tallies.values()
    assert tally.rejected_share == 1 / 3


def test_a_hanging_worker_is_killed_with_its_children(fake, tmp_path, quick_kill):
    fake.script(scan=["hang", "ok"])
    settings = replace(SETTINGS, deadline_s=0.2)
    plan = replace(
        pages_plan(rounds=1), blocks=(block("b", "scan/x/base/1t/1MiB", settings=settings),)
    )
    watcher = Silent()
    assert run(tmp_path / "out", plan, watcher)[0] == "done"
    assert "did not end within" in watcher.lines[0]["invalid"]
    child = int((fake.folder / "child").read_text())
    for _ in range(100):
        if not Path(f"/proc/{child}").exists():
            break
        time.sleep(0.02)
    status = Path(f"/proc/{child}/status")
    assert not status.exists() or "zombie" in status.read_text()


def test_slowness_is_not_invalid(fake, tmp_path):
    fake.script(scan=["slow:0.4", "ok:100", "starved"])
    watcher = Silent()
    run(tmp_path / "out", pages_plan(rounds=3, kernels=("scan",)), watcher)
    assert not [line for line in watcher.lines if "invalid" in line]


def test_unknown_evidence_is_kept(fake, tmp_path):
    fake.script(scan=["partly"])
    watcher = Silent()
    _, state = run(tmp_path / "out", pages_plan(rounds=2, kernels=("scan",)), watcher)
    assert len(state.samples) == 2
    assert len(watcher.messages) == 2, "said once a mix"
    assert all("1% of the pages" in message for message in watcher.messages)


def test_a_skip_drops_that_entry_only(fake, tmp_path):
    plan = replace(
        pages_plan(rounds=4),
        blocks=(block("b", "scan/x/base/1t/1MiB", "chase/x/2m/1t/1MiB", "spin/x/thp/1t/1MiB"),),
    )
    fake.script(chase=["ok", "skip"])
    watcher = Silent()
    status, state = run(tmp_path / "out", plan, watcher)
    assert status == "done"
    assert state.dropped["chase/x/2m/1t/1MiB"].skip
    assert sum("chase" in call for call in fake.calls) == 2
    assert sum("scan" in call for call in fake.calls) == 4, "no block was repeated for it"
    assert any("no page of 2 MiB" in text for text in watcher.messages)


def test_an_entry_that_always_fails_does_not_cost_the_others_their_rounds(fake, tmp_path):
    fake.script(spin=["segv"])
    plan = replace(
        pages_plan(rounds=6), blocks=(block("b", "scan/x/base/1t/1MiB", "spin/x/base/1t/1MiB"),)
    )
    status, state = run(tmp_path / "out", plan)
    assert status == "done"
    assert not state.dropped["spin/x/base/1t/1MiB"].skip
    assert "SIGSEGV" in state.dropped["spin/x/base/1t/1MiB"].reason
    assert sum("spin" in call for call in fake.calls) == 3
    assert [[line["mix"] for line in state.samples["b", i]] for i in range(6)] == [
        ["scan/x/base/1t/1MiB"]
    ] * 6


def test_a_run_ends_when_nothing_is_left_to_measure(fake, tmp_path):
    fake.script(scan=["skip"])
    status, state = run(tmp_path / "out", pages_plan(kernels=("scan",)))
    assert status == "done"
    assert len(fake.calls) == 2
    assert state.samples.get(("pages/scan", 0), []) == []


def test_a_spent_budget_stops_after_the_least_rounds(fake, tmp_path):
    status, state = run(tmp_path / "out", pages_plan(rounds=50), budget_s=0.0, least_rounds=3)
    assert status == "budget"
    assert {len(rounds) for rounds in state.closed.values()} == {3}


def test_a_budget_spent_with_the_last_round_is_a_complete_run(fake, tmp_path):
    assert run(tmp_path / "out", pages_plan(rounds=2), budget_s=0.0, least_rounds=2)[0] == "done"


def test_the_caller_decides_which_block_is_next(fake, tmp_path):
    plan = pages_plan(rounds=1, kernels=("scan", "chase"))
    wanted = [plan.blocks[1]] * 3

    status, state = run(
        tmp_path / "out", plan, next_block=lambda state: wanted.pop() if wanted else None
    )
    assert status == "done"
    assert {b: sorted(r) for b, r in state.closed.items()} == {"pages/chase": [0, 1, 2]}


def test_a_resumed_schedule_repeats_nothing(fake, tmp_path):
    """Cut the journal at a random line, again and again: each round closes once in the end."""
    plan = pages_plan(rounds=4, kernels=("scan", "chase", "spin"))
    cut = random.Random(3)
    path = tmp_path / "out" / "journal.ndjson"
    run(tmp_path / "out", plan)
    for _ in range(5):
        rows = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(rows[: cut.randrange(len(rows))]) + b'{"kind": "sam')
        status, state = run(tmp_path / "out", plan)
        assert status == "done"
        assert {b: sorted(r) for b, r in state.closed.items()} == {
            b.id: [0, 1, 2, 3] for b in plan.blocks
        }
        for (id_, _), lines in state.samples.items():
            here = next(b for b in plan.blocks if b.id == id_)
            assert sorted(line["mix"] for line in lines) == sorted(names(here))


def test_the_driver_sleeps_while_a_worker_measures(fake):
    fake.script(scan=["slow:1.0"])
    request = make_request(entry("scan/x/base/1t/1MiB"), SETTINGS, 1)
    before, began = os.times(), time.monotonic()
    outcome = run_worker(request, 30, WORKER)
    wall, after = time.monotonic() - began, os.times()
    assert "error" not in outcome.response
    used = after.user - before.user + after.system - before.system
    # One clock tick of 10 ms is what os.times() can tell apart; starting the process is in it.
    assert used <= 0.01 * wall + 0.03


def test_a_worker_is_found_whatever_folder_the_user_is_in(tmp_path, monkeypatch):
    """A user's own ``bench`` folder must not be taken for the package."""
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "__init__.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    from bench.spawn import WORKER as REAL

    command = (*REAL[:-1], "bench.errors")
    assert "exit code 9" not in str(run_worker({}, 30, command).response)


def test_time_allowed_grows_with_memory_and_estimate():
    small = time_limit_s(entry("scan/x/base/1t/1MiB", estimate_s=0.1), SETTINGS)
    large = time_limit_s(entry("scan/x/base/1t/64GiB", estimate_s=0.1), SETTINGS)
    each = time_limit_s(entry("scan/x/base/4t/64GiB{process=each}", estimate_s=0.1), SETTINGS)
    assert small < large < each


def test_blocks_a_journal_could_not_tell_apart_are_refused():
    twice = block("a", "scan/x/base/1t/1MiB")
    with pytest.raises(PagestormError, match="two blocks"):
        check_blocks([twice, twice])
    with pytest.raises(PagestormError, match="same mix twice"):
        check_blocks([block("a", "scan/x/base/1t/1MiB", "scan/x/base/1t/1MiB")])


def test_a_schedule_is_done_after_its_rounds(fake, tmp_path):
    plan = pages_plan(rounds=2)
    _, state = run(tmp_path / "out", plan)
    assert in_rounds(plan.blocks, 2, plan.seed)(state) is None
    assert in_rounds(plan.blocks, 3, plan.seed)(state) is not None
