"""Verdicts over whole tables: remedies, contrasts, causes, and published shootdown data (R16)."""

import numpy as np
import pytest

from analysis import models
from analysis.fit import fit
from analysis.intervals import pairs_needed
from analysis.stats import decide, not_tested, pair_by_state, paired_log_ratio, verdict_of
from analysis.verdict import (
    cause,
    contrast,
    decide_remedies,
    helps_from,
    pairs_for_width,
    residual,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_invlpgb_helps_from_four_threads_on(cases):
    case = cases["R16_invlpgb"]
    threads = np.array(case["threads"], dtype=float)
    ratios = np.exp(paired_log_ratio(case["invlpgb"], case["tip"]))
    assert ratios == pytest.approx(np.array(case["ratio"]), rel=5e-3)
    # One published run each: the rule applies, with a band in place of an interval.
    verdicts = [verdict_of(r, r, 0.05, lower_is_better=False) for r in ratios]
    assert verdicts[:2] == ["neutral", "neutral"]
    assert helps_from(list(threads), verdicts) == 4
    for kernel, slope in zip(("tip", "invlpgb"), case["slope_ns_per_cpu_32_72"], strict=True):
        ns_per_loop = 1e6 / np.array(case[kernel])
        ((_, found),) = models.find("shootdown_linear").guess(threads[5:], ns_per_loop[5:])
        assert found == pytest.approx(slope, rel=5e-3)
        whole = fit(models.find("usl"), threads, case[kernel])
        published = case[f"usl_{kernel}"]
        assert list(whole.values) == pytest.approx(
            [published[k] for k in ("alpha", "beta", "gamma")], rel=5e-3
        )
        assert whole.derived["peak_n"] == pytest.approx(published["Nmax"], rel=5e-3)
        assert whole.derived["peak_x"] == pytest.approx(published["Xmax"], rel=5e-3)


def test_helps_from_wants_every_later_verdict():
    assert helps_from([1, 2, 4], ["helps", "neutral", "helps"]) == 4
    assert helps_from([4, 1, 2], ["hurts", "helps", "helps"]) is None
    with pytest.raises(ValueError, match="verdict"):
        helps_from([1], [])


def test_remedies_are_decided_together_and_pairs_accounted_for(rng):
    drift = np.exp(np.cumsum(rng.normal(0, 0.1, 12)))

    def run(factor):
        return drift * factor * np.exp(rng.normal(0, 0.005, 12))

    states = ["near"] * 12
    moved = ["near"] * 11 + ["far"]
    baseline = run(1.0)
    found = decide_remedies(
        {
            "2m": pair_by_state(run(0.8), baseline, states, states),
            "mutex": pair_by_state(run(1.3), baseline, moved, states),
            "yield": pair_by_state(run(1.0), baseline, states, states),
            "1g": not_tested("no 1 GiB pages", "pagestorm host"),
        },
    )
    verdicts = {name: d.verdict for name, d in found.decisions.items()}
    assert verdicts == {"2m": "helps", "mutex": "hurts", "yield": "neutral", "1g": "not tested"}
    table = found.table().set_index("remedy")
    assert list(table.index) == ["2m", "mutex", "yield", "1g"]
    assert table.loc["mutex", "n"] == 11
    assert table.loc["mutex", "n_unequal"] == 1
    assert table.loc["1g", "command"] == "pagestorm host"


def test_no_equal_state_is_not_tested():
    apart = pair_by_state([1.0] * 6, [1.0] * 6, ["far"] * 6, ["near"] * 6)
    found = decide_remedies({"2m": apart})
    assert found.decisions["2m"].verdict == "not tested"
    assert found.pairs["2m"].n_unequal == 6


def test_contrasts_multiply_to_the_total_up_to_the_residual(rng):
    base = np.exp(rng.normal(0, 0.01, 12))
    spin, stream = base * 1.05, base * 1.05 * 1.3
    noise = np.exp(rng.normal(0, 0.002, (2, 12)))
    sharing = contrast("core sharing", ("spin", spin * noise[0]), ("alone", base))
    bandwidth = contrast("bandwidth", ("nt stream", stream * noise[1]), ("spin", spin * noise[0]))
    total = contrast("all", ("nt stream", stream * noise[1]), ("alone", base))
    assert bandwidth.ratio == pytest.approx(1.3, rel=0.01)
    assert bandwidth.resolved
    assert "nt stream / spin" in str(bandwidth)
    assert residual(total, [sharing, bandwidth]) == pytest.approx(1, abs=0.01)


def test_contrast_over_one_is_not_resolved(rng):
    noise = np.exp(rng.normal(0, 0.05, (2, 12)))
    found = contrast("lock", ("same", noise[0]), ("own", noise[1]))
    assert not found.resolved
    assert "not resolved" in str(found)


def test_what_helps_spinners_too_is_scheduling():
    helps = decide(np.full(6, -0.2) + np.linspace(0, 0.01, 6))
    neutral = decide(np.linspace(-0.005, 0.005, 6))
    vague = decide(np.linspace(-0.3, 0.2, 6))
    assert (helps.verdict, neutral.verdict, vague.verdict) == ("helps", "neutral", "cannot tell")
    assert cause(helps, helps) == "scheduling"
    assert cause(helps, neutral) == "memory"
    assert cause(helps, vague) == "cannot tell"
    assert cause(neutral, helps) == "no effect"
    assert cause(vague, helps) == "cannot tell"
    assert cause(not_tested("no"), helps) == "cannot tell"


def test_effort_depends_on_spread_and_not_on_the_answer(rng):
    pilot = rng.normal(0, 0.05, 10)
    assert pairs_for_width(pilot) == pairs_for_width(pilot + 0.3)
    assert pairs_for_width(2 * pilot) == pytest.approx(4 * pairs_for_width(pilot), rel=0.02)
    assert pairs_for_width(pilot, remedies=4) > pairs_for_width(pilot)
    assert pairs_for_width(0 * pilot, remedies=4) == pairs_needed(1 - 0.05 / 4)
    with pytest.raises(ValueError, match="half width"):
        pairs_for_width(pilot, 0)
