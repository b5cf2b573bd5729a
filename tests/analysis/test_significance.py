"""Tests of unpaired samples agree with published implementations."""

import math

import numpy as np
import pytest

from analysis.significance import (
    bootstrap_interval,
    false_discovery,
    geometric_mean,
    holm,
    welch,
)


def test_t_statistic_agrees_with_pyperf(cases):
    """With equal counts Welch's t is the pooled t; exp() undoes the log, t knows no scale (R17)."""
    case = cases["R17_pyperf"]
    one, two = np.array(case["data1"]) / 20, np.array(case["data2"]) / 20
    assert welch(np.exp(one), np.exp(two)).t == pytest.approx(case["t12"], rel=1e-9)
    assert welch(np.exp(10 * one), np.exp(one)).t == pytest.approx(case["t_10x_vs_1"], rel=1e-9)
    assert welch(np.exp(one), np.exp(two)).p > 0.05


def test_geometric_means_agree_with_pyperf(cases):
    case = cases["R17_pyperf"]
    values, expected = case["geomean"]
    assert geometric_mean(values) == pytest.approx(expected, rel=1e-9)
    for ratios, expected in (case["geomean_ratios_py37"], case["geomean_ratios_py38"]):
        assert geometric_mean(ratios) == pytest.approx(expected, rel=5e-3)


def test_quantiles_are_pyperfs(cases):
    """The default quantile of numpy, used throughout, is the one pyperf prints."""
    case = cases["R17_pyperf"]
    found = np.quantile(case["percentile_in"], [0.25, 0.5, 0.75])
    assert found == pytest.approx([case["p25"], case["p50"], case["p75"]])


@pytest.mark.parametrize("method", ["basic", "percentile", "BCa"])
def test_bootstrap_agrees_with_r(cases, method):
    case = cases["R18_bootstrap"]
    found = bootstrap_interval(case["x"], np.mean, method=method, resamples=20_000)
    assert [found.low, found.high] == pytest.approx(case["mean_ci95"][method], rel=case["rtol_20k"])


def test_welch_gives_the_ratio_of_geometric_means():
    rng = np.random.default_rng(0)
    baseline = np.exp(rng.normal(0, 0.02, 12))
    treated = 0.9 * np.exp(rng.normal(0, 0.05, 8))
    found = welch(treated, baseline)
    assert found.low < 0.9 < found.high < 1
    assert found.ratio == pytest.approx(geometric_mean(treated) / geometric_mean(baseline))
    assert found.p < 0.01


def test_holm_by_hand():
    # 0.01 x 4; 0.02 x 3; 0.03 x 2; then 0.04 x 1 is raised to its forerunner.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.6, 0.9]) == pytest.approx([1.0, 1.0])


def test_false_discovery_by_hand():
    assert false_discovery([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.04, 0.04])


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="one value"):
        welch([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="over 0"):
        welch([1.0, -1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="spread"):
        welch([1.0, 1.0], [2.0, 2.0])
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.1, 1.2])
    with pytest.raises(ValueError, match="finite"):
        false_discovery([0.1, math.nan])
    with pytest.raises(ValueError, match="10 values"):
        bootstrap_interval([1.0, 2.0])
    with pytest.raises(ValueError, match="over 0"):
        geometric_mean([1.0, 0.0])
