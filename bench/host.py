"""Reading the facts of the host. Nothing needs root and nothing is written.

``root`` may be a stored tree; then nothing is asked of the running kernel.
"""

import errno
import os
from pathlib import Path

from bench import syscalls
from bench.cgroup import read_limits
from bench.cpuinfo import CpuModel, parse_cpuinfo
from bench.hostfacts import (
    CacheFact,
    Counters,
    Cpus,
    HostFacts,
    Kernel,
    Memory,
    NodeFact,
    Thp,
    Virtualisation,
    differences,
    stable_part,
)
from bench.hugepages import read_pools
from bench.procfs import parse_rows
from bench.sysfs import (
    bracketed,
    entries,
    exists,
    format_cpulist,
    keyed_kib,
    parse_cpulist,
    read_int,
    read_text,
)
from bench.topology import Topology, read_topology

__all__ = ["HostFacts", "differences", "facts", "stable_part"]

# Words of the kernel command line that bear on memory; the rest may be private and is not kept.
_BOOT_WORDS = """
    default_hugepagesz hugepagesz hugepages hugetlb_cma transparent_hugepage thp_anon mitigations
    numa_balancing numa nosmt isolcpus nohz_full rcu_nocbs kernelcore movablecore intel_pstate
    amd_pstate idle processor.max_cstate iommu
"""
_CLOCKSOURCE_VENDOR = {"kvm-clock": "KVM", "hyperv_clocksource_tsc_page": "Hyper-V", "xen": "Xen"}


def facts(root: str | Path = "/") -> HostFacts:
    """Read the facts of this host, or of a stored tree. Needs no root and changes nothing."""
    root = Path(root)
    live = root == Path("/")
    status = read_text(root / "proc/self/status") or ""
    cpu = parse_cpuinfo(read_text(root / "proc/cpuinfo") or "")
    return HostFacts(
        boot_id=read_text(root / "proc/sys/kernel/random/boot_id"),
        kernel=_kernel(root, live),
        cpu=cpu,
        cpus=_cpus(root, status),
        virtualisation=_virtualisation(root, cpu, status),
        memory=_memory(root, live),
        thp=_thp(root, status),
        pools=read_pools(root),
        limits=read_limits(root),
        counters=_counters(root, cpu, live),
    )


def _row(text: str, key: str) -> str | None:
    """Value of a ``Key:   value`` row."""
    return parse_rows(text).get(key)


def _kernel(root: Path, live: bool) -> Kernel:
    clock = root / "sys/devices/system/clocksource/clocksource0"
    words = (read_text(root / "proc/cmdline") or "").split()
    known = _BOOT_WORDS.split()
    mitigations = {
        path.name: text
        for path in entries(root / "sys/devices/system/cpu/vulnerabilities")
        if (text := read_text(path)) is not None
    }
    # A stored tree cannot be asked by sysconf; its first mapping has small pages.
    smaps = None if live else read_text(root / "proc/self/smaps")
    return Kernel(
        release=read_text(root / "proc/sys/kernel/osrelease"),
        version=read_text(root / "proc/sys/kernel/version"),
        machine=os.uname().machine if live else read_text(root / "proc/sys/kernel/arch"),
        page_bytes=os.sysconf("SC_PAGESIZE") if live else keyed_kib(smaps, "KernelPageSize"),
        boot_words=tuple(word for word in words if word.partition("=")[0] in known),
        aslr=read_int(root / "proc/sys/kernel/randomize_va_space"),
        clocksource=read_text(clock / "current_clocksource"),
        clocksources=tuple((read_text(clock / "available_clocksource") or "").split()),
        mitigations=mitigations,
    )


def _cpus(root: Path, status: str) -> Cpus:
    topology = read_topology(root / "sys")
    cpu_root = root / "sys/devices/system/cpu"
    allowed = _row(status, "Cpus_allowed_list")
    online = [cpu.id for cpu in topology.cpus]
    first = cpu_root / f"cpu{online[0]}"
    midrs = [read_text(cpu_root / f"cpu{cpu}/regs/identification/midr_el1") for cpu in online]
    return Cpus(
        online=format_cpulist(online),
        allowed=None
        if allowed is None
        else format_cpulist(set(parse_cpulist(allowed)) & set(online)),
        cores=len({cpu.core for cpu in topology.cpus}),
        packages=len({cpu.package for cpu in topology.cpus}),
        threads_per_core=1 + max(cpu.smt_rank for cpu in topology.cpus),
        caches=_cache_facts(topology),
        nodes=tuple(
            NodeFact(node.id, format_cpulist(node.cpus), node.memory_bytes, node.distances)
            for node in topology.nodes
        ),
        midr=tuple(sorted({midr for midr in midrs if midr is not None})),
        governor=read_text(first / "cpufreq/scaling_governor"),
        frequency_driver=read_text(first / "cpufreq/scaling_driver"),
        turbo=_turbo(cpu_root),
        steal_share=parse_steal(read_text(root / "proc/stat") or ""),
    )


def _cache_facts(topology: Topology) -> tuple[CacheFact, ...]:
    groups: dict[tuple[int, str, int], list[int]] = {}
    line: dict[tuple[int, str, int], int | None] = {}
    for cache in topology.caches:
        key = (cache.level, cache.kind, cache.size_bytes or 0)
        groups.setdefault(key, []).append(len(cache.cpus))
        line[key] = cache.line_bytes
    return tuple(
        CacheFact(level, kind, size or None, line[level, kind, size], len(sharers), max(sharers))
        for (level, kind, size), sharers in sorted(groups.items())
    )


def _turbo(cpu_root: Path) -> bool | None:
    off = read_int(cpu_root / "intel_pstate/no_turbo")
    boost = read_int(cpu_root / "cpufreq/boost")
    if off is not None:
        return off == 0
    return None if boost is None else boost == 1


def parse_steal(text: str) -> float | None:
    """Share of all CPU time that was stolen, from the first row of /proc/stat."""
    words = (text.splitlines() or [""])[0].split()
    if len(words) < 9 or words[0] != "cpu":
        return None
    ticks = [int(word) for word in words[1:9]]  # guest time, after these, is in user time already
    return round(ticks[7] / sum(ticks), 6) if sum(ticks) else None


def _virtualisation(root: Path, cpu: CpuModel, status: str) -> Virtualisation:
    vendor, source = _hypervisor_vendor(root)
    hypervisor = cpu.hypervisor
    if hypervisor is None and vendor is not None:
        hypervisor = True
    seccomp = _row(status, "Seccomp")
    return Virtualisation(
        hypervisor,
        vendor,
        source,
        container_sign=_container_sign(root),
        seccomp_filter=None if seccomp is None else seccomp == "2",
    )


def _hypervisor_vendor(root: Path) -> tuple[str | None, str | None]:
    for path in ("sys/hypervisor/type", "proc/device-tree/hypervisor/compatible"):
        text = read_text(root / path)
        if text:
            return text.strip("\0"), f"/{path}"
    maker = read_text(root / "sys/class/dmi/id/sys_vendor")
    product = read_text(root / "sys/class/dmi/id/product_name") or ""
    if maker == "QEMU" or (maker == "Microsoft Corporation" and product == "Virtual Machine"):
        return maker, "/sys/class/dmi/id/sys_vendor"
    if maker == "Amazon EC2" and not product.endswith("metal"):
        return maker, "/sys/class/dmi/id/sys_vendor"
    if maker == "Google" or "VMware" in (maker or "") or product == "KVM":
        return maker, "/sys/class/dmi/id/sys_vendor"
    clocks = root / "sys/devices/system/clocksource/clocksource0/available_clocksource"
    for clock in (read_text(clocks) or "").split():
        if clock in _CLOCKSOURCE_VENDOR:
            return _CLOCKSOURCE_VENDOR[clock], "available_clocksource"
    return None, None


def _container_sign(root: Path) -> str | None:
    """Return a file that container runtimes leave. Images started as machines keep it too."""
    for sign in ("var/run/secrets/kubernetes.io", ".dockerenv", "run/.containerenv"):
        if exists(root / sign):
            return f"/{sign}"
    return None


def _memory(root: Path, live: bool) -> Memory:
    meminfo = read_text(root / "proc/meminfo")
    code = syscalls.ask_memory_policy() if live else None
    memlock = None
    for line in (read_text(root / "proc/self/limits") or "").splitlines():
        if line.startswith("Max locked memory"):
            memlock = line.split()[3]
    return Memory(
        total_bytes=keyed_kib(meminfo, "MemTotal"),
        available_bytes=keyed_kib(meminfo, "MemAvailable"),
        swap_total_bytes=keyed_kib(meminfo, "SwapTotal"),
        swap_free_bytes=keyed_kib(meminfo, "SwapFree"),
        numa_balancing=read_int(root / "proc/sys/kernel/numa_balancing"),
        numa_calls=None if code is None else "ok" if code == 0 else syscalls.explain(code),
        memlock_limit=memlock,
    )


def _thp(root: Path, status: str) -> Thp:
    folder = root / "sys/kernel/mm/transparent_hugepage"
    khugepaged = {
        path.name: value
        for path in entries(folder / "khugepaged")
        if path.name not in ("full_scans", "pages_collapsed")  # counters, not settings
        and (value := read_int(path)) is not None
    }
    sizes = {}
    for entry in entries(folder, "hugepages-*kB"):
        kib = entry.name.removeprefix("hugepages-").removesuffix("kB")
        chosen = bracketed(read_text(entry / "enabled"))
        if kib.isdigit() and chosen is not None:
            sizes[int(kib) * 1024] = chosen
    here = _row(status, "THP_enabled")
    return Thp(
        enabled=bracketed(read_text(folder / "enabled")),
        defrag=bracketed(read_text(folder / "defrag")),
        use_zero_page=read_int(folder / "use_zero_page"),
        pmd_bytes=read_int(folder / "hpage_pmd_size"),
        shmem_enabled=bracketed(read_text(folder / "shmem_enabled")),
        khugepaged=khugepaged,
        sizes=dict(sorted(sizes.items())),
        allowed_here=None if here is None else here == "1",
    )


def _counters(root: Path, cpu: CpuModel, live: bool) -> Counters:
    devices = root / "sys/bus/event_source/devices"
    pmus = tuple(path.name for path in entries(devices))
    paranoid = read_int(root / "proc/sys/kernel/perf_event_paranoid")
    interrupts = read_text(root / "proc/interrupts")
    filesystems = read_text(root / "proc/filesystems")
    mountinfo = read_text(root / "proc/self/mountinfo") or ""
    mounted = [line.split(" ")[4] for line in mountinfo.splitlines() if " - resctrl " in line]
    pressure = [path.name for path in entries(root / "proc/pressure")]
    code = syscalls.open_cycle_counter() if live else None
    usable, reason = counter_verdict(code, pmus, paranoid)
    return Counters(
        paranoid=paranoid,
        pmus=pmus,
        usable=usable,
        reason=reason,
        tlb_row=None
        if interrupts is None
        else any(line.split()[:1] == ["TLB:"] for line in interrupts.splitlines()),
        invlpgb=None if cpu.hypervisor is None else "invlpgb" in cpu.flags,
        pressure=tuple(pressure),
        resctrl=mounted[0] if mounted else None,
        resctrl_supported=None if filesystems is None else "resctrl" in filesystems.split(),
    )


def counter_verdict(
    code: int | None, pmus: tuple[str, ...], paranoid: int | None
) -> tuple[bool | None, str | None]:
    """Say whether CPU counters work, and why not, from the errno of opening one, if tried."""
    core = [name for name in pmus if name.startswith(("cpu", "armv8"))]
    if code == 0:
        return True, None
    if code in (errno.EACCES, errno.EPERM):
        if paranoid is not None and paranoid > 2:
            return False, f"perf_event_paranoid is {paranoid}: only root may count"
        return False, f"refused ({syscalls.explain(code)}): a sandbox forbids perf_event_open"
    if code == errno.ENOSYS:
        return False, "this kernel, or a sandbox, has no perf_event_open"
    if not core:
        return False, "none are shown to this system, as is usual in a virtual machine"
    return (None, "not tried") if code is None else (False, syscalls.explain(code))
