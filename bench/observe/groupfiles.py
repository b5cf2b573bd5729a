"""Figures that the kernel keeps for a control group: throttling, stalls, faults, huge pages."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.cgroup import controller_groups, parse_membership, parse_mounts, read_limits
from bench.observe.mappings import parse_numa_stat
from bench.procfs import parse_pairs, parse_pressure
from bench.sysfs import entries, read_int, read_text

PRESSURES = ("cpu", "memory", "io")
# Rows of memory.stat; version 1 writes the sum over all groups below with "total_" before it.
_MEMORY = (
    *("anon", "anon_thp", "file_thp", "shmem_thp", "rss", "rss_huge"),
    *("pgfault", "pgmajfault", "pgscan", "pgsteal", "thp_fault_alloc", "thp_collapse_alloc"),
    *("workingset_refault", "workingset_refault_anon", "workingset_refault_file"),
)


@dataclass(frozen=True)
class GroupCounts:
    """Counters of a group at one moment. An empty mapping, or None, could not be read."""

    throttled: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By group, from the own one upwards: ``periods``, ``throttled``, ``throttled_s``."""
    cpu_s: float | None = None
    events: Mapping[str, int] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)
    pressure: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    nodes: Mapping[int, int] = field(default_factory=dict)
    quota: float | None = None
    """In CPUs; the smallest on the way up."""
    cpu_readable: bool = False
    memory_readable: bool = False


def read_group(root: Path, membership: str) -> GroupCounts:
    """Counters of the group that ``membership`` (a ``/proc/PID/cgroup``) names."""
    mountinfo = read_text(root / "proc/self/mountinfo") or ""
    paths, mounts = parse_membership(membership), parse_mounts(mountinfo)
    version, folders = controller_groups("cpu", root, paths, mounts)
    levels = {f"/{f.relative_to(root)}": parse_pairs(read_text(f / "cpu.stat")) for f in folders}
    limited = {name: rows for name, rows in levels.items() if "nr_periods" in rows}
    own = next(iter(levels.values()), {})
    memory_version, memory_folders = controller_groups("memory", root, paths, mounts)
    events, memory = _memory(memory_version, memory_folders)
    # Stalls are counted by version 2 only, wherever the controllers are.
    _, unified = controller_groups("pressure", root, paths, mounts)
    return GroupCounts(
        throttled={name: _throttling(rows) for name, rows in limited.items()},
        cpu_s=own["usage_usec"] / 1e6 if "usage_usec" in own else None,
        events=events,
        memory=memory,
        pressure=_pressure(unified),
        nodes=parse_numa_stat(read_text(memory_folders[0] / "memory.numa_stat"))
        if memory_folders and memory_version == 2
        else {},
        quota=read_limits(root, membership, mountinfo).cpu_quota,
        # A version 2 group has no say over CPUs while version 1 has that controller.
        cpu_readable=bool(folders)
        and (version == 1 or not any("cpu" in mount.controllers for mount in mounts)),
        memory_readable=bool(memory),
    )


def group_is(root: Path, membership: str, pids: Collection[int]) -> bool:
    """Whether the groups whose memory and stalls are counted hold these processes only."""
    mountinfo = read_text(root / "proc/self/mountinfo") or ""
    paths, mounts = parse_membership(membership), parse_mounts(mountinfo)
    chains = [controller_groups(name, root, paths, mounts)[1] for name in ("memory", "pressure")]
    return all(set(group_pids(folders[0])) <= set(pids) for folders in chains if folders)


def group_pids(folder: Path) -> list[int]:
    """Processes of a group and of all groups in it. 0 stands for one of another namespace."""
    found: set[int] = set()
    for file in [folder / "cgroup.procs", *entries(folder, "**/cgroup.procs")]:
        found |= {int(word) for word in (read_text(file) or "").split() if word.isdigit()}
    return sorted(found - {0})


def _throttling(rows: Mapping[str, int]) -> dict[str, float]:
    # Nanoseconds in version 1, microseconds in version 2.
    seconds = rows.get("throttled_time", 0) / 1e9 + rows.get("throttled_usec", 0) / 1e6
    return {
        "periods": rows["nr_periods"],
        "throttled": rows.get("nr_throttled", 0),
        "throttled_s": seconds,
    }


def _memory(version: int, folders: list[Path]) -> tuple[dict[str, int], dict[str, int]]:
    if not folders:
        return {}, {}
    rows = parse_pairs(read_text(folders[0] / "memory.stat"))
    memory = {k: rows[f"total_{k}"] if f"total_{k}" in rows else rows[k] for k in _MEMORY
              if k in rows or f"total_{k}" in rows}  # fmt: skip
    if version == 2:
        return parse_pairs(read_text(folders[0] / "memory.events")), memory
    events = parse_pairs(read_text(folders[0] / "memory.oom_control"))
    failures = read_int(folders[0] / "memory.failcnt")
    found = {} if failures is None else {"max": failures}
    return {**found, **({"oom_kill": events["oom_kill"]} if "oom_kill" in events else {})}, memory


def _pressure(folders: list[Path]) -> dict[str, dict[str, int]]:
    if not folders:
        return {}
    found = {name: parse_pressure(read_text(folders[0] / f"{name}.pressure")) for name in PRESSURES}
    return {name: totals for name, totals in found.items() if totals is not None}
