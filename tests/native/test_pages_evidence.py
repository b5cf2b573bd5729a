"""The sources behind evidence, each on its own: they agree where they can, and never overstate."""

import errno
import mmap
import os
from pathlib import Path

import pytest
from pages_module import MIB, PAGE, PMD, as_nobody, in_child, load

SIZE = 64 * MIB
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture(scope="module")
def pages():
    return load()


@pytest.fixture(autouse=True)
def thp(pages):
    code, why = pages.available("thp")
    if code:
        pytest.skip(why)
    if pages.lib.ps_pmd_bytes() != PMD:
        pytest.skip("written for PMDs of 2 MiB")


@pytest.fixture
def scan(pages):
    with pages.mapped("base", PAGE) as start:
        if pages.lib.ps_pagemap_scan(start, PAGE, pages.ffi.new("ps_backing *")):
            pytest.skip("this kernel has no PAGEMAP_SCAN")


def split(pages, start, n_pages):
    """Break up the first n huge pages."""
    for i in range(n_pages):
        assert pages.lib.mprotect(pages.at(start, i * PMD + PAGE), PAGE, mmap.PROT_READ) == 0


@pytest.mark.usefixtures("scan")
def test_scan_and_smaps_agree_on_whole_mappings(pages):
    with pages.mapped("base", SIZE) as start:
        assert pages.scan(start, SIZE) == (SIZE, 0, 0)
        assert pages.smaps(start, SIZE) == (SIZE, 0, 0, 0)
    with pages.mapped("thp", SIZE) as start:
        assert pages.scan(start, SIZE) == (0, SIZE, 0)
        assert pages.smaps(start, SIZE) == (0, SIZE, 0, 0)
        split(pages, start, 3)
        assert pages.scan(start, SIZE) == (3 * PMD, SIZE - 3 * PMD, 0)
        assert pages.smaps(start, SIZE) == (3 * PMD, SIZE - 3 * PMD, 0, 0)


@pytest.mark.usefixtures("scan")
def test_scan_continues_where_its_buffer_was_full(pages):
    """Every second page present: far more regions than one call returns."""
    n_bytes = 4 * MIB
    with pages.mapped("base", n_bytes, touch=False) as start:
        for offset in range(0, n_bytes, 2 * PAGE):
            pages.touch(pages.at(start, offset), PAGE)
        assert pages.scan(start, n_bytes) == (n_bytes // 2, 0, 0)
        assert pages.scan(pages.at(start, PAGE), n_bytes - PAGE) == (n_bytes // 2 - PAGE, 0, 0)


@pytest.mark.usefixtures("scan")
def test_scan_counts_bytes_not_pages(pages):
    with pages.mapped("base", 4 * PAGE) as start:
        assert pages.scan(pages.at(start, 100), PAGE) == (PAGE, 0, 0)
    with pages.mapped("thp", SIZE) as start:
        assert pages.scan(pages.at(start, PMD // 2), PMD) == (0, PMD, 0)


@pytest.mark.usefixtures("scan")
@pytest.mark.parametrize("name", ["base", "thp"])
def test_scan_tells_the_zero_page(pages, name):
    with pages.mapped(name, SIZE, touch=False) as start:
        assert bytes(pages.ffi.buffer(start, SIZE)).count(0) == SIZE
        small, huge, zero = pages.scan(start, SIZE)
        assert (small + huge, zero) == (0, SIZE)


def test_smaps_is_exact_inside_a_uniform_mapping(pages):
    """As it must be: neighbours of equal kind are one mapping to the kernel."""
    with pages.mapped("thp", SIZE) as start:
        assert pages.smaps(pages.at(start, PMD), 8 * PMD) == (0, 8 * PMD, 0, 0)
    with pages.mapped("base", SIZE) as start:
        assert pages.smaps(pages.at(start, 100), PMD) == (PMD, 0, 0, 0)


def test_smaps_claims_nothing_that_could_lie_elsewhere(pages):
    """Half of a mapping is touched: its sums do not say which half."""
    with pages.mapped("base", SIZE, touch=False) as start:
        pages.touch(start, SIZE // 2)
        assert pages.smaps(start, SIZE // 2) == (0, 0, 0, 0)
        assert pages.smaps(start, 3 * SIZE // 4) == (SIZE // 4, 0, 0, 0)
        assert pages.smaps(start, SIZE) == (SIZE // 2, 0, 0, 0)


def test_smaps_adds_mappings_and_skips_holes(pages):
    with pages.mapped("thp", SIZE) as start:
        assert pages.lib.munmap(pages.at(start, 4 * PMD), 2 * PMD) == 0
        assert pages.lib.mprotect(pages.at(start, 8 * PMD), PMD, mmap.PROT_READ) == 0
        assert pages.smaps(start, SIZE) == (0, SIZE - 2 * PMD, 0, 0)


def test_smaps_survives_lines_longer_than_its_buffer(pages, tmp_path):
    folder = tmp_path
    for _ in range(8):
        folder = folder / ("x" * 200)
    folder.mkdir(parents=True)
    path = folder / "a line with Rss: 999 kB in it"
    path.write_bytes(b"\x01" * SIZE)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), SIZE) as view:
        start = pages.ffi.from_buffer(view)
        assert sum(view[offset] for offset in range(0, SIZE, PAGE)) == SIZE // PAGE
        small, huge, hugetlb, _ = pages.smaps(start, SIZE)
        assert (small + huge, hugetlb) == (SIZE, 0)
        pages.ffi.release(start)


@needs_root
@pytest.mark.root
def test_folios_are_counted_at_exactly_their_size(pages):
    with pages.mapped("thp", SIZE) as start:
        assert pages.folios(start, SIZE, PMD) == (0, SIZE, SIZE)
        assert pages.folios(start, SIZE, PMD // 2) == (0, SIZE, 0)
        # The mapping is split, the page itself is not: that is what this source knows more.
        split(pages, start, 2)
        assert pages.folios(start, SIZE, PMD) == (0, SIZE, SIZE)
    with pages.mapped("base", SIZE) as start:
        assert pages.folios(start, SIZE, 64 * 1024) == (0, SIZE, 0)


@needs_root
@pytest.mark.root
def test_folios_at_the_edges_count_by_their_share(pages):
    with pages.mapped("thp", SIZE) as start:
        inner = pages.at(start, PMD // 2 + 100)
        assert pages.folios(inner, 3 * PMD, PMD) == (0, 3 * PMD, 3 * PMD)
        assert pages.lib.munmap(pages.at(start, PAGE), PAGE) == 0
        # The first page has a hole before the range: no longer one whole page.
        assert pages.folios(inner, 3 * PMD, PMD) == (0, 3 * PMD, 2 * PMD + PMD // 2 + 100)


@needs_root
@pytest.mark.root
def test_folios_are_refused_to_anyone_but_root(pages):
    def claim():
        with pages.mapped("thp", SIZE) as start:
            assert pages.folios(start, SIZE, PMD)[0] == errno.EPERM

    as_nobody(pages, claim)


@needs_root
@pytest.mark.root
def test_folios_are_refused_where_root_sees_no_frame_numbers(pages):
    """As in most containers: the files open, the numbers read zero."""

    def claim():
        header = pages.ffi.new("uint32_t[2]", [0x20080522, 0])
        assert pages.lib.capset(header, pages.ffi.new("uint32_t[6]")) == 0
        with pages.mapped("thp", SIZE) as start:
            assert pages.folios(start, SIZE, PMD)[0] == errno.EPERM

    in_child(claim)


@needs_root
@pytest.mark.root
def test_a_page_exchanged_inside_a_folio_is_noticed(pages):
    with pages.mapped("thp", SIZE) as start:
        middle = pages.at(start, 5 * PMD + 3 * PAGE)
        assert pages.lib.madvise(middle, PAGE, mmap.MADV_DONTNEED) == 0
        pages.touch(middle, PAGE)
        assert pages.folios(start, SIZE, PMD) == (0, SIZE, SIZE - PMD)


def test_folio_sizes_outside_the_reader_are_refused(pages):
    with pages.mapped("base", PAGE) as start:
        for page_bytes in (PAGE, 3 * PAGE, 1024 * PAGE):
            assert pages.folios(start, PAGE, page_bytes)[0] == errno.EINVAL


def address_space():
    """Bytes mapped by this process."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * PAGE


@pytest.mark.parametrize("align", [PAGE, 32 * MIB, 1024 * MIB])
def test_an_aligned_mapping_leaves_nothing_beside_it(pages, align):
    n_bytes = 3 * PAGE
    out = pages.ffi.new("void **")
    before = address_space()
    for _ in range(4):
        assert pages.lib.ps_map_aligned(pages.ffi.NULL, n_bytes, align, 0, out) == 0
        start = out[0]
        assert int(pages.ffi.cast("uintptr_t", start)) % align == 0
        assert address_space() - before == n_bytes
        pages.touch(start, n_bytes)
        assert pages.lib.munmap(start, n_bytes) == 0
    assert address_space() == before


def test_impossible_sizes_are_an_errno(pages):
    out = pages.ffi.new("void **")
    for n_bytes in (2**64 - PAGE, 2**63, 2**60):
        assert pages.lib.ps_map_aligned(pages.ffi.NULL, n_bytes, PMD, 0, out) == errno.ENOMEM
