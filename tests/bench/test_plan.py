"""What a plan measures, what it leaves out, and what it says about both."""

import shutil
from dataclasses import replace

import pytest
from hosttrees import NAMES, expand
from hypothesis import given, settings
from hypothesis import strategies as st
from planning import GIB, MIB, POLICIES, Made, config, file_of, resources

from bench.capacity import demand
from bench.errors import HostError, UsageError
from bench.mix import mix_name
from bench.place import Placement
from bench.plan import make_plan, pool_need
from bench.resources import read_resources
from bench.sizes import Probe, last_level
from bench.topology import Cache, Cpu, Topology, read_topology

POOLS = {2 * MIB: 1 << 20, GIB: 1 << 10}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    return {
        name: read_topology(expand(name, tmp_path_factory.mktemp(name)) / "sys") for name in NAMES
    }


@pytest.fixture
def vm2(hosts):
    return hosts["vm2"]


def plan_of(topology, *sweeps, made=None, probe=None, assume_pools=False, host=None, **head):
    """Plan on a host with ``host`` changes; ``head`` are the file's own keys."""
    return make_plan(
        config(*sweeps, **head),
        resources(topology, **(host or {})),
        made or Made(),
        probe=probe,
        assume_pools=assume_pools,
    )


def actors_of(plan):
    return [entry.mix.actors[0] for block in plan.blocks for entry in block.entries]


def skip_of(plan, what):
    return next(skip for skip in plan.skips if skip.what.startswith(what))


# ---- blocks -------------------------------------------------------------------------------------


def test_a_block_compares_pages_and_small_pages_are_its_baseline(vm2):
    plan = plan_of(
        vm2, {"kernels": "stream", "pages": ["1g", "thp", "base"]}, host={"pools": POOLS}
    )
    (block,) = plan.blocks
    assert block.question == "pages"
    assert [actor.policy for actor in actors_of(plan)] == ["base", "1g", "thp"]
    assert {replace(actor, policy="") for actor in actors_of(plan)} == {
        replace(actors_of(plan)[0], policy="")
    }
    assert {entry.cpus for entry in block.entries} == {((0, 1),)}


def test_every_value_of_every_axis_but_the_compared_one_makes_a_block(vm2):
    plan = plan_of(
        vm2,
        {
            "kernels": {
                "name": "stream",
                "params": {"op": ["read", "copy"], "store": ["plain", "nt"]},
            },
            "threads": [1, 2],
            "sizes": ["64MiB", "128MiB"],
            "pages": ["base", "thp"],
        },
    )
    assert len(plan.blocks) == 4 * 2 * 2
    assert len({block.id for block in plan.blocks}) == len(plan.blocks)


@pytest.mark.parametrize(
    ("axis", "values", "question"),
    [
        ("threads", [1, 2], "threads"),
        ("aligned", [False, True], "aliasing"),
        ("process", ["", "each"], "process"),
        ("pin", ["compact", "none"], "pin"),
        ("sizes", ["64MiB", "1GiB"], "sizes"),
        ("kernels", ["stream[op=read]/scalar", "stream[op=read]/wide"], "kernels"),
    ],
)
def test_any_axis_can_be_compared_with_its_first_value_as_baseline(vm2, axis, values, question):
    sweep = {"kernels": "stream", "pages": "thp", "compare": axis, axis: values}
    (block,) = plan_of(vm2, sweep).blocks
    assert block.question == question
    assert len(block.entries) == 2
    alone = {"kernels": "stream", "pages": "thp", axis: values[:1]}
    first = plan_of(vm2, alone).blocks[0].entries
    assert block.entries[:1] == first


def test_what_runs_beside_makes_mixes_and_paces_make_alternatives(vm2):
    plan = plan_of(
        vm2,
        {
            "kernels": "walk",
            "threads": 1,
            "pages": ["thp"],
            "compare": "beside",
            "beside": [
                {},
                {
                    "actors": {
                        "kernel": "stream[op=copy]",
                        "threads": "rest",
                        "pace": ["1GB/s", "2GB/s", 0],
                    }
                },
                {"actors": [{"kernel": "spin"}, {"kernel": "walk", "role": "measured"}]},
            ],
        },
    )
    (block,) = plan.blocks
    mixes = [entry.mix for entry in block.entries]
    assert [len(mix.actors) for mix in mixes] == [1, 2, 2, 2, 3]
    assert [mix.actors[1].pace for mix in mixes[1:4]] == [1e9, 2e9, 0]
    assert {mix.actors[1].policy for mix in mixes[1:4]} == {"thp"}
    assert [mix.measured for mix in mixes] == [(0,), (0,), (0,), (0,), (0, 2)]
    # Actors have CPUs of their own while there are enough.
    assert block.entries[1].cpus == ((0,), (1,))
    assert "more threads than CPUs" in " ".join(plan.notes)


def test_a_mix_can_have_scripts_and_pools(vm2):
    plan = plan_of(
        vm2,
        {
            "kernels": "stream",
            "pages": "base",
            "threads": 1,
            "script": "take(m).pass.put(m)",
            "pools": {"name": "m", "tokens": 1},
            "beside": {"actors": {"kernel": "walk", "script": "take(m).pass.put(m)"}},
        },
    )
    (mix,) = [entry.mix for block in plan.blocks for entry in block.entries]
    assert mix.pools[0].name == "m"
    assert mix.actors[0].script == mix.actors[1].script


def test_the_same_block_of_two_tables_is_measured_once_in_the_place_of_the_first(vm2):
    one = {"kernels": "stream", "threads": 2, "window": "1s"}
    plan = plan_of(vm2, one, {"kernels": "walk"}, {**one, "threads": "all", "window": "2s"})
    assert [actor.kernel for actor in actors_of(plan) if actor.policy == "base"] == [
        "stream",
        "walk",
    ]
    assert plan.blocks[0].settings.window_s == 1


def test_exclusions_match_all_that_is_given(vm2):
    sweep = {
        "kernels": {"name": "stream", "params": {"op": ["read", "copy"]}},
        "threads": [1, 2],
        "pages": ["base", "thp"],
    }
    rule = {"params": {"op": "read"}, "threads": "all", "pages": "thp"}
    plan = plan_of(vm2, sweep, exclude=[rule])
    left = [(dict(a.params).get("op", "read"), a.threads, a.policy) for a in actors_of(plan)]
    assert len(left) == 7
    assert ("read", 2, "thp") not in left
    with pytest.raises(UsageError, match="nothing to measure"):
        plan_of(vm2, sweep, exclude=[{"kernel": "stream"}])


def test_a_variant_is_the_best_the_cpu_has_unless_one_is_named(vm2):
    plan = plan_of(vm2, {"kernels": ["stream", "stream/scalar"], "pages": "base"})
    assert [actor.variant for actor in actors_of(plan)] == ["wide", "scalar"]


def test_files_are_named_by_digest_and_keep_their_path(vm2, tmp_path):
    path = tmp_path / "rows.bin"
    path.write_bytes(b"rows")
    plan = plan_of(
        vm2, {"kernels": {"name": "matrix", "params": {"file": str(path)}}, "pages": "base"}
    )
    (actor,) = actors_of(plan)
    assert file_of(actor).path == str(path)
    assert f"file={file_of(actor)}" in plan.blocks[0].id


@pytest.mark.parametrize(
    ("word", "expected"),
    [("all", [192]), ("cores", [96]), ("llc", [8]), ("node", [96]), ("quick", [1, 2, 8, 96, 192])],
)
def test_thread_words_follow_the_topology(hosts, word, expected):
    plan = plan_of(hosts["threadripper"], {"kernels": "stream", "threads": word, "pages": "base"})
    assert [actor.threads for actor in actors_of(plan)] == expected


def test_thread_words_keep_to_the_node_they_are_pinned_to(hosts):
    plan = plan_of(
        hosts["snc4"], {"kernels": "stream", "threads": "all", "pages": "base", "node": "each"}
    )
    found = {actor.pin: actor.threads for actor in actors_of(plan)}
    own = {f"compact:{node.id}": len(node.cpus) for node in hosts["snc4"].nodes if node.cpus}
    assert found == own


def test_a_cpu_quota_limits_threads_and_is_said(hosts):
    plan = plan_of(
        hosts["threadripper"],
        {"kernels": "stream", "threads": ["all", "quick"], "pages": "base"},
        host={"threads": 6},
    )
    assert max(actor.threads for actor in actors_of(plan)) == 6
    assert any("quota allows 6 threads" in note for note in plan.notes)


def test_a_node_that_is_not_there_is_refused(hosts):
    with pytest.raises(UsageError, match="no memory node 0"):
        plan_of(hosts["snc4"], {"kernels": "stream", "node": 0})
    with pytest.raises(HostError, match="node 7 has no CPU"):
        plan_of(hosts["snc4"], {"kernels": "stream", "node": 7})


def test_nodes_are_bound_where_threads_span_several(hosts):
    plan = plan_of(hosts["snc4"], {"kernels": "stream", "threads": [1, "all"], "pages": "base"})
    one, every = [block.entries[0] for block in plan.blocks]
    assert one.nodes is None
    assert set(every.nodes[0]) == {2, 3, 4, 5}


# ---- what the host cannot give ------------------------------------------------------------------


def test_a_policy_the_host_lacks_is_a_skip_with_its_reason_and_never_a_case(vm2):
    made = Made({"thp": "enabled is never; as root: echo madvise > it"})
    plan = plan_of(vm2, {"kernels": "stream", "pages": ["base", "thp"]}, made=made)
    assert {actor.policy for actor in actors_of(plan)} == {"base"}
    skip = skip_of(plan, "thp")
    assert (skip.reason, skip.remedy) == ("enabled is never", "as root: echo madvise > it")


def test_many_sizes_of_one_missing_feature_are_told_once(vm2):
    plan = plan_of(vm2, {"kernels": "stream"})
    assert [skip.what for skip in plan.skips if "mthp" in skip.what] == ["mthp16k, mthp64k"]
    assert skip_of(plan, "mthp").reason == "off on this host"
    assert "bench host" in skip_of(plan, "mthp").remedy
    plan = plan_of(vm2, {"kernels": "stream", "pages": ["base", "thp"]})
    assert not plan.skips


def test_a_pool_too_small_is_a_skip_with_the_pages_and_the_command(vm2):
    plan = plan_of(
        vm2, {"kernels": "stream", "sizes": "1GiB"}, host={"pools": {2 * MIB: 100, GIB: 0}}
    )
    assert {actor.policy for actor in actors_of(plan)} == {"base", "thp"}
    two, one = skip_of(plan, "2m"), skip_of(plan, "1g")
    assert "512 pages of 2MiB" in two.reason
    assert "100 free" in two.reason
    assert "1 page of 1GiB" in one.reason
    assert "--reserve-hugepages" in two.remedy


def test_the_reserve_command_adds_to_what_the_pool_holds(vm2):
    plan = plan_of(
        vm2,
        {"kernels": "stream", "sizes": "1GiB"},
        host={"pools": {2 * MIB: 100}, "reserved": {2 * MIB: 130}},
    )
    # 130 are there, 30 of them taken by others: 412 more make 512 free.
    assert "echo 542 > /sys/kernel/mm/hugepages/hugepages-2048kB/" in skip_of(plan, "2m").remedy


def test_a_policy_is_skipped_only_for_the_blocks_its_pool_cannot_hold(vm2):
    plan = plan_of(
        vm2,
        {"kernels": "stream", "sizes": ["64MiB", "1GiB"]},
        host={"pools": {2 * MIB: 100, GIB: 1}},
    )
    with_2m = {actor.size for actor in actors_of(plan) if actor.policy == "2m"}
    assert with_2m == {64 * MIB}
    assert {actor.size for actor in actors_of(plan) if actor.policy == "1g"} == {64 * MIB, GIB}
    skip = skip_of(plan, "2m")
    assert skip.what == "2m in one block"
    assert plan.blocks[1].id in skip.reason
    assert plan.blocks[0].id not in skip.reason


def test_every_actor_and_every_process_takes_pages_of_its_own(vm2):
    sweep = {"kernels": "stream", "sizes": "64MiB", "pages": ["base", "1g"], "process": "each"}
    alone = plan_of(vm2, sweep, host={"pools": {GIB: 1}})
    assert "2 pages of 1GiB" in skip_of(alone, "1g").reason
    assert pool_need(plan_of(vm2, sweep, host={"pools": {GIB: 2}}), resources(vm2), Made()) == {
        GIB: 2
    }
    beside = {"beside": {"actors": {"kernel": "walk", "size": "64MiB", "pages": "1g"}}}
    plan = plan_of(vm2, {**sweep, **beside, "threads": 1}, host={"pools": {GIB: 1}})
    assert "2 pages of 1GiB" in skip_of(plan, "1g").reason


def test_processes_copy_what_their_threads_would_share(vm2):
    plan = plan_of(
        vm2,
        {"kernels": "shared", "sizes": "1GiB", "pages": ["base", "2m"], "process": "each"},
        host={"pools": {2 * MIB: 0}},
    )
    assert "1024 pages of 2MiB" in skip_of(plan, "2m").reason


def test_the_pool_of_the_node_that_runs_must_hold_the_pages(hosts):
    topology = hosts["snc4"]
    host = resources(topology)
    pools = {(2 * MIB, None): 4000, (GIB, None): 0}
    pools |= {(2 * MIB, node.id): 0 for node in topology.nodes} | {(2 * MIB, 3): 4000}
    sweep = {"kernels": "stream", "sizes": "1GiB", "threads": 2, "pages": ["base", "2m"]}
    found = {}
    for node in (2, 3):
        plan = make_plan(config({**sweep, "node": node}), replace(host, pools=pools), Made())
        found[node] = {actor.policy for actor in actors_of(plan)}
    assert found == {2: {"base"}, 3: {"base", "2m"}}


def test_a_pool_of_unknown_size_is_tried(vm2):
    plan = plan_of(vm2, {"kernels": "stream"}, host={"pools": {2 * MIB: None}})
    assert "2m" in {actor.policy for actor in actors_of(plan)}


def test_planning_with_assumed_pools_says_what_to_reserve(vm2):
    sweep = {"kernels": "stream", "sizes": ["64MiB", "1GiB"]}
    plan = plan_of(vm2, sweep, assume_pools=True)
    need = pool_need(plan, resources(vm2), Made())
    assert need == {2 * MIB: 512, GIB: 1}
    with_pools = plan_of(vm2, sweep, host={"pools": need})
    assert with_pools.blocks == plan.blocks


def test_a_kernel_that_refuses_a_policy_is_a_skip_of_that_case(vm2):
    made = Made(refuses={"thp": "chunks are no multiple of the page"})
    plan = plan_of(vm2, {"kernels": "chunks", "pages": ["base", "thp"]}, made=made)
    assert {actor.policy for actor in actors_of(plan)} == {"base"}
    assert skip_of(plan, "chunks").reason == "chunks are no multiple of the page"


def test_alternatives_without_their_baseline_are_left_out_with_it(vm2):
    made = Made(refuses={"base": "no"})
    with pytest.raises(UsageError, match="nothing of this sweep"):
        plan_of(vm2, {"kernels": "stream", "pages": ["base", "thp"]}, made=made)


def test_a_size_too_small_for_its_threads_is_a_skip_with_the_reason(hosts):
    plan = plan_of(hosts["threadripper"], {"kernels": "stream", "sizes": ["4KiB", "64MiB"]})
    assert {actor.size for actor in actors_of(plan)} == {64 * MIB}
    assert "too few for 192 threads" in plan.skips[-1].reason


# ---- memory and sizes ---------------------------------------------------------------------------


def test_a_size_that_takes_too_much_memory_is_a_skip_that_names_the_flag(vm2):
    plan = plan_of(vm2, {"kernels": "stream", "sizes": ["64MiB", "4GiB"]}, host={"memory": 8 * GIB})
    assert {actor.size for actor in actors_of(plan)} == {64 * MIB}
    skip = skip_of(plan, "pages:stream")
    assert "takes 4GiB, more than 2GiB (25% of what is available)" in skip.reason
    assert "--max-memory 4GiB" in skip.remedy
    sweep = {"kernels": "stream", "sizes": "4GiB"}
    assert plan_of(vm2, sweep, host={"memory": 8 * GIB}, max_memory="4GiB").blocks


@given(st.integers(64 * MIB, 64 * GIB), st.sampled_from(NAMES), st.booleans())
@settings(max_examples=40)
def test_no_sample_takes_more_than_its_share_of_memory(hosts, memory, name, explicit):
    topology = hosts[name]
    sweep = {
        "kernels": ["stream", "walk"],
        "threads": [1, "all"],
        "sizes": ["1MiB", "512MiB", "4GiB"] if explicit else ["1MiB", "auto"],
        "beside": [{}, {"actors": {"kernel": "walk"}}],
    }
    host = {"memory": memory, "pools": POOLS}
    plan = plan_of(topology, sweep, host=host)
    for block in plan.blocks:
        for entry in block.entries:
            placement = Placement(entry.cpus, entry.nodes, ())
            need = demand(entry.mix, placement, Made(), resources(topology, **host))
            assert need.memory_bytes <= memory / 4
            assert need.total_bytes <= plan.memory_bytes


def test_bandwidth_arenas_are_beyond_all_caches_and_equal_for_every_thread_count(hosts):
    for name, llc in (("vm2", 32 * MIB), ("threadripper", 12 * 32 * MIB), ("snc4", 2 * 60 * MIB)):
        plan = plan_of(hosts[name], {"kernels": "stream", "threads": "quick", "pages": "base"})
        (size,) = {actor.size for actor in actors_of(plan)}
        assert size >= 4 * llc > size // 2
        assert size & (size - 1) == 0
        assert "as sysfs reports" in " ".join(plan.notes)


def test_the_larger_of_measured_and_reported_caches_counts(hosts):
    sweep = {"kernels": "stream", "pages": "base"}
    for measured, size, source in ((6, 128, "as sysfs reports"), (60, 256, "as measured")):
        plan = plan_of(hosts["vm2"], sweep, probe=Probe(llc_bytes=measured * MIB))
        assert [actor.size for actor in actors_of(plan)] == [size * MIB]
        assert source in " ".join(plan.notes)


def test_private_caches_that_hold_more_than_the_shared_one_count():
    small = Cache(3, "Unified", 4 * MIB, 64, 16, tuple(range(16)))
    own = [Cache(2, "Unified", 2 * MIB, 64, 16, (cpu,)) for cpu in range(16)]
    cpus = tuple(Cpu(i, i, 0, 0, 0, 0, i, 0, None) for i in range(16))
    topology = Topology(cpus, (small, *own), (small,), ())
    assert last_level(topology, range(16), Probe()).bytes == 32 * MIB


def test_a_host_that_shows_no_cache_is_said_to(hosts):
    plan = plan_of(hosts["arm64k"], {"kernels": "stream", "pages": "base"})
    assert actors_of(plan)[0].size == GIB
    assert any("assumed: this system shows no third level" in note for note in plan.notes)


def test_only_the_caches_of_allowed_cpus_count(hosts):
    topology = hosts["threadripper"]
    host = {"allowed": tuple(range(8)), "threads": 8}
    plan = plan_of(topology, {"kernels": "stream", "pages": "base"}, host=host)
    assert actors_of(plan)[0].size == 128 * MIB
    assert set(plan.blocks[0].entries[0].cpus[0]) == set(range(8))


def test_the_working_set_is_the_largest_that_memory_allows(vm2):
    sweep = {"kernels": "walk", "threads": 1}
    for memory, size in ((64 * GIB, 16 * GIB), (23 * GIB, 4 * GIB), (2 * GIB, 512 * MIB)):
        plan = plan_of(vm2, sweep, host={"memory": memory}, longest_sample="1h")
        assert {actor.size for actor in actors_of(plan)} == {size}


def test_the_working_set_keeps_samples_short_but_not_below_its_least(vm2):
    sweep = {"kernels": "walk", "threads": 1}
    sizes = []
    for longest in ("1h", "5s", "2s", "1ms"):
        plan = plan_of(vm2, sweep, longest_sample=longest, working_set={"from": "256MiB"})
        sizes.append(actors_of(plan)[0].size)
        if longest not in ("1h", "1ms"):
            slowest = max(e.estimate_s for b in plan.blocks for e in b.entries)
            assert slowest <= float(longest[:-1])
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 256 * MIB
    assert len(set(sizes)) > 2


def test_the_working_set_fits_a_pool_that_exists_rather_than_losing_the_policy(vm2):
    sweep = {"kernels": "walk", "threads": 1}
    plan = plan_of(vm2, sweep, host={"pools": {2 * MIB: 512, GIB: 0}})
    assert {actor.size for actor in actors_of(plan)} == {GIB}
    assert "2m" in {actor.policy for actor in actors_of(plan)}


def test_little_memory_makes_the_working_set_smaller_still_but_not_less_than_the_caches(vm2):
    sweep = {"kernels": "walk", "threads": 1}
    for memory, size in ((1024 * MIB, 256 * MIB), (600 * MIB, 128 * MIB)):
        assert actors_of(plan_of(vm2, sweep, host={"memory": memory}))[0].size == size
    with pytest.raises(UsageError, match="takes 128MiB"):
        plan_of(vm2, sweep, host={"memory": 400 * MIB})


def test_a_pool_too_small_for_any_working_set_does_not_make_it_smaller(vm2):
    sweep = {"kernels": "walk", "threads": 1}
    without = actors_of(plan_of(vm2, sweep))[0].size
    plan = plan_of(vm2, sweep, host={"pools": {2 * MIB: 32}})
    assert {actor.size for actor in actors_of(plan)} == {without}
    assert f"{without // (2 * MIB)} pages of 2MiB" in skip_of(plan, "2m").reason


def test_a_working_set_that_was_asked_for_is_used_exactly(vm2):
    plan = plan_of(vm2, {"kernels": ["walk", "stream"]}, working_set="2GiB")
    assert {actor.size for actor in actors_of(plan)} == {2 * GIB}
    small = plan_of(vm2, {"kernels": ["walk", "stream"]}, working_set="8MiB")
    assert {(a.kernel, a.size) for a in actors_of(small)} == {
        ("walk", 8 * MIB),
        ("stream", 128 * MIB),
    }
    with pytest.raises(UsageError, match="takes 2GiB"):
        plan_of(vm2, {"kernels": "walk"}, working_set="2GiB", host={"memory": GIB})


def test_many_threads_get_more_than_the_caches_they_use(hosts):
    topology = hosts["threadripper"]
    plan = plan_of(
        topology,
        {"kernels": "walk", "threads": [1, "all"], "pages": "base"},
        working_set={"from": "256MiB", "to": "256MiB"},
    )
    one, every = actors_of(plan)
    assert (one.size, every.size) == (256 * MIB, 2 * GIB)


def test_kernels_without_arrays_have_no_size(vm2):
    plan = plan_of(vm2, {"kernels": "spin", "pages": "base", "sizes": ["64MiB", "1GiB"]})
    assert [actor.size for actor in actors_of(plan)] == [0]


def test_a_plan_says_above_which_size_pages_are_not_tested(vm2):
    plan = plan_of(vm2, {"kernels": "walk"}, working_set="1GiB", host={"pools": POOLS})
    told = " ".join(plan.notes)
    assert "not tested above 1GiB" in told
    assert "1GiB against 2MiB pages: no verdict below 16GiB" in told
    measured = plan_of(
        vm2,
        {"kernels": "walk"},
        working_set="1GiB",
        host={"pools": POOLS},
        probe=Probe(reach_bytes={2 * MIB: 100 * MIB}, small_host_pages=True),
    )
    told = " ".join(measured.notes)
    assert "no verdict below" not in told
    assert "nothing about bare metal" in told


def test_arenas_grow_with_the_threads_that_divide_them_where_pages_are_compared(hosts):
    """A TLB reaches 8 MiB of 4 KiB pages: verdicts take four times that in each thread's share."""
    sweep = {"threads": [1, 192], "pages": ["base", "thp"]}
    head = {"working_set": {"from": "256MiB", "to": "256MiB"}, "longest_sample": "20s"}
    host = {"memory": 400 * GIB}

    def sizes(**changes):
        table = {"kernels": "walk", **sweep, **changes}
        plan = plan_of(hosts["threadripper"], table, host=host, **head)
        return {actor.threads: actor.size for actor in actors_of(plan)}

    assert sizes() == {1: 256 * MIB, 192: 192 * 32 * MIB}
    assert sizes(kernels="stream") == {1: 6 * GIB, 192: 6 * GIB}, "one size for all counts"
    assert sizes(kernels="stream", sizes="least")[1] == 128 * MIB
    assert sizes(kernels="shared")[192] == 2 * GIB, "every thread goes over all of it"
    assert sizes(pages="base")[192] == 2 * GIB, "nothing is compared"
    assert sizes(sizes="1GiB")[192] == GIB, "a size that was asked for is kept"


@pytest.mark.parametrize(
    "limits",
    [
        {"host": {"memory": 16 * GIB}},
        {"longest_sample": "1s"},
        {"budget": "40s", "sweep": {"essential": True}},
    ],
    ids=["memory", "a sample's time", "budget"],
)
def test_what_cannot_be_large_enough_is_measured_and_the_plan_says_it_is_not_judged(hosts, limits):
    limits = dict(limits)
    sweep = {"kernels": "walk", "threads": [1, 192], "pages": ["base", "thp"]}
    sweep |= limits.pop("sweep", {})
    head = {"working_set": {"from": "256MiB", "to": "256MiB"}, "window": "100ms"}
    host = limits.pop("host", {"memory": 400 * GIB})
    plan = plan_of(hosts["threadripper"], sweep, host=host, **head, **limits)
    assert {actor.size for actor in actors_of(plan) if actor.threads == 192} == {2 * GIB}
    (told,) = (note for note in plan.notes if "too small for page verdicts" in note)
    assert "32MiB a thread" in told
    assert told.endswith(": walk 192t 2GiB")


def test_bandwidth_arenas_are_spoken_of_where_there_are_any(vm2):
    def told(kernel):
        return any("bandwidth arenas" in note for note in plan_of(vm2, {"kernels": kernel}).notes)

    assert told("stream")
    assert not told("walk")
    assert not told("spin")


# ---- time ---------------------------------------------------------------------------------------


def test_a_budget_sheds_from_the_end_and_lists_what_it_shed(vm2):
    sweeps = [
        {"kernels": f"stream[op={op}]", "threads": [2, 1]} for op in ("read", "copy", "triad")
    ]
    whole = plan_of(vm2, *sweeps, rounds=6)
    for share in (0.8, 0.5, 0.2):
        plan = plan_of(vm2, *sweeps, rounds=6, budget=whole.estimate_s * share)
        assert plan.estimate_s <= whole.estimate_s * share
        assert plan.rounds == 6
        assert plan.blocks == whole.blocks[: len(plan.blocks)]
        assert [skip.what for skip in plan.shed] == [
            block.id for block in whole.blocks[len(plan.blocks) :]
        ]
        assert all("--budget" in skip.remedy for skip in plan.shed)


def test_the_stretch_is_for_all_where_the_essential_alone_need_it(vm2):
    first = {"kernels": "stream[op=read]", "threads": 2, "essential": True}
    second = {"kernels": "stream[op=copy]", "threads": 2}
    one = plan_of(vm2, first, rounds=6).estimate_s
    short = plan_of(vm2, first, second, rounds=6, budget=1.5 * one, stretch=3 * one)
    assert len(short.blocks) == 1
    assert len(short.shed) == 1, "what is essential fits the budget: the rest has to"
    long = plan_of(vm2, first, second, rounds=6, budget=0.9 * one, stretch=3 * one)
    assert len(long.blocks) == 2


def test_the_first_block_stays_whatever_the_budget_and_the_plan_says_so(vm2):
    plan = plan_of(vm2, {"kernels": ["stream", "walk"]}, budget="1s", rounds=7)
    assert len(plan.blocks) == 1
    assert plan.rounds == 7
    assert any("over the budget of 1s" in note for note in plan.notes)


def test_windows_are_shortened_before_cases_are_shed_where_the_sweep_allows(vm2):
    sweeps = {"kernels": ["stream[op=read]", "stream[op=copy]"], "window": "2s"}
    whole = plan_of(vm2, sweeps, rounds=6)
    fixed = plan_of(vm2, sweeps, rounds=6, budget=0.8 * whole.estimate_s)
    assert fixed.shed
    assert fixed.blocks[0].settings.window_s == 2
    plan = plan_of(vm2, sweeps, rounds=6, budget=0.8 * whole.estimate_s, shortest_window="500ms")
    assert not plan.shed
    assert len(plan.blocks) == 2
    assert all(0.5 <= block.settings.window_s < 2 for block in plan.blocks)
    assert any("shortened" in note for note in plan.notes)


def test_a_smaller_working_set_comes_before_both(vm2):
    sweeps = [{"kernels": "walk", "threads": 1}, {"kernels": "stream"}]
    head = {"working_set": {"from": "256MiB", "to": "8GiB"}, "rounds": 6}
    whole = plan_of(vm2, *sweeps, **head)
    plan = plan_of(vm2, *sweeps, budget=0.6 * whole.estimate_s, shortest_window="100ms", **head)
    assert not plan.shed
    assert plan.blocks[0].settings == whole.blocks[0].settings
    assert 256 * MIB <= actors_of(plan)[0].size < actors_of(whole)[0].size


def test_estimates_grow_with_memory_passes_and_windows(vm2):
    def estimate(size="1GiB", **changes):
        sweep = {"kernels": "stream", "threads": 1, "pages": "base", "sizes": size, **changes}
        return plan_of(vm2, sweep).blocks[0].estimate_s

    assert estimate() < estimate("2GiB") < estimate("4GiB")
    assert estimate(window="1s") < estimate(window="2s")
    assert estimate() < estimate(min_passes=30)
    assert estimate(threads=2) < estimate()


def test_a_team_quoted_per_operation_is_not_taken_for_a_row_of_dependent_loads(vm2):
    def estimate(kernel):
        sweep = {"kernels": kernel, "threads": 1, "pages": "base", "sizes": "1GiB"}
        return plan_of(vm2, sweep).blocks[0].estimate_s

    assert estimate("rows") == estimate("stream")


def test_memory_that_a_hypervisor_takes_back_costs_time(vm2):
    def estimates(virtual):
        sweep = {"kernels": "stream", "threads": 1, "sizes": "1GiB", "pages": ["base", "thp", "2m"]}
        plan = plan_of(vm2, sweep, host={"virtual": virtual, "pools": POOLS})
        return {e.mix.actors[0].policy: e.estimate_s for e in plan.blocks[0].entries}

    metal, virtual = estimates(False), estimates(True)
    assert virtual["thp"] > metal["thp"]
    assert (virtual["base"], virtual["2m"]) == (metal["base"], metal["2m"])


def test_measured_costs_take_the_place_of_the_built_in_ones(vm2):
    sweep = {"kernels": "stream", "pages": "base"}
    usual = plan_of(vm2, sweep).estimate_s
    slow = plan_of(vm2, sweep, probe=Probe(costs={"start_s": 10.25, "unheard_of": 1.0})).estimate_s
    assert slow == pytest.approx(usual + 10 * 10.0, rel=1e-3)  # ten rounds


def test_the_deadline_leaves_room_for_slow_passes(vm2):
    plan = plan_of(vm2, {"kernels": "walk[loads=100000000]", "threads": 1, "pages": "base"})
    (block,) = plan.blocks
    assert block.settings.deadline_s >= 3 * 100000000 * 100e-9
    assert block.settings.deadline_s > block.entries[0].estimate_s


def test_the_same_sweep_on_the_same_host_is_the_same_plan(hosts):
    sweep = {"kernels": ["stream", "walk"], "threads": "quick"}
    one, other = (plan_of(hosts["snc4"], sweep) for _ in range(2))
    assert one == other
    assert one.digest() == other.digest()
    assert plan_of(hosts["snc4"], sweep, seed=2).digest() != one.digest()


# ---- stored hosts -------------------------------------------------------------------------------


def test_a_stored_host_needs_no_more_than_its_sysfs(tmp_path):
    root = expand("threadripper", tmp_path)
    shutil.rmtree(root / "proc")
    stored = read_resources(root)
    assert len(stored.allowed) == stored.threads == 192
    assert stored.memory_bytes == 527_832_000 * 1024
    assert any("all of it is assumed" in note for note in stored.notes)
    assert make_plan(config({"kernels": "stream"}), stored, Made()).blocks


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_host_can_be_planned_for(name, tmp_path):
    stored = read_resources(expand(name, tmp_path))
    plan = make_plan(config({"kernels": ["stream", "walk"], "threads": "quick"}), stored, Made())
    used = {cpu for b in plan.blocks for e in b.entries for cpus in e.cpus for cpu in cpus}
    assert used <= set(stored.allowed) <= set(stored.topology.by_id)
    assert stored.memory_bytes
    assert any("from stored files" in note for note in plan.notes)
    assert all(POLICIES[actor.policy] for actor in actors_of(plan))
    assert all(block.id.endswith(mix_name(block.entries[0].mix)) for block in plan.blocks)
