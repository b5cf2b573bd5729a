"""Runs of a command: verdicts, failures, evidence of an effect, and equal against equal."""

import math
import random

import pytest

from analysis.aa import most_different
from analysis.remedy_stages import PILOT, VERDICT
from analysis.tried import Spec, choose, effect, judge, pairs, runs, samples
from analysis.tryreport import effect_text
from bench.blocks import BASELINE


def line(block, round_, remedy, seconds=1.0, failure="", metric=None, looks=None, faults=1000):
    run = {"seconds": seconds, "status": 0, "looks": looks or {}}
    run["usage"] = {"user_s": seconds, "system_s": 0.0, "minor_faults": faults}
    if failure:
        run["failure"] = failure
    if metric is not None:
        run["metric"], run["metric_unit"] = metric, ""
    return {
        "kind": "sample",
        "block": block,
        "round": round_,
        "attempt": 0,
        "mix": remedy,
        "wall_s": seconds,
        "disturbed": {},
        "run": run,
    }


def journal(values, pilot=6, fresh=10, **both):
    """Lines in which each remedy takes what ``values[remedy](round)`` says."""
    return [
        line(block, i, remedy, **({"seconds": one} if isinstance(one, float) else one), **both)
        for block, n in ((PILOT, pilot), (VERDICT, fresh))
        for i in range(n)
        for remedy, value in values.items()
        for one in [value(i)]
    ]


def drifting(level):
    return lambda i: level * (1 + 0.3 * (i % 4)) * (1 + 0.001 * (i % 3))


SPEC = Spec({"thp": ("huge", "faults"), "none": ()})
LOOKS = {"resident_bytes": 100, "huge_bytes": 0, "virtual_bytes": 200, "threads": 2, "cpus": [0, 1]}


def test_ratios_are_of_one_round_and_drift_falls_out():
    lines = journal({BASELINE: drifting(1.0), "thp": drifting(0.8), "none": drifting(1.0)})
    thp, none = judge(lines, SPEC)
    assert (thp.name, thp.decision.verdict) == ("thp", "helps")
    assert thp.decision.ratio == pytest.approx(0.8)
    assert none.decision.verdict == "neutral"
    assert thp.decision.n == 10, "the pilot's runs decide nothing"


def test_where_more_is_better_more_is_a_gain():
    def rate(level):
        return lambda i: {"metric": level * (1 + i % 4)}

    spec = Spec({"thp": ()}, higher_is_better=True)
    lines = journal({BASELINE: rate(100.0), "thp": rate(150.0)})
    (thp,) = judge(lines, spec)
    assert thp.decision.verdict == "helps"
    assert thp.decision.ratio == pytest.approx(100 / 150)
    assert thp.median == 300, "as it was printed"


def test_a_remedy_that_fails_is_a_result_and_is_not_measured_on():
    def failing(i):
        return {"failure": "exit code 1"}

    lines = journal({BASELINE: drifting(1.0), "thp": failing, "none": drifting(1.0)})
    none, thp = judge(lines, SPEC)
    assert thp.failure == "exit code 1, in 16 of 16 runs"
    assert thp.decision.verdict == "not tested"
    assert none.decision.verdict == "neutral"
    assert choose(lines, SPEC).remedies == ("none",)


def test_one_failure_loses_its_pair_only():
    def once(i):
        return {"failure": "SIGSEGV"} if i == 3 else {"seconds": 0.8}

    lines = journal({BASELINE: lambda i: 1.0, "thp": once}, pilot=0, fresh=12)
    (thp, _) = judge(lines, SPEC)
    assert thp.decision.n == 11
    assert thp.decision.verdict == "helps"


def test_a_command_that_fails_by_itself_gives_no_verdict():
    def failing(i):
        return {"failure": "exit code 1"} if i % 2 else {"seconds": 1.0}

    lines = journal({BASELINE: failing, "thp": drifting(0.5)})
    decision = judge(lines, SPEC)[0].decision
    assert decision.verdict == "not tested"
    assert "the command itself fails" in decision.reason


def test_samples_of_a_round_that_was_cut_off_do_not_count():
    lines = [line(VERDICT, 0, BASELINE), line(VERDICT, 1, BASELINE)]
    closed = {"kind": "block", "block": VERDICT, "round": 0, "attempt": 0, "status": "ok"}
    assert samples([*lines, closed]) == lines[:1]


# ---- did it take effect --------------------------------------------------------------------------


def figures_of(baseline, treated, shows):
    """Effect where runs have these looks or faults, one a round."""
    lines = [line(PILOT, i, BASELINE, **one) for i, one in enumerate(baseline)]
    lines += [line(PILOT, i, "thp", **one) for i, one in enumerate(treated)]
    return effect(runs(lines, PILOT, SPEC), "thp", shows)


def looks(huge=0, cpus=(0, 1)):
    return {"looks": {**LOOKS, "huge_bytes": huge, "cpus": list(cpus)}}


def test_an_effect_is_named_with_what_changed():
    found = figures_of([looks(0)] * 6, [looks(87)] * 6, ("huge", "faults"))
    assert found.took is True
    assert effect_text(found) == "took effect: huge pages 0% -> 87%"


def test_no_effect_is_said_to_be_none():
    found = figures_of([looks(40)] * 6, [looks(41)] * 6, ("huge", "faults"))
    assert found.took is False
    assert effect_text(found).startswith("had no effect on this program: ")


def test_runs_that_overlap_are_not_clear():
    found = figures_of(
        [looks(h) for h in (0, 0, 0, 50, 50, 0)],
        [looks(h) for h in (50, 50, 0, 50, 0, 50)],
        ("huge",),
    )
    assert found.took is None
    assert effect_text(found).startswith("not clear")


@pytest.mark.parametrize(
    ("runs", "took", "text"),
    [
        ((93, 93, 0, 93, 0, 93), True, "took effect in 4 of 6 runs: huge pages 0% -> 93%"),
        ((93, 0, 0, 93, 0, 0), None, "not clear, in 2 of 6 runs: huge pages 0% -> 93%"),
        ((93, 0, 0, 0, 0, 0), None, "not clear, in 1 of 6 runs: huge pages 0% -> 93%"),
        ((1, 0, 0, 0, 0, 1), False, "had no effect on this program: huge pages 0%"),
    ],
)
def test_a_program_may_take_a_remedy_in_some_runs_only(runs, took, text):
    found = figures_of([looks(0)] * 6, [looks(h) for h in runs], ("huge",))
    assert found.took is took
    assert effect_text(found) == text


def test_what_ran_too_short_to_be_seen_is_not_called_without_effect():
    found = figures_of([{}] * 6, [{}] * 6, ("huge", "faults"))
    assert found.took is None
    assert "too short" in effect_text(found)
    # Faults are counted without looking.
    fewer = figures_of([{"faults": 9000}] * 6, [{"faults": 20}] * 6, ("huge", "faults"))
    assert fewer.took is True


# ---- equal against equal -------------------------------------------------------------------------


def noisy_journal(rng, n_equal, pilot, fresh):
    """A host that drifts, jitters, and once in a while stands still, the same for everybody."""
    names = [BASELINE, *(f"none{i}" for i in range(n_equal))]
    lines, level = [], 0.0
    for block, n in ((PILOT, pilot), (VERDICT, fresh)):
        for i in range(n):
            for name in rng.sample(names, len(names)):
                level = 0.9 * level + rng.gauss(0, 0.05)
                stall = rng.expovariate(1) * 0.5 if rng.random() < 0.05 else 0.0
                lines.append(line(block, i, name, math.exp(level + rng.gauss(0, 0.03) + stall)))
    return lines


@pytest.mark.parametrize(("fresh", "n_runs", "n_equal"), [(9, 1000, 2), (16, 300, 2)])
def test_equal_commands_are_called_different_no_more_often_than_promised(fresh, n_runs, n_equal):
    """The promise is of a whole run: all remedies of it together."""
    rng = random.Random(7)
    spec = Spec({f"none{i}": () for i in range(n_equal)}, dead_band=1e-6)
    wrong = 0
    for _ in range(n_runs):
        found = judge(noisy_journal(rng, n_equal, 6, fresh), spec)
        assert all(one.tested for one in found)
        wrong += any(one.decision.verdict in ("helps", "hurts") for one in found)
    assert wrong <= most_different(n_runs)


def test_the_choice_depends_on_spread_and_time_only():
    """Twice as slow a remedy, the same spread: as many rounds."""
    rng = random.Random(1)
    equal = noisy_journal(rng, 1, 6, 0)
    slower = [
        {**one, "run": {**one["run"], "seconds": one["run"]["seconds"] * (2 if treated else 1)}}
        for one in equal
        for treated in [one["mix"] != BASELINE]
    ]
    spec = Spec({"none0": ()}, most_rounds=10_000)
    assert choose(equal, spec).rounds == choose(slower, spec).rounds
    short = Spec({"none0": ()}, most_rounds=10_000, budget_s=40.0)
    assert choose(equal, short).rounds < choose(equal, spec).rounds
    assert pairs(runs(equal, PILOT, spec), "none0").log_ratios.size == 6
