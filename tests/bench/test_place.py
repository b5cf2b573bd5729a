"""Where the threads of a mix run."""

from collections import Counter

import pytest
from hosttrees import NAMES, expand
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import HostError, UsageError
from bench.mix import Actor, Mix
from bench.place import UNPINNED, place
from bench.topology import pin_order, read_topology


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    return {
        name: read_topology(expand(name, tmp_path_factory.mktemp(name)) / "sys") for name in NAMES
    }


def actor(threads, pin="compact"):
    return Actor("walk", "scalar", "base", threads, 1 << 20, pin=pin)


def all_cpus(topology):
    return [cpu.id for cpu in topology.cpus]


def put(topology, *actors, allowed=None):
    return place(Mix(actors), topology, allowed or all_cpus(topology))


def test_one_actor_takes_cpus_in_pin_order(hosts):
    topology = hosts["threadripper"]
    placed = put(topology, actor(5))
    assert placed.cpus == (tuple(pin_order(topology, all_cpus(topology))[:5]),)
    assert placed.oversubscribed == (False,)


@given(
    st.sampled_from(NAMES),
    st.lists(
        st.tuples(st.integers(1, 40), st.sampled_from(["compact", "scatter"])),
        min_size=1,
        max_size=4,
    ),
    st.data(),
)
def test_cpus_are_shared_only_where_there_are_too_few(hosts, name, wanted, data):
    topology = hosts[name]
    allowed = data.draw(st.lists(st.sampled_from(all_cpus(topology)), min_size=1, unique=True))
    placed = put(topology, *(actor(*each) for each in wanted), allowed=allowed)
    load = Counter(cpu for cpus in placed.cpus for cpu in cpus)
    assert [len(cpus) for cpus in placed.cpus] == [threads for threads, _ in wanted]
    assert set(load) <= set(allowed)
    assert max(load.values()) - min(load[cpu] for cpu in allowed) <= 1
    for cpus, marked in zip(placed.cpus, placed.oversubscribed, strict=True):
        assert marked == any(load[cpu] > 1 for cpu in cpus)


def test_others_keep_off_listed_cpus(hosts):
    placed = put(hosts["vm2"], actor(1), actor(1, "cpus:0"))
    assert placed.cpus == ((1,), (0,))
    assert placed.oversubscribed == (False, False)


def test_listed_cpus_are_taken_in_the_order_written(hosts):
    assert put(hosts["threadripper"], actor(4, "cpus:9,4-5,100")).cpus == ((9, 4, 5, 100),)


def test_more_threads_than_listed_cpus_share_and_are_marked(hosts):
    placed = put(hosts["threadripper"], actor(3, "cpus:4-5"), actor(2))
    assert placed.cpus[0] == (4, 5, 4)
    assert placed.oversubscribed == (True, False)


def test_cpus_that_are_off_or_not_allowed_are_refused_by_number(hosts):
    with pytest.raises(HostError, match="CPUs 12 of pin=cpus:12"):
        put(hosts["snc4"], actor(1, "cpus:12"))
    with pytest.raises(HostError, match="CPUs 1 of"):
        put(hosts["vm2"], actor(1, "cpus:0-1"), allowed=[0])


def test_a_node_keeps_an_actor_to_its_cpus(hosts):
    topology = hosts["snc4"]
    own = set(topology.node(3).cpus)
    placed = put(topology, actor(3, "compact:3"), actor(3, "scatter:3"))
    assert {cpu for cpus in placed.cpus for cpu in cpus} <= own
    assert placed.nodes is None


def test_a_node_without_cpus_or_that_is_not_there_is_refused(hosts):
    with pytest.raises(HostError, match="node 7 has no CPU"):
        put(hosts["snc4"], actor(1, "compact:7"))
    with pytest.raises(UsageError, match="no memory node 0"):
        put(hosts["snc4"], actor(1, "compact:0"))


def test_nodes_are_named_where_a_mix_spans_several(hosts):
    topology = hosts["snc4"]
    placed = put(topology, actor(2, "compact:2"), actor(2, "compact:5"))
    assert placed.nodes == ((2, 2), (5, 5))
    whole = put(topology, actor(len(topology.cpus)))
    assert set(whole.nodes[0]) == {2, 3, 4, 5}
    assert [topology.by_id[cpu].node for cpu in whole.cpus[0]] == list(whole.nodes[0])


def test_unpinned_threads_have_no_cpu_and_bind_no_memory(hosts):
    placed = put(hosts["snc4"], actor(3, "none"), actor(2))
    assert placed.cpus[0] == (UNPINNED,) * 3
    assert placed.nodes is None
    assert placed.oversubscribed == (False, False)
    assert put(hosts["vm2"], actor(3, "none")).oversubscribed == (True,)


@pytest.mark.parametrize("pin", ["", "near", "compact:x", "cpus:", "cpus:a", "none:1", "cpus:3-1"])
def test_what_is_no_pin_policy_is_refused(hosts, pin):
    with pytest.raises((UsageError, HostError)):
        put(hosts["vm2"], actor(1, pin))
