"""What disturbed a sample: deltas of /proc counters over its window. Parsers take text.

Counts are of the whole host, or of the CPUs used where the file tells them apart; a quiet machine
is not all zeros. ``None`` never stands for zero: a counter the kernel does not have is left out.
"""

import os
from collections.abc import Iterable, Mapping, Sequence

from bench.procfs import parse_pairs

PATHS = ("/proc/stat", "/proc/interrupts", "/proc/vmstat")

# /proc/vmstat rows: what the kernel did to memory meanwhile, whoever asked for it.
VMSTAT = {
    "numa_hint_faults": "numa_hints",
    "numa_pages_migrated": "numa_migrated",
    "pgmigrate_success": "migrated",
    "compact_stall": "compact_stalls",
    "compact_migrate_scanned": "compact_scanned",
    "thp_split_page": "thp_splits",
    "thp_split_pmd": "thp_pmd_splits",
    "thp_collapse_alloc": "thp_collapses",
    "pswpin": "swapped_in",
    "pswpout": "swapped_out",
    "pgmajfault": "major_faults",
}
# Rows of /proc/interrupts worth a delta: shootdowns received, function calls between CPUs.
INTERRUPTS = {"TLB": "tlb_received", "CAL": "function_calls"}


def parse_stat(text: str) -> dict[int, tuple[int, ...]]:
    """Ticks by CPU: ``cpu0 user nice system idle iowait irq softirq steal ...``."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        if name.startswith("cpu") and name[3:].isdigit():
            found[int(name[3:])] = tuple(int(field) for field in rest.split())
    return found


def parse_interrupts(text: str, row: str) -> dict[int, int] | None:
    """Counts of one row by CPU; None where the host has no such row (TLB on arm64)."""
    lines = text.splitlines()
    if not lines:
        return None
    cpus = [int(name[3:]) for name in lines[0].split()]
    for line in lines[1:]:
        name, colon, rest = line.partition(":")
        if colon and name.strip() == row:
            return dict(
                zip(cpus, (int(field) for field in rest.split()[: len(cpus)]), strict=False)
            )
    return None


def _sum(counts: Mapping[int, int], cpus: Iterable[int]) -> int:
    return sum(counts.get(cpu, 0) for cpu in cpus)


def deltas(
    probes: Mapping[str, tuple[str, str]], seconds: float, cpus: Sequence[int]
) -> dict[str, float]:
    """Counters over the window of ``seconds``, by name; time in seconds, the rest in counts."""
    found: dict[str, float] = {"probed_s": seconds}
    used = set(cpus)
    before, after = (parse_stat(text) for text in probes.get("/proc/stat", ("", "")))
    if before and after:
        tick = 1 / os.sysconf("SC_CLK_TCK")
        if -1 in used:
            used = set(after)
        fields = [(b, after[cpu]) for cpu, b in before.items() if cpu in used and cpu in after]
        if all(len(b) > 7 and len(a) > 7 for b, a in fields):
            found["steal_s"] = sum(a[7] - b[7] for b, a in fields) * tick
    old, new = probes.get("/proc/interrupts", ("", ""))
    for row, name in INTERRUPTS.items():
        counts = parse_interrupts(old, row), parse_interrupts(new, row)
        if counts[0] is not None and counts[1] is not None:
            found[name] = _sum(counts[1], used) - _sum(counts[0], used)
    vm_before, vm_after = (parse_pairs(text) for text in probes.get("/proc/vmstat", ("", "")))
    for row, name in VMSTAT.items():
        if row in vm_before and row in vm_after:
            found[name] = vm_after[row] - vm_before[row]
    return found
