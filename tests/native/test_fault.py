"""fault touches fresh pages once, by faults of the policy's page; it holds what it says."""

import os

import pytest
from churn_runs import LAZY_MADVISE, MIB, PAGE, held, lazy_library, left_behind, sample
from pages_module import reserve

from bench import native
from bench.errors import UsageError
from bench.mix import Actor, Mix, mix_name

HOW = native.kernel("fault").param("how").choices
HOLD = native.kernel("fault").param("hold").choices
THP = pytest.mark.skipif(
    bool(native.policy_available("thp")), reason="this host gives no transparent huge pages"
)
BOTH_POLICIES = ["base", pytest.param("thp", marks=THP)]
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
one_preload = pytest.mark.skipif(SANITIZED, reason="one preload at a time")


def fault(policy="base", threads=1, size=16 * MIB, **params):
    return Actor("fault", "scalar", policy, threads, size, tuple(params.items()))


def needs_populate(how):
    if how == "populate" and native.accepts(fault(how=how)):
        pytest.skip(native.accepts(fault(how=how)))


@pytest.mark.parametrize("policy", BOTH_POLICIES)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("hold", HOLD)
def test_a_fault_brings_in_a_page_of_the_policy(how, hold, policy):
    needs_populate(how)
    page = native.policy(policy).page_bytes
    with held(fault(policy, how=how, hold=hold), 3) as (row,):
        # The first step is before the count begins.
        assert row.touched == (3 * row.work["n_steps"] - 1) * 2 * MIB
        assert row.touched / page <= row.faults <= row.touched / page + 16
        assert row.work["ops"] == row.work["written_bytes"] / page


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("hold", HOLD)
@pytest.mark.parametrize("threads", [1, 3])
def test_every_touched_page_has_one_word_in_it_or_none(how, hold, threads):
    needs_populate(how)
    with held(fault(how=how, hold=hold, threads=threads), 2) as rows:
        for row in rows:
            share = 16 * MIB // threads // (2 * MIB) * 2 * MIB
            assert len(row.contents) == (share if hold == "pass" else 2 * MIB)
            assert row.present(len(row.contents)) == len(row.contents)
            for at in range(0, len(row.contents), PAGE):
                page = row.contents[at : at + PAGE]
                words = [page[i : i + 8] for i in range(0, PAGE, 8)]
                stored = [int.from_bytes(word, "little") for word in words if any(word)]
                steps = 2 * row.work["n_steps"]
                last = steps - (len(row.contents) - at - 1) // (2 * MIB)
                assert stored == ([last] if how == "touch" else [])


def test_only_held_memory_counts():
    for policy in ("base", "thp", "2m"):
        assert native.footprint(fault(policy, 2)).mapped_bytes == 4 * MIB
        assert native.footprint(fault(policy, 2, hold="pass")).mapped_bytes == 16 * MIB


def test_written_bytes_are_the_pages_and_the_bus_carries_them_once_or_twice():
    for params, written in (
        ({"chunks": 3}, 6 * MIB),
        ({"hold": "pass"}, 16 * MIB),
        ({"chunk": PAGE, "chunks": 5}, 5 * PAGE),
    ):
        with held(fault(**params)) as (row,):
            assert row.work["written_bytes"] == row.work["bus_min_bytes"] == written
            assert row.work["bus_max_bytes"] == 2 * written


def test_mappings_and_resident_memory_are_as_before():
    names = [
        mix_name(Mix((fault(policy, 2, how=how, hold=hold),)))
        for how in HOW
        for hold in HOLD
        for policy in ("base", "thp")
        if not native.policy_available(policy) and not native.accepts(fault(policy, how=how))
    ]
    for name, (mappings, resident_kib) in left_behind(names).items():
        assert mappings <= 0, name
        assert resident_kib < 1024, name


def test_touch_and_release_are_timed_apart():
    for hold in HOLD:
        raw = native.run(Mix((fault(threads=2, hold=hold),)), native.RunSettings(fixed_passes=3))
        for thread in range(2):
            row = raw.threads[thread]
            touched, released = row.phase_ns[0], row.phase_ns[1]
            assert min(touched, released) > 0
            assert touched + released <= row.step_ns


@pytest.mark.parametrize("policy", BOTH_POLICIES)
@pytest.mark.parametrize("hold", HOLD)
def test_evidence_is_as_promised(hold, policy):
    (row,) = sample(Mix((fault(policy, 2, hold=hold),)))["actors"]
    for evidence in row["evidence"].values():
        assert evidence["known"] == evidence["total"] > 0
        assert evidence["matching"] >= 0.99 * evidence["known"]


@pytest.mark.root
@pytest.mark.hugetlb
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("how", HOW)
def test_hugetlb_pages_come_from_the_pool(how):
    with reserve("2m", 12):
        response = sample(Mix((fault("2m", 2, how=how, hold="pass"),)))
    assert "error" not in response, response
    (row,) = response["actors"]
    after = row["evidence"]["after"]
    # Of a region that is touched in part, smaps cannot tell where its pages lie.
    assert after["matching"] >= 0.99 * after["known"] > 0.8 * after["total"]
    pages = row["touched_bytes"] / (2 * MIB)
    assert pages <= row["minor_faults"] < pages + (1024 if SANITIZED else 32)


@one_preload
@pytest.mark.parametrize("hold", HOLD)
def test_pages_that_are_not_zero_fail_the_run(tmp_path, hold):
    library = lazy_library(tmp_path, f"#define LAZY MADV_DONTNEED\n{LAZY_MADVISE}")
    response = sample(Mix((fault(hold=hold),)), {"LD_PRELOAD": library})
    assert response["error"]["stage"] == "check"
    assert "not zero" in response["error"]["message"]


@one_preload
def test_a_kernel_that_cannot_populate_is_a_skip_with_its_reason(tmp_path):
    library = lazy_library(tmp_path, f"#define UNKNOWN 23\n{LAZY_MADVISE}")
    response = sample(Mix((fault(how="populate"),)), {"LD_PRELOAD": library})
    assert response["error"]["kind"] == "skip"
    assert "Linux 5.14" in response["error"]["message"]


@one_preload
@pytest.mark.root
@pytest.mark.hugetlb
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_kernel_that_drops_no_hugetlb_page_is_a_skip_with_its_reason(tmp_path):
    library = lazy_library(tmp_path, f"#define UNKNOWN MADV_DONTNEED\n{LAZY_MADVISE}")
    with reserve("2m", 2):
        response = sample(Mix((fault("2m"),)), {"LD_PRELOAD": library})
    assert response["error"]["kind"] == "skip"
    assert "Linux 5.18" in response["error"]["message"]


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"chunk": PAGE + 8}, "multiple of"),
        ({"chunk": 32 * MIB}, "at least 33554432 B"),
        ({"hold": "pass", "chunks": 7}, "hold=chunk"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(params, reason):
    with pytest.raises(UsageError, match=reason):
        native.footprint(fault(**params))


def test_chunks_that_do_not_fit_the_policy_are_a_skip():
    assert "pages of thp" in native.accepts(fault("thp", chunk=3 * MIB))
    assert "pages of 1g" in native.accepts(fault("1g"))
