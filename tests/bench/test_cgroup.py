"""Limits of control groups, read from stored trees and pasted texts."""

from pathlib import Path

import pytest
from hosttrees import expand

from bench.cgroup import (
    Mount,
    groups,
    memory_headroom,
    parse_membership,
    parse_mounts,
    read_limits,
)

GIB = 1024**3
V2_MOUNT = "34 24 0:29 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"


def put(root: Path, folder: str, **values: object) -> None:
    """Write group files; ``__`` in a name stands for the dot."""
    target = root / "sys/fs/cgroup" / folder
    target.mkdir(parents=True, exist_ok=True)
    for name, value in values.items():
        (target / name.replace("__", ".")).write_text(f"{value}\n")


def test_membership_of_both_versions():
    text = "12:cpu,cpuacct:/a\n4:memory:/b:c\n1:name=systemd:/init.scope\n0::/unified\n"
    assert parse_membership(text) == {
        "cpu": "/a",
        "cpuacct": "/a",
        "memory": "/b:c",
        "name=systemd": "/init.scope",
        "": "/unified",
    }


def test_mounts_keep_controllers_and_decode_spaces():
    text = (
        "33 31 0:30 /docker/ab /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "34 31 0:31 / /sys/fs/my\\040groups rw shared:1 master:2 - cgroup2 none rw\n"
        "35 31 0:32 / /proc rw - proc proc rw\n"
    )
    v1, v2 = parse_mounts(text)
    assert (v1.top, v1.version) == ("/docker/ab", 1)
    assert {"cpu", "cpuacct"} <= set(v1.controllers)
    assert v2 == Mount("/sys/fs/my groups", "/", 2, ())


def test_groups_run_from_the_process_up_to_the_mount(tmp_path):
    put(tmp_path, "a/b")
    mount = Mount("/sys/fs/cgroup", "/", 2, ())
    top = tmp_path / "sys/fs/cgroup"
    assert groups(tmp_path, mount, "/a/b") == [top / "a/b", top / "a", top]


@pytest.mark.parametrize("membership", ["/docker/ab", "/docker/ab/", "/../other", "/not/shown"])
def test_a_container_sees_its_part_as_the_top(tmp_path, membership):
    put(tmp_path, "")
    mount = Mount("/sys/fs/cgroup", "/docker/ab", 1, ("memory",))
    assert groups(tmp_path, mount, membership) == [tmp_path / "sys/fs/cgroup"]


def test_hybrid_machine_without_limits(tmp_path):
    limits = read_limits(expand("vm2", tmp_path))
    assert limits.version == "hybrid"
    assert limits.cpuset == (0, 1)
    assert (limits.cpu_quota, limits.memory, limits.hugetlb) == (None, (), ())
    assert limits.memory_headroom is None


def test_a_parents_limits_bind(tmp_path):
    limits = read_limits(expand("arm64k", tmp_path))
    assert limits.version == "v2"
    assert limits.cpu_quota == 0.5
    # memory.high is below memory.max, and counts.
    assert limits.memory_headroom == 6 * GIB - 1 * GIB


def test_pod_with_file_cache_and_huge_page_limits(tmp_path):
    limits = read_limits(expand("snc4", tmp_path))
    assert limits.cpu_quota == 12.5
    assert limits.mems == (2, 3, 4, 5)
    # 32 GiB, of which 10 are charged, of which 8 are file cache that would be dropped first.
    assert limits.memory_headroom == memory_headroom(tmp_path) == 30 * GIB
    assert limits.hugetlb_headroom(2 * 1024**2) == 0
    assert limits.hugetlb_headroom(GIB) == 3 * GIB
    assert limits.hugetlb_headroom(64 * 1024) is None


def test_version_1_with_quota_limit_and_hugetlb(tmp_path):
    mounts = "\n".join(
        f"{n} 31 0:{n} / /sys/fs/cgroup/{name} rw - cgroup cgroup rw,{name}"
        for n, name in enumerate(("cpu", "memory", "hugetlb", "cpuset"))
    )
    membership = "4:memory:/pod/app\n3:cpu:/pod\n2:hugetlb:/pod\n1:cpuset:/pod\n"
    put(tmp_path, "cpu/pod", cpu__cfs_quota_us=350000, cpu__cfs_period_us=100000)
    put(tmp_path, "cpu", cpu__cfs_quota_us=-1, cpu__cfs_period_us=100000)
    for folder, limit in (("memory/pod/app", 4 * GIB), ("memory/pod", 3 * GIB)):
        put(
            tmp_path,
            folder,
            memory__limit_in_bytes=limit,
            memory__usage_in_bytes=2 * GIB,
            memory__stat="cache 5\ntotal_inactive_file 1073741824",
        )
    put(tmp_path, "memory", memory__limit_in_bytes=9223372036854771712)
    put(
        tmp_path,
        "hugetlb/pod",
        hugetlb__2MB__limit_in_bytes=64 * 1024**2,
        hugetlb__2MB__usage_in_bytes=0,
        hugetlb__2MB__rsvd__limit_in_bytes=16 * 1024**2,
        hugetlb__2MB__rsvd__usage_in_bytes=4 * 1024**2,
        hugetlb__1GB__limit_in_bytes=9223372036854771712,
        hugetlb__1GB__usage_in_bytes=0,
    )
    put(tmp_path, "cpuset/pod", cpuset__effective_cpus="3-5", cpuset__effective_mems="1")
    limits = read_limits(tmp_path, membership, mounts)
    assert limits.version == "v1"
    assert limits.cpu_quota == 3.5
    assert limits.memory_headroom == 3 * GIB - 2 * GIB + 1 * GIB
    assert limits.hugetlb_headroom(2 * 1024**2) == 12 * 1024**2
    assert limits.hugetlb_headroom(GIB) is None
    assert (limits.cpuset, limits.mems) == ((3, 4, 5), (1,))


def test_a_charge_above_its_limit_leaves_nothing(tmp_path):
    put(tmp_path, "a", memory__max=GIB, memory__current=2 * GIB, memory__stat="inactive_file 0")
    assert read_limits(tmp_path, "0::/a", V2_MOUNT).memory_headroom == 0


def test_an_unknown_charge_is_not_made_up(tmp_path):
    put(tmp_path, "a", memory__max=GIB)
    limits = read_limits(tmp_path, "0::/a", V2_MOUNT)
    assert limits.memory[0].limit == GIB
    assert limits.memory_headroom is None


def test_nothing_mounted_is_nothing_known(tmp_path):
    limits = read_limits(tmp_path)
    assert limits.version is None
    assert limits.memory_headroom is None
    assert limits.cpuset is None
