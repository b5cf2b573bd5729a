"""What a running command shows of itself in /proc: pages, threads, processors. Parsers take text.

A look reads ``smaps_rollup``, ``status`` and ``task/*/stat`` of a process and its descendants. Its
cost grows with the memory mapped, so the pause after a look is a multiple of what it took.
"""

import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.observe.mappings import Memory, parse_numa_maps, parse_rollup, parse_status
from bench.procfs import descendants, parse_process_stat, parse_rows
from bench.sysfs import entries, keyed_kib, parse_cpulist, read_text

SHARE = 0.02
"""Of one processor that looks may take, beside the first few."""
LOOKS = 30
"""In a command's usual time."""
SHORTEST_S, LONGEST_S = 0.005, 1.0
"""Pause between two looks."""
# Names of libraries, as they are mapped, that bring an allocator of their own.
_ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc", "tbbmalloc", "snmalloc", "rpmalloc")
_GLIBC = re.compile(r"/(libc\.so\.6|libc-2\.\d+\.so)$")


@dataclass(frozen=True)
class Look:
    """One process, or several added up, at one moment. Memory in bytes; None is not known."""

    resident: int = 0
    """With hugetlb, which the kernel leaves out of Rss."""
    huge: int = 0
    """Of it in huge pages; mTHP below the size of a page-table's reach does not show here."""
    virtual: int = 0
    threads: int = 0
    running: int = 0
    """Threads on a processor or waiting for one."""
    cpus: frozenset[int] = frozenset()
    """Processors its threads were last on."""
    allowed: int = 0
    """Processors that any of its processes may use, at most."""
    thp_allowed: bool | None = None
    """False where it was switched off for all of them."""
    nodes: tuple[tuple[int, int], ...] = ()
    """Bytes by memory node, where that was asked for."""

    def __add__(self, other: "Look") -> "Look":
        nodes = dict(self.nodes)
        for node, size in other.nodes:
            nodes[node] = nodes.get(node, 0) + size
        seen = [x for x in (self.thp_allowed, other.thp_allowed) if x is not None]
        return Look(
            self.resident + other.resident,
            self.huge + other.huge,
            self.virtual + other.virtual,
            self.threads + other.threads,
            self.running + other.running,
            self.cpus | other.cpus,
            max(self.allowed, other.allowed),
            any(seen) if seen else None,
            tuple(sorted(nodes.items())),
        )


def parse_look(rollup: str, status: str, stats: Iterable[str], numa_maps: str = "") -> Look:
    """Look of one process from the text of its files."""
    running, cpus = 0, set()
    for stat in stats:
        thread = parse_process_stat(stat)
        if thread is not None:
            running += thread.state == "R"
            cpus.add(thread.cpu)
    rows = parse_rows(status)
    said = parse_status(status)
    memory = parse_rollup(rollup, said) or Memory()
    return Look(
        memory.resident,
        memory.huge,
        keyed_kib(status, "VmSize") or 0,
        int(rows.get("Threads", "0")),
        running,
        frozenset(cpus),
        len(parse_cpulist(said.cpus)) if said.cpus else 0,
        said.thp_allowed,
        tuple(parse_numa_maps(numa_maps, os.sysconf("SC_PAGESIZE")).items()),
    )


def parse_allocator(maps: str) -> str:
    """Whose malloc a process uses, by the libraries it has mapped: ``glibc``, ``jemalloc``.

    ``none known``: no library of C that is known, as in static programs and those of Go.
    """
    files = {line.split(None, 5)[5] for line in maps.splitlines() if len(line.split(None, 5)) > 5}
    for name in _ALLOCATORS:
        if any(name in file.rpartition("/")[2] for file in files):
            return name
    if any("ld-musl" in file for file in files):
        return "musl"
    return "glibc" if any(_GLIBC.search(file) for file in files) else "none known"


def look_at(pid: int, nodes: bool = False, proc: Path = Path("/proc")) -> Look | None:
    """Look at one process; None where it is gone."""
    folder = proc / str(pid)
    status = read_text(folder / "status")
    rollup = read_text(folder / "smaps_rollup")
    if status is None or rollup is None:
        return None
    tasks = entries(folder / "task", "[0-9]*")
    stats = [text for task in tasks if (text := read_text(task / "stat"))]
    numa = read_text(folder / "numa_maps") if nodes else None
    return parse_look(rollup, status, stats, numa or "")


@dataclass
class Looker:
    """Looks at a command from time to time, and keeps what its memory was at its largest."""

    usual_s: float = 0.0
    """Time the command usually takes; 0: not known yet."""
    nodes: bool = False
    allocator: bool = False
    """Find out whose malloc it uses."""
    peak: Look = field(default_factory=Look)
    threads: int = 0
    running: int = 0
    cpus: set[int] = field(default_factory=set)
    looks: int = 0
    cost_s: float = 0.0
    malloc: str = ""

    def look(self, pid: int) -> float:
        """Look once; returns the seconds to wait before the next one."""
        began = time.monotonic()
        found = [(one, seen) for one in descendants([pid]) if (seen := look_at(one, self.nodes))]
        whole = sum((seen for _, seen in found), Look())
        if whole.resident:
            self.looks += 1
            self.threads = max(self.threads, whole.threads)
            self.running = max(self.running, whole.running)
            self.cpus |= whole.cpus
            if self.allocator and (not self.malloc or whole.resident > 1.5 * self.peak.resident):
                largest = max(found, key=lambda item: item[1].resident)[0]
                maps = read_text(Path("/proc") / str(largest) / "maps")
                self.malloc = parse_allocator(maps) if maps else self.malloc
            if whole.resident >= self.peak.resident:
                self.peak = whole
        cost_s = time.monotonic() - began
        self.cost_s += cost_s
        # Where the usual time is not known the pause grows with the time it has run.
        wanted = self.usual_s / LOOKS if self.usual_s else self.looks * SHORTEST_S
        return max(min(max(wanted, SHORTEST_S), LONGEST_S), cost_s / SHARE if self.looks > 5 else 0)

    def summary(self) -> dict[str, Any]:
        """For the journal; empty where the command was gone before anybody looked."""
        if not self.looks:
            return {}
        return {
            "looks": self.looks,
            "cost_s": round(self.cost_s, 6),
            "resident_bytes": self.peak.resident,
            "huge_bytes": self.peak.huge,
            "virtual_bytes": self.peak.virtual,
            "threads": self.threads,
            "running": self.running,
            "cpus": sorted(self.cpus),
            "allowed": self.peak.allowed,
            **({} if self.peak.thp_allowed is None else {"thp_allowed": self.peak.thp_allowed}),
            **({"nodes": {str(n): size for n, size in self.peak.nodes}} if self.nodes else {}),
            **({"malloc": self.malloc} if self.malloc else {}),
        }
