"""CPUs, caches and memory nodes as sysfs reports them, and the order in which threads take CPUs.

Nothing is assumed about numbers: nodes need not start at 0 nor own CPUs, ids may have gaps, CPUs
may be off, and a virtual machine may show no caches at all. Cache sizes are what firmware or
hypervisor claim; effective sizes are measured elsewhere.
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Literal, TypeVar

from bench.errors import HostError, UsageError
from bench.sysfs import entries, format_cpulist, keyed_kib, read_cpulist, read_int, read_text

Policy = Literal["compact", "scatter"]
LadderKind = Literal["quick", "full", "every"]
_T = TypeVar("_T")
_SIZE = re.compile(r"(\d+)([KMG]?)$")
_SCALE = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


@dataclass(frozen=True)
class Cpu:
    """One online logical CPU. ``core``, ``llc`` and ``l2`` count from 0 over the whole host."""

    id: int
    core: int
    package: int | None
    die: int | None
    node: int | None
    llc: int | None  # index into Topology.llcs
    l2: int | None  # equal numbers share an L2
    smt_rank: int  # 0 for the first thread of its core
    capacity: int | None  # relative speed where cores differ; 1024 is the fastest


@dataclass(frozen=True)
class Cache:
    """One data or unified cache and the CPUs that share it. Sizes are reported, not measured."""

    level: int
    kind: str
    size_bytes: int | None
    line_bytes: int | None
    ways: int | None
    cpus: tuple[int, ...]


@dataclass(frozen=True)
class Node:
    """One memory node. ``cpus`` is empty for memory without CPUs, such as CXL."""

    id: int
    cpus: tuple[int, ...]
    memory_bytes: int | None
    distances: tuple[tuple[int, int], ...]  # (node, relative distance)


@dataclass(frozen=True)
class Topology:
    """Online CPUs by number, their caches, and the memory nodes."""

    cpus: tuple[Cpu, ...]
    caches: tuple[Cache, ...]
    llcs: tuple[Cache, ...]
    nodes: tuple[Node, ...]

    @cached_property
    def by_id(self) -> dict[int, Cpu]:
        """CPUs by number."""
        return {cpu.id: cpu for cpu in self.cpus}

    def node(self, node_id: int) -> Node:
        """One node; raises UsageError with the existing ones."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        known = ", ".join(str(node.id) for node in self.nodes) or "none shown by this kernel"
        raise UsageError(f"no memory node {node_id}", f"nodes of this host: {known}")


def read_topology(sys_root: Path = Path("/sys")) -> Topology:
    """Read the topology below ``sys_root``; raises HostError where it lists no CPU."""
    cpu_root = sys_root / "devices/system/cpu"
    online = _online_cpus(cpu_root)
    if not online:
        raise HostError(
            f"no CPUs listed under {cpu_root}", "mount sysfs, or allow it in the sandbox"
        )
    nodes = _read_nodes(sys_root / "devices/system/node", online)
    caches_of = {cpu: _read_caches(cpu_root / f"cpu{cpu}/cache", cpu, online) for cpu in online}
    caches = tuple(
        sorted(
            {cache for found in caches_of.values() for cache in found},
            key=lambda cache: (cache.level, cache.cpus, cache.kind),
        )
    )
    last = {
        cpu: max(found, key=lambda c: c.level, default=None) for cpu, found in caches_of.items()
    }
    llcs = tuple(sorted({c for c in last.values() if c is not None}, key=lambda c: c.cpus))
    l2_of = {cpu: next((c for c in f if c.level == 2), None) for cpu, f in caches_of.items()}
    l2s = sorted({c.cpus for c in l2_of.values() if c is not None})
    siblings = {cpu: _siblings(cpu_root / f"cpu{cpu}/topology", cpu, online) for cpu in online}
    cores = sorted(set(siblings.values()))

    def describe(cpu: int) -> Cpu:
        folder = cpu_root / f"cpu{cpu}"
        llc, l2 = last[cpu], l2_of[cpu]
        return Cpu(
            id=cpu,
            core=cores.index(siblings[cpu]),
            package=_id_or_none(folder / "topology/physical_package_id"),
            die=_id_or_none(folder / "topology/die_id"),
            node=next((node.id for node in nodes if cpu in node.cpus), None),
            llc=None if llc is None else llcs.index(llc),
            l2=None if l2 is None else l2s.index(l2.cpus),
            smt_rank=siblings[cpu].index(cpu),
            capacity=read_int(folder / "cpu_capacity"),
        )

    return Topology(tuple(describe(cpu) for cpu in online), caches, llcs, nodes)


def _online_cpus(cpu_root: Path) -> tuple[int, ...]:
    present = tuple(sorted(_numbered(cpu_root, "cpu")))
    listed = read_cpulist(cpu_root / "online")
    if listed is not None:
        return tuple(cpu for cpu in listed if cpu in present) or listed
    # cpu0 often has no "online" file because it cannot be switched off.
    return tuple(cpu for cpu in present if read_int(cpu_root / f"cpu{cpu}/online") != 0)


def _numbered(folder: Path, prefix: str) -> Iterator[int]:
    for entry in entries(folder, f"{prefix}[0-9]*"):
        if entry.name[len(prefix) :].isdigit():
            yield int(entry.name[len(prefix) :])


def _id_or_none(path: Path) -> int | None:
    """Read an id; the kernel writes -1 (or 65535) where firmware gave none."""
    value = read_int(path)
    return None if value is None or value < 0 or value == 0xFFFF else value


def _siblings(folder: Path, cpu: int, online: tuple[int, ...]) -> tuple[int, ...]:
    # core_cpus_list is the newer name (5.3) of thread_siblings_list.
    for name in ("core_cpus_list", "thread_siblings_list"):
        listed = read_cpulist(folder / name)
        if listed is not None and cpu in listed:
            return tuple(other for other in listed if other in online)
    return (cpu,)


def _read_caches(folder: Path, cpu: int, online: tuple[int, ...]) -> list[Cache]:
    found = []
    for index in sorted(_numbered(folder, "index")):
        entry = folder / f"index{index}"
        level, kind = read_int(entry / "level"), read_text(entry / "type")
        if level is None or kind not in ("Data", "Unified"):
            continue
        shared = read_cpulist(entry / "shared_cpu_list") or (cpu,)
        found.append(
            Cache(
                level,
                kind,
                _cache_size(read_text(entry / "size")),
                read_int(entry / "coherency_line_size"),
                read_int(entry / "ways_of_associativity") or None,
                tuple(other for other in shared if other in online),
            )
        )
    return found


def _cache_size(text: str | None) -> int | None:
    match = _SIZE.match(text or "")
    return int(match[1]) * _SCALE[match[2]] or None if match else None


def _read_nodes(root: Path, online: tuple[int, ...]) -> tuple[Node, ...]:
    listed = read_cpulist(root / "online")
    ids = tuple(sorted(_numbered(root, "node"))) if listed is None else listed
    nodes = []
    for node in ids:
        folder = root / f"node{node}"
        cpus = read_cpulist(folder / "cpulist") or ()
        # The distance row has one number for each online node, in the order of their ids.
        numbers = [int(word) for word in (read_text(folder / "distance") or "").split()]
        nodes.append(
            Node(
                node,
                tuple(cpu for cpu in cpus if cpu in online),
                keyed_kib(read_text(folder / "meminfo"), "MemTotal"),
                tuple(zip(ids, numbers, strict=True)) if len(numbers) == len(ids) else (),
            )
        )
    return tuple(nodes)


def usable_threads(
    affinity: Collection[int], cpuset: Collection[int] | None, cpu_quota: float | None
) -> int:
    """Threads that can run at once without being throttled.

    ``cpu_quota`` is in CPUs (1.5 for ``cpu.max`` of 150000 100000), None where there is no limit.
    """
    allowed = set(affinity) if cpuset is None else set(affinity) & set(cpuset)
    quota = len(allowed) if cpu_quota is None else int(cpu_quota)
    return max(1, min(len(allowed), quota))


def pin_order(
    topology: Topology,
    allowed: Iterable[int],
    policy: Policy = "compact",
    node: int | None = None,
) -> list[int]:
    """CPUs in the order in which threads should take them.

    One thread of every core comes before any second thread. ``compact`` fills one last-level
    cache, then its node, then the next node, largest and fastest first; ``scatter`` takes turns
    over packages, nodes and caches. ``node`` keeps to one node's CPUs.
    Raises HostError where no allowed CPU is left.
    """
    wanted = set(allowed)
    if node is not None:
        own = topology.node(node).cpus
        with_cpus = ", ".join(str(n.id) for n in topology.nodes if wanted & set(n.cpus))
        if not wanted & set(own):
            raise HostError(
                f"node {node} has no CPU that this process may use",
                f"nodes with allowed CPUs: {with_cpus or 'unknown'}",
            )
        wanted &= set(own)
    cpus = [cpu for cpu in topology.cpus if cpu.id in wanted]
    if not cpus:
        raise HostError(
            f"none of the CPUs {format_cpulist(allowed)} is online",
            f"online: {format_cpulist(topology.by_id)}",
        )
    # smt_rank counts all threads of the core; where its first thread is not allowed,
    # the second one is this process's first.
    rounds: list[list[Cpu]] = []
    taken: dict[int, int] = {}
    for cpu in cpus:
        rank = taken.get(cpu.core, 0)
        taken[cpu.core] = rank + 1
        if rank == len(rounds):
            rounds.append([])
        rounds[rank].append(cpu)
    package_of_node = {
        cpu.node: min(c.package or 0 for c in cpus if c.node == cpu.node) for cpu in cpus
    }
    # Node above cache: with sub-NUMA clustering one reported L3 spans several nodes.
    levels: list[Callable[[Cpu], Hashable]] = [
        lambda cpu: package_of_node[cpu.node],
        lambda cpu: cpu.node,
        lambda cpu: cpu.llc,
        lambda cpu: cpu.l2,
    ]
    merge = _in_turns if policy == "scatter" else _one_after_another
    return [cpu.id for each in rounds for cpu in _arrange(each, levels, merge)]


def _arrange(
    cpus: list[Cpu],
    levels: Sequence[Callable[[Cpu], Hashable]],
    merge: Callable[[list[list[Cpu]]], list[Cpu]],
) -> list[Cpu]:
    if not levels:
        return sorted(cpus, key=lambda cpu: (-(cpu.capacity or 0), cpu.id))
    groups: dict[Hashable, list[Cpu]] = {}
    for cpu in cpus:
        groups.setdefault(levels[0](cpu), []).append(cpu)
    ordered = sorted(
        groups.values(),
        key=lambda group: (-max(c.capacity or 0 for c in group), -len(group), group[0].id),
    )
    return merge([_arrange(group, levels[1:], merge) for group in ordered])


def _one_after_another(groups: list[list[_T]]) -> list[_T]:
    return [item for group in groups for item in group]


def _in_turns(groups: list[list[_T]]) -> list[_T]:
    missing = object()
    turns = zip_longest(*groups, fillvalue=missing)
    return [item for turn in turns for item in turn if item is not missing]  # type: ignore[misc]


def thread_ladder(
    topology: Topology,
    allowed: Iterable[int],
    kind: LadderKind = "quick",
    limit: int | None = None,
) -> list[int]:
    """Thread counts worth measuring, rising, for CPUs taken in compact order.

    ``quick``: 1, 2, the cores of one last-level cache, of one node, and all CPUs. ``full``: every
    count to 8, then ten levels up to each of these and to all cores, so that a curve can be fitted
    inside one domain. ``every``: every count. ``limit`` cuts the ladder (a CPU quota).
    """
    order = [topology.by_id[cpu] for cpu in pin_order(topology, allowed)]
    top = min(len(order), limit or len(order))
    first = order[0]
    cores = list({cpu.core: cpu for cpu in reversed(order)}.values())
    own_node = [cpu for cpu in cores if cpu.node == first.node]
    one_llc = sum(cpu.llc == first.llc for cpu in own_node)
    domains = sorted({one_llc, len(own_node), len(cores), len(order)})
    if kind == "every":
        counts = set(range(1, top + 1))
    elif kind == "full":
        counts = set(range(1, 9))
        for start, end in zip([8, *domains], domains, strict=False):
            counts.update(start + round((end - start) * step / 10) for step in range(1, 11))
    else:
        counts = {1, 2, one_llc, len(own_node)}
    return sorted({count for count in counts if 1 <= count < top} | {top})
