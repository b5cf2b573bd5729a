"""What the huge-page pools hold and how much of it may be used."""

import pytest
from hosttrees import expand

from bench.hugepages import (
    compaction_hint,
    parse_buddyinfo,
    pool_available,
    pool_folder,
    read_pools,
    shortfall,
)

MIB2, GIB = 2 * 1024**2, 1024**3


def test_pools_are_listed_by_size_host_first(tmp_path):
    pools = read_pools(expand("snc4", tmp_path))
    assert [(p.size_bytes, p.node) for p in pools] == [
        (size, node) for size in (MIB2, GIB) for node in (None, 2, 3, 4, 5, 7)
    ]
    assert [p.free for p in pools if p.size_bytes == GIB] == [7, 1, 2, 2, 2, 0]


def test_pages_promised_to_others_do_not_count(tmp_path):
    root = expand("arm64k", tmp_path)
    for node in (None, 0):
        (pool_folder(root, MIB2, node) / "free_hugepages").write_text("1000\n")
    (pool_folder(root, MIB2, None) / "resv_hugepages").write_text("24\n")
    assert pool_available(MIB2, root=root) == 976
    assert pool_available(MIB2, node=0, root=root) == 976


def test_a_node_gives_what_it_has(tmp_path):
    root = expand("snc4", tmp_path)
    (root / "sys/fs/cgroup/hugetlb.1GB.max").unlink()
    assert pool_available(GIB, root=root) == 7
    assert pool_available(GIB, node=2, root=root) == 1
    assert pool_available(GIB, node=7, root=root) == 0


def test_the_control_group_bounds_what_is_free(tmp_path):
    root = expand("snc4", tmp_path)
    assert pool_available(GIB, root=root) == 3
    # 512 pages are free, and this group may use none of them.
    assert pool_available(MIB2, root=root) == 0


def test_pages_outside_the_cpuset_do_not_count(tmp_path):
    root = expand("snc4", tmp_path)
    (root / "sys/fs/cgroup/cpuset.mems.effective").write_text("2\n")
    assert pool_available(GIB, root=root) == 1
    assert pool_available(GIB, node=3, root=root) == 0


def test_overcommit_is_no_promise(tmp_path):
    root = expand("vm2", tmp_path)
    (pool_folder(root, GIB, None) / "nr_overcommit_hugepages").write_text("8\n")
    assert pool_available(GIB, root=root) == 0


def test_a_size_the_kernel_lacks_has_no_pages_and_no_sysfs_is_unknown(tmp_path):
    assert pool_available(512 * 1024**2, root=expand("vm2", tmp_path / "vm")) == 0
    assert pool_available(MIB2, root=tmp_path / "nothing") is None


def test_shortfall_is_what_must_be_added(tmp_path):
    root = expand("snc4", tmp_path)
    assert shortfall({GIB: 5, MIB2: 4}, root=root) == {GIB: 2, MIB2: 4}
    assert shortfall({GIB: 3}, root=root) == {}


BUDDY = """\
Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3
Node 1, zone   Normal    100     50      0      0      0      0      0      0      2      3      4
"""


def test_buddy_lists_are_read_by_node():
    assert parse_buddyinfo(BUDDY) == [
        (0, (0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 3)),
        (1, (100, 50, 0, 0, 0, 0, 0, 0, 2, 3, 4)),
    ]


@pytest.mark.parametrize(
    ("pages", "node", "enough"),
    # Node 0 has one block of 2 MiB and three of 4, node 1 three and four.
    [(7, 0, True), (8, 0, False), (11, 1, True), (12, 1, False), (18, None, True)],
)
def test_hint_only_where_free_memory_is_not_contiguous(tmp_path, pages, node, enough):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/buddyinfo").write_text(BUDDY)
    hint = compaction_hint(MIB2, pages, node, tmp_path, page_bytes=4096)
    assert (hint is None) == enough
    if hint:
        assert "compact_memory" in hint


def test_pages_longer_than_the_buddy_lists_always_need_a_search(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/buddyinfo").write_text(BUDDY.replace(" 4\n", " 40000\n"))
    assert "1GiB is wanted" in compaction_hint(GIB, 1, root=tmp_path, page_bytes=4096)
