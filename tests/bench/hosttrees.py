"""Stored hosts: small files of /proc and /sys, expanded below a temporary folder.

A bundle in ``tests/data/hosts`` has one file a line: path, tab, text with ``␤`` for the ends of
lines. ``vm2`` was captured. The others are made up to have what real hosts have: their bundles hold
what does not depend on numbering, and ``_LAYOUTS`` says how CPUs, caches and nodes are numbered.

Capture a host, as any user: ``python tests/bench/hosttrees.py > tests/data/hosts/NAME.txt``.
Look through the file before sharing it: names of control groups may be private.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

DATA = Path(__file__).parent.parent / "data" / "hosts"
BOOT_ID = "00000000-0000-4000-8000-000000000000"
NAMES = ("vm2", "threadripper", "snc4", "arm64k")


@dataclass
class Layout:
    """How one host numbers its CPUs. Sets are tuples of CPU numbers."""

    cores: list[tuple[int, ...]]
    packages: list[tuple[int, ...]]
    llcs: list[tuple[int, ...]]
    nodes: dict[int, tuple[int, ...]]  # empty: memory without CPUs
    llc_kib: int
    l2_kib: int
    l1_kib: int
    node_kib: dict[int, int]
    distances: dict[int, str]
    has_die: bool = True
    has_cache_ids: bool = True
    core_list_name: str = "core_cpus_list"
    pool_kib: tuple[int, ...] = (2048, 1048576)
    offline: tuple[int, ...] = ()
    capacity: dict[int, int] = field(default_factory=dict)


def expand(name: str, folder: Path) -> Path:
    """Write the host's files below ``folder`` and return it: the root of the stored tree."""
    for path, text in files(name).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text + "\n")
    return folder


def files(name: str) -> dict[str, str]:
    """Path (from the root, without a leading slash) and text of every file of a host."""
    found = {}
    for line in (DATA / f"{name}.txt").read_text().split("\n"):
        if not line:
            continue
        path, _, text = line.partition("\t")
        found[path] = text.replace("␤", "\n")
    if name in _LAYOUTS:
        layout = _LAYOUTS[name]
        found = {**_topology_files(layout), **found}
        online = [cpu for core in layout.cores for cpu in core if cpu not in layout.offline]
        found["proc/cpuinfo"] = "\n\n".join(
            f"processor\t: {cpu}\n{found['proc/cpuinfo']}" for cpu in sorted(online)
        )
    return found


def _list(cpus: tuple[int, ...]) -> str:
    """Write every number out: what the parser must join is not written by the code under test."""
    return ",".join(str(cpu) for cpu in sorted(cpus))


def _topology_files(layout: Layout) -> dict[str, str]:
    cpu_root, node_root = "sys/devices/system/cpu", "sys/devices/system/node"
    everything = tuple(cpu for core in layout.cores for cpu in core)
    online = tuple(cpu for cpu in everything if cpu not in layout.offline)

    def seen(cpus: tuple[int, ...]) -> str:
        return _list(tuple(cpu for cpu in cpus if cpu in online))

    found = {
        f"{cpu_root}/online": _list(online),
        f"{cpu_root}/possible": _list(everything),
        f"{node_root}/online": _list(tuple(layout.nodes)),
    }
    for cpu in layout.offline:  # the kernel takes cache and topology away
        found[f"{cpu_root}/cpu{cpu}/online"] = "0"
    for package, members in enumerate(layout.packages):
        for number, core in enumerate(c for c in layout.cores if c[0] in members):
            for cpu in core:
                if cpu not in online:
                    continue
                folder = f"{cpu_root}/cpu{cpu}"
                topology = {
                    # Real core ids start anew in each package: they identify nothing alone.
                    "core_id": str(number),
                    "physical_package_id": str(package),
                    layout.core_list_name: seen(core),
                }
                if layout.has_die:
                    topology["die_id"] = "0"
                found.update({f"{folder}/topology/{k}": v for k, v in topology.items()})
                if cpu in layout.capacity:
                    found[f"{folder}/cpu_capacity"] = str(layout.capacity[cpu])
                llc = next((group for group in layout.llcs if cpu in group), None)
                caches = [(1, "Data", layout.l1_kib, core), (1, "Instruction", 32, core)]
                caches.append((2, "Unified", layout.l2_kib, core))
                if llc is not None:
                    caches.append((3, "Unified", layout.llc_kib, llc))
                for index, (level, kind, kib, sharers) in enumerate(caches):
                    cache = f"{folder}/cache/index{index}"
                    found[f"{cache}/level"] = str(level)
                    found[f"{cache}/type"] = kind
                    found[f"{cache}/size"] = f"{kib}K"
                    found[f"{cache}/shared_cpu_list"] = seen(sharers)
                    found[f"{cache}/coherency_line_size"] = "64"
                    if layout.has_cache_ids:
                        found[f"{cache}/id"] = str(sharers[0])
    for node, members in layout.nodes.items():
        found[f"{node_root}/node{node}/cpulist"] = seen(members)
        found[f"{node_root}/node{node}/distance"] = layout.distances[node]
        total = layout.node_kib[node]
        found[f"{node_root}/node{node}/meminfo"] = (
            f"Node {node} MemTotal:       {total} kB\nNode {node} MemFree:        {total // 2} kB"
        )
        for kib in layout.pool_kib:
            for entry in ("nr_hugepages", "free_hugepages", "surplus_hugepages"):
                found[f"{node_root}/node{node}/hugepages/hugepages-{kib}kB/{entry}"] = "0"
    return found


def _threadripper() -> Layout:
    """96 cores, second threads numbered after all first ones, 12 chips of 8 cores, one node."""
    return Layout(
        cores=[(core, core + 96) for core in range(96)],
        packages=[tuple(range(192))],
        llcs=[
            tuple(cpu + 96 * rank for rank in (0, 1) for cpu in range(8 * chip, 8 * chip + 8))
            for chip in range(12)
        ],
        nodes={0: tuple(range(192))},
        llc_kib=32768,
        l2_kib=1024,
        l1_kib=32,
        node_kib={0: 527_832_000},
        distances={0: "10"},
    )


def _snc4() -> Layout:
    """Two packages of two sub-NUMA clusters of four cores.

    CPU numbers alternate between packages, nodes are 2 to 5, node 7 is CXL memory without CPUs,
    one L3 is reported for each package although two nodes share it, and CPU 12 is switched off.
    """
    cores = [(cpu, cpu + 16) for cpu in range(16)]
    packages = [tuple(c for c in range(32) if c % 2 == package) for package in (0, 1)]
    nodes: dict[int, tuple[int, ...]] = {}
    for package in (0, 1):
        for half in (0, 1):
            firsts = [c for c in range(16) if c % 2 == package and c // 8 == half]
            nodes[2 + 2 * package + half] = tuple(firsts + [c + 16 for c in firsts])
    nodes[7] = ()
    return Layout(
        cores=cores,
        packages=packages,
        llcs=packages,
        nodes=nodes,
        llc_kib=61440,
        l2_kib=2048,
        l1_kib=48,
        node_kib={2: 65_000_000, 3: 66_000_000, 4: 66_000_000, 5: 66_000_000, 7: 130_000_000},
        distances={
            2: "10 12 21 21 14",
            3: "12 10 21 21 14",
            4: "21 21 10 12 24",
            5: "21 21 12 10 24",
            7: "14 14 24 24 10",
        },
        core_list_name="thread_siblings_list",
        offline=(12,),
    )


def _arm64k() -> Layout:
    """Eight cores without SMT, 64 KiB pages, no L3, no die ids, no cache ids, two sorts of core."""
    return Layout(
        cores=[(cpu,) for cpu in range(8)],
        packages=[tuple(range(8))],
        llcs=[],
        nodes={0: tuple(range(8))},
        llc_kib=0,
        l2_kib=1024,
        l1_kib=64,
        node_kib={0: 32_000_000},
        distances={0: "10"},
        has_die=False,
        has_cache_ids=False,
        pool_kib=(2048, 524288, 16777216),
        capacity={cpu: 512 if cpu < 4 else 1024 for cpu in range(8)},
    )


_LAYOUTS = {"threadripper": _threadripper(), "snc4": _snc4(), "arm64k": _arm64k()}

_CAPTURED = """
proc/cpuinfo proc/meminfo proc/buddyinfo proc/cmdline proc/filesystems proc/interrupts proc/stat
proc/pressure/* proc/self/cgroup proc/self/limits proc/self/mountinfo proc/self/smaps
proc/self/status proc/sys/kernel/arch proc/sys/kernel/numa_balancing proc/sys/kernel/osrelease
proc/sys/kernel/perf_event_paranoid proc/sys/kernel/randomize_va_space proc/sys/kernel/version
sys/bus/event_source/devices/*/type sys/class/dmi/id/product_name sys/class/dmi/id/sys_vendor
sys/devices/system/clocksource/clocksource0/*_clocksource sys/devices/system/cpu/online
sys/devices/system/cpu/cpu*/cpu_capacity sys/devices/system/cpu/cpu*/topology/*_id
sys/devices/system/cpu/cpu*/topology/*_list sys/devices/system/cpu/cpu*/cache/index*/*
sys/devices/system/cpu/cpu*/cpufreq/scaling_driver sys/devices/system/cpu/cpufreq/boost
sys/devices/system/cpu/cpu*/cpufreq/scaling_governor sys/devices/system/cpu/intel_pstate/no_turbo
sys/devices/system/cpu/cpu*/regs/identification/* sys/devices/system/cpu/vulnerabilities/*
sys/devices/system/node/online sys/devices/system/node/node*/cpulist
sys/devices/system/node/node*/distance sys/devices/system/node/node*/meminfo
sys/devices/system/node/node*/hugepages/*/* sys/kernel/mm/hugepages/*/*
sys/kernel/mm/transparent_hugepage/* sys/kernel/mm/transparent_hugepage/hugepages-*/enabled
sys/kernel/mm/transparent_hugepage/khugepaged/*
"""
# What is kept of files that hold more than the suite reads: rows that start so.
_ROWS = {
    "proc/interrupts": ("TLB", " TLB"),
    "proc/stat": ("cpu ",),
    "proc/self/limits": ("Limit", "Max locked memory"),
    "proc/self/status": ("Cpus_allowed_list", "Mems_allowed_list", "THP_enabled", "Seccomp"),
}


def capture(root: Path = Path("/")) -> Iterator[str]:
    """Lines of a bundle for the host this runs on."""
    from bench.host import _BOOT_WORDS

    yield f"proc/sys/kernel/random/boot_id\t{BOOT_ID}"
    for pattern in _CAPTURED.split():
        for path in sorted(root.glob(pattern)):
            name = str(path.relative_to(root))
            try:
                text = path.read_text(errors="replace").rstrip("\n")
            except OSError:
                continue
            lines = text.splitlines()
            if name in _ROWS:
                lines = [line for line in lines if line.startswith(_ROWS[name])]
            elif name == "proc/self/mountinfo":
                lines = [line for line in lines if " - cgroup" in line or " - resctrl" in line]
            elif name == "proc/self/smaps":
                lines = [line for line in lines if line.startswith("KernelPageSize")][:1]
            elif name == "proc/cmdline":
                known = [w for w in text.split() if w.partition("=")[0] in _BOOT_WORDS.split()]
                lines = [" ".join(known)]
            yield name + "\t" + "␤".join(lines)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent.parent))
    sys.stdout.writelines(f"{line}\n" for line in capture())
