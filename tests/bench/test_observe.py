"""Reading processes and groups from stored files, and the command's faults."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from observed import MIB, known, memory, observation, process

from bench import native
from bench.cli import main
from bench.errors import PagestormError, UsageError
from bench.observe import hostfiles
from bench.observe.figures import summarise
from bench.observe.groupfiles import read_group
from bench.observe.mappings import (
    parse_numa_maps,
    parse_rollup,
    parse_smaps,
    parse_status,
)
from bench.observe.sampler import MOST_PROCESSES, MOST_THREADS, Sampler, Settings
from bench.observe.skeleton import skeleton
from bench.observe.target import group_target, process_target
from bench.observe.tracks import COUNTER_SLACK_PAGES, PAGE, ThreadLook, Track
from bench.procfs import (
    Schedule,
    descendants,
    parse_pressure,
    parse_process_stat,
    parse_schedstat,
)
from bench.scenariofile import load
from bench.stop import Stop

KIB = 1024


def stat_text(pid=71, name="worker", state="S", flags=0, started=500, parent=1, **numbers):
    """A ``stat`` file; what is not given is 0."""
    fields = [state, parent, pid, pid, 0, -1, flags, *([0] * 44)]
    places = {"minor": 7, "major": 9, "user": 11, "system": 12, "threads": 17, "started": 19,
              "virtual": 20, "resident": 21, "cpu": 36}  # fmt: skip
    for key, value in {"threads": 1, "started": started, **numbers}.items():
        fields[places[key]] = value
    return f"{pid} ({name}) " + " ".join(map(str, fields)) + "\n"


STATUS = """Name:\tworker
Tgid:\t71
Uid:\t1000\t1000\t1000\t1000
VmRSS:\t  409600 kB
RssAnon:\t  307200 kB
RssFile:\t   51200 kB
RssShmem:\t   51200 kB
VmSwap:\t    2048 kB
HugetlbPages:\t    4096 kB
THP_enabled:\t1
Cpus_allowed_list:\t0-3
Mems_allowed_list:\t0
"""
ROLLUP = """00400000-7ffe00000000 ---p 00000000 00:00 0                          [rollup]
Rss:              409600 kB
Pss:              360000 kB
Anonymous:        307200 kB
AnonHugePages:    204800 kB
ShmemPmdMapped:    40960 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:    4096 kB
"""


def mapping(start, end, name, flags, **rows):
    head = f"{start:x}-{end:x} rw-p 00000000 00:00 0 {name}\n"
    body = "".join(f"{key}:  {value} kB\n" for key, value in {"Rss": 0, "Pss": 0, **rows}.items())
    return head + body + f"VmFlags: {flags} \n"


def in_kib(found):
    """Resident and huge KiB by kind."""
    return {kind: (p.resident // KIB, p.huge // KIB) for kind, p in found.kinds.items()}


# ---- parsers ------------------------------------------------------------------------------------


def test_a_name_may_hold_brackets_and_spaces():
    text = stat_text(name=") R 1 (x", minor=5, user=7, resident=300, cpu=3)
    stat = parse_process_stat(text)
    assert (stat.pid, stat.name, stat.state) == (71, ") R 1 (x", "S")
    assert (stat.minor_faults, stat.user_ticks, stat.resident_pages, stat.cpu) == (5, 7, 300, 3)
    assert parse_process_stat("") is None
    assert parse_process_stat("71 (cut") is None


def test_our_own_stat_agrees_with_what_python_says():
    stat = parse_process_stat(Path("/proc/self/stat").read_text())
    assert (stat.pid, stat.parent) == (os.getpid(), os.getppid())
    assert not stat.kernel_thread
    assert stat.cpu in range(os.cpu_count() + 1024)


def test_schedstat_and_pressure():
    assert parse_schedstat("100 20 3\n") == Schedule(100, 20, 3)
    assert parse_schedstat("") is None
    text = "some avg10=1.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0.00 total=5\n"
    assert parse_pressure(text) == {"some": 77, "full": 5}
    assert parse_pressure(None) is None


def test_the_sum_over_mappings_has_huge_pages_of_every_kind():
    found = parse_rollup(ROLLUP, parse_status(STATUS))
    kinds = {
        kind: (pages.resident // KIB, pages.huge // KIB) for kind, pages in found.kinds.items()
    }
    assert kinds == {
        "anonymous": (307200, 204800),
        "file": (51200, 0),
        "hugetlb": (4096, 4096),
        "shared memory": (51200, 40960),
    }
    assert found.huge == (204800 + 40960 + 4096) * KIB
    assert found.shared_fairly == 360000 * KIB


def test_single_mappings_tell_kinds_and_what_keeps_pages_small():
    text = (
        mapping(0x55550000, 0x55570000, "[heap]", "rd wr ac", Rss=128, Pss=128)
        + mapping(0x7F0000000000, 0x7F0000800000, "", "rd wr hg", Rss=8192, AnonHugePages=6144)
        + mapping(0x7F0001000000, 0x7F0001800000, "", "rd wr nh", Rss=8192)
        + mapping(0x7F0002000000, 0x7F0002800000, "", "rd wr", Rss=4096)
        + mapping(0x7F0003000000, 0x7F0003200000, "/anon_hugepage", "ht", Private_Hugetlb=2048)
        + mapping(0x7F0004000000, 0x7F0004200000, "/usr/lib/libc.so.6", "rd ex", Rss=1024)
        + mapping(0x7F0005000000, 0x7F0005200000, "/dev/shm/a b", "", Rss=2048, ShmemPmdMapped=2048)
        + mapping(0x7F0006000000, 0x7F0006200000, "[stack]", "rd wr", Rss=64)
    )  # fmt: skip
    found = parse_smaps(text, 2 * MIB)
    kinds = {
        kind: (pages.resident // KIB, pages.huge // KIB) for kind, pages in found.kinds.items()
    }
    assert kinds == {
        "heap": (128, 0),
        "anonymous": (8192 + 8192 + 4096, 6144),
        "hugetlb": (2048, 2048),
        "file": (1024, 0),
        "shared memory": (2048, 2048),
        "stack": (64, 0),
    }
    hints = {key: size // KIB for key, size in found.hints.items()}
    assert hints == {"short": 128, "advised": 2048, "refused": 8192, "silent": 4096}


def test_our_own_mappings_add_up_to_their_sum():
    status = parse_status(Path("/proc/self/status").read_text())
    text = Path("/proc/self/smaps").read_text()
    single = parse_smaps(text, 2 * MIB)
    whole = parse_rollup(Path("/proc/self/smaps_rollup").read_text(), status)
    # Between the two reads this interpreter may have taken some memory.
    assert single.resident == pytest.approx(whole.resident, rel=0.1)


def test_nodes_of_small_and_huge_pages():
    text = (
        "7f00 default anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4\n"
        "7f10 bind:1 file=/anon_hugepage huge anon=2 N1=2 kernelpagesize_kB=2048\n"
    )
    assert parse_numa_maps(text, 4096) == {0: 4096, 1: 2 * 4096 + 4 * MIB}


# ---- one process over several looks -------------------------------------------------------------


def track(*residents, **first):
    looks = [parse_process_stat(stat_text(resident=pages, **first)) for pages in residents]
    made = Track(looks[0], 0.0)
    for at, look in enumerate(looks):
        made.add(look, float(at), [])
    made.finish()
    return made


def test_a_sawtooth_is_memory_given_back_and_late_counters_are_not():
    step = 10 * COUNTER_SLACK_PAGES
    assert track(step, 2 * step, step, 3 * step, step).released_bytes == 3 * step * PAGE
    assert track(step, step - COUNTER_SLACK_PAGES, step).released_bytes == 0


def test_threads_that_come_and_go_keep_what_they_did():
    def look(tid, ran, waited, started=0, running=True, cpu=0):
        cpus = frozenset({0, 1})
        return ThreadLook(tid, started, running, cpu, Schedule(ran, waited, 1), cpus)

    stat = parse_process_stat(stat_text(threads=2))
    made = Track(stat, 0.0)
    made.add(stat, 0.0, [look(71, 10**9, 10**9)])
    made.add(stat, 1.0, [look(71, 2 * 10**9, 10**9, cpu=1), look(72, 10**8, 10**8, started=9)])
    made.add(stat, 2.0, [look(71, 2 * 10**9, 3 * 10**9), look(72, 5 * 10**8, 0, started=11)])
    made.finish()
    # Of 71 what it gained; of both threads that had the number 72, everything.
    assert made.ran_s == pytest.approx(1.0 + 0.1 + 0.5)
    assert made.waited_s == pytest.approx(2.0 + 0.1)
    assert made.moves == 2
    assert made.running_sum == 5
    assert made.allowed == {0, 1}


# ---- stored hosts -------------------------------------------------------------------------------


def put(root, **files):
    """Write files; ``__`` in a name is a slash."""
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


V2 = "34 24 0:29 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"


def stored(root, pid=71, stat=None, group="/a", **files):
    put(root, proc__self__mountinfo=V2)
    folder = root / f"proc/{pid}"
    (folder / f"task/{pid}").mkdir(parents=True)
    text = stat or stat_text(pid=pid, resident=102400, state="R", cpu=1)
    for name, content in {
        "stat": text,
        f"task/{pid}/stat": text,
        f"task/{pid}/schedstat": "5 5 5\n",
        f"task/{pid}/status": STATUS,
        "status": STATUS.replace("71", str(pid)),
        "cgroup": f"0::{group}\n",
        "smaps_rollup": ROLLUP,
        "maps": "one\ntwo\n",
        "io": "rchar: 5\nwchar: 6\n",
        **files,
    }.items():
        (folder / name).write_text(content)
    return root


def look_at(target, seconds=0.03, **settings):
    with Stop() as stop:
        return summarise(Sampler(target, Settings(seconds, 0.01, **settings)).run(stop))


def test_a_large_process_is_read_by_its_sum_and_a_group_is_followed(tmp_path):
    stored(tmp_path, maps="line\n" * 2000)  # many mappings: their sum is read
    stored(tmp_path, pid=72, maps="line\n" * 2000)
    put(tmp_path, **{"sys__fs__cgroup__a__cgroup.procs": "71\n72\n999\n0\n"})
    seen = look_at(group_target(tmp_path, "/a"))
    assert sorted(p.pid for p in seen.processes) == [71, 72]
    assert seen.processes[0].memory.huge == (204800 + 40960 + 4096) * KIB
    assert seen.processes[0].memory.swapped == 2048 * KIB
    assert seen.processes[0].running == 1.0
    assert seen.processes[0].on_cpus.keys() == {1}
    assert seen.group.own
    assert seen.ended == ""


def test_without_a_walk_pages_are_unknown(tmp_path):
    seen = look_at(process_target(stored(tmp_path), 71), walk=False)
    assert seen.processes[0].memory.huge is None
    assert seen.processes[0].memory.resident == 102400 * PAGE + 4096 * KIB
    assert seen.cost.walks_s == 0


def test_walks_stop_where_they_would_take_too_long(tmp_path):
    pages = (1 << 40) // PAGE
    stored(tmp_path, stat=stat_text(resident=pages))
    seen = look_at(process_target(tmp_path, 71))
    assert seen.unwalked == (71,)
    assert seen.processes[0].memory.huge is None


def test_another_process_with_the_same_number_is_not_the_target(tmp_path):
    stored(tmp_path)
    target = process_target(tmp_path, 71)
    put(tmp_path, proc__71__stat=stat_text(started=501))
    assert look_at(target).processes == ()


def test_of_very_many_threads_a_part_is_looked_at(tmp_path):
    stored(tmp_path, stat=stat_text(threads=MOST_THREADS + 10))
    for tid in range(100, 100 + MOST_THREADS + 9):
        put(tmp_path, **{f"proc__71__task__{tid}__stat": stat_text(pid=tid)})
    seen = look_at(process_target(tmp_path, 71))
    assert seen.processes[0].threads_unseen == 10


def test_of_very_many_processes_the_busiest_are_looked_at_closely(tmp_path):
    put(tmp_path, **{"sys__fs__cgroup__a__cgroup.procs": "\n".join(map(str, range(100, 180)))})
    for pid in range(100, 180):
        stored(tmp_path, pid=pid, stat=stat_text(pid=pid, resident=pid, threads=1))
    seen = look_at(group_target(tmp_path, "/a"))
    assert len(seen.processes) == 80
    close = {process.pid for process in seen.processes if process.mappings is not None}
    assert close == set(range(180 - MOST_PROCESSES, 180))


def test_descendants_with_and_without_lists_of_children(tmp_path):
    for pid, parent in ((71, 1), (72, 71), (73, 72), (80, 1)):
        stored(tmp_path, pid=pid, stat=stat_text(pid=pid, parent=parent))
    assert descendants({71}, tmp_path / "proc") == [71, 72, 73]
    for pid, children in ((71, "73 "), (72, ""), (73, "")):
        (tmp_path / f"proc/{pid}/task/{pid}/children").write_text(children)
    assert descendants({71}, tmp_path / "proc") == [71, 73]


V1 = (
    "30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "34 24 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)


def test_throttling_of_version_1_is_found_from_a_group_of_version_2(tmp_path):
    """All processes of the group are in one group of the other hierarchy, too."""
    stored(tmp_path)
    put(
        tmp_path,
        proc__self__mountinfo=V1,
        proc__71__cgroup="2:cpu:/quota\n4:memory:/\n0::/job\n",
        **{
            "sys__fs__cgroup__unified__job__cgroup.procs": "71\n",
            "sys__fs__cgroup__cpu__quota__cpu.stat": "nr_periods 9\nnr_throttled 4\n"
            "throttled_time 3000000000\n",
            "sys__fs__cgroup__cpu__quota__cpu.cfs_quota_us": "50000\n",
            "sys__fs__cgroup__cpu__quota__cpu.cfs_period_us": "100000\n",
        },
    )
    counts = read_group(tmp_path, group_target(tmp_path, "/job").membership)
    found = counts.throttled["/sys/fs/cgroup/cpu/quota"]
    assert found == {"periods": 9, "throttled": 4, "throttled_s": 3.0}
    assert counts.quota == 0.5
    # Told of the group of version 2 alone, nothing is known of CPUs.
    assert not read_group(tmp_path, "0::/job\n").cpu_readable


def test_figures_of_a_group_of_version_2(tmp_path):
    put(
        tmp_path,
        proc__self__mountinfo=V2,
        **{
            "sys__fs__cgroup__a__cpu.stat": "usage_usec 5000000\nnr_periods 9\nnr_throttled 4\n"
            "throttled_usec 2500000\n",
            "sys__fs__cgroup__a__cpu.max": "50000 100000\n",
            "sys__fs__cgroup__a__memory.events": "low 0\nhigh 7\nmax 1\noom 0\noom_kill 0\n",
            "sys__fs__cgroup__a__memory.stat": "anon 8192\nanon_thp 4096\npgfault 10\nother 3\n",
            "sys__fs__cgroup__a__memory.pressure": "some avg10=0.00 total=99\n",
            "sys__fs__cgroup__a__memory.numa_stat": "anon N0=4096 N1=0\nshmem N0=1 N1=1\n",
        },
    )
    counts = read_group(tmp_path, "0::/a\n")
    assert counts.throttled["/sys/fs/cgroup/a"]["throttled_s"] == 2.5
    assert (counts.cpu_s, counts.quota) == (5.0, 0.5)
    assert counts.events["high"] == 7
    assert counts.memory == {"anon": 8192, "anon_thp": 4096, "pgfault": 10}
    assert counts.pressure == {"memory": {"some": 99}}
    assert counts.nodes == {0: 4096, 1: 0}


INTERRUPTS = "     CPU0 CPU1 CPU2\nTLB: {} {} {} TLB shootdowns\n"


def test_the_row_of_shootdowns_is_split_by_where_the_target_ran(tmp_path):
    put(tmp_path, proc__interrupts=INTERRUPTS.format(10, 10, 10))
    before = hostfiles.read_host(tmp_path)
    put(tmp_path, proc__interrupts=INTERRUPTS.format(510, 110, 30))
    after = replace(hostfiles.read_host(tmp_path), at=before.at + 2.0)
    found = hostfiles.host_figures(before, after, [0, 1])
    assert found.shootdowns == 300.0
    assert found.elsewhere == 10.0
    assert hostfiles.host_figures(before, after, [0, 1, 2]).elsewhere is None


def test_bandwidth_is_that_of_the_group_that_counts_all_threads(tmp_path):
    put(
        tmp_path,
        proc__self__mountinfo="40 24 0:40 / /sys/fs/resctrl rw - resctrl resctrl rw\n",
        sys__fs__resctrl__tasks="71\n72\n80\n",
        sys__fs__resctrl__mon_data__mon_L3_00__mbm_total_bytes="900\n",
        sys__fs__resctrl__mon_groups__mine__tasks="71\n72\n",
        sys__fs__resctrl__mon_groups__mine__mon_data__mon_L3_00__mbm_total_bytes="100\n",
        sys__fs__resctrl__mon_groups__mine__mon_data__mon_L3_01__mbm_total_bytes="20\n",
        sys__fs__resctrl__mon_groups__blind__tasks="",
        sys__fs__resctrl__mon_groups__blind__mon_data__mon_L3_00__mbm_total_bytes="Unavailable\n",
    )
    mine = str(tmp_path / "sys/fs/resctrl/mon_groups/mine")
    assert hostfiles.group_of(tmp_path, {71, 72}) == (mine, True)
    assert hostfiles.group_of(tmp_path, {71}) == (mine, False)
    assert hostfiles.group_of(tmp_path, {80}) == (str(tmp_path / "sys/fs/resctrl"), False)
    assert hostfiles.group_of(tmp_path, {99}) is None
    assert hostfiles.read_host(tmp_path).bandwidth[mine] == 120


# ---- wrong targets ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stat", "why"),
    [
        (stat_text(state="Z"), "has ended already"),
        (stat_text(flags=0x00200000, name="kswapd0"), "thread of the kernel"),
        ("", "no process 71"),
    ],
)
def test_a_target_without_memory_is_refused_by_name(tmp_path, stat, why):
    put(stored(tmp_path), proc__71__stat=stat)
    with pytest.raises(UsageError, match=why):
        process_target(tmp_path, 71)


def test_a_thread_is_refused_with_its_process(tmp_path):
    put(stored(tmp_path), proc__71__status=STATUS.replace("Tgid:\t71", "Tgid:\t70"))
    with pytest.raises(UsageError, match="thread of process 70") as caught:
        process_target(tmp_path, 71)
    assert caught.value.remedy == "--pid 70"


def test_groups_that_are_empty_or_not_there(tmp_path):
    put(stored(tmp_path), **{"sys__fs__cgroup__a__cgroup.procs": ""})
    with pytest.raises(UsageError, match="no process runs in control group /a"):
        group_target(tmp_path, "/a")
    with pytest.raises(UsageError, match="no control group /b"):
        group_target(tmp_path, "/b")
    put(tmp_path, proc__self__mountinfo="")
    with pytest.raises(PagestormError, match="no control groups are mounted"):
        group_target(tmp_path, "/a")


def test_faults_of_the_command_line(capsys, tmp_path):
    there = tmp_path / "there.toml"
    there.write_text("")
    pid = str(os.getppid())
    for words, why in (
        (["--pid", str(os.getpid())], "this command itself"),
        (["--pid", pid, "--for", "0"], "no sensible window"),
        (["--pid", pid, "--interval", "1ms"], "no sensible window"),
        (["--pid", pid, "-o", str(there)], "exists already"),
        (["--pid", pid, "-o", str(there / "no" / "file")], "no folder"),
        (["--cgroup", ""], "--cgroup /"),
        (["--cgroup", "/", "--children"], "--children goes with --pid"),
        (["--pid", "0"], "no process 0"),
    ):
        assert main(["observe", *words]) == 2
        assert why in capsys.readouterr().err


# ---- the scenario -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seen",
    [
        observation(),
        observation(process(memory=memory(200 << 30, 190 << 30), cpus_used=11.6, threads=12)),
        observation(process(untraced_per_s=2e5, minor_per_s=2e5)),
        observation(process(cpus_used=0.0, system_share=None, memory=memory(0))),
        observation(*(process(pid=pid, cpus_used=0.9) for pid in range(8))),
        observation(process(memory=memory(64 * MIB, None, kinds={})), target='x "\\\n# y'),
        observation(
            process(memory=memory(64 * MIB, 64 * MIB, kinds={"hugetlb": (64 * MIB, 64 * MIB)}))
        ),
    ],
)
def test_the_scenario_can_be_loaded(tmp_path, seen):
    path = tmp_path / "scenario.toml"
    path.write_text(skeleton(seen, known()))
    scenario = load(str(path), native)
    assert scenario.actor[0].called == "work"
    # No larger than remedy runs without being told so.
    assert scenario.actor[0].size <= known().available_bytes // 4


def test_the_scenario_has_what_was_seen(tmp_path):
    seen = observation(
        process(cpus_used=3.1, threads=8, memory=memory(512 * MIB, 400 * MIB), released_per_s=5e8)
    )
    path = tmp_path / "scenario.toml"
    path.write_text(skeleton(seen, known()))
    work, release = load(str(path), native).actor
    assert (work.threads, work.size, work.pages) == (3, 512 * MIB, "thp")
    assert (release.kernel.name, release.pace, release.weight) == ("storm", 5e8, 0)


# ---- refused files ------------------------------------------------------------------------------


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="gives up a capability of root")
def test_what_is_refused_is_named_with_what_would_allow_it(tmp_path):
    """A process of another user, looked at without the capabilities that see through that."""
    sleeper = subprocess.Popen(["sleep", "60"], user=65534)
    try:
        command = [
            *("setpriv", "--bounding-set", "-sys_ptrace,-perfmon,-sys_admin"),
            *(sys.executable, "-m", "bench", "observe", "--pid", str(sleeper.pid)),
            *("--for", "500ms", "--json"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    finally:
        sleeper.kill()
        sleeper.wait()
    if done.returncode == 127 or "unknown capability" in done.stderr:
        pytest.skip(done.stderr)
    found = json.loads(done.stdout)
    refused = [one for one in found["unread"] if "was refused" in one["reason"]]
    assert {"user 65534" in one["remedy"] for one in refused} == {True}
    assert found["processes"][0]["memory"]["resident"] > 0
