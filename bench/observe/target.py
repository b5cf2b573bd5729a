"""Which processes are looked at: one, with its descendants if asked, or a control group's."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.cgroup import Mount, parse_mounts
from bench.errors import HostError, UsageError
from bench.observe.groupfiles import group_pids
from bench.observe.mappings import parse_status
from bench.procfs import ProcessStat, descendants, parse_process_stat
from bench.sysfs import is_folder, read_text


def read_stat(root: Path, pid: int) -> ProcessStat | None:
    """One process now; None where there is none, or it may not be seen."""
    return parse_process_stat(read_text(root / f"proc/{pid}/stat") or "")


@dataclass(frozen=True)
class Target:
    """One process, or a group; exactly one of ``pid`` and ``folder`` is set."""

    root: Path
    name: str
    membership: str
    """As ``/proc/PID/cgroup`` would have it: the control groups whose figures belong to it."""
    pid: int | None = None
    started: int | None = None
    children: bool = False
    folder: Path | None = None

    def pids(self, known: Iterable[int] = ()) -> list[int]:
        """Processes that belong to it now.

        ``known`` are the living ones of the last look: a child whose parent ended has another
        parent by now, and still belongs to it.
        """
        if self.folder is not None:
            return group_pids(self.folder)
        assert self.pid is not None
        if not self.children:
            return [self.pid]
        return descendants({self.pid, *known}, self.root / "proc")

    @property
    def one_process(self) -> bool:
        """Whether there is nothing left to look at once ``pid`` has ended."""
        return self.folder is None and not self.children


def process_target(root: Path, pid: int, children: bool = False) -> Target:
    """Target of ``--pid``.

    Raises
    ------
    UsageError
        Where there is no such process, or none that has memory: each says which.
    """
    if not is_folder(root / "proc/self"):
        raise HostError(f"nothing is mounted at {root / 'proc'}", "mount -t proc proc /proc")
    if pid == os.getpid() and root == Path("/"):
        raise UsageError(f"process {pid} is this command itself", "give the pid of your program")
    stat = read_stat(root, pid)
    if stat is None:
        raise UsageError(
            f"no process {pid}, or none that you may see",
            "pgrep NAME shows pids; where /proc is mounted with hidepid, only your own are there",
        )
    if stat.kernel_thread:
        raise UsageError(
            f"process {pid} ({stat.name}) is a thread of the kernel and has no memory of its own",
            "give the pid of a program; pgrep NAME shows it",
        )
    if stat.ended:
        raise UsageError(
            f"process {pid} ({stat.name}) has ended already and waits for its parent {stat.parent}",
            "give the pid of a living process",
        )
    leader = parse_status(read_text(root / f"proc/{pid}/status") or "").leader
    if leader is not None and leader != pid:
        raise UsageError(f"{pid} is a thread of process {leader}", f"--pid {leader}")
    groups = read_text(root / f"proc/{pid}/cgroup") or ""
    name = f"process {pid} ({stat.name})" + (" and its descendants" if children else "")
    return Target(root, name, groups, pid, stat.started, children)


def group_target(root: Path, path: str) -> Target:
    """Target of ``--cgroup``: a folder, or a group's name below where groups are mounted.

    Raises
    ------
    UsageError
        Where there is no such group, or nothing runs in it.
    """
    mounts = parse_mounts(read_text(root / "proc/self/mountinfo") or "")
    if not mounts:
        raise HostError(
            "no control groups are mounted here", "give --pid instead, with --children if need be"
        )
    folder, mount = _find(root, path, mounts)
    pids = [pid for pid in group_pids(folder) if pid != os.getpid()]
    if not pids:
        raise UsageError(
            f"no process runs in control group {path}",
            f"find {folder} -name cgroup.procs -exec grep -H . {{}} + shows who is in it",
        )
    shared = _shared_groups(root, pids, mount)
    below = "/" + folder.relative_to(root / mount.point.lstrip("/")).as_posix().lstrip(".")
    # The group as seen from the top of its hierarchy, which a mount may show only a part of.
    inner = mount.top.rstrip("/") + below if below != "/" else mount.top
    controllers = ",".join(mount.controllers)
    number = 0 if mount.version == 2 else 1
    membership = "\n".join([f"{number}:{controllers}:{inner}", *shared])
    return Target(root, f"control group {path}", membership, folder=folder)


def _shared_groups(root: Path, pids: Iterable[int], mount: Mount) -> list[str]:
    """Rows of ``/proc/PID/cgroup`` that all processes have in common, of other hierarchies.

    Where version 1 is in use, another controller's figures are in another group, which is known
    if all are in the same.
    """
    common: set[str] | None = None
    for pid in pids:
        rows = set((read_text(root / f"proc/{pid}/cgroup") or "").splitlines())
        common = rows if common is None else common & rows
    own = "" if mount.version == 2 else ",".join(mount.controllers)
    return sorted(row for row in common or () if row.split(":")[1] != own)


def _find(root: Path, path: str, mounts: tuple[Mount, ...]) -> tuple[Path, Mount]:
    # The unified hierarchy first, then those with a controller that bears on memory or CPUs.
    order = sorted(
        mounts, key=lambda m: (m.version != 2, not {"cpu", "memory"} & set(m.controllers))
    )
    # A path that starts with a mount point is meant as it stands, any other as a group's name.
    for mount in sorted(order, key=lambda m: -len(m.point)):
        folder = root / os.path.normpath(path).lstrip("/")
        if is_folder(folder) and folder.is_relative_to(root / mount.point.lstrip("/")):
            return folder, mount
    for mount in order:
        folder = root / mount.point.lstrip("/") / path.strip("/")
        if is_folder(folder):
            return folder, mount
    points = ", ".join(mount.point for mount in order[:3])
    raise UsageError(
        f"no control group {path}", f"groups are folders below {points}; systemd-cgls lists them"
    )
