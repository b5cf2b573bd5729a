"""Remedies: pure functions of mixes, with names that can be read back."""

from dataclasses import replace

import pytest
from simulated import REGISTRY, actor, cpus, scenario, setting

from bench.errors import UsageError
from bench.mix import Mix, mix_name, parse_mix
from bench.place import place
from bench.remedies import REMEDIES, name, pairs, parse, singles, treat
from bench.spinners import spinning


def treated(mix, text, host=None):
    return treat(mix, parse(text, ["thp", "2m"]), setting(host))


@pytest.mark.parametrize(
    "text", ["thp", "cap:3", "mutex", "sem:2", "thp+mutex", "cap:1+pause+pool"]
)
def test_names_are_read_back(text):
    assert name(parse(text, ["thp"])) == text


def test_the_order_in_a_name_does_not_matter():
    assert name(parse("apart+mutex+thp", ["thp"])) == "thp+mutex+apart"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mutex+sem:2", "exclude each other"),
        ("yield+pause", "exclude each other"),
        ("thp+2m", "exclude each other"),
        ("cap", "not a remedy"),
        ("cap:0", "not a remedy"),
        ("mutex:2", "not a remedy"),
        ("mutxe", "unknown remedy"),
        ("pages", "unknown remedy"),
    ],
)
def test_wrong_names_are_refused(text, told):
    with pytest.raises(UsageError, match=told):
        parse(text, ["thp", "2m"])


def test_every_remedy_leaves_its_mix_as_it_was_and_makes_one_with_a_name():
    case = scenario()
    before = mix_name(case.mix)
    for text, (_, outcome) in singles(case.mix, setting(cpus(4))).items():
        assert mix_name(case.mix) == before
        if outcome.mix is None:
            assert outcome.reason, text
        else:
            assert outcome.mix != case.mix
            assert parse_mix(mix_name(outcome.mix)) == outcome.mix
            assert len(outcome.mix.actors) == len(case.mix.actors)


def test_a_page_policy_is_for_all_memory_and_says_who_does_not_take_it():
    case = scenario()
    assert [a.policy for a in treated(case.mix, "thp").mix.actors] == ["thp", "thp"]
    spinner = actor("spin", size=0)
    mixed = Mix((*case.mix.actors, spinner))
    assert treated(mixed, "thp").mix.actors[2] == spinner
    assert "already" in treated(treated(case.mix, "thp").mix, "thp").reason


def test_a_policy_the_host_does_not_have_gives_its_reason():
    own = replace(setting(), registry=type(REGISTRY)(why_not={"thp": "it is never"}))
    assert treat(scenario().mix, parse("thp", ["thp"]), own).reason == "it is never"


def test_a_lock_is_held_for_passes_only():
    mix = treated(scenario().mix, "mutex").mix
    assert [str(op) for op in mix.actors[0].script] == [
        "take(interlock,1)",
        "pass(1)",
        "put(interlock,1)",
        "rest(5000000)",
    ]
    assert [pool.tokens for pool in mix.pools] == [1]


def test_locks_keep_off_pools_of_the_same_name():
    once = treated(scenario().mix, "mutex").mix
    twice = treated(once, "mutex").mix
    assert [pool.name for pool in twice.pools] == ["interlock", "interlock2"]


def test_tokens_count_teams_once_and_slices_by_thread():
    team = Mix((actor("team", threads=4), actor("team", threads=4)))
    sliced = Mix((actor(threads=2), actor(threads=2)))
    assert "nothing to keep apart" in treated(team, "sem:2").reason
    assert treated(sliced, "sem:2").mix is not None
    assert "nothing to keep apart" in treated(Mix((actor("spin", size=0), actor())), "mutex").reason


def test_a_cap_spares_the_first():
    mix = Mix((actor("team", threads=4, priority=1), actor("team", threads=4)))
    assert [a.threads for a in treated(mix, "cap:2").mix.actors] == [4, 2]
    equals = Mix((actor("team", threads=4), actor("team", threads=4)))
    assert [a.threads for a in treated(equals, "cap:2").mix.actors] == [2, 2]
    assert "more than 2 threads" in treated(scenario().mix, "cap:2").reason


def test_courtesy_needs_somebody_to_give_way_to_who_also_rests():
    mix = treated(scenario().mix, "pause").mix
    assert [a.courtesy for a in mix.actors] == ["proceed", "pause"]
    assert "higher priority" in treated(Mix((actor(), actor())), "yield").reason
    tireless = Mix((actor(priority=1), actor()))
    assert "never rests" in treated(tireless, "pause").reason
    assert treated(tireless, "yield").mix is not None


def test_pool_keeps_what_is_released():
    mix = treated(scenario().mix, "pool").mix
    assert dict(mix.actors[1].params) == {"method": "pool"}
    assert "releases" in treated(Mix((actor(), actor())), "pool").reason


def placed(mix, host):
    return place(mix, host.topology, host.allowed).cpus


def test_apart_gives_the_first_caches_of_its_own():
    host = cpus(8, per_llc=4)
    mix = Mix((actor(threads=2, priority=1), actor(threads=3)))
    assert placed(mix, host) == ((0, 1), (2, 3, 4))
    apart = treated(mix, "apart", host).mix
    first, other = (set(own) for own in placed(apart, host))
    assert first <= {0, 1, 2, 3}
    assert other <= {4, 5, 6, 7}
    assert "already" in treated(apart, "apart", host).reason


def test_apart_on_two_cpus_makes_the_others_share_one():
    host = cpus(2)
    mix = Mix((actor(priority=1), actor(), actor()))
    assert placed(mix, host) == ((0,), (1,), (0,))
    assert placed(treated(mix, "apart", host).mix, host) == ((0,), (1,), (1,))


def test_apart_needs_two_cpus_and_a_first():
    mix = Mix((actor(priority=1), actor()))
    assert "CPUs enough" in treated(mix, "apart", cpus(1)).reason
    assert "higher priority" in treated(Mix((actor(), actor())), "apart").reason
    assert "already" in treated(mix, "apart").reason


def test_pairs_combine_what_does_not_exclude_itself():
    case = scenario()
    kept = [parse(text, ["thp"]) for text in ("thp", "mutex", "sem:2", "pause")]
    found = pairs(case.mix, kept, setting(cpus(4)))
    assert set(found) == {"thp+mutex", "thp+sem:2", "thp+pause", "mutex+pause", "sem:2+pause"}
    assert found["thp+mutex"][0] == ("thp", "mutex")


def iterations(actor):
    params = {"steps": 20, **dict(actor.params)}
    return params["steps"] * params["iterations"]


def test_spinners_take_the_time_of_a_pass_and_keep_everything_else():
    mix = Mix((actor("team", threads=4, priority=3, script="pass.rest(7)"), actor()))
    rate = 1e9
    spin = spinning(mix, mix, [0.02, 0.00001], rate, REGISTRY)
    first, second = spin.actors
    assert (first.kernel, first.threads, first.priority, first.joined) == ("spin", 4, 3, True)
    assert first.script == mix.actors[0].script
    assert iterations(first) == pytest.approx(0.02 * rate)
    assert iterations(second) == pytest.approx(0.00001 * rate)
    assert dict(first.params)["steps"] == 400, "a step is as long as those of other kernels"


def test_spinners_with_fewer_threads_take_longer_for_the_same_pass():
    mix = Mix((actor("team", threads=4), actor()))
    capped = treated(mix, "cap:1").mix
    first = spinning(capped, mix, [0.02, 0.01], 1e9, REGISTRY).actors[0]
    assert iterations(first) == pytest.approx(4 * 0.02 * 1e9)


def test_each_row_says_what_it_does():
    for key, row in REMEDIES.items():
        assert row.name == key
        assert row.summary
