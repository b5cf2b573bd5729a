"""Topology of stored hosts, and the order in which threads take CPUs."""

import os
import shutil

import pytest
from hosttrees import NAMES, expand
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.errors import HostError, UsageError
from bench.sysfs import format_cpulist, parse_cpulist
from bench.topology import (
    pin_order,
    read_topology,
    thread_ladder,
    usable_threads,
)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    return {
        name: read_topology(expand(name, tmp_path_factory.mktemp(name)) / "sys") for name in NAMES
    }


def every_cpu(topology):
    return [cpu.id for cpu in topology.cpus]


def test_threadripper_has_96_cores_in_12_caches(hosts):
    topology = hosts["threadripper"]
    assert len(topology.cpus) == 192
    assert len({cpu.core for cpu in topology.cpus}) == 96
    assert [len(cache.cpus) for cache in topology.llcs] == [16] * 12
    assert {cache.size_bytes for cache in topology.llcs} == {32 * 1024**2}
    assert topology.by_id[7].core == topology.by_id[103].core
    assert (topology.by_id[7].smt_rank, topology.by_id[103].smt_rank) == (0, 1)


def test_node_ids_are_the_kernels_and_may_lack_cpus(hosts):
    topology = hosts["snc4"]
    assert [node.id for node in topology.nodes] == [2, 3, 4, 5, 7]
    assert topology.node(7).cpus == ()
    assert topology.node(7).memory_bytes == 130_000_000 * 1024
    assert dict(topology.node(7).distances) == {2: 14, 3: 14, 4: 24, 5: 24, 7: 10}
    assert {cpu.node for cpu in topology.cpus} == {2, 3, 4, 5}


def test_a_switched_off_cpu_is_nowhere(hosts):
    topology = hosts["snc4"]
    assert 12 not in topology.by_id
    assert all(12 not in cache.cpus for cache in topology.caches)
    assert all(12 not in node.cpus for node in topology.nodes)
    # Its sibling is then the first thread of the core.
    assert topology.by_id[28].smt_rank == 0


def test_core_ids_that_repeat_in_each_package_are_told_apart(hosts):
    topology = hosts["snc4"]
    assert len({cpu.core for cpu in topology.cpus}) == 16
    for cpu in topology.cpus:
        same = {other.package for other in topology.cpus if other.core == cpu.core}
        assert same == {cpu.package}


def test_without_l3_the_l2_is_the_last_level(hosts):
    topology = hosts["arm64k"]
    assert [cache.level for cache in topology.llcs] == [2] * 8
    assert {cpu.die for cpu in topology.cpus} == {None}


def test_a_machine_without_caches_or_nodes_still_has_cpus(tmp_path):
    root = expand("vm2", tmp_path)
    for cpu in (0, 1):
        shutil.rmtree(root / f"sys/devices/system/cpu/cpu{cpu}/cache")
        shutil.rmtree(root / f"sys/devices/system/cpu/cpu{cpu}/topology")
    shutil.rmtree(root / "sys/devices/system/node")
    topology = read_topology(root / "sys")
    assert topology.caches == topology.llcs == topology.nodes == ()
    assert [(c.llc, c.l2, c.node, c.package) for c in topology.cpus] == [(None,) * 4] * 2
    assert pin_order(topology, [0, 1]) == [0, 1]
    assert thread_ladder(topology, [0, 1]) == [1, 2]


def test_online_is_found_without_the_list_file(tmp_path):
    root = expand("snc4", tmp_path)
    (root / "sys/devices/system/cpu/online").unlink()
    assert 12 not in read_topology(root / "sys").by_id


def test_unknown_ids_and_sizes_are_none(tmp_path):
    root = expand("vm2", tmp_path)
    cpu = root / "sys/devices/system/cpu/cpu0"
    (cpu / "topology/physical_package_id").write_text("-1\n")
    (cpu / "topology/die_id").write_text("65535\n")
    (cpu / "cache/index3/size").unlink()
    topology = read_topology(root / "sys")
    assert (topology.by_id[0].package, topology.by_id[0].die) == (None, None)
    assert any(cache.size_bytes is None for cache in topology.llcs)


def test_no_cpu_listed_is_an_error(tmp_path):
    with pytest.raises(HostError, match="no CPUs listed"):
        read_topology(tmp_path)


def test_reads_the_running_host():
    assert set(every_cpu(read_topology())) >= os.sched_getaffinity(0)


def test_compact_fills_a_cache_then_the_next_and_second_threads_last(hosts):
    order = pin_order(hosts["threadripper"], range(192))
    assert order == list(range(192))
    assert order[:8] == list(range(8))


def test_compact_fills_a_node_whose_cpu_numbers_are_interleaved(hosts):
    topology = hosts["snc4"]
    order = pin_order(topology, every_cpu(topology))
    nodes = [topology.by_id[cpu].node for cpu in order[:16]]
    assert nodes == [2] * 4 + [3] * 4 + [4] * 4 + [5] * 4


def test_scatter_takes_turns_over_packages_and_nodes(hosts):
    topology = hosts["snc4"]
    order = pin_order(topology, every_cpu(topology), "scatter")
    assert [topology.by_id[cpu].package for cpu in order[:4]] == [0, 1, 0, 1]
    assert {topology.by_id[cpu].node for cpu in order[:4]} == {2, 3, 4, 5}


def test_scatter_takes_turns_over_caches(hosts):
    topology = hosts["threadripper"]
    order = pin_order(topology, every_cpu(topology), "scatter")
    assert len({topology.by_id[cpu].llc for cpu in order[:12]}) == 12


def test_fast_cores_come_first(hosts):
    assert pin_order(hosts["arm64k"], range(8)) == [4, 5, 6, 7, 0, 1, 2, 3]


def test_the_fullest_cache_comes_first(hosts):
    allowed = [0, *range(16, 24)]
    assert pin_order(hosts["threadripper"], allowed) == [*range(16, 24), 0]


def test_a_second_thread_counts_as_first_where_its_sibling_is_not_allowed(hosts):
    assert pin_order(hosts["threadripper"], [0, 96, 97]) == [0, 97, 96]


def test_one_node_only(hosts):
    topology = hosts["snc4"]
    order = pin_order(topology, every_cpu(topology), node=5)
    assert set(order) == set(topology.node(5).cpus)


def test_a_node_without_cpus_or_unknown_says_which_have_some(hosts):
    topology = hosts["snc4"]
    with pytest.raises(HostError, match="node 7") as refused:
        pin_order(topology, every_cpu(topology), node=7)
    assert "2, 3, 4, 5" in refused.value.remedy
    with pytest.raises(UsageError, match="no memory node 0"):
        pin_order(topology, every_cpu(topology), node=0)


def test_no_allowed_cpu_online_is_an_error(hosts):
    with pytest.raises(HostError, match="none of the CPUs 12 is online"):
        pin_order(hosts["snc4"], [12])


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(NAMES), st.sampled_from(["compact", "scatter"]), st.data())
def test_any_order_is_a_permutation_with_cores_before_siblings(hosts, name, policy, data):
    topology = hosts[name]
    cpus = every_cpu(topology)
    allowed = data.draw(st.lists(st.sampled_from(cpus), min_size=1, unique=True))
    order = pin_order(topology, allowed, policy)
    assert sorted(order) == sorted(allowed)
    cores = [topology.by_id[cpu].core for cpu in order]
    assert len(set(cores[: len(set(cores))])) == len(set(cores))


def test_quick_ladder_is_one_two_cache_node_all(hosts):
    assert thread_ladder(hosts["threadripper"], range(192)) == [1, 2, 8, 96, 192]
    snc4 = hosts["snc4"]
    assert thread_ladder(snc4, every_cpu(snc4)) == [1, 2, 4, 31]
    assert thread_ladder(hosts["vm2"], [0, 1]) == [1, 2]
    assert thread_ladder(hosts["vm2"], [1]) == [1]


def test_full_ladder_has_each_count_to_8_and_ten_levels_a_domain(hosts):
    ladder = thread_ladder(hosts["threadripper"], range(192), "full")
    assert ladder[:8] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert sum(8 < count <= 96 for count in ladder) >= 10
    assert sum(96 < count <= 192 for count in ladder) >= 10
    assert ladder[-1] == 192
    assert 96 in ladder


def test_every_ladder_has_every_count(hosts):
    assert thread_ladder(hosts["arm64k"], range(8), "every") == list(range(1, 9))


@pytest.mark.parametrize("kind", ["quick", "full", "every"])
def test_a_limit_cuts_the_ladder_and_is_its_top(hosts, kind):
    assert max(thread_ladder(hosts["threadripper"], range(192), kind, limit=20)) == 20


@pytest.mark.parametrize(
    ("affinity", "cpuset", "quota", "threads"),
    [
        (range(8), None, None, 8),
        (range(8), range(4, 12), None, 4),
        (range(8), None, 2.9, 2),
        (range(8), None, 0.5, 1),
        (range(2), range(64), 12.5, 2),
    ],
)
def test_usable_threads_is_the_tightest_bound_and_at_least_one(affinity, cpuset, quota, threads):
    assert usable_threads(list(affinity), cpuset and list(cpuset), quota) == threads


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0-3,8,10-11", (0, 1, 2, 3, 8, 10, 11)), ("", ()), ("5\n", (5,)), ("0-1, 4", (0, 1, 4))],
)
def test_cpu_lists(text, numbers):
    assert parse_cpulist(text) == numbers


@given(st.sets(st.integers(0, 5000)))
def test_cpu_lists_survive_a_round_trip(numbers):
    assert parse_cpulist(format_cpulist(numbers)) == tuple(sorted(numbers))
