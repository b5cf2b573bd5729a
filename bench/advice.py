"""What this host lacks for a complete measurement, why it matters, and the commands that add it.

One function a subject; each returns None where there is nothing to say. Nothing is run here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bench.hostfacts import HostFacts
from bench.hugepages import HugePool
from bench.sysfs import format_cpulist
from bench.units import format_size

# Forms of a command, in the order in which they are shown.
FORMS = {
    "root": "as root, until the next boot",
    "boot": "on the kernel command line",
    "docker": "docker run",
    "kubernetes": "Kubernetes",
}
_THP = "/sys/kernel/mm/transparent_hugepage"
_NOT_IN_A_POD = "# a setting of the node, not of the pod: use the form for root on the node"
_NO_FLAG = "# no flag sets it: use the form for root on the host"
# A pool takes memory from everything else: an example stays at a quarter, as a run does by default.
_SHARE_OF_MEMORY = 4
_LARGEST_EXAMPLE = 16 * 1024**3


@dataclass(frozen=True)
class Advice:
    """One missing thing. ``commands`` maps a form (``FORMS``) to text that can be pasted."""

    what: str
    why: str
    commands: dict[str, str]


def advice(facts: HostFacts) -> list[Advice]:
    """List what is missing, most useful first; empty where nothing is."""
    found: list[Advice] = []
    found += _some(_thp(facts)) + _some(_thp_for_process(facts))
    for pool in facts.pools:
        if pool.node is None:
            found += _some(_pool(facts, pool))
            found += _some(_pool_limit(facts, pool))
    rest: tuple[Callable[[HostFacts], Advice | None], ...] = (
        _mthp,
        _numa_calls,
        _numa_balancing,
        _quota,
        _counters,
        _resctrl,
        _governor,
    )
    for subject in rest:
        found += _some(subject(facts))
    return found


def _some(one: Advice | None) -> list[Advice]:
    return [] if one is None else [one]


def _thp(facts: HostFacts) -> Advice | None:
    if facts.thp.enabled != "never":
        return None
    return Advice(
        "transparent huge pages are off",
        "the page policy thp cannot be measured; madvise changes only programs that ask",
        {
            "root": f"echo madvise > {_THP}/enabled",
            "boot": "transparent_hugepage=madvise",
            "docker": _NO_FLAG,
            "kubernetes": _NOT_IN_A_POD,
        },
    )


def _thp_for_process(facts: HostFacts) -> Advice | None:
    if facts.thp.allowed_here is not False:
        return None
    return Advice(
        "transparent huge pages are switched off for this process (prctl PR_SET_THP_DISABLE)",
        "what started this process did it (a service manager, a runtime): start it another way",
        {},
    )


def _mthp(facts: HostFacts) -> Advice | None:
    small = [size for size in facts.thp.sizes if size != facts.thp.pmd_bytes]
    on = {
        size: state
        for size, state in facts.thp.sizes.items()
        if state in ("always", "madvise") or (state == "inherit" and facts.thp.enabled != "never")
    }
    # A fault takes the largest size that is on: a middle one is measured only where it is that.
    if not small or (on and max(on) in small):
        return None
    size = 65536 if 65536 in small else min(small)
    larger = sorted(other for other in on if other > size)
    do = [f"echo never > hugepages-{other // 1024}kB/enabled" for other in larger]
    undo = [f"echo {on[other]} > hugepages-{other // 1024}kB/enabled" for other in larger]
    if size not in on:
        do.append(f"echo madvise > hugepages-{size // 1024}kB/enabled")
        undo.append(f"echo {facts.thp.sizes[size]} > hugepages-{size // 1024}kB/enabled")
    return Advice(
        "no middle size of transparent huge pages (mTHP) is the largest that is on",
        "the page policies mthpN cannot be measured, and thp cannot while one is; root sees the"
        " evidence",
        {
            "root": f"cd {_THP} && {' && '.join(do)}  # undo: {' && '.join(undo)}",
            "boot": f"thp_anon={size // 1024}K:madvise  # Linux 6.12 and newer",
            "docker": _NO_FLAG,
            "kubernetes": _NOT_IN_A_POD,
        },
    )


def _pool(facts: HostFacts, pool: HugePool) -> Advice | None:
    size = format_size(pool.size_bytes)
    if pool.free is None or pool.free - (pool.reserved or 0) > 0:
        return None
    memory = facts.usable_memory() or 0
    amount = min(memory // _SHARE_OF_MEMORY, _LARGEST_EXAMPLE)
    if amount > 1024**3:
        amount -= amount % 1024**3
    pages = max(1, amount // pool.size_bytes)
    if pages * pool.size_bytes > memory:
        return None
    nodes = [node.id for node in facts.cpus.nodes if node.cpus]
    name = f"hugepages-{pool.size_bytes // 1024}kB/nr_hugepages"
    persistent = pool.persistent or 0
    command = f"echo {persistent + pages} > /sys/kernel/mm/hugepages/{name}"
    if len(nodes) > 1:
        each = -(-pages // len(nodes))
        pages = each * len(nodes)
        present = {
            p.node: p.persistent or 0 for p in facts.pools if p.size_bytes == pool.size_bytes
        }
        folder = "/sys/devices/system/node"
        command = "\n".join(
            f"echo {present.get(node, 0) + each} > {folder}/node{node}/hugepages/{name}"
            for node in nodes
        )
    short = _kernel_size(pool.size_bytes)
    example = format_size(pages * pool.size_bytes)
    return Advice(
        f"no free huge pages of {size} are reserved",
        f"the page policy that uses them is skipped (the commands reserve {example}; what a run"
        " needs is in its --dry-run)",
        {
            "root": command,
            "boot": f"hugepagesz={short} hugepages={pages}",
            "docker": "# no flag: containers use the host's pool, reserved by root as above",
            "kubernetes": _pod_resources(pool.size_bytes, pages),
        },
    )


def _pool_limit(facts: HostFacts, pool: HugePool) -> Advice | None:
    headroom = facts.limits.hugetlb_headroom(pool.size_bytes)
    free = (pool.free or 0) - (pool.reserved or 0)
    if headroom is None or headroom >= pool.size_bytes or free <= 0:
        return None
    return Advice(
        f"{free} huge pages of {format_size(pool.size_bytes)} are free, but this control group"
        " may use none",
        "a mapping would end in SIGBUS at its first touch, so the page policy is skipped",
        {
            "root": "# raise hugetlb.*.max of the control group, or run outside it",
            "kubernetes": _pod_resources(
                pool.size_bytes, max(1, min(free, 2**30 // pool.size_bytes))
            ),
        },
    )


def _pod_resources(size_bytes: int, pages: int) -> str:
    """Container part of a pod. Requests equal limits by rule; memory or CPU must be named too."""
    name = f"hugepages-{_kernel_size(size_bytes)}i"
    amount = format_size(pages * size_bytes).removesuffix("B")
    return (
        "# the node's pool is reserved first (root or boot form), then kubelet restarted\n"
        "resources:\n"
        f'  requests: {{cpu: "2", memory: 2Gi, {name}: {amount}}}\n'
        f'  limits: {{cpu: "2", memory: 2Gi, {name}: {amount}}}'
    )


def _kernel_size(size_bytes: int) -> str:
    """Size as the kernel command line writes it: 2M, 1G."""
    return format_size(size_bytes).removesuffix("iB")


def _numa_calls(facts: HostFacts) -> Advice | None:
    calls = facts.memory.numa_calls
    if calls in (None, "ok") or len(facts.cpus.nodes) < 2:
        return None
    return Advice(
        f"memory cannot be placed on a node: the calls are refused ({calls})",
        "placement is then up to the kernel, and results of several nodes cannot be told apart",
        {
            "docker": "--cap-add SYS_NICE",
            "kubernetes": 'securityContext: {capabilities: {add: ["SYS_NICE"]}}',
        },
    )


def _numa_balancing(facts: HostFacts) -> Advice | None:
    if facts.memory.numa_balancing != 1 or len(facts.cpus.nodes) < 2:
        return None
    return Advice(
        "automatic NUMA balancing is on",
        "it unmaps and moves pages during a run; some loads lose without it, so measure both",
        {
            "root": "sysctl kernel.numa_balancing=0",
            "boot": "numa_balancing=disable",
            "docker": _NO_FLAG,
            "kubernetes": _NOT_IN_A_POD,
        },
    )


def _quota(facts: HostFacts) -> Advice | None:
    quota = facts.limits.cpu_quota
    if quota is None:
        return None
    whole = max(1, int(quota))
    return Advice(
        f"a quota of {quota:g} CPUs is set on this process",
        "a thread that used up its share is stopped in mid-measurement; own CPUs are not",
        {
            "docker": f"--cpuset-cpus {format_cpulist(range(whole))}  # instead of --cpus",
            "kubernetes": "# needs a node with cpuManagerPolicy static\n"
            f'resources: {{requests: {{cpu: "{whole}"}}, limits: {{cpu: "{whole}"}}}}',
        },
    )


def _counters(facts: HostFacts) -> Advice | None:
    if facts.counters.usable is not False:
        return None
    has_pmu = any(name.startswith(("cpu", "armv8")) for name in facts.counters.pmus)
    if not has_pmu:
        commands = {
            "root": "# on the hypervisor: give the machine a virtual PMU (QEMU: -cpu host,pmu=on)"
        }
    else:
        commands = {
            "root": "sysctl kernel.perf_event_paranoid=1",
            # The capability alone does not pass the system-call filter of every Docker version.
            "docker": "--cap-add PERFMON --security-opt seccomp=unconfined --ulimit memlock=-1",
            "kubernetes": 'securityContext: {capabilities: {add: ["PERFMON"]},'
            " seccompProfile: {type: Unconfined}}",
        }
    return Advice(
        f"CPU counters cannot be used: {facts.counters.reason}",
        "optional: verdicts come from timings; counters only help to explain them",
        commands,
    )


def _resctrl(facts: HostFacts) -> Advice | None:
    monitored = {"cqm_mbm_total", "mba"} & set(facts.cpu.flags)
    if facts.counters.resctrl or not facts.counters.resctrl_supported or not monitored:
        return None
    return Advice(
        "memory bandwidth monitoring (resctrl) is there but not mounted",
        "optional: it shows how much bandwidth each group of threads drew",
        {
            "root": "mount -t resctrl resctrl /sys/fs/resctrl",
            "docker": _NO_FLAG,
            "kubernetes": _NOT_IN_A_POD,
        },
    )


def _governor(facts: HostFacts) -> Advice | None:
    if facts.cpus.governor in (None, "performance"):
        return None
    return Advice(
        f"the CPU frequency governor is {facts.cpus.governor}",
        "clocks that rise and fall between phases can look like contention",
        {
            "root": "for f in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor;"
            " do echo performance > $f; done",
            "docker": _NO_FLAG,
            "kubernetes": _NOT_IN_A_POD,
        },
    )
