"""The decision rule gives honest verdicts, and says what it could not have seen."""

import math

import numpy as np
import pytest

from analysis.intervals import bca_interval, interval, median_interval, pairs_needed
from analysis.stats import (
    decide,
    decide_family,
    not_tested,
    pair_by_state,
    paired_log_ratio,
    verdict_of,
)


def noise(kind, rng, size):
    """Log times as shared machines give them."""
    if kind == "normal":
        return rng.normal(0, 0.03, size)
    if kind == "heavy tail":
        return np.log1p(0.02 * rng.lognormal(0, 1.2, size))
    return rng.normal(0, 0.01, size) + 0.2 * (rng.random(size) < 0.4)


@pytest.mark.parametrize("kind", ["normal", "heavy tail", "two humps"])
@pytest.mark.parametrize("n", [6, 10, 12, 20])
def test_equal_treatments_rarely_get_a_verdict(kind, n):
    """Without a dead band, the worst case, at most 9 % of A/A comparisons see an effect."""
    rng = np.random.default_rng(n)
    runs = 400
    false = sum(
        decide(noise(kind, rng, n) - noise(kind, rng, n), dead_band=0).verdict in ("helps", "hurts")
        for _ in range(runs)
    )
    assert false / runs <= 0.09


@pytest.mark.parametrize("n", [8, 12])
def test_a_family_of_equal_treatments_rarely_gets_any_verdict(n):
    rng = np.random.default_rng(7)
    runs = 200
    false = 0
    for _ in range(runs):
        baseline = noise("normal", rng, n)
        family = {name: noise("normal", rng, n) - baseline for name in "abc"}
        decisions = decide_family(family, dead_band=0)
        false += any(d.verdict in ("helps", "hurts") for d in decisions.values())
    assert false / runs <= 0.09


def test_true_effect_is_found():
    rng = np.random.default_rng(0)
    for n in (6, 12, 20):
        effect = math.log(0.8) + rng.normal(0, 0.02, n)
        assert decide(effect).verdict == "helps"
        assert decide(effect, lower_is_better=False).verdict == "hurts"
        assert decide(-effect).verdict == "hurts"


def test_bca_coverage_holds_away_from_the_null_and_for_skewed_ratios():
    rng = np.random.default_rng(5)
    runs, n, median = 300, 12, math.log(1.1)
    hits = 0
    for _ in range(runs):
        # The median of this skewed sample is known: that of a lognormal is 1.
        x = median + 0.03 * (rng.lognormal(0, 0.8, n) - 1)
        found = bca_interval(x)
        hits += found.low <= median <= found.high
    assert hits / runs >= 0.91


@pytest.mark.parametrize(
    ("n", "low", "high", "coverage"),
    # Coverages are 1 - 2 P(Bin(n, 1/2) <= cut), computed with integers.
    [(6, 0, 5, 1 - 2 / 64), (7, 0, 6, 1 - 2 / 128), (8, 0, 7, 1 - 2 / 256), (9, 1, 7, 1 - 20 / 512),
     (12, 2, 9, 1 - 2 * 79 / 4096)],
)  # fmt: skip
def test_order_statistics_have_their_exact_coverage(n, low, high, coverage):
    found = median_interval(np.arange(n)[::-1])
    assert (found.low, found.high) == (low, high)
    assert found.coverage == pytest.approx(coverage, abs=1e-12)


def test_fewest_pairs_for_a_level():
    assert pairs_needed(0.95) == 6
    assert pairs_needed(0.975) == 7
    assert pairs_needed(1 - 2 / 64) == 6  # exactly reached
    with pytest.raises(ValueError, match="6 can"):
        median_interval(np.arange(5.0))


def test_interval_changes_method_at_ten_pairs():
    x = np.random.default_rng(0).normal(size=10)
    assert interval(x[:9]).method == "order statistics"
    assert interval(x).method.startswith("BCa")
    assert interval(x) == interval(x)  # seeded


def test_ties_give_an_exact_interval_instead_of_nan():
    assert interval(np.zeros(12)).method == "order statistics"
    mixed = interval(np.array([0.0] * 9 + [1.0] * 3))
    assert mixed.low == 0.0
    assert math.isfinite(mixed.high)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.90, 0.97, "helps"), (1.03, 1.2, "hurts"), (0.99, 1.01, "neutral"),
     (0.95, 1.01, "cannot tell"), (0.5, 2.0, "cannot tell"), (1 / 1.02, 1.02, "neutral")],
)  # fmt: skip
def test_rule(low, high, verdict):
    assert verdict_of(low, high) == verdict


def test_published_page_sizes_are_labelled_by_the_same_rule(cases):
    """1 GiB pages published as harmful on some patterns are called harmful (R23)."""
    case = cases["R23_pvk_1g"]
    verdicts = []
    for cycles, ratio in zip(case["cycles_4k_2m_1g"].values(), case["ratio_2m_4k"], strict=True):
        found = math.exp(paired_log_ratio([cycles[1]], [cycles[0]])[0])
        assert found == pytest.approx(ratio, abs=0.006)
        verdicts.append(verdict_of(found, found, 0.10))
    assert verdicts == ["hurts", "helps", "hurts", "helps", "neutral", "helps"]


def test_cannot_tell_says_what_it_could_have_seen_and_what_would_decide():
    rng = np.random.default_rng(3)
    x = rng.normal(math.log(0.94), 0.15, 12)
    decision = decide(x)
    assert decision.verdict == "cannot tell"
    half = math.log(decision.high / decision.low) / 2
    assert decision.smallest_effect == pytest.approx(math.exp(half) * 1.02 - 1)
    assert decision.samples_to_decide > 12
    assert f"{decision.samples_to_decide} pairs" in decision.reason


def test_the_promised_number_of_pairs_decides():
    """Over many runs that could not tell, the middle promise lets most runs of that size decide."""
    rng = np.random.default_rng(3)
    short = [decide(rng.normal(math.log(0.94), 0.1, 12)) for _ in range(60)]
    promises = [d.samples_to_decide or math.inf for d in short if d.verdict == "cannot tell"]
    promise = int(np.median(promises))
    long = [decide(rng.normal(math.log(0.94), 0.1, promise)) for _ in range(30)]
    assert sum(d.verdict == "helps" for d in long) >= 18
    # Not by promising too much: a quarter of it leaves most runs undecided.
    quarter = [decide(rng.normal(math.log(0.94), 0.1, promise // 4)) for _ in range(30)]
    assert sum(d.decided for d in quarter) <= 15


def test_effect_at_the_edge_of_the_band_is_not_promised_to_be_decidable():
    x = math.log(1.02) + np.array([-2, -1, -0.5, 0, 0, 0, 0, 0.5, 1, 2, -1, 1]) * 0.01
    decision = decide(x)
    assert decision.verdict == "cannot tell"
    assert decision.samples_to_decide is None
    assert "edge" in decision.reason


def test_too_few_pairs_is_an_answer():
    decision = decide([0.1, 0.11, 0.12])
    assert decision.verdict == "cannot tell"
    assert (decision.low, decision.high) == (0.0, math.inf)
    assert decision.samples_to_decide == 6


def test_not_tested_keeps_its_reason_and_command():
    decision = not_tested("no 1 GiB pages", "pagestorm host")
    assert decision.verdict == "not tested"
    assert not decision.decided
    assert "no 1 GiB pages" in str(decision)


def test_holm_asks_more_of_a_family_than_of_one():
    """One remedy decided at 6 pairs is not decided among three: 6 pairs cannot reach 98.3 %."""
    x = np.linspace(-0.20, -0.10, 6)
    assert decide(x).verdict == "helps"
    family = decide_family({"a": x, "b": x, "c": x})
    assert {d.verdict for d in family.values()} == {"cannot tell"}
    assert family["a"].samples_to_decide == pairs_needed(1 - 0.05 / 3)


def test_holm_steps_free_level_for_those_left():
    rng = np.random.default_rng(1)
    clear = rng.normal(-0.3, 0.01, 12)
    vague = rng.normal(-0.05, 0.05, 12)
    family = decide_family({"vague": vague, "clear": clear})
    assert list(family) == ["vague", "clear"]
    assert family["clear"].level == pytest.approx(0.975)
    assert family["vague"].level == pytest.approx(0.95)


def test_only_equal_states_are_paired_and_nothing_vanishes():
    paired = pair_by_state(
        [2.0, 4.0, 8.0, 3.0],
        [1.0, 1.0, 1.0, 1.0],
        ["near", "far", "moved", "near"],
        ["near", "near", "moved", "far"],
    )
    assert np.exp(paired.log_ratios) == pytest.approx([2.0, 8.0])
    assert paired.counts == {"near": 1, "moved": 1}
    assert paired.unequal == {("far", "near"): 1, ("near", "far"): 1}
    assert paired.n_unequal + len(paired.states) == 4
    assert np.exp(paired.of_state("moved")) == pytest.approx([8.0])


@pytest.mark.parametrize(
    ("numerator", "denominator", "message"),
    [([], [], "empty"), ([1, 2], [1], "2 and 1"), ([1, math.nan], [1, 1], r"numerator\[1\]"),
     ([1, 1], [1, math.inf], r"denominator\[1\]"), ([0, 1], [1, 1], "over 0"),
     ([[1]], [[1]], "one dimension")],
)  # fmt: skip
def test_bad_pairs_are_named(numerator, denominator, message):
    with pytest.raises(ValueError, match=message):
        paired_log_ratio(numerator, denominator)


def test_bad_decisions_are_named():
    with pytest.raises(ValueError, match="empty"):
        decide([])
    with pytest.raises(ValueError, match="finite"):
        decide([0.1] * 6 + [math.nan])
    with pytest.raises(ValueError, match="dead band"):
        decide([0.1] * 6, dead_band=-0.1)
    with pytest.raises(ValueError, match="level"):
        decide([0.1] * 6, level=1.0)
    with pytest.raises(ValueError, match="at least one"):
        decide_family({})
    with pytest.raises(ValueError, match="state"):
        pair_by_state([1.0], [1.0], ["near"], [])
