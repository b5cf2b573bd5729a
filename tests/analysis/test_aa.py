"""Counting false differences: a rule that keeps its level passes, one that does not is caught."""

from pathlib import Path

import numpy as np
import pytest

from analysis.aa import half_is_seen, judge_totals, most_different, outcome
from analysis.load import BlockInfo, Results
from analysis.paired import Rule
from analysis.stats import decide
from bench.mix import Actor, Mix
from bench.scenario import Scenario


def decisions(effect, noise, n=200, pairs=6, dead_band=0.0):
    random = np.random.default_rng(5)
    return [decide(random.normal(effect, noise, pairs), dead_band) for _ in range(n)]


def test_noise_alone_passes():
    found = outcome(decisions(0.0, 0.05))
    assert found.n == 200
    assert found.holds


def test_a_bias_of_one_side_is_caught():
    assert not outcome(decisions(0.06, 0.05)).holds


def test_nothing_said_is_not_a_pass():
    assert not outcome([]).holds


@pytest.mark.parametrize(("n", "most"), [(200, 18), (20, 4), (0, 0)])
def test_bound_is_the_binomials(n, most):
    assert most_different(n) == most


def test_half_the_speed_must_be_seen_where_there_are_pairs_enough():
    slow = decisions(np.log(2), 0.01, n=4)
    few = decisions(np.log(2), 0.01, n=4, pairs=5)
    assert {d.verdict for d in few} == {"cannot tell"}
    assert half_is_seen(slow + few)
    assert not half_is_seen(slow + decisions(0.0, 0.001, n=1, dead_band=0.02))
    assert not half_is_seen(slow + decisions(np.log(2), 2.0, n=1))


def scenario_rows(slower, n=12, rounds=6, noise=0.03):
    """Two actors of very different pace; ``slower``: factor on the first's time in second mixes."""
    random = np.random.default_rng(7)
    blocks, rows = [], []
    for i in range(n):
        blocks.append(BlockInfo(f"aa-{i}", "equal", (f"{i}a", f"{i}b")))
        for round_ in range(rounds):
            for mix, factor in ((f"{i}a", 1.0), (f"{i}b", slower)):
                for actor, seconds in enumerate((0.001 * factor, 0.7)):
                    rows.append({
                        "block": f"aa-{i}", "mix": mix, "round": round_, "actor": actor,
                        "seconds": seconds * random.lognormal(0, noise), "useful_bytes": 0,
                        "ops": 0, "state": "near", "wall_s": 1.0, "evidence_known": 1.0,
                    })  # fmt: skip
    results = Results(Path(), rows=rows)
    results.blocks = blocks
    return results


def test_scenarios_are_judged_by_their_total_and_every_actor_counts_by_its_weight():
    actors = [Actor("k", "s", "base", 1, 1, weight=w) for w in (3.0, 1.0)]
    scenario = Scenario("test", Mix(tuple(actors)), ("fast", "slow"))
    equal = outcome(judge_totals(scenario_rows(1.0), Rule(), "equal", scenario))
    assert equal.n == 12
    assert equal.holds
    slower = judge_totals(scenario_rows(2.0), Rule(), "equal", scenario)
    assert {d.verdict for d in slower} == {"hurts"}
    ratio = np.median([d.ratio for d in slower])
    assert ratio == pytest.approx(1 / (0.75 * 0.5 + 0.25), rel=0.05)
