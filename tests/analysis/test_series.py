"""Outliers and changes of level are found where published, and not in noise."""

import math

import numpy as np
import pytest

from analysis.series import change_point, median_absolute_deviation, robust_z

# Annual flow of the Nile at Aswan, 1871-1970, 1e8 m³ (G. W. Cobb, Biometrika 65, 1978, 243-251).
NILE = [
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960,
    1180, 799, 958, 1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694,
    940, 833, 701, 916, 692, 1020, 1050, 969, 831, 726, 456, 824, 702, 1120, 1100, 832, 764,
    821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759, 781, 865, 845, 944, 984, 897, 822,
    1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890, 744, 749, 838, 1050,
    918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
]  # fmt: skip


def test_change_of_the_nile_is_found_where_published(cases):
    case = cases["R20_nile"]
    found = change_point(NILE)
    assert found.index == 28
    assert 1871 + found.index - 1 == case["break_year_last_before"]
    assert found.rss == pytest.approx(case["rss"], rel=1e-6)
    assert found.rss_without == pytest.approx(case["rss0"], rel=1e-6)
    assert [found.mean_before, found.mean_after] == pytest.approx(case["means"], rel=1e-6)
    assert found.p == pytest.approx(0.001)


def test_noise_has_no_change():
    rng = np.random.default_rng(0)
    small = [change_point(rng.normal(size=30), shuffles=199).p for _ in range(60)]
    assert np.mean(np.array(small) <= 0.05) <= 0.12


def test_mad_agrees_with_pyperf(cases):
    assert median_absolute_deviation(range(97)) == cases["R17_pyperf"]["mad_range97"]
    assert median_absolute_deviation([1, 1, 2, 2, 4, 6, 9]) == 1


def test_robust_z_is_in_standard_deviations_and_survives_an_outlier():
    x = np.random.default_rng(0).normal(10, 2, 4000)
    assert robust_z(x).std() == pytest.approx(1, rel=0.05)
    z = robust_z([1.0, 1.1, 0.9, 1.05, 0.95, 50.0])
    assert z[-1] > 100
    assert np.all(np.abs(z[:-1]) < 2)


def test_robust_z_without_spread():
    assert list(robust_z([2.0, 2.0, 2.0, 2.0, 1.0])) == [0, 0, 0, 0, -math.inf]


def test_bad_series_are_named():
    with pytest.raises(ValueError, match="no room"):
        change_point([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="finite"):
        robust_z([1.0, math.nan])
