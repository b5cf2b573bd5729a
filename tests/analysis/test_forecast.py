"""What is said of remedies before they are measured."""

import pytest

from analysis.forecast import Forecast, Measured
from bench.mix import Actor, Mix, Pool, parse_script
from bench.scenario import Scenario


def actor(script="", **options):
    ops = parse_script(script) if script else ()
    return Actor("k", "s", options.pop("policy", "base"), 1, 1 << 20, script=ops, **options)


def row(mix, gbps, seconds=0.01):
    return {
        "mix": mix,
        "actor": 0,
        "seconds": seconds,
        "useful_bytes": gbps * seconds * 1e9,
        "ops": 0,
        "bus_min_gbps": gbps,
        "bus_max_gbps": gbps,
    }


def forecast(b1, bs, scripts=("", ""), threads=2, **options):
    """Two equal actors of ``b1`` GB/s on an interface that gives ``bs``."""
    mix = Mix(tuple(actor(script, priority=1 - i) for i, script in enumerate(scripts)))
    case = Scenario("test", mix, ("first", "second"), "first")
    rows = [row("one", b1), row("all", min(threads * b1, bs)), row("streamer", bs)]
    rows += options.get("more", [])
    measured = Measured(
        ["one"] * 2, ["one"] * 2, ["all"] * 2, options.get("changed", {}), "streamer", threads
    )
    return Forecast(case, rows, measured, ((0,), (1,)), [False, False]), mix


def test_an_interface_with_room_says_first_that_a_lock_cannot_help():
    found, mix = forecast(4.0, 20.0)
    assert "cannot raise the total" in found.before()[-1]
    assert "40%" in found.before()[-1]
    script = "take(m).pass.put(m).rest(1)"
    locked = Mix(tuple(actor(script) for _ in mix.actors), (Pool("m", 1, 1),))
    assert found.predict("mutex", locked, ((0,), (1,))).total == pytest.approx(-0.5, abs=0.02)


def test_a_full_interface_says_under_which_conditions_it_could():
    found, _ = forecast(15.0, 20.0)
    assert "150%" in found.before()[-1]
    assert "only" in found.before()[-1]


def test_threads_that_do_less_together_are_named():
    rows = [row("all", 6.0)]
    found, _ = forecast(10.0, 20.0, more=[])
    found._rows["all"] = rows
    assert any("fewer threads may do more" in line for line in found.before())


def test_pages_are_worth_in_a_full_interface_what_they_are_not_worth_alone():
    changed = {"thp": {0: "thp", 1: "thp"}}
    more = [row("thp", 6.0, 0.01 * 4 / 6)]
    found, mix = forecast(4.0, 20.0, changed=changed, more=more)
    treated = Mix(tuple(actor(policy="thp", priority=a.priority) for a in mix.actors))
    assert found.predict("thp", treated, ((0,), (1,))).total == pytest.approx(0.5, rel=0.01)
    full, _ = forecast(15.0, 15.0, changed=changed, more=[row("thp", 22.5, 0.01 / 1.5)])
    gain = full.predict("thp", treated, ((0,), (1,))).total
    assert 0 < gain <= 0.5


def test_what_was_not_measured_alone_is_not_predicted():
    found, mix = forecast(4.0, 20.0)
    treated = Mix(tuple(actor(policy="thp") for _ in mix.actors))
    prediction = found.predict("thp", treated, ((0,), (1,)))
    assert "not measured that way" in prediction.reason


def test_yielding_changes_nothing_where_nobody_shares_a_cpu_and_is_not_known_where_they_do():
    found, mix = forecast(15.0, 20.0)
    kind = Mix((mix.actors[0], actor(courtesy="yield")))
    assert found.predict("yield", kind, ((0,), (1,))).total == pytest.approx(0.0, abs=1e-6)
    assert "not modelled" in found.predict("yield", kind, ((0,), (0,))).reason


def test_speed_alone_counts_the_rests_of_the_script():
    found, _ = forecast(4.0, 20.0, scripts=("pass.rest(10000000)", ""))
    alone = 4e9
    speeds = found.speed_in_mix({0: alone / 2, 1: alone})
    assert speeds == {"first": pytest.approx(1.0), "second": pytest.approx(1.0)}


def test_where_one_thread_was_not_measured_the_mean_of_its_threads_stands_for_it():
    mix = Mix((Actor("k", "s", "base", 4, 1 << 20), Actor("k", "s", "base", 4, 1 << 20)))
    case = Scenario("test", mix, ("first", "second"))
    rows = [row("own", 12.0), row("streamer", 20.0)]
    measured = Measured(["own"] * 2, ["one"] * 2, ["all"] * 2, {}, "streamer", 8)
    cpus = (tuple(range(4)), tuple(range(4, 8)))
    found = Forecast(case, rows, measured, cpus, [True, True])
    (first, _) = found.alone
    assert (first.b1, first.bs) == (3.0, 20.0)
    assert not any("fewer threads may do more" in line for line in found.before())


def test_who_moves_more_than_the_interface_gives_is_served_by_caches_and_shares_nothing():
    found, _ = forecast(40.0, 20.0)
    found = Forecast(
        found.scenario,
        [row("one", 40.0), row("all", 80.0), row("streamer", 20.0)],
        found.measured,
        found.cpus,
        found.teams,
    )
    assert not any(alone.has_memory for alone in found.alone)
    assert "cannot raise the total" in found.before()[-1]
