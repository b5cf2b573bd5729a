"""What can be tried on a user's command: one row a remedy, each scoped to the command's processes.

A row turns an argument and the facts of the host into a change, or says why this host has nothing
to give. A change is data: ``bench.launch`` applies it in the process that becomes the command.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.blocks import Skip
from bench.change import Change
from bench.errors import HostError, UsageError, unknown_name
from bench.hostfacts import Thp
from bench.sysfs import format_cpulist
from bench.topology import pin_order
from bench.trysite import Site
from bench.units import MIB, format_size, parse_size

# Runtimes that size their pools by a variable of their own; each counts threads.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS",
    "TOKIO_WORKER_THREADS", "GOMAXPROCS", "JULIA_NUM_THREADS",
)  # fmt: skip
_NEVER = 1 << 40  # bytes: a threshold that nothing reaches
_THP = "/sys/kernel/mm/transparent_hugepage"


Make = Callable[[Site, str], Change]


class Refused(Exception):  # noqa: N818 - not an error: this host has nothing to give
    """Why a remedy does not apply here, and the way out."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy


@dataclass(frozen=True)
class Row:
    """One remedy."""

    name: str
    argument: str
    """What follows the colon; empty: nothing does. In brackets where it may be left out."""
    summary: str
    make: Make
    shows: tuple[str, ...]
    """Figures of a run in which it shows: see ``analysis.tried``."""


# ---- pages ---------------------------------------------------------------------------------------


def _none(_site: Site, _argument: str) -> Change:
    return Change()


def _thp(site: Site, _argument: str) -> Change:
    if site.thp.enabled == "always":
        raise Refused("this host gives them to every program already: nothp shows what they bring")
    if site.thp.enabled != "madvise":
        raise Refused("transparent huge pages are off", f"as root: echo madvise > {_THP}/enabled")
    if site.may_advise:
        raise Refused(site.may_advise)
    largest = max(_eligible(site.thp), default=0)
    if largest != site.thp.pmd_bytes:
        told = f"of {format_size(largest)}" if largest else "of no size"
        raise Refused(f"a fault here takes pages {told}", f"see {_THP}/hugepages-*/enabled")
    return Change(tunables={"malloc.hugetlb": "1"})


def _no_thp(site: Site, _argument: str) -> Change:
    if not _eligible(site.thp):
        raise Refused("transparent huge pages are off for every program already")
    return Change(no_thp=True)


def _mthp(site: Site, argument: str) -> Change:
    size = parse_size(argument)
    if size not in site.thp.sizes:
        known = ", ".join(format_size(one) for one in sorted(site.thp.sizes))
        raise Refused(f"this kernel has no such size; it has {known or 'none'}")
    if site.thp.enabled != "madvise":
        # glibc asks for pages of any size only where this says so.
        raise Refused(f"takes {_THP}/enabled at madvise, and it is {site.thp.enabled}")
    if site.may_advise:
        raise Refused(site.may_advise)
    folder = f"{_THP}/hugepages-{size // 1024}kB"
    if site.thp.sizes[size] == "always":
        raise Refused("this host gives them to every program already")
    if max(_eligible(site.thp), default=0) != size:
        raise Refused(
            "it is not the largest size that is on, which a fault takes",
            f"as root: echo madvise > {folder}/enabled, and never into those of larger sizes",
        )
    return Change(tunables={"malloc.hugetlb": "1"})


def _eligible(thp: Thp) -> list[int]:
    """Sizes that an advised fault may get."""
    if thp.enabled is None or thp.allowed_here is False:
        return []
    words = {size: thp.enabled if word == "inherit" else word for size, word in thp.sizes.items()}
    if not words and thp.pmd_bytes:
        words = {thp.pmd_bytes: thp.enabled}
    return [size for size, word in words.items() if word in ("always", "madvise")]


def _hugetlb(site: Site, argument: str) -> Change:
    if site.no_glibc:
        raise Refused(site.no_glibc)
    size = parse_size(argument) if argument else site.default_pool
    if not size or size not in site.pools:
        known = ", ".join(format_size(one) for one in sorted(site.pools))
        raise Refused(f"this host has no pool of such pages; it has {known or 'none'}")
    if not site.pools[size]:
        raise Refused(
            f"the pool of {format_size(size)} pages has none free: malloc would take small ones",
            "--reserve-hugepages SIZE, as root, with the memory the command needs",
        )
    return Change(tunables={"malloc.hugetlb": str(size) if argument else "2"})


# ---- malloc --------------------------------------------------------------------------------------


def _keep(_site: Site, _argument: str) -> Change:
    return Change(
        tunables={
            "malloc.mmap_threshold": str(_NEVER),
            "malloc.trim_threshold": str(_NEVER),
            "malloc.top_pad": str(64 * MIB),
        }
    )


def _arenas(_site: Site, argument: str) -> Change:
    return Change(tunables={"malloc.arena_max": str(_count(argument))})


# ---- processors and nodes ------------------------------------------------------------------------


def _cap(site: Site, argument: str) -> Change:
    n = _count(argument) if argument else max(1, len(site.allowed) // 2)
    if n >= len(site.allowed):
        raise Refused(f"the command may use {len(site.allowed)} CPUs as it is")
    return Change(cpus=tuple(sorted(pin_order(site.topology, site.allowed)[:n])))


def _threads(_site: Site, argument: str) -> Change:
    return Change(env=dict.fromkeys(THREAD_VARIABLES, str(_count(argument))))


def _apart(site: Site, _argument: str) -> Change:
    firsts: dict[Any, int] = {}
    for cpu in pin_order(site.topology, site.allowed):
        firsts.setdefault(site.topology.by_id[cpu].core, cpu)
    if len(firsts) == len(site.allowed):
        raise Refused("no two of its CPUs are shown to be hyperthreads of one core")
    return Change(cpus=tuple(sorted(firsts.values())))


def _llc(site: Site, _argument: str) -> Change:
    order = pin_order(site.topology, site.allowed)
    first = site.topology.by_id[order[0]].llc
    own = tuple(sorted(cpu for cpu in order if site.topology.by_id[cpu].llc == first))
    if len(own) == len(site.allowed):
        raise Refused("all its CPUs are shown to share one last-level cache")
    return Change(cpus=own)


def _interleave(site: Site, _argument: str) -> Change:
    return Change(memory=("interleave", _several(site)))


def _bind(site: Site, argument: str) -> Change:
    nodes = _several(site)
    node = int(argument) if argument.isascii() and argument.isdigit() else -1
    if node not in nodes:
        raise Refused(f"no such memory node; there are {format_cpulist(nodes)}")
    try:
        cpus = pin_order(site.topology, site.allowed, node=node)
    except HostError as error:
        raise Refused(str(error), error.remedy) from None
    return Change(cpus=tuple(sorted(cpus)), memory=("bind", (node,)))


def _several(site: Site) -> tuple[int, ...]:
    if len(site.nodes) < 2:
        raise Refused("there is one memory node")
    return site.nodes


ROWS = (
    Row("none", "", "nothing: how often noise passes for an effect", _none, ()),
    Row("thp", "", "malloc asks for transparent huge pages (glibc)", _thp, ("huge", "faults")),
    Row("nothp", "", "no transparent huge pages, whoever asks", _no_thp, ("huge", "faults")),
    Row("mthp", "SIZE", "malloc asks for pages of this size (glibc)", _mthp, ("faults",)),
    Row(
        "hugetlb-malloc", "[SIZE]", "malloc takes pages of the reserved pool (glibc)", _hugetlb,
        ("huge", "faults"),
    ),
    Row("keep", "", "malloc keeps what is freed, maps nothing apart (glibc)", _keep, ("faults",)),
    Row("arenas", "N", "malloc has N arenas at most (glibc)", _arenas, ("virtual", "faults")),
    Row("cap", "[K]", "K CPUs by affinity, or half of them", _cap, ("cpus", "busy")),
    Row("threads", "K", "variables that tell runtimes to use K threads", _threads, ("threads",)),
    Row("apart", "", "one CPU a core: no hyperthread shares one", _apart, ("cpus", "busy")),
    Row("llc", "", "the CPUs of one last-level cache", _llc, ("cpus", "busy")),
    Row("interleave", "", "memory page by page over all nodes", _interleave, ("nodes",)),
    Row("bind", "NODE", "CPUs and memory of one node", _bind, ("nodes", "cpus")),
)  # fmt: skip
DEFAULT = ("thp", "nothp", "hugetlb-malloc", "keep", "cap", "apart", "interleave")
_BY_NAME = {row.name: row for row in ROWS}
_MTHP = re.compile(r"^mthp(\d+[kKmM])$")


@dataclass(frozen=True)
class Remedy:
    """A remedy as it was asked for: one row, or several joined by ``+``."""

    name: str
    rows: tuple[tuple[Row, str], ...]

    @property
    def shows(self) -> tuple[str, ...]:
        """Figures in which it shows."""
        return tuple(dict.fromkeys(figure for row, _ in self.rows for figure in row.shows))

    @property
    def summary(self) -> str:
        """What it does, in words."""
        return "; ".join(row.summary for row, _ in self.rows)


def parse(text: str) -> Remedy:
    """Read ``thp``, ``cap:4``, ``mthp64k``, ``keep+threads:8``.

    Raises
    ------
    UsageError
        An unknown remedy, listing those there are; an argument that is missing or of no use.
    """
    rows = []
    for part in text.split("+"):
        short = _MTHP.match(part)
        name, _, argument = f"mthp:{short[1]}".partition(":") if short else part.partition(":")
        row = _BY_NAME.get(name)
        if row is None:
            raise unknown_name("remedy", name, [_form(one) for one in ROWS])
        if bool(argument) > bool(row.argument) or (
            row.argument and not argument and not row.argument.startswith("[")
        ):
            raise UsageError(f"not a remedy: {part!r}", f"write {_form(row)}")
        if row.argument.strip("[]") in ("N", "K") and argument:
            _count(argument)
        if row.argument.strip("[]") == "SIZE" and argument:
            parse_size(argument)
        rows.append((row, argument))
    return Remedy(text, tuple(rows))


def _form(row: Row) -> str:
    return f"{row.name}:{row.argument}" if row.argument else row.name


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise UsageError(f"not a count: {text!r}", "write a whole number from 1 on")
    return int(text)


def change_of(remedy: Remedy, site: Site) -> Change:
    """What a remedy does on this host.

    Raises
    ------
    Refused
        Where the host has nothing to give, or two parts want the same thing.
    """
    whole = Change()
    for row, argument in remedy.rows:
        whole = _joined(whole, row.make(site, argument))
    return whole


def _joined(one: Change, other: Change) -> Change:
    if (one.cpus and other.cpus) or (one.memory and other.memory):
        raise Refused("two of its parts say where it runs")
    for mine, theirs in ((one.tunables, other.tunables), (one.env, other.env)):
        if both := [key for key in mine.keys() & theirs.keys() if mine[key] != theirs[key]]:
            raise Refused(f"two of its parts set {', '.join(sorted(both))}")
    return replace(
        one,
        tunables={**one.tunables, **other.tunables},
        env={**one.env, **other.env},
        no_thp=one.no_thp or other.no_thp,
        cpus=one.cpus or other.cpus,
        memory=one.memory or other.memory,
    )


def choose(names: Sequence[str], site: Site) -> tuple[dict[str, tuple[Remedy, Change]], list[Skip]]:
    """Remedies that this host can give, and why not the others."""
    found: dict[str, tuple[Remedy, Change]] = {}
    skips = []
    for name in dict.fromkeys(names):
        remedy = parse(name)
        try:
            found[name] = remedy, change_of(remedy, site)
        except Refused as why:
            skips.append(Skip(name, str(why), why.remedy))
    return found, skips
