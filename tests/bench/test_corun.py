"""The interference matrix: what is planned, and planted effects that must come out."""

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
from simulated import REGISTRY, actor, cpus, line

from analysis.corun import accuracy, cells, spaces
from analysis.corun_matrix import Matrix
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
    return Matrix(results, made.plan.blocks[0].id, cases, 0.02)


def by_pair(cells, space="shared"):
    return {(c.victim, c.aggressor): c for c in cells if c.space == space}


def test_a_victim_is_slowed_and_an_aggressor_is_not():
    def effects(mix, i):
        beside = {a.kernel for j, a in enumerate(mix.actors) if j != i}
        return 2.0 if mix.actors[i].kernel == "walk" and "stream" in beside else 1.0

    found = by_pair(cells(measured(matrix(), effects)))
    hit = found["walk", "stream"]
    assert hit.alone.verdict == "hurts"
    assert hit.alone.ratio == pytest.approx(2.0, rel=0.03)
    assert hit.alone.low <= 2.0 <= hit.alone.high
    assert hit.spin.ratio == pytest.approx(2.0, rel=0.03)
    assert found["stream", "walk"].alone.verdict == "neutral"


def test_what_spinners_do_too_is_not_memory():
    """A victim that any neighbour slows, spinners among them: clock or scheduling."""
    everywhere = measured(matrix(), lambda mix, i: 1.3 if mix.actors[1:] else 1.0, noise=0.005)
    cell = by_pair(cells(everywhere))["walk", "stream"]
    assert cell.alone.verdict == "hurts"
    assert cell.spin.verdict == "neutral"


def test_the_cost_of_one_address_space_is_told_from_the_twin():
    def effects(mix, i):
        one_space = len({a.process for a in mix.actors}) == 1 and len(mix.actors) > 1
        storms = any(a.kernel == "storm" for j, a in enumerate(mix.actors) if j != i)
        return 1.5 if one_space and storms and mix.actors[i].kernel == "stream" else 1.0

    found = {(s.victim, s.aggressor): s.cost for s in spaces(measured(matrix(), effects))}
    assert found["stream", "storm"].verdict == "hurts"
    assert found["stream", "storm"].ratio == pytest.approx(1.5, rel=0.03)
    assert found["walk", "storm"].verdict == "neutral"
    assert found["storm", "stream"].verdict == "neutral"


SPEEDS = {"stream": (10.0, 12.0), "copy": (8.0, 10.0), "walk": (1.0, 12.0), "storm": (6.0, 12.0)}
"""GB/s of one thread, and at saturation."""
FOUR = (*SUBJECTS[:2], Subject("copy", actor("stream", size=32 << 20)), SUBJECTS[2])


def label_of(actor):
    return "copy" if actor.size == 32 << 20 else actor.kernel


def by_the_law(mix, i):
    """Traffic where nothing but the interface is shared."""
    groups = [Group(1, *SPEEDS[label_of(a)]) for a in mix.actors if a.kernel != "spin"]
    return 1e-3 if mix.actors[i].kernel == "spin" else float(shares(groups)[i])


def test_the_sharing_law_foretells_what_follows_it():
    made = measured(matrix(FOUR, twins="none"), lambda mix, i: 1.0, traffic=by_the_law)
    found = [cell for cell in cells(made, {"storm"}) if {cell.victim, cell.aggressor} <= STREAMERS]
    assert len(found) == 4
    for cell in found:
        assert cell.error(cell.law) == pytest.approx(0, abs=1e-9), cell


STREAMERS = {"stream", "copy"}


def test_the_sharing_law_is_not_for_walkers_and_storms_and_says_of_how_many_pairs_it_is():
    made = measured(matrix(FOUR, twins="none"), lambda mix, i: 1.0, traffic=by_the_law)
    found = cells(made, {"storm"})
    for cell in found:
        assert math.isnan(cell.law) == (not {cell.victim, cell.aggressor} <= STREAMERS), cell
    told = accuracy(found, "law")
    assert (told.pairs, told.of) == (2, 12)


SENSITIVE = {"stream": 0.2, "copy": 0.5, "walk": 1.0, "storm": 0.1}
PRESSURE = {"stream": 0.8, "copy": 0.4, "walk": 0.05, "storm": 0.3}
INTERRUPTS = {"storm": 0.4}


def waiting(mix, i):
    """Time of an actor where victims wait longer, and a storm interrupts all, spinners too."""
    if len(mix.actors) == 1:
        return 1.0
    victim, aggressor = mix.actors[i], mix.actors[1 - i]
    loss = 0.1 + INTERRUPTS.get(label_of(aggressor), 0.0)  # 0.1: a core of a pair is slower
    if "spin" not in (victim.kernel, aggressor.kernel):
        loss += SENSITIVE[label_of(victim)] * PRESSURE[label_of(aggressor)]
    return math.exp(loss)


def test_sensitivity_and_pressure_foretell_what_waits_and_what_is_interrupted():
    found = cells(measured(matrix(FOUR, twins="none"), waiting, noise=0.005))
    told = accuracy(found, "fit")
    assert (told.pairs, told.of) == (12, 12)
    assert told.median < 0.01
    assert abs(told.worst) < 0.05
    assert accuracy(found, "none").median > 3 * told.median
    interrupted = by_pair(found)["spin", "storm"]
    assert interrupted.alone.ratio == pytest.approx(math.exp(0.5), rel=0.02)
    assert interrupted.spin.ratio == pytest.approx(math.exp(0.4), rel=0.02)


def test_a_forecast_never_looks_at_the_pair_that_it_is_for():
    def odd(mix, i):
        pair = {label_of(a) for a in mix.actors} == {"walk", "stream"}
        return waiting(mix, i) * (5 if pair else 1)

    usual, other = (
        by_pair(cells(measured(matrix(FOUR, twins="none"), effects, noise=0.0)))
        for effects in (waiting, odd)
    )
    for pair in (("walk", "stream"), ("stream", "walk")):
        assert other[pair].alone.ratio == pytest.approx(5 * usual[pair].alone.ratio)
        assert other[pair].fit == pytest.approx(usual[pair].fit)
        assert other[pair].error(other[pair].fit) == pytest.approx(4, rel=0.05)


def test_two_kernels_foretell_nothing_of_each_other():
    found = cells(measured(matrix(SUBJECTS[:2], twins="none"), waiting))
    assert accuracy(found, "fit").pairs == 0
    assert all(math.isnan(cell.fit) for cell in found)


def test_without_a_kernel_beside_itself_the_law_foretells_nothing():
    made = matrix(twins="none")
    alike = [c for c in made.cases if c.kind == "pair" and c.first == c.second]
    gone = {mix_name(case.mix) for case in alike}
    (block,) = made.plan.blocks
    kept = tuple(entry for entry in block.entries if mix_name(entry.mix) not in gone)
    made.plan = replace(made.plan, blocks=(replace(block, entries=kept),))
    made.cases = [case for case in made.cases if mix_name(case.mix) not in gone]
    for cell in cells(measured(made, lambda mix, i: 1.0)):
        assert math.isnan(cell.law)
