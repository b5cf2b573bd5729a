"""The fluid model against answers that can be worked out by hand."""

import pytest

from analysis.fluid import Alone, at_threads, pass_rates, saturated_traffic, saturation
from bench.mix import Actor, Mix, Op, Pool, parse_script


def actor(script="", threads=1, **options):
    return Actor(
        "k", "s", "base", threads, 1 << 20, script=parse_script(script) if script else (), **options
    )


def rates(mix, alone, cpus=None, teams=None):
    n = len(mix.actors)
    return pass_rates(mix, alone, cpus or [(i,) for i in range(n)], teams or [False] * n)


def test_alone_a_pass_takes_what_it_took():
    assert rates(Mix((actor(),)), [Alone(0.02, 5.0, 20.0)]) == pytest.approx([50.0])


def test_a_rest_dilutes_passes():
    assert rates(Mix((actor("pass.rest(30000000)"),)), [Alone(0.01)]) == pytest.approx(
        [25.0], rel=0.01
    )


def test_two_that_saturate_get_half_each():
    alone = Alone(0.01, 10.0, 10.0)
    assert rates(Mix((actor(), actor())), [alone, alone]) == pytest.approx([50.0, 50.0])


def test_two_that_do_not_saturate_do_not_meet():
    alone = Alone(0.01, 4.0, 10.0)
    assert rates(Mix((actor(), actor())), [alone, alone]) == pytest.approx([100.0, 100.0])
    assert saturation([alone, alone], [(0,), (1,)]) == pytest.approx(0.8)


def test_threads_on_one_cpu_share_its_time_and_ask_for_less():
    alone = Alone(0.01, 10.0, 10.0)
    both = Mix((actor(), actor()))
    assert rates(both, [alone, alone], [(0,), (0,)]) == pytest.approx([50.0, 50.0])
    assert saturation([alone, alone], [(0,), (0,)]) == pytest.approx(1.0)


def test_an_interlock_cannot_raise_the_total_of_an_interface_that_is_never_idle():
    alone = Alone(0.01, 10.0, 10.0)
    free = Mix((actor(),) * 3)
    locked = Mix((actor("take(m).pass.put(m).rest(1000)"),) * 3, (Pool("m", 1, 1),))
    assert sum(rates(free, [alone] * 3)) == pytest.approx(100.0)
    assert sum(rates(locked, [alone] * 3)) == pytest.approx(100.0, rel=0.01)


def test_a_mutex_costs_where_the_interface_had_room():
    alone = Alone(0.01, 2.0, 10.0)
    free = Mix((actor("pass.rest(1000)"),) * 2)
    locked = Mix((actor("take(m).pass.put(m).rest(1000)"),) * 2, (Pool("m", 1, 1),))
    assert sum(rates(free, [alone] * 2)) == pytest.approx(200.0, rel=0.01)
    assert sum(rates(locked, [alone] * 2)) == pytest.approx(100.0, rel=0.01)


def test_who_takes_a_token_again_at_once_starves_the_others():
    greedy = actor("take(m).pass.put(m)")
    found = rates(Mix((greedy, greedy), (Pool("m", 1, 1),)), [Alone(0.01)] * 2)
    assert sorted(found) == pytest.approx([0.0, 100.0])


def test_a_pause_gives_the_first_its_speed_alone():
    alone = Alone(0.01, 10.0, 10.0)
    first = actor("pass.rest(10000000)", priority=2)
    mix = Mix((first, actor(courtesy="pause")))
    assert rates(mix, [alone, alone]) == pytest.approx([50.0, 50.0], rel=0.05)


def test_a_team_shares_its_pass_and_slices_do_not():
    alone = Alone(0.01, 10.0, 20.0)
    mix = Mix((actor(threads=2),))
    assert rates(mix, [alone], [(0, 1)], [True]) == pytest.approx([100.0])
    assert rates(mix, [alone], [(0, 1)], [False]) == pytest.approx([100.0])


def test_fewer_threads_take_longer_only_below_saturation():
    assert at_threads(Alone(0.01, 10.0, 20.0), 4, 2).pass_s == pytest.approx(0.01)
    assert at_threads(Alone(0.01, 10.0, 20.0), 2, 1).pass_s == pytest.approx(0.02)
    assert at_threads(Alone(0.01), 2, 1).pass_s == pytest.approx(0.02)


def test_a_script_of_tokens_alone_ends():
    mix = Mix(
        (actor(), Actor("k", "s", "base", 1, 0, script=(Op("take", 1, "m"),))), (Pool("m", 1),)
    )
    assert rates(mix, [Alone(0.01)] * 2)[1] == 0


def test_threads_held_back_by_locks_do_not_pass_for_a_full_interface():
    """Two threads that move no more than one fill the interface only if they move much."""
    assert saturated_traffic(2.0, 2.1, 2, capacity=20.0) == 20.0
    assert saturated_traffic(15.0, 18.0, 2, capacity=20.0) == 18.0
    assert saturated_traffic(2.0, 4.0, 2, capacity=20.0) == 20.0


def test_more_threads_do_not_pass_what_they_were_seen_to_do():
    held = Alone(0.01, 2.0, 20.0, most=2.5)
    assert at_threads(held, 4, 2).pass_s == pytest.approx(0.01)
    assert at_threads(held, 4, 1).pass_s == pytest.approx(0.01 * 2.5 / 2.0)
