"""Counting false differences: a rule that keeps its level passes, one that does not is caught."""

import numpy as np
import pytest

from analysis.aa import half_is_seen, most_different, outcome
from analysis.stats import decide


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
