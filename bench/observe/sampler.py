"""Looks at the target's processes until the time is over, the target ends, or the user has enough.

What it costs is bounded: the interval grows until looking takes no more than ``LARGEST_SHARE`` of a
CPU, page tables are walked a few times only, and of very many threads a part is looked at.
"""

import os
import select
import time
from dataclasses import dataclass, field

from bench.observe import hostfiles
from bench.observe.groupfiles import GroupCounts, group_is, read_group
from bench.observe.mappings import (
    parse_numa_maps,
    parse_rollup,
    parse_smaps,
    parse_status,
)
from bench.observe.target import Target, read_stat
from bench.observe.tracks import PAGE, ThreadLook, Track
from bench.procfs import ProcessStat, parse_pairs, parse_process_stat, parse_schedstat
from bench.stop import Stop
from bench.sysfs import entries, parse_cpulist, read_int, read_text
from bench.units import GIB

LARGEST_SHARE = 0.02
"""Of a CPU, for looking: the smallest effect that the suite's verdicts take for one."""
MOST_THREADS = 128
"""Looked at in one process: two files each, some 50 us."""
MOST_PROCESSES = 64
"""Looked at thread by thread, the busiest; of the others one file is read."""
COUNTED_MAPPINGS = 1000
"""Up to so many are counted at every look; more, at the first and the last."""
WALK_S_PER_BYTE = 150e-9 / 4096
"""Of page tables, where all pages are small; seen on a busy virtual machine: 130 ns a page."""
WALK_SHARE = 0.01
"""Of the time gone by, for walks before the last."""
SINGLE_MAPPINGS_BYTES = 4 * GIB
"""Up to here each mapping is looked at (``smaps``); above, their sum (``smaps_rollup``)."""
LAST_WALK_BYTES = 256 * GIB
"""Resident memory that the last walk takes in, over all processes: ten seconds if all of it is on
small pages, the largest processes first."""


@dataclass(frozen=True)
class Settings:
    """What was asked for."""

    seconds: float = 30.0
    interval_s: float = 0.2
    walk: bool = True
    """Whether page tables may be walked."""


@dataclass
class Recording:
    """Everything read."""

    target: Target
    settings: Settings
    tracks: list[Track]
    seconds: float
    looks: int
    interval_s: float
    """Between looks, on average."""
    ended: str
    """Empty: the time was over. Else ``target`` (it ended) or ``user``."""
    group: tuple[GroupCounts, GroupCounts]
    group_own: bool
    """Whether nobody else is in the group."""
    host: tuple[hostfiles.HostTexts, hostfiles.HostTexts]
    bandwidth_group: tuple[str, bool] | None
    own_cpu_s: float
    look_s: float
    """CPU time of one look, on average, without the walks."""
    unread: dict[str, set[int]] = field(default_factory=dict)
    """Files that were refused, and of which processes."""
    unwalked: list[int] = field(default_factory=list)
    """Processes whose page tables were not walked, for their size or their number."""


class Sampler:
    """One window over one target."""

    def __init__(self, target: Target, settings: Settings) -> None:
        self._target, self._settings = target, settings
        self._proc = target.root / "proc"
        self._tracks: dict[tuple[int, int], Track] = {}
        self._living: dict[int, Track] = {}
        self._unread: dict[str, set[int]] = {}
        self._unwalked: list[int] = []
        self._walked_s = 0.0
        self._huge_bytes = (
            read_int(target.root / "sys/kernel/mm/transparent_hugepage/hpage_pmd_size") or 2 << 20
        )
        self._several_nodes = (
            len(entries(target.root / "sys/devices/system/node", "node[0-9]*")) > 1
        )
        self._began = 0.0
        self._looks = 0

    def run(self, stop: Stop) -> Recording:
        """Look until it is over."""
        root, membership = self._target.root, self._target.membership
        cpu_before = time.process_time()
        host, group = hostfiles.read_host(root), read_group(root, membership)
        self._began = time.monotonic()
        end = self._began + self._settings.seconds
        self._look()
        group_own = group_is(
            root, membership, {*self._living, *self._target.pids(self._living), os.getpid()}
        )
        bandwidth_group = hostfiles.group_of(root, self._all_threads())
        looking_s = 0.0
        while True:
            pause = max(self._settings.interval_s, looking_s / self._looks / LARGEST_SHARE)
            left = end - time.monotonic()
            if left > 0:
                select.select([stop.fd], [], [], min(pause, left))
            if stop.requested:
                ended = "user"
                break
            before = time.thread_time()
            walked_s = self._walked_s
            alive = self._look()
            looking_s += max(0.0, time.thread_time() - before - (self._walked_s - walked_s))
            if not alive or time.monotonic() >= end:
                ended = "" if alive else "target"
                break
        seconds = max((t.last_at for t in self._tracks.values()), default=self._began) - self._began
        host_after, group_after = hostfiles.read_host(root), read_group(root, membership)
        self._last_walks()
        for track in self._tracks.values():
            track.finish()
        return Recording(
            self._target,
            self._settings,
            list(self._tracks.values()),
            time.monotonic() - self._began if ended != "target" else seconds,
            self._looks,
            seconds / max(1, self._looks - 1),
            ended,
            (group, group_after),
            group_own,
            (host, host_after),
            bandwidth_group,
            time.process_time() - cpu_before,
            looking_s / max(1, self._looks - 1),
            self._unread,
            self._unwalked,
        )

    # ---- one look -------------------------------------------------------------------------------

    def _look(self) -> bool:
        """Take in every process of the target; False once nothing of it is left."""
        self._looks += 1
        now = time.monotonic()
        seen: dict[int, tuple[Track, ProcessStat]] = {}
        for pid in self._target.pids(self._living):
            stat = read_stat(self._target.root, pid)
            if stat is None or stat.ended or pid == os.getpid() or stat.kernel_thread:
                continue
            if pid == self._target.pid and stat.started != self._target.started:
                continue  # another process has got its number
            key = pid, stat.started
            if key not in self._tracks:
                self._tracks[key] = Track(stat, now, whole=self._looks > 1)
            seen[pid] = self._tracks[key], stat
        close = sorted(seen.values(), key=_worth, reverse=True)[:MOST_PROCESSES]
        closely = {stat.pid for _, stat in close}
        for pid, (track, stat) in seen.items():
            track.add(stat, now, self._threads(track, stat) if pid in closely else [])
            if pid in closely:
                self._cheap_extras(track)
                self._maybe_walk(track, now)
        living = {pid: track for pid, (track, _) in seen.items()}
        for pid, track in self._living.items():
            track.ended = living.get(pid) is not track
        self._living = living
        return bool(living)

    def _threads(self, track: Track, stat: ProcessStat) -> list[ThreadLook]:
        folder = self._proc / f"{stat.pid}/task"
        try:
            names = sorted(os.listdir(folder), key=int)[:MOST_THREADS]  # noqa: PTH208 - half the time
        except OSError:
            return []
        # Which CPUs a thread may use seldom changes: asked at looks 1, 2, 4, 8 and so on.
        again = self._looks & (self._looks - 1) == 0
        found = []
        for name in names:
            own = parse_process_stat(read_text(folder / name / "stat") or "")
            if own is None:
                continue
            ask = again or not track.knows(own.pid, own.started)
            cpus = parse_status(read_text(folder / name / "status") or "").cpus if ask else None
            found.append(
                ThreadLook(
                    own.pid,
                    own.started,
                    own.state == "R",
                    own.cpu,
                    parse_schedstat(read_text(folder / name / "schedstat")),
                    frozenset(parse_cpulist(cpus)) if cpus else None,
                )
            )
        return found

    def _read_status(self, track: Track) -> None:
        text = read_text(self._proc / f"{track.first.pid}/status")
        if text:
            track.status = parse_status(text)

    def _cheap_extras(self, track: Track) -> None:
        pid = track.first.pid
        if track.status is None:
            self._read_status(track)
        if track.mappings is None or track.mappings[1] <= COUNTED_MAPPINGS:
            maps = self._read(pid, "maps")
            if maps:
                track.count_mappings(maps.count("\n") + 1)
        moved = parse_pairs((self._read(pid, "io") or "").replace(":", ""))
        if "rchar" in moved and "wchar" in moved:
            track.count_moved(moved["rchar"] + moved["wchar"])

    def _read(self, pid: int, name: str) -> str | None:
        """Text of a file that may be refused, which is noted; None also where there is none."""
        try:
            return (self._proc / f"{pid}/{name}").read_text(errors="replace").rstrip("\n")
        except PermissionError:
            self._unread.setdefault(name, set()).add(pid)
        except OSError:  # the process ended meanwhile
            pass
        return None

    # ---- walks over page tables -----------------------------------------------------------------

    def _maybe_walk(self, track: Track, now: float) -> None:
        """Walk now and then, so that something is known of a process that ends early."""
        gone = now - self._began
        estimate = track.last.resident_pages * PAGE * WALK_S_PER_BYTE
        if not self._settings.walk or self._walked_s + estimate > max(0.01, WALK_SHARE * gone):
            return
        # After twice the time each: a window of any length has few of them.
        if track.walked_at is None or now - track.at >= 2 * (track.walked_at - track.at) + 0.5:
            self._walk(track, now)

    def _last_walks(self) -> None:
        room = LAST_WALK_BYTES
        living = sorted(self._living.values(), key=lambda t: -t.last.resident_pages)
        for n, track in enumerate(living):
            self._read_status(track)
            size = track.last.resident_pages * PAGE
            if self._settings.walk and size <= room and n < MOST_PROCESSES:
                self._walk(track, time.monotonic())
                room -= size
            elif self._settings.walk:
                self._unwalked.append(track.first.pid)

    def _walk(self, track: Track, now: float) -> None:
        pid = track.first.pid
        track.walked_at = now
        self._read_status(track)
        if track.status is None:
            return
        small = track.last.resident_pages * PAGE <= SINGLE_MAPPINGS_BYTES
        few = track.mappings is None or track.mappings[1] <= COUNTED_MAPPINGS
        before = time.thread_time()
        if small and few:
            found = parse_smaps(self._read(pid, "smaps") or "", self._huge_bytes)
        else:
            found = parse_rollup(self._read(pid, "smaps_rollup") or "", track.status)
        if found is not None:
            track.memory, track.memory_at = found, now
        if self._several_nodes and small:
            nodes = parse_numa_maps(self._read(pid, "numa_maps") or "", PAGE)
            track.nodes = nodes or track.nodes
        took_s = time.thread_time() - before
        track.walk_s += took_s
        self._walked_s += took_s

    def _all_threads(self) -> set[int]:
        found: set[int] = set()
        for pid in self._living:
            found |= {int(path.name) for path in entries(self._proc / f"{pid}/task", "[0-9]*")}
        return found


def _worth(seen: tuple[Track, ProcessStat]) -> tuple[int, int]:
    """Order in which processes are worth a closer look: by CPU time in the window, then memory."""
    track, stat = seen
    ticks = stat.user_ticks + stat.system_ticks
    before = 0 if track.whole else track.first.user_ticks + track.first.system_ticks
    return ticks - before, stat.resident_pages
