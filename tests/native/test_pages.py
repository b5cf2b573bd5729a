"""Page policies give what they promise, or say why not; evidence shows when it was not given."""

import errno
import mmap
import os
import subprocess

import pytest
from pages_module import (
    MIB,
    PAGE,
    PMD,
    THP,
    as_nobody,
    choose,
    in_child,
    load,
    only_64k_pages,
    pool_folder,
    reserve,
)

SIZE = 64 * MIB
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
POLICIES = ["base", "thp", "mthp64k", "2m", "1g"]


@pytest.fixture(scope="module")
def pages():
    return load()


@pytest.fixture
def thp(pages):
    code, why = pages.available("thp")
    if code:
        pytest.skip(why)
    if pages.lib.ps_pmd_bytes() != PMD:
        pytest.skip("written for PMDs of 2 MiB")


@pytest.fixture
def mthp64k():
    with only_64k_pages():
        yield


def free_pages(name):
    free, reserved = (
        int((pool_folder(name) / f"{key}_hugepages").read_text()) for key in ("free", "resv")
    )
    return free - reserved


def test_names_are_unique_and_each_row_knows_its_page(pages):
    assert len(pages.policies) == pages.lib.ps_n_policies()
    assert set(POLICIES) <= set(pages.policies)
    sizes = {name: pages.lib.ps_policy_page(row) for name, row in pages.policies.items()}
    assert sizes["base"] == PAGE
    assert sizes["thp"] == pages.lib.ps_pmd_bytes()
    assert sizes["mthp64k"] == 64 * 1024
    assert (sizes["2m"], sizes["1g"]) == (2 * MIB, 1024 * MIB)
    assert {name for name, row in pages.policies.items() if row.hugetlb} == {"2m", "1g"}


def test_base_memory_is_all_small_pages(pages):
    assert pages.available("base") == (0, "")
    with pages.mapped("base", SIZE) as start:
        matching, known, total, source = pages.evidence("base", start, SIZE)
    assert (matching, known, total) == (SIZE, SIZE, SIZE)
    assert source in ("pagemap_scan", "smaps")


def test_thp_memory_is_all_huge_pages(pages, thp):
    with pages.mapped("thp", SIZE) as start:
        assert pages.evidence("thp", start, SIZE)[:3] == (SIZE, SIZE, SIZE)


def test_each_policy_is_contradicted_by_the_memory_of_another(pages, thp):
    with pages.mapped("base", SIZE) as start:
        assert pages.evidence("thp", start, SIZE)[:2] == (0, SIZE)
        assert pages.evidence("2m", start, SIZE)[:2] == (0, SIZE)
    with pages.mapped("thp", SIZE) as start:
        assert pages.evidence("base", start, SIZE)[:2] == (0, SIZE)
        assert pages.evidence("2m", start, SIZE)[:2] == (0, SIZE)


def test_a_split_huge_page_no_longer_matches(pages, thp):
    with pages.mapped("thp", SIZE) as start:
        middle = pages.at(start, 5 * PMD + 3 * PAGE)
        assert pages.lib.mprotect(middle, PAGE, mmap.PROT_READ) == 0
        assert pages.evidence("thp", start, SIZE)[:2] == (SIZE - PMD, SIZE)
        assert pages.evidence("base", start, SIZE)[:2] == (PMD, SIZE)


def test_memory_that_is_gone_is_unknown(pages, thp):
    with pages.mapped("thp", SIZE) as start:
        assert pages.lib.munmap(pages.at(start, 5 * PMD + 3 * PAGE), PAGE) == 0
        assert pages.evidence("thp", start, SIZE)[:3] == (SIZE - PMD, SIZE - PAGE, SIZE)


def test_memory_only_read_matches_nothing(pages, thp):
    """Untouched pages read as one shared zero page: a scan over them never leaves the cache."""
    for name in ("base", "thp"):
        with pages.mapped(name, SIZE, touch=False) as start:
            view = pages.ffi.buffer(start, SIZE)
            assert sum(view[offset][0] for offset in range(0, SIZE, PAGE)) == 0
            assert pages.evidence(name, start, SIZE)[0] == 0


@pytest.mark.parametrize("name", ["base", "thp", "mthp64k"])
@pytest.mark.parametrize("n_bytes", [2 * MIB, 3 * MIB, 64 * MIB])
def test_mappings_start_at_a_page_table(pages, name, n_bytes):
    """So that policies differ in page size alone."""
    n_bytes -= n_bytes % pages.lib.ps_policy_page(pages.policies[name])
    with pages.mapped(name, n_bytes, touch=False) as start:
        assert int(pages.ffi.cast("uintptr_t", start)) % PMD == 0


@pytest.mark.parametrize("name", ["base", "thp", "mthp64k"])
def test_a_hole_can_be_mapped_again_and_only_a_hole(pages, name):
    page = pages.lib.ps_policy_page(pages.policies[name])
    with pages.mapped("thp", 8 * PMD, touch=False) as region:
        where = pages.at(region, 2 * PMD)
        assert pages.try_map(name, page, where)[0] == errno.EEXIST
        assert pages.lib.munmap(where, page) == 0
        code, got = pages.try_map(name, page, where)
        assert (code, got) == (0, where)
        pages.touch(got, page)


@pytest.mark.parametrize("name", POLICIES)
def test_odd_sizes_and_addresses_are_refused(pages, name):
    page = pages.lib.ps_policy_page(pages.policies[name])
    assert pages.try_map(name, page + PAGE // 2)[0] == errno.EINVAL
    assert pages.try_map(name, 0)[0] == errno.EINVAL
    odd = pages.ffi.cast("void *", 0x7000_0000_0000 + page // 2)
    assert pages.try_map(name, page, odd)[0] == errno.EINVAL


@needs_root
@pytest.mark.root
def test_thp_names_the_setting_that_forbids_it(pages):
    with choose(THP / "enabled", "never"), choose(THP / "hugepages-2048kB/enabled", "inherit"):
        code, why = pages.available("thp")
        assert code == errno.ENOTSUP
        assert "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled" in why
    own = THP / "hugepages-2048kB/enabled"
    with choose(own, "never"):
        code, why = pages.available("thp")
        assert code == errno.ENOTSUP
        assert f"echo madvise > {own}" in why
    with choose(THP / "enabled", "never"), choose(own, "madvise"):
        assert pages.available("thp") == (0, "")
        with pages.mapped("thp", SIZE) as start:
            assert pages.evidence("thp", start, SIZE)[0] == SIZE


def test_thp_says_when_the_process_may_not_have_it(pages, thp):
    def forbidden():
        assert pages.lib.prctl(41, 1, 0, 0, 0) == 0  # PR_SET_THP_DISABLE
        code, why = pages.available("thp")
        assert code == errno.ENOTSUP
        assert "PR_SET_THP_DISABLE" in why
        with pages.mapped("thp", SIZE) as start:
            assert pages.evidence("thp", start, SIZE)[:2] == (0, SIZE)

    def forbidden_unless_advised():
        if pages.lib.prctl(41, 1, 2, 0, 0) == 0:  # Linux 6.18
            assert pages.available("thp") == (0, "")
            with pages.mapped("thp", SIZE) as start:
                assert pages.evidence("thp", start, SIZE)[0] == SIZE

    in_child(forbidden)
    in_child(forbidden_unless_advised)


@needs_root
@pytest.mark.root
def test_mthp_needs_its_size_on_and_every_larger_one_off(pages):
    """And says so in one command, which does what it says."""
    own = THP / "hugepages-64kB/enabled"
    with (
        choose(own, "never"),
        choose(THP / "hugepages-512kB/enabled", "always"),
        choose(THP / "hugepages-2048kB/enabled", "madvise"),
    ):
        code, why = pages.available("mthp64k")
        assert code == errno.ENOTSUP
        subprocess.run(["sh", "-c", why.partition("as root: ")[2]], check=True)
        assert pages.available("mthp64k") == (0, "")
        own.write_text("never")
        code, why = pages.available("mthp64k")
        assert code == errno.ENOTSUP
        assert why.endswith(f"as root: echo madvise > {own}")


@needs_root
@pytest.mark.root
def test_mthp_memory_is_all_pages_of_its_size(pages, mthp64k):
    assert pages.available("mthp64k") == (0, "")
    with pages.mapped("mthp64k", SIZE) as start:
        assert pages.evidence("mthp64k", start, SIZE) == (SIZE, SIZE, SIZE, "kpageflags")
        # What the other sources see of it is small pages.
        assert pages.evidence("thp", start, SIZE)[:2] == (0, SIZE)


@needs_root
@pytest.mark.root
def test_mthp_is_exact_about_the_size(pages, mthp64k):
    with pages.mapped("mthp64k", SIZE, touch=False) as start:
        # Downwards and upwards: in one of them neighbours often are neighbours in memory too.
        for offset in range(SIZE // 2 - PAGE, -1, -PAGE):
            pages.touch(pages.at(start, offset), PAGE)
        pages.touch(pages.at(start, SIZE // 2), SIZE // 2)
        assert pages.evidence("mthp64k", start, SIZE)[:2] == (SIZE, SIZE)
        assert pages.evidence("mthp32k", start, SIZE)[:2] == (0, SIZE)
        assert pages.evidence("mthp128k", start, SIZE)[:2] == (0, SIZE)


@needs_root
@pytest.mark.root
def test_mthp_is_unknown_to_anyone_but_root(pages, mthp64k):
    def claim():
        assert pages.available("mthp64k") == (0, "")
        with pages.mapped("mthp64k", SIZE) as start:
            assert pages.evidence("mthp64k", start, SIZE) == (0, 0, SIZE, "")

    as_nobody(pages, claim)


@needs_root
@pytest.mark.root
def test_anyone_sees_that_a_larger_size_was_taken(pages, thp):
    def claim():
        with pages.mapped("thp", SIZE) as start:
            assert pages.evidence("mthp64k", start, SIZE)[:2] == (0, SIZE)

    as_nobody(pages, claim)


@needs_root
@pytest.mark.root
def test_base_and_thp_need_no_root(pages, thp):
    def claim():
        for name in ("base", "thp"):
            assert pages.available(name) == (0, "")
            with pages.mapped(name, SIZE) as start:
                assert pages.evidence(name, start, SIZE)[:3] == (SIZE, SIZE, SIZE)

    as_nobody(pages, claim)


@pytest.mark.parametrize("name", ["2m", "1g"])
def test_an_empty_pool_says_how_to_fill_it(pages, name):
    code, why = pages.available(name)
    if code == 0:
        pytest.skip("this pool has pages")
    if code == errno.ENOMEM:
        assert "--reserve-hugepages" in why
        assert "/nr_hugepages" in why
    else:
        assert code == errno.ENOTSUP
        assert "no hugetlb pages" in why


@needs_root
@pytest.mark.root
@pytest.mark.hugetlb
@pytest.mark.parametrize(("name", "n_pages"), [("2m", 32), ("1g", 1)])
def test_hugetlb_memory_is_pages_of_its_size_and_no_other(pages, name, n_pages):
    n_bytes = n_pages * pages.policies[name].page_bytes
    other = {"2m": "1g", "1g": "2m"}[name]
    with reserve(name, n_pages):
        assert pages.available(name) == (0, "")
        with pages.mapped(name, n_bytes) as start:
            assert int(pages.ffi.cast("uintptr_t", start)) % pages.policies[name].page_bytes == 0
            expected = (n_bytes, n_bytes, n_bytes, "smaps")
            assert pages.evidence(name, start, n_bytes) == expected
            assert pages.evidence(other, start, n_bytes)[:2] == (0, n_bytes)
            assert pages.evidence("base", start, n_bytes)[:2] == (0, n_bytes)
            assert pages.folios(start, n_bytes, PMD)[2] == 0

            def claim():
                with pages.mapped("base", MIB) as small:
                    assert pages.evidence(name, small, MIB)[:2] == (0, MIB)

            as_nobody(pages, claim)


@needs_root
@pytest.mark.root
@pytest.mark.hugetlb
@pytest.mark.parametrize("name", ["2m", "1g"])
def test_more_than_the_pool_has_is_refused_at_once(pages, name):
    """And nothing smaller is given instead; a touch would be too late to learn it."""
    page = pages.policies[name].page_bytes
    with reserve(name, 1):
        assert pages.try_map(name, (free_pages(name) + 1) * page)[0] == errno.ENOMEM
        with pages.mapped(name, free_pages(name) * page, touch=False):
            assert pages.try_map(name, page)[0] == errno.ENOMEM


@needs_root
@pytest.mark.root
@pytest.mark.hugetlb
def test_a_pool_page_can_be_released_and_mapped_again(pages):
    page = pages.policies["2m"].page_bytes
    with reserve("2m", 2), pages.mapped("2m", 2 * page) as start:
        assert pages.lib.munmap(start, page) == 0
        assert pages.try_map("2m", page, start) == (0, start)
        pages.touch(start, page)
        assert pages.evidence("2m", start, 2 * page)[:3] == (2 * page, 2 * page, 2 * page)
