"""Formulas without fitting agree with published values and keep their invariants (R13-R15, R25)."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from analysis import models
from analysis.models.pressure import factors, left_out
from analysis.models.queueing import (
    idle_time,
    machine_repairman,
    mean_value_analysis,
    mm1k,
    mmc,
)
from analysis.models.sharing import Group, shares, total_bandwidth


@pytest.mark.parametrize("machines", [2, 4])
def test_repairman(cases, machines):
    case = cases["R13_repairman"]
    found = machine_repairman(case["lam"], case["mu"], machines)
    published = case[f"K{machines}"]
    assert found.throughput == pytest.approx(published["X"], rel=1e-6)
    assert found.in_system == pytest.approx(published["L"], rel=1e-6)
    if machines == 4:
        assert found.p_empty == pytest.approx(published["p0"], rel=1e-6)
        assert found.response == pytest.approx(published["W"], rel=1e-6)


@pytest.mark.parametrize("name", ["jain", "bolch"])
def test_mean_value_analysis(cases, name):
    case = cases["R14_mva"][name]
    found = mean_value_analysis(case["S"], case["V"], case["N"], case.get("Z", 0))
    atol = cases["R14_mva"]["atol"]
    assert found.residence == pytest.approx(np.array(case["R"]), abs=atol)
    assert found.queue == pytest.approx(np.array(case["Q"]), abs=atol)
    if name == "jain":
        assert found.throughput == pytest.approx(case["Xsys"], abs=atol)
    else:
        assert found.utilisation == pytest.approx(np.array(case["U"]), abs=atol)
        assert found.station_throughput == pytest.approx(np.array(case["X"]), abs=atol)


def test_open_queues(cases):
    case = cases["R15_open_queues"]
    two = mmc(case["mm2"]["lam"], case["mm2"]["mu"], 2)
    assert two.response == pytest.approx(case["mm2"]["R"], abs=1e-3)
    assert two.waiting == pytest.approx(case["mm2"]["Lq"], abs=1e-3)
    four = mmc(9, 5, 4)
    assert [four.response, four.waiting] == pytest.approx([0.212, 0.105], abs=1e-3)
    assert mm1k(3, 3, 10).in_system == pytest.approx(case["mm1k10_lam_eq_mu"]["Q"])


def test_repairman_is_mean_value_analysis_of_one_station():
    ring = mean_value_analysis([0.25], [1], customers=5, think=4.0)
    queue = machine_repairman(1 / 4.0, 1 / 0.25, 5)
    assert ring.throughput == pytest.approx(queue.throughput)
    assert ring.residence[0] == pytest.approx(queue.response)


def test_amdahl_is_the_synchronous_repairman():
    service, think = 0.3, 2.0
    n = np.arange(1.0, 9)
    amdahl = models.find("amdahl")
    alpha = service / (service + think)
    assert amdahl.f(n, alpha, 1 / (service + think)) == pytest.approx(n / (think + n * service))


def test_idle_time_of_a_closed_queue_is_its_thinking_time():
    found = machine_repairman(1 / 4.0, 5.0, 6)
    assert idle_time(6, found.throughput, found.response) == pytest.approx(4.0)


def test_bad_queues_are_named():
    with pytest.raises(ValueError, match="cannot keep up"):
        mmc(10, 5, 2)
    with pytest.raises(ValueError, match="service_rate"):
        machine_repairman(1, 0, 2)
    with pytest.raises(ValueError, match="equal lengths"):
        mean_value_analysis([1, 2], [1], 1)
    with pytest.raises(ValueError, match="1 or more"):
        mean_value_analysis([1], [1], 0)


def group(cases, kernel, threads):
    curve = cases["R08_clx_domain"][kernel]
    return Group(threads, curve[0], max(curve))


def test_pair_shares(cases):
    for pair in cases["R25_afzal_arith"]["pairs"]:
        groups = [group(cases, k, n) for k, n in zip(pair["k"], pair["n"], strict=True)]
        total = total_bandwidth(groups)
        assert total == pytest.approx(pair["b"], rel=2e-3)
        found = shares(groups)
        assert found == pytest.approx(np.array(pair["shares"]), rel=2e-3)
        assert found[0] / total == pytest.approx(pair["alpha1"], rel=2e-3)


groups = st.builds(
    lambda threads, fraction, bs: Group(threads, fraction * bs, bs),
    st.integers(0, 40),
    st.floats(0.02, 1),
    st.floats(1, 500),
)
some = st.lists(groups, min_size=1, max_size=5).filter(lambda gs: sum(g.threads for g in gs) > 0)


@settings(deadline=None)
@given(some)
def test_shares_never_exceed_what_a_group_can_take_and_sum_to_the_total(gs):
    found = shares(gs)
    most = np.array([g.threads * g.b1 for g in gs])
    assert np.all(found <= most * (1 + 1e-9))
    if sum(g.threads * g.request_fraction for g in gs) < 1:
        assert found == pytest.approx(most)
    else:
        assert found.sum() == pytest.approx(min(total_bandwidth(gs), most.sum()))


@settings(deadline=None)
@given(some, st.randoms(use_true_random=False))
def test_shares_follow_their_groups(gs, random):
    order = list(range(len(gs)))
    random.shuffle(order)
    assert shares([gs[i] for i in order]) == pytest.approx(shares(gs)[order])


@settings(deadline=None)
@given(groups.filter(lambda g: g.threads > 0), st.integers(1, 20), st.integers(1, 20))
def test_identical_kernels_share_by_threads(g, n, m):
    found = shares([Group(n, g.b1, g.bs), Group(m, g.b1, g.bs)])
    assert found[0] / found.sum() == pytest.approx(n / (n + m))
    # Splitting one group in two changes nothing.
    assert found.sum() == pytest.approx(shares([Group(n + m, g.b1, g.bs)])[0])


def test_a_small_group_gets_no_more_than_it_asks_for():
    weak, strong = Group(1, 1.0, 10.0), Group(1, 95.0, 100.0)
    found = shares([weak, strong])
    assert found[0] == pytest.approx(1.0)
    assert found.sum() == pytest.approx(55.0)


def test_bad_groups_are_named():
    with pytest.raises(ValueError, match="b1 <= bs"):
        Group(1, 11.0, 10.0)
    with pytest.raises(ValueError, match="finite"):
        Group(1, math.nan, 10.0)
    with pytest.raises(ValueError, match="no group"):
        shares([Group(0, 1.0, 2.0)])


def losses_of(sensitivity, pressure):
    return np.outer(sensitivity, pressure)


def test_pressure_gives_back_what_is_a_product():
    losses = losses_of([0.2, 1.0, 1.8], [0.5, 0.1, 0.9])
    found = np.outer(*factors(losses))
    assert found == pytest.approx(losses, abs=0.01)
    off_diagonal = ~np.eye(3, dtype=bool)
    assert left_out(losses)[off_diagonal] == pytest.approx(losses[off_diagonal], abs=0.02)


def test_a_pair_is_left_out_in_both_directions():
    losses = losses_of([0.2, 1.0, 1.8, 0.4], [0.5, 0.1, 0.9, 0.3])
    spoiled = losses.copy()
    spoiled[0, 1], spoiled[1, 0] = 7.0, -3.0
    assert left_out(spoiled)[0, 1] == pytest.approx(left_out(losses)[0, 1])
    assert left_out(spoiled)[1, 0] == pytest.approx(left_out(losses)[1, 0])


def test_what_no_other_pair_connects_is_not_foretold():
    losses = np.full((4, 4), np.nan)
    losses[:2, :2] = losses[2:, 2:] = 0.5
    losses[0, 2] = losses[2, 0] = 0.5
    found = left_out(losses)
    assert np.isnan(found[0, 2]), "only this pair connects the two halves"
    assert np.all(np.isnan(left_out(np.full((2, 2), 0.3))))


def test_noise_around_no_loss_foretells_next_to_none():
    noise = np.random.default_rng(2).normal(0, 0.02, (6, 6))
    found = left_out(noise)
    assert np.nanmax(np.abs(found)) < 0.05


@pytest.mark.parametrize("threads", [4, 8, 12])
def test_where_the_law_of_shares_holds_pressure_is_not_far_off(threads):
    """Six kernels on one interface, from streamers to walkers; the fit sees only slowdowns."""
    kernels = [(14, 100), (12, 95), (8, 90), (4, 100), (1, 100), (0.3, 100)]
    gs = [Group(threads, b1, bs) for b1, bs in kernels]
    losses = np.log([[shares([i])[0] / shares([i, j])[0] for j in gs] for i in gs])
    found = left_out(losses)
    off_diagonal = ~np.eye(len(gs), dtype=bool)
    errors = np.abs(np.exp(losses - found) - 1)[off_diagonal]
    assert np.median(errors) < 0.08
    assert errors.max() < 0.25
