"""The interference matrix: what is planned, and planted effects that must come out."""

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
from simulated import REGISTRY, actor, cpus, line

from analysis.corun import _Matrix
from analysis.load import Results
from analysis.models.sharing import Group, shares
from analysis.rows import make_rows
from bench.blocks import Settings
from bench.corunplan import Subject, make, parse_split
from bench.errors import UsageError
from bench.mix import mix_name
from bench.mixplan import MixPlanner

SUBJECTS = (
    Subject("stream", actor("stream")),
    Subject("walk", actor("walk")),
    Subject("storm", actor("storm")),
)


def matrix(subjects=SUBJECTS, splits=((1, 1),), twins="churn", budget_s=1e9, host=None):
    planner = MixPlanner(REGISTRY, host or cpus(2))
    return make(subjects, splits, twins, planner, Settings(0.1, 0.0), 10, 6, budget_s, 1)


def kinds(made):
    return [(c.kind, c.first, c.second, c.space) for c in made.cases]


def test_both_baselines_and_every_pair_are_in_one_block():
    made = matrix()
    (block,) = made.plan.blocks
    assert len(block.entries) == len(made.cases)
    found = kinds(made)
    for label in ("stream", "walk", "storm"):
        assert ("alone", label, "", "shared") in found
        assert ("spin", label, "", "shared") in found
    pairs = {(a, b) for kind, a, b, space in found if kind == "pair" and space == "shared"}
    assert len(pairs) == 6
    own = {(a, b) for kind, a, b, space in found if kind == "pair" and space == "own"}
    assert own == {("stream", "storm"), ("walk", "storm"), ("storm", "storm")}


def test_twins_of_all_pairs_or_of_none():
    assert sum(c.space == "own" for c in matrix(twins="all").cases) == 6
    assert sum(c.space == "own" for c in matrix(twins="none").cases) == 0


def test_uneven_splits_are_run_both_ways():
    made = matrix(splits=((1, 3),), twins="none", host=cpus(4))
    pairs = [(c.first, c.second, c.threads) for c in made.cases if c.kind == "pair"]
    assert ("stream", "walk", (1, 3)) in pairs
    assert ("stream", "walk", (3, 1)) in pairs
    assert len([p for p in pairs if p[0] == p[1] == "stream"]) == 1


def test_a_budget_gives_up_twins_then_the_last_kernels_and_says_so():
    whole = matrix()
    full_s = 6 * whole.plan.blocks[0].estimate_s
    fewer = matrix(budget_s=full_s * 0.9)
    assert [skip.what for skip in fewer.shed] == ["address spaces of their own"]
    least = matrix(budget_s=full_s * 0.4)
    assert [skip.what for skip in least.shed] == ["address spaces of their own", "storm"]
    assert all(skip.remedy.startswith("--budget") for skip in least.shed)


@pytest.mark.parametrize(("text", "n"), [("half", (1, 1)), ("1:1", (1, 1))])
def test_splits(text, n):
    assert parse_split(text, 2) == n


@pytest.mark.parametrize("text", ["1:2", "0:1", "1", "a:b"])
def test_wrong_splits_name_the_way_out(text):
    with pytest.raises(UsageError) as caught:
        parse_split(text, 2)
    assert "half" in caught.value.remedy


def measured(made, effects, rounds=12, noise=0.01, traffic=None):
    """Matrix of simulated samples; ``traffic(mix, i)`` is GB/s of actor ``i``."""
    rng = random.Random(3)
    rows = []
    for block in made.plan.blocks:
        for round_ in range(rounds):
            drift = math.exp(rng.gauss(0, 0.2))
            for entry in block.entries:
                sample = line(block, entry, round_, effects, drift, noise, rng)
                if traffic is not None:
                    for i, own in enumerate(sample["actors"]):
                        own["useful_bytes"] = own["bus_min_bytes"] = own["bus_max_bytes"] = 1e9
                        own["seconds"] = 1 / traffic(entry.mix, i)
                rows += make_rows(sample, "corun")
    results = Results(Path(), rows=rows)
    cases = [case.plain() for case in made.cases]
    return _Matrix(results, made.plan.blocks[0].id, cases, 0.02)


def by_pair(cells, space="shared"):
    return {(c.victim, c.aggressor): c for c in cells if c.space == space}


def test_a_victim_is_slowed_and_an_aggressor_is_not():
    def effects(mix, i):
        beside = {a.kernel for j, a in enumerate(mix.actors) if j != i}
        return 2.0 if mix.actors[i].kernel == "walk" and "stream" in beside else 1.0

    cells = by_pair(measured(matrix(), effects).cells())
    hit = cells["walk", "stream"]
    assert hit.alone.verdict == "hurts"
    assert hit.alone.ratio == pytest.approx(2.0, rel=0.03)
    assert hit.alone.low <= 2.0 <= hit.alone.high
    assert hit.spin.ratio == pytest.approx(2.0, rel=0.03)
    assert cells["stream", "walk"].alone.verdict == "neutral"


def test_what_spinners_do_too_is_not_memory():
    """A victim that any neighbour slows, spinners among them: clock or scheduling."""
    cells = by_pair(measured(matrix(), lambda mix, i: 1.3 if len(mix.actors) > 1 else 1.0).cells())
    cell = cells["walk", "stream"]
    assert cell.alone.verdict == "hurts"
    assert cell.spin.verdict == "neutral"


def test_the_cost_of_one_address_space_is_told_from_the_twin():
    def effects(mix, i):
        one_space = len({a.process for a in mix.actors}) == 1 and len(mix.actors) > 1
        storms = any(a.kernel == "storm" for j, a in enumerate(mix.actors) if j != i)
        return 1.5 if one_space and storms and mix.actors[i].kernel == "stream" else 1.0

    found = {(s.victim, s.aggressor): s.cost for s in measured(matrix(), effects).spaces()}
    assert found["stream", "storm"].verdict == "hurts"
    assert found["stream", "storm"].ratio == pytest.approx(1.5, rel=0.03)
    assert found["walk", "storm"].verdict == "neutral"
    assert found["storm", "stream"].verdict == "neutral"


def test_the_sharing_law_foretells_what_follows_it():
    speeds = {"stream": (10.0, 12.0), "walk": (1.0, 12.0), "storm": (6.0, 12.0), "spin": (0.0, 1.0)}

    def traffic(mix, i):
        groups = [Group(1, *speeds[a.kernel]) for a in mix.actors if a.kernel != "spin"]
        if mix.actors[i].kernel == "spin":
            return 1e-3
        return float(shares(groups)[i])

    found = measured(matrix(twins="none"), lambda mix, i: 1.0, traffic=traffic)
    for cell in found.cells():
        assert cell.error == pytest.approx(0, abs=1e-9), cell


def test_without_a_kernel_beside_itself_nothing_is_foretold():
    made = matrix(twins="none")
    alike = [c for c in made.cases if c.kind == "pair" and c.first == c.second]
    gone = {mix_name(case.mix) for case in alike}
    (block,) = made.plan.blocks
    kept = tuple(entry for entry in block.entries if mix_name(entry.mix) not in gone)
    made.plan = replace(made.plan, blocks=(replace(block, entries=kept),))
    made.cases = [case for case in made.cases if mix_name(case.mix) not in gone]
    for cell in measured(made, lambda mix, i: 1.0).cells():
        assert math.isnan(cell.predicted)
        assert math.isnan(cell.error)
