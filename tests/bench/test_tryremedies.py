"""Remedies for a command: what each changes, where it does not apply, and whose settings stay."""

from dataclasses import replace

import pytest
from hosttrees import expand

from bench.change import Change, environment, parse_tunables, replaced
from bench.errors import UsageError
from bench.topology import read_topology
from bench.tryremedies import DEFAULT, ROWS, choose, parse
from bench.trysite import read_site

MIB = 1 << 20
SIZES = {64 << 10: "never", 2 * MIB: "inherit"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """192 hyperthreads of 96 cores in 12 caches, one node; madvise; an empty pool; glibc 2.36."""
    folder = expand("threadripper", tmp_path_factory.mktemp("host"))
    topology = read_topology(folder / "sys")
    found = read_site(root=folder)
    thp = replace(found.thp, enabled="madvise", sizes=SIZES, pmd_bytes=2 * MIB, allowed_here=True)
    return replace(
        found,
        thp=thp,
        topology=topology,
        allowed=tuple(range(192)),
        nodes=(0,),
        pools={2 * MIB: 0, 1 << 30: 4},
        default_pool=2 * MIB,
        glibc=(2, 36),
    )


def change(site, name):
    """What a remedy changes; a string is why it does not apply."""
    found, skips = choose([name], site)
    return found[name][1] if found else skips[0].reason


def thp(site, **changes):
    return replace(site, thp=replace(site.thp, **changes))


def test_transparent_pages_by_what_the_host_says(site):
    assert change(site, "thp") == Change({"malloc.hugetlb": "1"})
    assert change(site, "nothp") == Change(no_thp=True)
    assert "to every program already" in change(thp(site, enabled="always"), "thp")
    assert change(thp(site, enabled="always"), "nothp") == Change(no_thp=True)
    assert "are off" in change(thp(site, enabled="never"), "thp")
    assert "off for every program" in change(thp(site, enabled="never"), "nothp")
    assert "for this process" in change(thp(site, allowed_here=False), "thp")
    assert "glibc 2.35" in change(replace(site, glibc=(2, 31)), "thp")
    assert "none is here" in change(replace(site, glibc=()), "thp")
    older = thp(site, sizes={})  # a kernel without mTHP
    assert change(older, "thp") == Change({"malloc.hugetlb": "1"})


def test_a_middle_size_only_where_a_fault_takes_it(site):
    assert "not the largest size" in change(site, "mthp64k")
    alone = thp(site, sizes={64 << 10: "madvise", 2 * MIB: "never"})
    assert change(alone, "mthp64k") == Change({"malloc.hugetlb": "1"})
    assert change(alone, "mthp:64k") == change(alone, "mthp64k")
    assert "pages of 64KiB" in change(alone, "thp"), "what thp promises is not what a fault takes"
    assert "no such size" in change(alone, "mthp32k")


def test_pages_of_a_pool_only_where_it_has_any(site):
    assert "none free" in change(site, "hugetlb-malloc")
    assert change(site, "hugetlb-malloc:1g") == Change({"malloc.hugetlb": str(1 << 30)})
    filled = replace(site, pools={2 * MIB: 10})
    assert change(filled, "hugetlb-malloc") == Change({"malloc.hugetlb": "2"})
    assert "no pool of such pages" in change(filled, "hugetlb-malloc:1g")


def test_processors(site):
    assert change(site, "cap:8").cpus == tuple(range(8))
    assert len(change(site, "cap").cpus) == 96
    assert "may use 192 CPUs" in change(site, "cap:192")
    apart = change(site, "apart").cpus
    assert len({site.topology.by_id[cpu].core for cpu in apart}) == len(apart) == 96
    assert len(change(site, "llc").cpus) == 16
    cores = replace(site, allowed=tuple(range(96)))
    assert "hyperthreads of one core" in change(cores, "apart")
    assert change(site, "threads:4").env["OMP_NUM_THREADS"] == "4"
    assert not change(site, "threads:4").cpus


def test_memory_nodes(site, tmp_path):
    assert change(site, "interleave") == "there is one memory node"
    several = read_site(root=expand("snc4", tmp_path))
    assert len(several.nodes) > 1
    assert change(several, "interleave").memory == ("interleave", several.nodes)
    bound = change(several, "bind:2")
    assert bound.memory == ("bind", (2,))
    assert {several.topology.by_id[cpu].node for cpu in bound.cpus} == {2}
    assert "no such memory node" in change(several, "bind:99")


def test_two_remedies_at_once(site):
    both = change(site, "keep+cap:4")
    assert both.cpus == (0, 1, 2, 3)
    assert "malloc.trim_threshold" in both.tunables
    assert "where it runs" in change(site, "cap:4+apart")
    filled = replace(site, pools={2 * MIB: 10})
    assert "set malloc.hugetlb" in change(filled, "thp+hugetlb-malloc")
    assert parse("thp+cap:2").shows == ("huge", "faults", "cpus", "busy")


@pytest.mark.parametrize("text", ["fast", "cap:0", "cap:x", "threads", "thp:2", "mthp", "none:1"])
def test_what_is_no_remedy_is_refused(text):
    with pytest.raises(UsageError) as caught:
        parse(text)
    if text == "fast":
        assert all(row.name in caught.value.remedy for row in ROWS)


def test_the_usual_ones_are_remedies():
    assert [parse(name).name for name in DEFAULT] == list(DEFAULT)


def test_a_change_survives_a_plan():
    one = Change({"a": "1"}, {"B": "2"}, True, (1, 2), ("bind", (0,)))
    assert Change.from_plain(one.plain()) == one
    assert Change.from_plain(Change().plain()) == Change()


# ---- the user's own settings ---------------------------------------------------------------------

OWN = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.hugetlb=0", "HOME": "/x"}


def test_the_users_tunables_stay_but_for_the_one_that_is_tried():
    made = environment(Change({"malloc.hugetlb": "1"}), OWN)
    assert parse_tunables(made["GLIBC_TUNABLES"]) == {
        "malloc.tcache_count": "0",
        "malloc.hugetlb": "1",
    }
    assert made["HOME"] == "/x"


def test_what_is_replaced_is_told():
    assert replaced(Change({"malloc.hugetlb": "1"}), OWN) == ["glibc.malloc.hugetlb=0"]
    assert replaced(Change(env={"HOME": "/y"}), OWN) == ["HOME=/x"]
    assert replaced(Change({"malloc.arena_max": "1"}), OWN) == []


def test_nothing_changes_nothing():
    assert environment(Change(), OWN) == OWN
    assert environment(Change(cpus=(0,), no_thp=True), OWN) == OWN
