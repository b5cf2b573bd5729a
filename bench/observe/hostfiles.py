"""Figures of the whole host over the window. They bound what one process can have had of them."""

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.disturbance import PATHS, VMSTAT, deltas, parse_interrupts, parse_stat
from bench.observe.groupfiles import PRESSURES
from bench.procfs import parse_pairs, parse_pressure
from bench.sysfs import entries, read_int, read_text

# Of each size of transparent huge page: taken at a fault, and there now (6.13).
_MTHP = ("anon_fault_alloc", "nr_anon")


@dataclass(frozen=True)
class HostTexts:
    """Texts of host-wide files at one moment."""

    at: float
    files: Mapping[str, str]
    pressure: Mapping[str, Mapping[str, int]]
    mthp: Mapping[int, Mapping[str, int]]
    """Counters by page size in bytes, of those between the base page and a huge page."""
    bandwidth: Mapping[str, int]
    """Bytes by resctrl group."""


def read_host(root: Path) -> HostTexts:
    """Read the host-wide files; what cannot be read is left out."""
    files = {path: read_text(root / path.lstrip("/")) for path in PATHS}
    pressure = {n: parse_pressure(read_text(root / "proc/pressure" / n)) for n in PRESSURES}
    mthp: dict[int, dict[str, int]] = {}
    huge = root / "sys/kernel/mm/transparent_hugepage"
    for folder in entries(huge, "hugepages-*kB"):
        found = {name: read_int(folder / "stats" / name) for name in _MTHP}
        size = int(folder.name.removeprefix("hugepages-").removesuffix("kB")) * 1024
        if size < (read_int(huge / "hpage_pmd_size") or 0):
            mthp[size] = {name: value for name, value in found.items() if value is not None}
    return HostTexts(
        time.monotonic(),
        {path: text for path, text in files.items() if text},
        {name: totals for name, totals in pressure.items() if totals is not None},
        {size: counts for size, counts in mthp.items() if counts},
        {str(group): read_bandwidth(group) or 0 for group in resctrl_groups(root)},
    )


@dataclass(frozen=True)
class HostFigures:
    """What happened on the host in the window."""

    seconds: float
    busy_cpus: float | None
    """CPUs at work on average, for anybody."""
    steal: float | None
    """Share of the time that a hypervisor took from the target's CPUs."""
    shootdowns: float | None
    """TLB interrupts a second received by the CPUs that the target ran on; None: not counted."""
    elsewhere: float | None
    """The same a second for each other CPU: what there is without the target. None: no other."""
    counts: Mapping[str, float] = field(default_factory=dict)
    """Of /proc/vmstat, names as in ``bench.disturbance``, and huge pages taken and refused."""
    pressure: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Share of the window in which some, or all, tasks were stalled."""
    mthp_taken: Mapping[int, int] = field(default_factory=dict)
    mthp_there: Mapping[int, int] = field(default_factory=dict)
    """Host-wide, by size: pages taken in the window, and pages there at its end."""


_HUGE = {
    "thp_fault_alloc": "huge_taken",
    "thp_fault_fallback": "huge_refused",
    "pgscan_direct": "scanned_by_programs",
}


def host_figures(before: HostTexts, after: HostTexts, cpus: Iterable[int]) -> HostFigures:
    """Differences of two readings; ``cpus`` are those the target ran on."""
    seconds = max(after.at - before.at, 1e-9)
    mine = sorted(set(cpus))
    probes = {p: (before.files[p], after.files[p]) for p in before.files if p in after.files}
    interrupts = parse_interrupts(after.files.get("/proc/interrupts", ""), "TLB") or {}
    others = sorted(set(interrupts) - set(mine))
    own, elsewhere = deltas(probes, seconds, mine), deltas(probes, seconds, others)
    old, new = (parse_pairs(texts.files.get("/proc/vmstat")) for texts in (before, after))
    counts = {name: own[name] for name in VMSTAT.values() if name in own}
    counts |= {
        name: new[row] - old[row] for row, name in _HUGE.items() if row in old and row in new
    }
    counted = "tlb_received" in own
    return HostFigures(
        seconds,
        _busy(before, after, seconds),
        own["steal_s"] / seconds / len(mine) if "steal_s" in own and mine else None,
        own["tlb_received"] / seconds if counted else None,
        elsewhere["tlb_received"] / seconds / len(others) if counted and others else None,
        counts,
        pressure_shares(before.pressure, after.pressure, seconds),
        _mthp(before, after),
        {size: counts["nr_anon"] for size, counts in after.mthp.items() if "nr_anon" in counts},
    )


def _mthp(before: HostTexts, after: HostTexts) -> dict[int, int]:
    name = "anon_fault_alloc"
    return {
        size: counts[name] - before.mthp[size][name]
        for size, counts in after.mthp.items()
        if name in counts and name in before.mthp.get(size, {})
    }


def _busy(before: HostTexts, after: HostTexts, seconds: float) -> float | None:
    old, new = (parse_stat(texts.files.get("/proc/stat", "")) for texts in (before, after))
    # user nice system idle iowait irq softirq; guest time is in user time already.
    used = [sum(new[c][i] - old[c][i] for i in (0, 1, 2, 5, 6)) for c in new.keys() & old.keys()]
    return sum(used) / os.sysconf("SC_CLK_TCK") / seconds if used else None


def pressure_shares(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]], seconds: float
) -> dict[str, dict[str, float]]:
    """Share of the time stalled, from totals in microseconds."""
    return {
        name: {kind: (total - before[name][kind]) / 1e6 / seconds for kind, total in totals.items()
               if kind in before[name]}
        for name, totals in after.items()
        if name in before
    }  # fmt: skip


# ---- bandwidth monitoring ----------------------------------------------------------------------


def resctrl_groups(root: Path) -> list[Path]:
    """Folders of resctrl that count bandwidth; empty where it is not mounted."""
    mountinfo = read_text(root / "proc/self/mountinfo") or ""
    points = [line.split(" ")[4] for line in mountinfo.splitlines() if " - resctrl " in line]
    if not points:
        return []
    top = root / points[0].lstrip("/")
    own = [top, *(f for f in entries(top) if f.name not in ("info", "mon_groups", "mon_data"))]
    found = [*own, *(f for each in own for f in entries(each / "mon_groups"))]
    return [folder for folder in found if read_bandwidth(folder) is not None]


def read_bandwidth(group: Path) -> int | None:
    """Bytes counted since boot over all memory domains; None where they are not available."""
    values = [read_int(file) for file in entries(group, "mon_data/mon_L3_*/mbm_total_bytes")]
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def group_of(root: Path, threads: set[int]) -> tuple[str, bool] | None:
    """The monitoring group that counts these threads, and whether it counts nobody else."""
    for folder in reversed(resctrl_groups(root)):  # a thread is listed by its parent group, too
        tasks = {int(word) for word in (read_text(folder / "tasks") or "").split()}
        if threads and threads <= tasks:
            return str(folder), threads == tasks
    return None
