"""What a process shows of itself in /proc."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from bench.looks import SHARE, Look, Looker, look_at, parse_allocator, parse_look
from bench.procfs import descendants

ROLLUP = """\
55d0c0000000-7ffd00000000 ---p 00000000 00:00 0                          [rollup]
Rss:              102400 kB
Pss:              102000 kB
Anonymous:         80000 kB
AnonHugePages:     65536 kB
ShmemPmdMapped:     2048 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:   20480 kB
"""
STATUS = """\
Name:\tserver
VmPeak:\t  400000 kB
VmSize:\t  300000 kB
RssShmem:\t    4096 kB
Threads:\t2
THP_enabled:\t1
Cpus_allowed_list:\t0-3,8
"""


def stat(state, cpu, name="server"):
    fields = ["0"] * 50
    fields[0], fields[36] = state, str(cpu)
    return f"1234 ({name}) {' '.join(fields)}\n"


def test_a_look_adds_up_what_the_files_say():
    found = parse_look(ROLLUP, STATUS, [stat("R", 3), stat("S", 1, "a) (b")])
    assert found == Look(
        resident=(102400 + 20480) * 1024,
        huge=(65536 + 2048 + 20480) * 1024,
        virtual=300000 * 1024,
        threads=2,
        running=1,
        cpus=frozenset({1, 3}),
        allowed=5,
        thp_allowed=True,
    )


def test_looks_of_several_processes_add_up():
    off = parse_look(ROLLUP, STATUS.replace("enabled:\t1", "enabled:\t0"), [stat("R", 7)])
    on = parse_look(
        ROLLUP, STATUS, [stat("R", 1)], "7f00 default anon=3 N0=2 N1=1 kernelpagesize_kB=4\n"
    )
    both = on + off
    assert both.resident == 2 * on.resident
    assert both.cpus == {1, 7}
    assert both.thp_allowed is True, "one of them may still have them"
    assert (off + off).thp_allowed is False
    assert both.nodes == ((0, 8192), (1, 4096))


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "glibc"),
        ("/lib/libc-2.31.so", "glibc"),
        ("/lib/ld-musl-x86_64.so.1", "musl"),
        ("/usr/bin/static", "none known"),
    ],
)
def test_whose_malloc_it_is(library, name):
    row = "7f0000000000-7f0000001000 r-xp 00000000 08:01 123    "
    assert parse_allocator(f"{row}{library}\n7f00-7f01 rw-p 0 00:00 0\n") == name
    jemalloc = f"{row}{library}\n{row}/usr/lib/libjemalloc.so.2\n"
    assert parse_allocator(jemalloc) == "jemalloc"


def test_children_count_and_processes_that_are_gone_do_not():
    child = subprocess.Popen(["sh", "-c", "sleep 20 & echo; wait"], stdout=subprocess.PIPE)
    child.stdout.readline()
    looker = Looker()
    try:
        deadline = time.monotonic() + 10
        while looker.threads < 2 and time.monotonic() < deadline:
            looker.look(child.pid)
    finally:
        for pid in reversed(descendants([child.pid])):
            os.kill(pid, 9)
        child.communicate()
    assert looker.threads == 2
    assert look_at(child.pid) is None


def test_a_looker_keeps_the_largest_and_pays_little():
    looker = Looker(allocator=True)
    for _ in range(7):
        looker.look(os.getpid())
    before_s = looker.cost_s
    pause_s = looker.look(os.getpid())
    found = looker.summary()
    assert found["looks"] == 8
    assert found["resident_bytes"] > 1 << 20
    assert found["malloc"] == parse_allocator(Path("/proc/self/maps").read_text())
    assert found["threads"] >= 1
    assert looker.cost_s - before_s <= SHARE * pause_s * 1.001
    assert Looker().summary() == {}
