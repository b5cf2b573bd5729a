"""Extra rounds come where pairs are unequal in placement, are few, and do not look at values."""

import pytest
from faked import Fake, Silent, block, pages_plan, run

from bench.rounds import MOST_EXTRA, fewest_pairs, with_extra_rounds


@pytest.fixture
def fake(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_WORKER", str(tmp_path / "fake"))
    return Fake(tmp_path / "fake")


def measured(folder, plan, **options):
    """State after a run with extra rounds."""
    schedule = with_extra_rounds(plan.blocks, plan.rounds, plan.seed)
    options = {"planned_rounds": plan.rounds, **options}
    status, state = run(folder, plan, next_block=schedule, **options)
    assert status == "done"
    return state


def rounds_of(state, plan):
    return [state.next_round(block.id) for block in plan.blocks]


def test_a_block_that_lacks_pairs_gets_the_rounds_it_takes(fake, tmp_path):
    fake.script(scan=["near", "far"] * 2 + ["near"] * 100, chase=["near"])
    plan = pages_plan(rounds=6)
    state = measured(tmp_path, plan)
    assert rounds_of(state, plan) == [8, 6], "two rounds of the first block were unequal"
    assert fewest_pairs(plan.blocks[0], state) == 6


def test_there_are_half_as_many_rounds_again_at_most(fake, tmp_path):
    fake.script(scan=["near", "far"] * 100, chase=["near"])
    plan = pages_plan(rounds=6)
    state = measured(tmp_path, plan)
    assert rounds_of(state, plan) == [6 + int(MOST_EXTRA * 6), 6]
    assert fewest_pairs(plan.blocks[0], state) == 0


@pytest.mark.parametrize("seconds", [["ok:0.1"], ["ok:0.1", "ok:0.2", "ok:0.4"]])
def test_values_make_no_difference(fake, tmp_path, seconds):
    fake.script(scan=seconds, chase=seconds)
    plan = pages_plan(rounds=6)
    assert rounds_of(measured(tmp_path, plan), plan) == [6, 6]


def test_a_lost_round_is_made_up_for(fake, tmp_path):
    # One bad sample after another, of both mixes: the first round is given up.
    fake.script(scan=["ok", "wrong", "wrong", "ok", "wrong"] + ["ok"] * 100)
    plan = pages_plan(rounds=6, kernels=("scan",))
    state = measured(tmp_path, plan)
    lost = sum(status == "failed" for status in state.closed["pages/scan"].values())
    assert rounds_of(state, plan) == [6 + lost]


def test_what_compares_nothing_needs_no_pairs(fake, tmp_path):
    fake.script(scan=["near", "far"] * 100)
    plan = pages_plan(rounds=6)
    alone = block("alone", "scan/scalar/base/1t/1GiB")
    made = type(plan)("quick", (alone,), 6, 1)
    assert rounds_of(measured(tmp_path, made), made) == [6]


def test_extra_rounds_keep_to_the_budget(fake, tmp_path):
    fake.script(scan=["near", "far"] * 100)
    plan = pages_plan(rounds=6, kernels=("scan",))
    watcher = Silent()
    state = measured(tmp_path, plan, watcher=watcher, budget_s=1e-3)
    assert rounds_of(state, plan) == [6], "six are run whatever the budget, none beyond it"
