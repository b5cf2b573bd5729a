"""Limits that control groups, version 1, 2 or both, put on this process.

Every limit is looked up along the whole path from the process's group to the top of its mount: a
parent's limit binds as well. Nothing here needs root, and nothing is written.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.procfs import parse_pairs
from bench.sysfs import entries, is_folder, parse_cpulist, read_int, read_text

# Version 1 writes "no limit" as the largest page or huge-page multiple below 2^63.
_UNLIMITED = 1 << 60
_OCTAL = re.compile(r"\\([0-7]{3})")
_HUGETLB_FILE = re.compile(r"hugetlb\.(\d+)([KMG])B\.(?:max|limit_in_bytes)$")
_SCALE = {"K": 1024, "M": 1024**2, "G": 1024**3}


@dataclass(frozen=True)
class Mount:
    """One mounted hierarchy. ``top`` is the group shown at ``point`` (a container sees a part)."""

    point: str
    top: str
    version: int
    controllers: tuple[str, ...]


@dataclass(frozen=True)
class Level:
    """A limit at one group of the path, in bytes, and what is charged to it now."""

    group: str
    limit: int
    current: int | None
    reclaimable: int  # file cache the kernel would drop before it refuses

    @property
    def headroom(self) -> int | None:
        """Bytes that can still be charged here; None where the charge is unknown."""
        if self.current is None:
            return None
        return max(0, self.limit - self.current + min(self.reclaimable, self.current))


@dataclass(frozen=True)
class HugetlbLimit:
    """Smallest limit of one huge-page size, and what is left of it."""

    size_bytes: int
    limit: int
    headroom: int | None


@dataclass(frozen=True)
class Limits:
    """What binds this process. None, or an empty tuple, is "no limit set or none visible"."""

    version: str | None  # "v1", "v2", "hybrid"; None where nothing is mounted
    cpu_quota: float | None  # in CPUs
    cpuset: tuple[int, ...] | None
    mems: tuple[int, ...] | None
    memory: tuple[Level, ...]  # from the process's own group upwards
    hugetlb: tuple[HugetlbLimit, ...]

    @property
    def memory_headroom(self) -> int | None:
        """Bytes left below the tightest memory limit; None where no group limits memory."""
        known = [level.headroom for level in self.memory if level.headroom is not None]
        return min(known, default=None)

    def hugetlb_headroom(self, size_bytes: int) -> int | None:
        """Bytes of one huge-page size that may still be used; None where it is not limited."""
        for entry in self.hugetlb:
            if entry.size_bytes == size_bytes:
                return entry.headroom
        return None


def parse_membership(text: str) -> dict[str, str]:
    """Group path by controller, of /proc/self/cgroup. The key of version 2 is empty."""
    paths = {}
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if not colon:
            continue
        if number == "0" and not controllers:
            paths[""] = path
        for controller in controllers.split(","):
            if controller:
                paths[controller] = path
    return paths


def parse_mounts(text: str) -> tuple[Mount, ...]:
    """Control-group mounts of /proc/self/mountinfo."""
    mounts = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if not dash or len(fields) < 5 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        version = 2 if kind[0] == "cgroup2" else 1
        names = tuple(kind[2].split(",")) if version == 1 and len(kind) > 2 else ()
        mounts.append(Mount(_unescape(fields[4]), _unescape(fields[3]), version, names))
    return tuple(mounts)


def _unescape(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)


def groups(root: Path, mount: Mount, membership: str) -> list[Path]:
    """Folders from the process's group up to the top of the mount, those that can be seen."""
    top = root / mount.point.lstrip("/")
    path = membership
    if mount.top != "/" and (path + "/").startswith(mount.top + "/"):
        path = path[len(mount.top) :]
    parts = [part for part in path.split("/") if part]
    # "/.." means a group outside this namespace, and a missing folder one that is not shown
    # here (a container that sees only its own part): what is mounted is all that can be read.
    if ".." in parts or not is_folder(top.joinpath(*parts)):
        parts = []
    return [top.joinpath(*parts[:n]) for n in range(len(parts), -1, -1)]


def controller_groups(
    controller: str, root: Path, paths: Mapping[str, str], mounts: Sequence[Mount]
) -> tuple[int, list[Path]]:
    """Version of a controller, 1 where it is mounted so, and its folders from the group upwards.

    ``paths`` is of ``parse_membership``. Empty where no hierarchy shows the group.
    """
    for mount in mounts:
        if controller in mount.controllers and controller in paths:
            return 1, groups(root, mount, paths[controller])
    for mount in mounts:
        if mount.version == 2 and "" in paths:
            return 2, groups(root, mount, paths[""])
    return 2, []


def read_limits(
    root: Path = Path("/"), membership: str | None = None, mountinfo: str | None = None
) -> Limits:
    """Limits of this process; the two texts default to its own files below ``root``."""
    if membership is None:
        membership = read_text(root / "proc/self/cgroup") or ""
    if mountinfo is None:
        mountinfo = read_text(root / "proc/self/mountinfo") or ""
    paths, mounts = parse_membership(membership), parse_mounts(mountinfo)

    def chain(controller: str) -> tuple[int, list[Path]]:
        return controller_groups(controller, root, paths, mounts)

    versions = {mount.version for mount in mounts}
    # Systems with systemd mount a version 1 hierarchy without controllers for itself.
    with_control = {m.version for m in mounts if m.version == 2 or set(m.controllers) & set(paths)}
    return Limits(
        version="hybrid" if len(with_control) == 2 else f"v{min(versions)}" if versions else None,
        cpu_quota=_cpu_quota(*chain("cpu")),
        cpuset=_cpuset(chain("cpuset")[1], "cpus"),
        mems=_cpuset(chain("cpuset")[1], "mems"),
        memory=tuple(_memory(root, *chain("memory"))),
        hugetlb=_hugetlb(*chain("hugetlb")),
    )


def memory_headroom(root: Path = Path("/")) -> int | None:
    """Bytes left below the tightest memory limit of this process; None where there is none."""
    return read_limits(root).memory_headroom


def _limit(path: Path) -> int | None:
    """Read bytes or microseconds; None for "max", -1, version 1's huge number, no file."""
    value = read_int(path)
    return value if value is not None and 0 <= value < _UNLIMITED else None


def _cpu_quota(version: int, folders: list[Path]) -> float | None:
    quotas = []
    for folder in folders:
        if version == 1:
            quota = _limit(folder / "cpu.cfs_quota_us")
            period = read_int(folder / "cpu.cfs_period_us")
        else:
            words = (read_text(folder / "cpu.max") or "max").split()
            quota = int(words[0]) if words[0].isdigit() else None
            period = int(words[1]) if len(words) > 1 else None
        if quota and period:
            quotas.append(quota / period)
    return min(quotas, default=None)


def _cpuset(folders: list[Path], what: str) -> tuple[int, ...] | None:
    # The effective list already has every parent's limit in it. An empty one is not a limit.
    for folder in folders:
        for name in (f"cpuset.{what}.effective", f"cpuset.effective_{what}", f"cpuset.{what}"):
            text = read_text(folder / name)
            if text:
                return parse_cpulist(text)
    return None


def _memory(root: Path, version: int, folders: list[Path]) -> Iterator[Level]:
    for folder in folders:
        if version == 1:
            limits = [_limit(folder / "memory.limit_in_bytes")]
            current, cache_key = read_int(folder / "memory.usage_in_bytes"), "total_inactive_file"
        else:
            # Above memory.high the kernel stalls the process to reclaim: a limit in effect.
            limits = [_limit(folder / "memory.max"), _limit(folder / "memory.high")]
            current, cache_key = read_int(folder / "memory.current"), "inactive_file"
        limit = min((value for value in limits if value is not None), default=None)
        if limit is not None:
            cache = parse_pairs(read_text(folder / "memory.stat")).get(cache_key, 0)
            yield Level(f"/{folder.relative_to(root)}", limit, current, cache)


def _hugetlb(version: int, folders: list[Path]) -> tuple[HugetlbLimit, ...]:
    limits: dict[int, int] = {}
    left: dict[int, int] = {}
    suffixes = ("limit_in_bytes", "usage_in_bytes") if version == 1 else ("max", "current")
    for folder in folders:
        for path in entries(folder, "hugetlb.*"):
            match = _HUGETLB_FILE.match(path.name)
            if match is None:
                continue
            size, stem = int(match[1]) * _SCALE[match[2]], path.name.removesuffix("." + suffixes[0])
            # "rsvd" is charged at mmap (a clean refusal), the other at first touch (SIGBUS).
            for kind in (stem, f"{stem}.rsvd"):
                limit = _limit(folder / f"{kind}.{suffixes[0]}")
                current = read_int(folder / f"{kind}.{suffixes[1]}")
                if limit is not None:
                    limits[size] = min(limit, limits.get(size, limit))
                    if current is not None:
                        room = max(0, limit - current)
                        left[size] = min(room, left.get(size, room))
    return tuple(HugetlbLimit(size, limits[size], left.get(size)) for size in sorted(limits))
