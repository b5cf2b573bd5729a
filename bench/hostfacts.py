"""The facts about a host as one frozen tree that is stored beside results.

A fact that could not be read is None. Cache and TLB sizes are labels from firmware or hypervisor,
not measurements. ``bench.host`` reads the tree.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bench.cgroup import Limits
from bench.cpuinfo import CpuModel
from bench.hugepages import HugePool
from bench.sysfs import format_cpulist


@dataclass(frozen=True)
class Kernel:
    """The kernel and what was asked of it at boot."""

    release: str | None
    version: str | None
    machine: str | None
    page_bytes: int | None
    boot_words: tuple[str, ...]
    aslr: int | None
    clocksource: str | None
    clocksources: tuple[str, ...]
    mitigations: dict[str, str]


@dataclass(frozen=True)
class CacheFact:
    """All caches of one level and kind. Sizes are reported, not measured."""

    level: int
    kind: str
    size_bytes: int | None
    line_bytes: int | None
    instances: int
    cpus_each: int  # of the largest


@dataclass(frozen=True)
class NodeFact:
    """One memory node; ``cpus`` is an empty list for memory without CPUs."""

    id: int
    cpus: str
    memory_bytes: int | None
    distances: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Cpus:
    """How many processors there are, how they share caches, and which this process may use."""

    online: str
    allowed: str | None  # affinity, which has the cpuset in it
    cores: int
    packages: int
    threads_per_core: int
    caches: tuple[CacheFact, ...]
    nodes: tuple[NodeFact, ...]
    midr: tuple[str, ...]  # arm64: raw identification of each sort of core
    governor: str | None
    frequency_driver: str | None
    turbo: bool | None
    steal_share: float | None  # of all CPU time since boot that the hypervisor gave to others


@dataclass(frozen=True)
class Virtualisation:
    """Whether a hypervisor or a container is between the suite and the machine."""

    hypervisor: bool | None
    vendor: str | None
    source: str | None  # the file that named the vendor
    container_sign: str | None  # a file that container runtimes leave; None is "no sign"
    seccomp_filter: bool | None  # some system calls may be refused


@dataclass(frozen=True)
class Memory:
    """Memory of the host as a whole; limits of this process are in ``HostFacts.limits``."""

    total_bytes: int | None
    available_bytes: int | None
    swap_total_bytes: int | None
    swap_free_bytes: int | None
    numa_balancing: int | None
    numa_calls: str | None  # "ok", or the errno with which the sandbox refuses them
    memlock_limit: str | None  # bytes, or "unlimited"


@dataclass(frozen=True)
class Thp:
    """Transparent huge pages. ``sizes`` are the choices for each size (mTHP), by bytes."""

    enabled: str | None
    defrag: str | None
    use_zero_page: int | None
    pmd_bytes: int | None
    shmem_enabled: str | None
    khugepaged: dict[str, int]
    sizes: dict[int, str]
    allowed_here: bool | None  # False: switched off for this process by prctl


@dataclass(frozen=True)
class Counters:
    """What can be counted here, and why not."""

    paranoid: int | None
    pmus: tuple[str, ...]
    usable: bool | None  # None: not tried
    reason: str | None
    tlb_row: bool | None  # shootdowns counted in /proc/interrupts (x86 only)
    invlpgb: bool | None  # TLBs flushed without interrupts: the row counts too few
    pressure: tuple[str, ...]  # resources with stall information
    resctrl: str | None  # mount point
    resctrl_supported: bool | None


@dataclass(frozen=True)
class HostFacts:
    """Everything; ``to_dict`` is plain JSON data."""

    boot_id: str | None
    kernel: Kernel
    cpu: CpuModel
    cpus: Cpus
    virtualisation: Virtualisation
    memory: Memory
    thp: Thp
    pools: tuple[HugePool, ...]
    limits: Limits
    counters: Counters

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, strings and numbers, the same after a trip through JSON."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        for key in ("cpuset", "mems"):  # ranges: hundreds of CPUs are common
            if plain["limits"][key] is not None:
                plain["limits"][key] = format_cpulist(plain["limits"][key])
        return plain

    def digest(self) -> str:
        """Hash what must stay as it is while one set of results grows (see ``stable_part``)."""
        text = json.dumps(stable_part(self.to_dict()), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def usable_memory(self) -> int | None:
        """Bytes that may be used now: available memory within the control group's headroom."""
        known = (self.memory.available_bytes, self.limits.memory_headroom)
        return min((value for value in known if value is not None), default=None)


def stable_part(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Drop from ``to_dict`` what differs between two looks at an unchanged host.

    That is the boot id, amounts that are free or used now, memory totals (a virtual machine's may
    grow), pool contents (a run may reserve pages), and the allowed CPUs (``taskset`` is a choice of
    the run and stored with it).
    """
    stable: dict[str, Any] = json.loads(json.dumps(facts))
    del stable["boot_id"]
    stable["pools"] = sorted({(pool["size_bytes"], pool["node"] or 0) for pool in stable["pools"]})
    del stable["cpus"]["steal_share"], stable["cpus"]["allowed"]
    for node in stable["cpus"]["nodes"]:
        del node["memory_bytes"]
    for key in ("total_bytes", "available_bytes", "swap_free_bytes"):
        del stable["memory"][key]
    for level in stable["limits"]["memory"]:
        del level["current"], level["reclaimable"], level["group"]
    for entry in stable["limits"]["hugetlb"]:
        del entry["headroom"]
    return stable


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Name each stable fact that differs between two ``to_dict`` results, with both values."""
    old, new = dict(_leaves("", stable_part(before))), dict(_leaves("", stable_part(now)))
    return [
        f"{name}: {old.get(name)} -> {new.get(name)}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def _leaves(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - JSON data
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(f"{prefix}.{key}" if prefix else str(key), inner)
    else:
        yield prefix, value
