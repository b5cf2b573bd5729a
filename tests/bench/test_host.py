"""Facts of stored hosts, their digest, and the advice that follows from them."""

import errno
import json
import os
from dataclasses import replace

import pytest
from hosttrees import NAMES, expand

from bench.advice import FORMS, advice
from bench.cpuinfo import parse_cpuinfo
from bench.host import counter_verdict, differences, facts, parse_steal

MIB2, GIB = 2 * 1024**2, 1024**3


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    return {name: facts(expand(name, tmp_path_factory.mktemp(name))) for name in NAMES}


def test_virtual_machine(hosts):
    host = hosts["vm2"]
    assert (host.cpu.family, host.cpu.model, host.cpu.stepping) == (26, 2, 1)
    assert host.virtualisation.hypervisor is True
    assert host.virtualisation.vendor == "KVM"
    assert host.counters.usable is False
    assert host.thp.enabled == "madvise"
    assert host.thp.sizes[65536] == "never"
    assert host.thp.sizes[MIB2] == "inherit"
    assert host.kernel.boot_words == ("mitigations=auto,no_guest_host,no_guest_guest",)
    assert host.kernel.page_bytes == 4096
    assert [(c.level, c.size_bytes) for c in host.cpus.caches] == [
        (1, 48 * 1024),
        (2, 1024**2),
        (3, 32 * 1024**2),
    ]


def test_workstation(hosts):
    host = hosts["threadripper"]
    assert (host.cpus.cores, host.cpus.packages, host.cpus.threads_per_core) == (96, 1, 2)
    assert host.virtualisation.hypervisor is False
    assert host.counters.resctrl == "/sys/fs/resctrl"
    assert host.counters.tlb_row is True
    assert (host.cpus.governor, host.cpus.turbo) == ("powersave", True)
    assert "hypervisor" not in host.cpu.flags


def test_pod_on_two_packages(hosts):
    host = hosts["snc4"]
    assert host.virtualisation.container_sign == "/var/run/secrets/kubernetes.io"
    assert host.virtualisation.seccomp_filter is True
    assert [node.id for node in host.cpus.nodes] == [2, 3, 4, 5, 7]
    assert host.cpus.allowed == "0-11,13-31"
    assert host.usable_memory() == 30 * GIB
    assert host.kernel.boot_words == ("hugepagesz=1G", "hugepages=8")


def test_arm64_with_large_base_pages(hosts):
    host = hosts["arm64k"]
    assert host.kernel.page_bytes == 65536
    assert host.thp.pmd_bytes == 512 * 1024**2
    assert host.cpus.midr == ("0x00000000410fd400", "0x00000000410fd461")
    assert (host.cpu.implementer, host.cpu.part) == ("0x41", "0xd40")
    assert "sve2" in host.cpu.flags
    assert host.counters.tlb_row is False
    # x86 has a flag for these two; here nothing says.
    assert host.virtualisation.hypervisor is None
    assert host.counters.invlpgb is None
    assert {p.size_bytes for p in host.pools} == {MIB2, 512 * 1024**2, 16 * GIB}


def test_what_cannot_be_read_is_none(tmp_path):
    (tmp_path / "sys/devices/system/cpu/cpu0").mkdir(parents=True)
    bare = facts(tmp_path)
    assert bare.boot_id is None
    assert bare.kernel.release is None
    assert bare.thp.enabled is None
    assert bare.memory.available_bytes is None
    assert bare.memory.numa_calls is None
    assert bare.counters.tlb_row is None
    assert bare.cpus.turbo is None
    assert bare.pools == ()
    assert bare.usable_memory() is None
    assert bare.cpu.flags == ()
    advice(bare)  # and nothing is made up from it
    json.dumps(bare.to_dict())


@pytest.mark.parametrize("name", NAMES)
def test_facts_are_plain_json(hosts, name):
    plain = hosts[name].to_dict()
    assert json.loads(json.dumps(plain)) == plain


def test_the_running_host_has_a_steady_digest():
    first, second = facts(), facts()
    assert first.digest() == second.digest()
    assert first.kernel.page_bytes == os.sysconf("SC_PAGESIZE")
    assert differences(first.to_dict(), second.to_dict()) == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("proc/sys/kernel/random/boot_id", "another"),
        ("proc/meminfo", "MemTotal: 9 kB\nMemAvailable: 7 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB"),
        ("proc/stat", "cpu 1 1 1 1 1 1 1 1 0 0"),
        ("proc/self/status", "THP_enabled:\t1\nSeccomp:\t0\nCpus_allowed_list:\t1"),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "64"),
        ("sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", "64"),
        ("sys/kernel/mm/transparent_hugepage/khugepaged/pages_collapsed", "64"),
    ],
)
def test_digest_ignores_what_moves_by_itself_or_by_a_run(hosts, tmp_path, file, text):
    root = expand("vm2", tmp_path)
    (root / file).write_text(f"{text}\n")
    changed = facts(root)
    assert changed.digest() == hosts["vm2"].digest()
    assert differences(hosts["vm2"].to_dict(), changed.to_dict()) == []


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        (
            "sys/kernel/mm/transparent_hugepage/enabled",
            "[always] madvise never",
            "thp.enabled: madvise -> always",
        ),
        (
            "sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled",
            "always inherit [madvise] never",
            "thp.sizes.65536: never -> madvise",
        ),
        ("proc/sys/kernel/osrelease", "6.19.0", "kernel.release: 6.18.44 -> 6.19.0"),
        ("proc/sys/kernel/numa_balancing", "1", "memory.numa_balancing: 0 -> 1"),
        ("sys/devices/system/cpu/online", "0", "cpus.online: 0-1 -> 0"),
        ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000", "limits.cpu_quota: None -> 1.5"),
    ],
)
def test_digest_follows_settings_and_the_difference_is_named(hosts, tmp_path, file, text, named):
    root = expand("vm2", tmp_path)
    (root / file).write_text(f"{text}\n")
    changed = facts(root)
    assert changed.digest() != hosts["vm2"].digest()
    assert named in differences(hosts["vm2"].to_dict(), changed.to_dict())


def test_flags_are_those_every_processor_has():
    text = "processor\t: 0\nflags\t: avx2 adx\n\nprocessor\t: 1\nflags\t: avx2\n\nRevision : 4\n"
    model = parse_cpuinfo(text)
    assert model.flags == ("avx2",)
    assert model.hypervisor is False
    assert model.kinds == 1


def test_cores_of_two_sorts_are_counted():
    text = "processor : 0\nCPU part : 0xd05\n\nprocessor : 1\nCPU part : 0xd0a\n"
    assert parse_cpuinfo(text).kinds == 2


def test_invlpgb_is_seen(tmp_path):
    root = expand("vm2", tmp_path)
    cpuinfo = root / "proc/cpuinfo"
    cpuinfo.write_text(cpuinfo.read_text().replace(" adx ", " adx invlpgb "))
    assert facts(root).counters.invlpgb is True


def test_steal_is_a_share_of_all_time():
    assert parse_steal("cpu  50 0 25 15 0 0 0 10 50 0\ncpu0 1 1 1\n") == 0.1
    assert parse_steal("cpu 0 0 0 0 0 0 0 0") is None
    assert parse_steal("") is None


@pytest.mark.parametrize(
    ("code", "pmus", "paranoid", "usable", "reason"),
    [
        (0, ("cpu",), 2, True, None),
        (errno.EACCES, ("cpu",), 4, False, "perf_event_paranoid is 4"),
        (errno.EPERM, ("cpu",), 2, False, "sandbox"),
        (errno.ENOSYS, ("cpu",), 2, False, "has no perf_event_open"),
        (errno.ENOENT, ("software",), 2, False, "virtual machine"),
        (errno.EOPNOTSUPP, ("armv8_pmuv3_0",), 2, False, os.strerror(errno.EOPNOTSUPP)),
        (None, ("cpu",), 2, None, "not tried"),
    ],
)
def test_counters_say_why_not(code, pmus, paranoid, usable, reason):
    verdict, why = counter_verdict(code, pmus, paranoid)
    assert verdict is usable
    assert why is None if reason is None else reason in why


def subjects(host):
    return [one.what for one in advice(host)]


def only(host, words):
    (one,) = [one for one in advice(host) if words in one.what]
    return one


def test_every_advice_has_known_forms_and_a_reason(hosts):
    for host in hosts.values():
        for one in advice(host):
            assert set(one.commands) <= set(FORMS)
            assert one.why
            assert all(one.commands.values())


def test_thp_off_is_turned_to_madvise_not_always(hosts):
    one = only(hosts["snc4"], "transparent huge pages are off")
    assert one.commands["root"] == ("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
    assert one.commands["boot"] == "transparent_hugepage=madvise"
    assert "node" in one.commands["kubernetes"]
    assert not any("are off" in what for what in subjects(hosts["vm2"]))


def test_pool_command_adds_to_what_is_there(hosts):
    one = only(hosts["vm2"], "no free huge pages of 1GiB")
    pages = int(one.commands["root"].split()[1])
    assert one.commands["root"].endswith("hugepages-1048576kB/nr_hugepages")
    assert one.commands["boot"] == f"hugepagesz=1G hugepages={pages}"
    assert (
        f'limits: {{cpu: "2", memory: 2Gi, hugepages-1Gi: {pages}Gi}}'
        in (one.commands["kubernetes"])
    )
    # All eight are taken: the command must not shrink the pool.
    full = tuple(
        replace(pool, pages=8, free=0) if pool.size_bytes == GIB and pool.node is None else pool
        for pool in hosts["vm2"].pools
    )
    one = only(replace(hosts["vm2"], pools=full), "no free huge pages of 1GiB")
    assert int(one.commands["root"].split()[1]) == 8 + pages


def test_pool_command_names_each_node_that_has_cpus(hosts):
    empty = tuple(replace(pool, pages=0, free=0) for pool in hosts["snc4"].pools)
    one = only(replace(hosts["snc4"], pools=empty), "no free huge pages of 1GiB")
    lines = one.commands["root"].splitlines()
    assert [line.split("/node/")[1].split("/")[0] for line in lines] == [
        "node2",
        "node3",
        "node4",
        "node5",
    ]
    total = sum(int(line.split()[1]) for line in lines)
    assert one.commands["boot"] == f"hugepagesz=1G hugepages={total}"


def test_no_pool_is_advised_that_the_memory_cannot_hold(hosts):
    assert not any("16GiB" in what for what in subjects(hosts["arm64k"]))


def test_free_pages_behind_a_zero_limit_are_explained(hosts):
    one = only(hosts["snc4"], "this control group may use none")
    assert "hugepages-2Mi" in one.commands["kubernetes"]


def test_quota_balancing_and_monitoring(hosts):
    assert "--cpuset-cpus 0-11" in only(hosts["snc4"], "a quota of 12.5 CPUs").commands["docker"]
    assert only(hosts["snc4"], "NUMA balancing").commands["root"] == (
        "sysctl kernel.numa_balancing=0"
    )
    assert "mount -t resctrl" in only(hosts["snc4"], "resctrl").commands["root"]
    assert not any("resctrl" in what for what in subjects(hosts["threadripper"]))


def test_balancing_does_not_matter_on_one_node(hosts):
    one_node = replace(hosts["vm2"], memory=replace(hosts["vm2"].memory, numa_balancing=1))
    assert not any("balancing" in what for what in subjects(one_node))


def test_refused_placement_and_counters_name_container_flags(hosts):
    host = hosts["snc4"]
    refused = replace(
        host,
        memory=replace(host.memory, numa_calls="EPERM: Operation not permitted"),
        counters=replace(host.counters, usable=False, reason="refused"),
    )
    assert only(refused, "cannot be placed").commands["docker"] == "--cap-add SYS_NICE"
    counters = only(refused, "CPU counters").commands
    assert "--cap-add PERFMON" in counters["docker"]
    assert "seccomp=unconfined" in counters["docker"]
    assert counters["root"] == "sysctl kernel.perf_event_paranoid=1"


def test_a_machine_without_counters_is_not_told_to_set_paranoid(hosts):
    one = only(hosts["vm2"], "CPU counters")
    assert "paranoid" not in one.commands["root"]
