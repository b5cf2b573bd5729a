"""What memory a process has, on pages of which size: ``status``, ``smaps`` and ``numa_maps``.

``smaps`` and ``smaps_rollup`` make the kernel walk the process's page tables, and while it does
so, the process's own mmap and munmap calls may wait. ``status`` is free.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from bench.procfs import parse_rows
from bench.sysfs import keyed_kib

Kind = Literal["heap", "stack", "anonymous", "file", "shared memory", "hugetlb"]

_HEADER = re.compile(r"([0-9a-f]+)-([0-9a-f]+) \S{4} \S+ (\S+) (\d+) *(.*)")
_HUGE_KEYS = ("AnonHugePages", "ShmemPmdMapped", "FilePmdMapped")
_HUGETLB_KEYS = ("Shared_Hugetlb", "Private_Hugetlb")
_SHARED = ("/dev/shm/", "/memfd:", "/SYSV", "/dev/zero")


@dataclass(frozen=True)
class Status:
    """What ``status`` says, in bytes; None where this kernel has no such row."""

    anon: int | None
    file: int | None
    shmem: int | None
    hugetlb: int | None
    swapped: int | None
    thp_allowed: bool | None
    """False: transparent huge pages were switched off for the process by prctl."""
    cpus: str | None
    nodes: str | None
    uid: int | None
    leader: int | None
    """Process id of the group this thread belongs to."""


def parse_status(text: str) -> Status:
    """Read ``/proc/PID/status``."""
    rows = parse_rows(text)
    uid, leader, thp = rows.get("Uid", "").split(), rows.get("Tgid", ""), rows.get("THP_enabled")
    return Status(
        anon=keyed_kib(text, "RssAnon"),
        file=keyed_kib(text, "RssFile"),
        shmem=keyed_kib(text, "RssShmem"),
        hugetlb=keyed_kib(text, "HugetlbPages"),
        swapped=keyed_kib(text, "VmSwap"),
        thp_allowed=None if thp is None else thp == "1",
        cpus=rows.get("Cpus_allowed_list"),
        nodes=rows.get("Mems_allowed_list"),
        uid=int(uid[0]) if uid and uid[0].isdigit() else None,
        leader=int(leader) if leader.isdigit() else None,
    )


@dataclass
class Pages:
    """Of one kind of mapping: bytes resident, and of these on huge pages (PMD-sized or hugetlb)."""

    resident: int = 0
    huge: int = 0


@dataclass
class Memory:
    """A walk over a process's mappings. Sizes in bytes."""

    kinds: dict[str, Pages] = field(default_factory=dict)
    shared_fairly: int | None = None
    """PSS: what is shared is split among those who share it."""
    hints: dict[str, int] = field(default_factory=dict)
    """Resident bytes of anonymous memory on small pages, by what keeps them there: ``advised``
    (it asked for huge pages), ``refused`` (it asked for none), ``short`` (no whole huge page fits
    into the mapping), ``silent`` (it did not ask). Empty where single mappings were not looked at.
    """

    @property
    def resident(self) -> int:
        """All kinds, with hugetlb."""
        return sum(pages.resident for pages in self.kinds.values())

    @property
    def huge(self) -> int:
        """Of these, on huge pages."""
        return sum(pages.huge for pages in self.kinds.values())


def parse_rollup(text: str, status: Status) -> Memory | None:
    """Memory of ``smaps_rollup``, which does not tell heap and stack from other mappings."""
    huge = {key: keyed_kib(text, key) for key in (*_HUGE_KEYS, *_HUGETLB_KEYS)}
    resident = keyed_kib(text, "Rss")
    if resident is None or huge["AnonHugePages"] is None:
        return None
    hugetlb = sum(huge[key] or 0 for key in _HUGETLB_KEYS)
    anon = keyed_kib(text, "Anonymous") or 0
    shmem = status.shmem or 0
    found = {
        "anonymous": Pages(anon, huge["AnonHugePages"]),
        "file": Pages(max(0, resident - anon - shmem), huge["FilePmdMapped"] or 0),
        "shared memory": Pages(shmem, huge["ShmemPmdMapped"] or 0),
        "hugetlb": Pages(hugetlb, hugetlb),
    }
    return Memory(_present(found), keyed_kib(text, "Pss"))


def parse_smaps(text: str, huge_bytes: int) -> Memory | None:
    """Memory of ``smaps``, by kind of mapping; ``huge_bytes`` is the size of a huge page."""
    kinds: dict[str, Pages] = {}
    hints: dict[str, int] = {}
    shared_fairly = 0
    for start, end, name, rows in _mappings(text):
        sizes = {key: _kib(rows, key) for key in (*_HUGE_KEYS, "Rss", "Pss", "Anonymous")}
        hugetlb = sum(_kib(rows, key) for key in _HUGETLB_KEYS)
        shared_fairly += sizes["Pss"]
        kind = "hugetlb" if hugetlb else kind_of(name)
        pages = kinds.setdefault(kind, Pages())
        huge = hugetlb or sum(sizes[key] for key in _HUGE_KEYS)
        pages.resident += hugetlb or sizes["Rss"]
        pages.huge += huge
        if kind in ("heap", "anonymous"):
            small = max(0, sizes["Rss"] - huge)
            hint = _hint(start, end, rows.get("VmFlags", "").split(), huge_bytes)
            hints[hint] = hints.get(hint, 0) + small
    if not kinds:
        return None
    return Memory(_present(kinds), shared_fairly, {k: v for k, v in sorted(hints.items()) if v})


def _hint(start: int, end: int, flags: list[str], huge_bytes: int) -> str:
    if "nh" in flags:
        return "refused"
    if -(-start // huge_bytes) * huge_bytes + huge_bytes > end:
        return "short"
    return "advised" if "hg" in flags else "silent"


def kind_of(name: str) -> Kind:
    """Kind of a mapping by the last column of ``maps``."""
    if name == "[heap]":
        return "heap"
    if name.startswith("[stack"):
        return "stack"
    if name.startswith(_SHARED) or name.startswith("[anon_shmem:"):
        return "shared memory"
    if name.startswith(("/anon_hugepage", "/hugetlb")):
        return "hugetlb"
    return "file" if name.startswith("/") or name.startswith("[v") else "anonymous"


def _mappings(text: str) -> Iterator[tuple[int, int, str, dict[str, str]]]:
    """Start, end, name and rows of each mapping."""
    head: re.Match[str] | None = None
    rows: dict[str, str] = {}
    for line in text.splitlines():
        match = _HEADER.match(line)
        if match is None:
            key, _, value = line.partition(":")
            rows[key] = value.strip()
            continue
        if head is not None:
            yield int(head[1], 16), int(head[2], 16), head[5], rows
        head, rows = match, {}
    if head is not None:
        yield int(head[1], 16), int(head[2], 16), head[5], rows


def _kib(rows: Mapping[str, str], key: str) -> int:
    words = rows.get(key, "").split()
    return int(words[0]) * 1024 if words and words[0].isdigit() else 0


def _present(kinds: Mapping[str, Pages]) -> dict[str, Pages]:
    return {kind: pages for kind, pages in sorted(kinds.items()) if pages.resident}


def parse_numa_maps(text: str, page_bytes: int) -> dict[int, int]:
    """Resident bytes by node."""
    nodes: dict[int, int] = {}
    for line in text.splitlines():
        words = dict(word.partition("=")[::2] for word in line.split()[2:])
        size = int(words.get("kernelpagesize_kB", page_bytes // 1024)) * 1024
        for key, value in words.items():
            if key.startswith("N") and key[1:].isdigit():
                nodes[int(key[1:])] = nodes.get(int(key[1:]), 0) + int(value) * size
    return dict(sorted(nodes.items()))


def parse_numa_stat(text: str | None) -> dict[int, int]:
    """Bytes by node of a group's ``memory.numa_stat`` (version 2): what programs map."""
    nodes: dict[int, int] = {}
    for line in (text or "").splitlines():
        name, *words = line.split()
        if name in ("anon", "file_mapped"):  # mapped shared memory is in the latter
            for word in words:
                node, _, value = word.partition("=")
                if node.startswith("N") and node[1:].isdigit() and value.isdigit():
                    nodes[int(node[1:])] = nodes.get(int(node[1:]), 0) + int(value)
    return dict(sorted(nodes.items()))
