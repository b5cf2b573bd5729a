"""Pilot, pairs, verdict, spinners: what is found, what is not, and from which samples."""

import random
import time

import pytest
from simulated import REGISTRY, judged, planned, run, scenario, setting

from analysis.remedy_stages import Spec, choose
from bench.blocks import Settings
from bench.commands._remedy_schedule import Stages, rows_of
from bench.journal import State
from bench.mix import mix_name
from bench.mixplan import MixPlanner
from bench.remedyplan import solo

CASE = scenario()


def no_effect(mix, i):
    return 1.0


def paged(factor):
    """Larger pages change the time of everybody."""
    return lambda mix, i: factor if mix.actors[i].policy == "thp" else 1.0


def locked(factor, also_spinners):
    """A lock changes the time of everybody; among spinners perhaps, too."""

    def effect(mix, i):
        spins = mix.actors[i].kernel == "spin"
        return factor if mix.pools and (also_spinners or not spins) else 1.0

    return effect


def test_a_remedy_that_helps_by_a_fifth_is_found_and_recommended():
    made = planned()
    options, state, order = run(made, CASE, paged(1 / 1.2))
    found, (best, said) = judged(options, state)
    assert found["thp"].total.verdict == "helps"
    assert found["thp"].critical.verdict == "helps"
    assert found["thp"].bystanders["storm"].verdict == "helps"
    assert found["thp"].cause == "memory"
    assert 1 / found["thp"].total.ratio == pytest.approx(1.2, rel=0.03)
    # Pairs with larger pages help as much: the simplest one is recommended.
    assert best == "thp"
    assert "pays" in said
    assert list(dict.fromkeys(order))[:3] == ["pilot", "pairs", "verdict"]


def test_a_remedy_that_hurts_is_not_combined_and_not_recommended():
    made = planned(["thp", "mutex", "pause"])
    options, state, _ = run(made, CASE, locked(1.5, False))
    found, (best, said) = judged(options, state)
    assert found["mutex"].total.verdict == "hurts"
    ran = {line["mix"] for (block, _), lines in state.samples.items() for line in lines}
    assert mix_name(made.mixes["thp+pause"]) in ran
    assert mix_name(made.mixes["thp+mutex"]) not in ran
    assert best == ""
    assert "pay" in said


def test_a_gain_that_spinners_have_too_is_scheduling():
    made = planned(["thp", "mutex"])
    options, state, order = run(made, CASE, locked(1 / 1.3, True))
    found, (_best, said) = judged(options, state)
    assert order[-1] == "spin"
    assert found["mutex"].cause == "scheduling"
    assert found["mutex"].among_spinners.verdict == "helps"
    assert "scheduling, not memory" in said


def test_a_gain_that_spinners_do_not_have_is_memory():
    made = planned(["thp", "mutex"])
    options, state, _ = run(made, CASE, locked(1 / 1.3, False))
    found, (best, said) = judged(options, state)
    assert found["mutex"].cause == "memory"
    assert "mutex" in best
    assert "scheduling" not in said


def test_spinners_run_only_where_something_helps():
    _, _state, order = run(planned(["thp", "mutex"]), CASE, no_effect)
    assert "spin" not in order


def test_a_remedy_that_helps_the_critical_actor_alone_is_told_so():
    def effect(mix, i):
        paused = mix.actors[1].courtesy == "pause"
        return (1 / 1.3 if i == 0 else 2.0) if paused else 1.0

    made = planned(["pause"])
    options, state, _ = run(made, CASE, effect)
    found, (_best, _said) = judged(options, state)
    # 2 of 3 parts of the work are 1.3 times as fast, 1 part half as fast.
    assert 1 / found["pause"].total.ratio == pytest.approx((2 * 1.3 + 0.5) / 3, rel=0.05)
    assert found["pause"].critical.verdict == "helps"
    assert found["pause"].bystanders["storm"].verdict == "hurts"


def test_nothing_to_find_is_neutral_when_there_is_time_enough():
    options, state, _ = run(planned(["thp", "mutex"]), CASE, no_effect, noise=0.005)
    found, (best, said) = judged(options, state)
    assert {r.total.verdict for r in found.values()} == {"neutral"}
    assert (best, said) == ("", "no remedy pays: leave it as it is")


def test_noise_says_cannot_tell_and_how_small_an_effect_could_be_seen():
    options, state, _ = run(planned(["thp", "mutex"]), CASE, no_effect, noise=0.3, budget_s=120)
    found, (best, said) = judged(options, state)
    assert {r.total.verdict for r in found.values()} == {"cannot tell"}
    assert best == ""
    assert "cannot tell" in said
    assert "smallest effect" in said


def test_the_verdict_rests_on_fresh_samples_of_a_count_set_before():
    options, state, _ = run(planned(["thp"]), CASE, paged(1 / 1.2), noise=0.03)
    choice = choose(rows_of(state), Spec.of(options))
    found, _ = judged(options, state)
    assert found["thp"].total.n == choice.rounds
    only_pilot = [row for row in rows_of(state) if row["block"] in ("pilot", "pairs")]
    assert choose(only_pilot, Spec.of(options)) == choice


def test_another_dead_band_reads_the_same_samples_and_decides_anew():
    options, state, _ = run(planned(["thp"]), CASE, paged(1 / 1.04), noise=0.004)
    assert judged(options, state)[0]["thp"].total.verdict == "helps"
    wider = {**options, "dead_band": 0.1}
    found, _ = judged(wider, state)
    assert found["thp"].total.verdict == "neutral"
    assert found["thp"].total.n == judged(options, state)[0]["thp"].total.n


def test_where_an_effect_lies_does_not_change_how_many_samples_it_gets():
    counts = set()
    for factor in (0.5, 0.98, 1.0, 1.3):
        options, state, _ = run(planned(["thp"]), CASE, paged(factor), noise=0.03, seed=5)
        counts.add(choose(rows_of(state), Spec.of(options)).rounds)
    assert len(counts) == 1


def test_little_time_tries_fewer_remedies_rather_than_all_with_too_few_samples():
    many = ["thp", "mutex", "yield", "pause", "pool"]
    made = planned(many, budget_s=150)
    options, state, _ = run(made, CASE, paged(0.8), noise=0.2, budget_s=150)
    choice = choose(rows_of(state), Spec.of(options))
    assert choice.left_out
    assert choice.rounds >= 12
    assert "thp" in choice.remedies


def test_the_plan_leaves_out_remedies_that_the_budget_cannot_pilot():
    made = planned(budget_s=60.0)
    assert made.shed
    assert all("budget" in skip.reason for skip in made.shed)
    assert made.mixes


def test_what_comes_next_depends_on_the_journal_alone():
    made = planned(["thp", "mutex"])
    options, state, order = run(made, CASE, paged(0.8))
    # A second sitting that finds the same lines goes the same way, whatever the first remembered.
    replayed, stages = State(), Stages(made.plan, options, time.monotonic())
    for block_id in order:
        block = stages.next_block(replayed)
        assert block.id == block_id
        round_ = replayed.next_round(block_id)
        for line in state.samples[block_id, round_]:
            replayed.apply(line)
        closed = {"kind": "block", "block": block_id, "round": round_, "attempt": 0}
        replayed.apply({**closed, "status": "ok"})
        if len(replayed.samples) % 5 == 0:
            stages = Stages(made.plan, options, time.monotonic())
    assert stages.next_block(replayed) is None


def false_verdicts(n, remedies, **options):
    """Scenarios in which some remedy was said to help or hurt though nothing has any effect."""
    wrong = 0
    for seed in range(n):
        noise = random.Random(seed).choice([0.01, 0.05, 0.2])
        given, state, _ = run(planned(remedies), CASE, no_effect, noise=noise, seed=seed, **options)
        found, _ = judged(given, state)
        wrong += any(r.total.verdict in ("helps", "hurts") for r in found.values())
    return wrong


def test_among_a_hundred_equal_scenarios_no_more_than_the_rate_finds_a_difference():
    # 5 % of 100, and the binomial's 99.9 % quantile above that.
    assert false_verdicts(100, ["thp", "mutex"], most_rounds=9) <= 13


@pytest.mark.slow
def test_the_rate_holds_with_bootstrapped_intervals():
    assert false_verdicts(100, ["thp", "mutex", "pause"], most_rounds=20) <= 13


def test_the_shortest_budget_still_has_every_actor_alone():
    planner = MixPlanner(REGISTRY, setting().resources)
    made = solo(CASE, {}, planner, Settings(0.2, 0.0), 0.001, 1)
    kept = {mix_name(entry.mix) for block in made.plan.blocks for entry in block.entries}
    assert set(made.own) <= kept
    assert not set(made.all) - set(made.own) & kept
