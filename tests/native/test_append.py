"""append leaves the elements it says, touches each page once, and copies what its growth says."""

import os

import numpy as np
import pytest
from churn_runs import MIB, PAGE, held, left_behind, sample
from pages_module import reserve

from bench import native
from bench.errors import UsageError
from bench.mix import Actor, Mix, mix_name

GROWTHS = native.kernel("append").param("growth").choices
THP = pytest.mark.skipif(
    bool(native.policy_available("thp")), reason="this host gives no transparent huge pages"
)
BOTH_POLICIES = ["base", pytest.param("thp", marks=THP)]


def append(policy="base", threads=1, size=12 * MIB, **params):
    return Actor("append", "scalar", policy, threads, size, tuple(params.items()))


def last_capacity(size, threads=1, first=2 * MIB):
    """The largest doubling of the first capacity that fits with half of itself beside it."""
    last = first
    while 3 * last <= size // threads:
        last *= 2
    return last


def limbs(n_bytes, thread, passes, seed):
    index = np.arange(n_bytes // 8, dtype=np.uint64)
    start = np.uint64(seed + (passes << 8) + thread)
    return start + (np.uint64(2) * index + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("passes", [1, 2])
def test_the_vector_holds_every_element(growth, threads, passes):
    actor = append(threads=threads, size=24 * MIB, growth=growth)
    last = last_capacity(24 * MIB, threads)
    with held(actor, passes, seed=5) as rows:
        for thread, row in enumerate(rows):
            assert row.contents == limbs(last, thread, passes, 5).tobytes()
            assert row.work["ops"] == last / 32


@pytest.mark.parametrize("first", [PAGE, 4 * PAGE, MIB])
@pytest.mark.parametrize("step", [4096, 96 << 10, 3 * MIB])
def test_steps_may_end_anywhere_between_two_growths(first, step):
    for growth in GROWTHS:
        with held(append(growth=growth, first=first, step=step)) as (row,):
            last = last_capacity(12 * MIB, 1, first)
            assert row.contents == limbs(last, 0, 1, 1).tobytes()
            assert row.work["n_steps"] == -(-last // step)


@pytest.mark.parametrize("policy", BOTH_POLICIES)
@pytest.mark.parametrize("growth", GROWTHS)
def test_moved_pages_are_not_touched_again_and_copied_ones_are(growth, policy):
    page = native.policy(policy).page_bytes
    with held(append(policy, size=48 * MIB, growth=growth), 2) as (row,):
        last = last_capacity(48 * MIB)
        copied = last - 2 * MIB if growth == "copy" else 0
        # The first step of the first pass, of 128 KiB, is before the count begins.
        missing = max(page, 128 << 10)
        assert row.touched == 2 * (last + copied) - missing
        assert row.touched / page <= row.faults <= row.touched / page + 16
        assert row.work["read_bytes"] == copied
        assert row.work["written_bytes"] == last + copied


def test_bus_bytes_are_between_one_and_four_times_the_stores():
    for growth in GROWTHS:
        with held(append(growth=growth)) as (row,):
            read, written = row.work["read_bytes"], row.work["written_bytes"]
            assert row.work["bus_min_bytes"] == read + written
            assert row.work["bus_max_bytes"] == read + 4 * written


def test_all_growths_do_the_same_work_and_only_a_copy_needs_both_places():
    for growth in GROWTHS:
        footprint = native.footprint(append(size=48 * MIB, growth=growth)).mapped_bytes
        assert footprint == (48 * MIB if growth == "copy" else 32 * MIB)
        assert native.footprint(append(threads=3, size=100 * MIB, growth=growth)).used[0] <= 100 * (
            MIB
        )


def test_mappings_and_resident_memory_are_as_before():
    names = [
        mix_name(Mix((append(policy, 2, 24 * MIB, growth=growth),)))
        for growth in GROWTHS
        for policy in ("base", "thp")
        if not native.policy_available(policy)
    ]
    for name, (mappings, resident_kib) in left_behind(names).items():
        assert mappings <= 0, name
        assert resident_kib < 1024, name


@pytest.mark.parametrize("policy", BOTH_POLICIES)
@pytest.mark.parametrize("growth", GROWTHS)
def test_evidence_is_as_promised(growth, policy):
    (row,) = sample(Mix((append(policy, 2, 24 * MIB, growth=growth),)))["actors"]
    for evidence in row["evidence"].values():
        assert evidence["known"] == evidence["total"] > 0
        assert evidence["matching"] >= 0.99 * evidence["known"]


@pytest.mark.root
@pytest.mark.hugetlb
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_copies_may_lie_in_hugetlb_pages():
    with reserve("2m", 12):
        response = sample(Mix((append("2m", 2, 24 * MIB, growth="copy"),)))
    assert "error" not in response, response
    after = response["actors"][0]["evidence"]["after"]
    # Of a vector that is not full, smaps cannot tell where its pages lie.
    assert after["matching"] >= 0.99 * after["known"] > 0.8 * after["total"]


def test_phases_are_parts_of_the_steps():
    actor = append(threads=2, size=24 * MIB)
    raw = native.run(Mix((actor,)), native.RunSettings(fixed_passes=3))
    for thread in range(2):
        row = raw.threads[thread]
        spent = [row.phase_ns[i] for i in range(3)]
        assert min(spent) > 0
        assert sum(spent) <= row.step_ns


def test_pacing_changes_no_result():
    for growth in GROWTHS:
        actor = Actor("append", "scalar", "base", 1, 12 * MIB, (("growth", growth),), pace=20e9)
        with held(actor) as (row,):
            assert row.contents == limbs(last_capacity(12 * MIB), 0, 1, 1).tobytes()


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"first": PAGE + 32}, "multiple of"),
        ({"step": 5000}, "multiple of 4096"),
        ({"first": 8 * MIB}, "at least 25165824 B"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(params, reason):
    with pytest.raises(UsageError, match=reason):
        native.footprint(append(**params))


def test_a_policy_that_cannot_grow_is_a_skip_with_its_reason():
    assert "growth=copy" in native.accepts(append("2m"))
    assert native.accepts(append("2m", growth="copy")) == ""
    assert "pages of thp" in native.accepts(append("thp", first=MIB))
