"""Adding huge pages to the host's pools for the length of a run, and taking them out again.

The only module that changes the host. What is added is written to a state file *before* the pool
is touched, so that a run killed at any moment can be put right later. A lock makes concurrent
runs take turns; each takes out what it added and no more.
"""

import contextlib
import fcntl
import itertools
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench import interrupts
from bench.cgroup import read_limits
from bench.errors import HostError
from bench.hugepages import compaction_hint, pool_folder, pool_nodes, read_pool
from bench.pool_records import (
    Record,
    Share,
    dead_records,
    records,
    started_at,
    state_dirs,
    writable_state_dir,
)
from bench.sysfs import is_folder, keyed_kib, read_text
from bench.units import format_size

# A pool takes its memory out of reach of everything else; what is left must keep the host alive.
_LARGEST_SHARE_OF_AVAILABLE = 0.9
# Pages of a process that has just been reaped can take a moment to come back to the pool.
_RELEASE_WAIT_S = 2.0
_serial = itertools.count()


@dataclass
class Reservation:
    """Pages held for this run. ``problems`` is filled when not all of it could be given back."""

    record: Record
    problems: list[str] = field(default_factory=list)

    @property
    def added(self) -> dict[tuple[int, int | None], int]:
        """Pages added, by (size in bytes, node)."""
        return {(s.size_bytes, s.node): s.added or 0 for s in self.record.shares}


@dataclass(frozen=True)
class Leftover:
    """Pages that a run added and did not live to take out."""

    size_bytes: int
    node: int | None
    pages: int
    pid: int
    made_at: float
    state_file: Path
    by_hand: str  # shell command with the same effect as undo(), for the pool as it is now


@contextlib.contextmanager
def reserve(
    wanted: Mapping[int, int],
    state_dir: Path | None = None,
    node: int | None = None,
    root: Path = Path("/"),
) -> Iterator[Reservation]:
    """Add ``{size_bytes: pages}`` to the pools while the block runs, then take them out again.

    Pages come on top of what the pools hold (``hugepages.shortfall`` says how many that takes),
    spread over nodes by the kernel or all on ``node``. They are taken out at the end of the block,
    also after an exception, ^C, SIGTERM or SIGHUP. Raises HostError, with the pools as they were,
    where not every page could be had.
    """
    wanted = {size: pages for size, pages in wanted.items() if pages > 0}
    _check(wanted, node, root)
    folder = writable_state_dir(state_dir)
    pid = os.getpid()
    record = Record(
        path=folder / f"hugepages-{pid}-{next(_serial)}.json",
        boot_id=read_text(root / "proc/sys/kernel/random/boot_id"),
        pid=pid,
        started=started_at(pid),
        made_at=time.time(),
        shares=(),
    )
    reservation = Reservation(record)
    with interrupts.as_exit():
        try:
            with interrupts.held():
                for size, pages in wanted.items():
                    _add(reservation, size, pages, node, root)
            yield reservation
        finally:
            if os.getpid() == pid:  # not in a forked child that unwinds the same stack
                with interrupts.held():
                    _give_back(reservation, root)


def leftovers(folders: list[Path] | None = None, root: Path = Path("/")) -> list[Leftover]:
    """Pages that killed runs left in the pools. Needs no root."""
    found = []
    after: dict[Path, int] = {}  # pool size once the commands before this one have run
    for record in dead_records(folders, root):
        for share in record.shares:
            file = _pool_file(root, share)
            pages = share.remaining(_persistent(root, share))
            if pages:
                after[file] = after.get(file, _persistent(root, share)) - pages
                found.append(
                    Leftover(
                        share.size_bytes,
                        share.node,
                        pages,
                        record.pid,
                        record.made_at,
                        record.path,
                        f"echo {max(0, after[file])} > /{file.relative_to(root)}",
                    )
                )
    return found


def undo(folders: list[Path] | None = None, root: Path = Path("/")) -> list[str]:
    """Take out what killed runs left; returns what could not be taken out. Needs root."""
    problems = []
    for folder in state_dirs() if folders is None else folders:
        found = dead_records([folder], root)
        for share in (share for record in found for share in record.shares):
            _require_writable(root, share.size_bytes, share.node)
        if found:
            with interrupts.held(), _locked(folder):
                # Read again: someone else may have undone it before the lock was ours.
                for record in dead_records([folder], root):
                    problems += _take_out(record, root)[1]
    return problems


def _check(wanted: Mapping[int, int], node: int | None, root: Path) -> None:
    """Refuse what cannot work before anything is changed."""
    limits = read_limits(root)
    for size, pages in wanted.items():
        if not is_folder(pool_folder(root, size, node)):
            where = "this kernel" if node is None else f"node {node}"
            raise HostError(
                f"{where} has no pool of {format_size(size)} pages",
                "ls /sys/kernel/mm/hugepages shows the sizes; 1GiB needs pdpe1gb on x86",
            )
        _require_writable(root, size, node)
        headroom = limits.hugetlb_headroom(size)
        if headroom is not None and headroom < size * pages:
            raise HostError(
                f"the control group allows {headroom // size} more pages of {format_size(size)},"
                f" {pages} are wanted",
                "raise its hugetlb limit (in a pod: resources.limits hugepages-2Mi or -1Gi)",
            )
    meminfo = read_text(root / "proc/meminfo")
    available = keyed_kib(meminfo, "MemAvailable")
    total = sum(size * pages for size, pages in wanted.items())
    if available is not None and total > available * _LARGEST_SHARE_OF_AVAILABLE:
        raise HostError(
            f"{format_size(total)} of huge pages would leave this host too little memory:"
            f" {available / 1024**3:.1f} GiB is available",
            "ask for fewer pages, or a smaller working set",
        )


def _require_writable(root: Path, size_bytes: int, node: int | None) -> None:
    path = pool_folder(root, size_bytes, node) / "nr_hugepages"
    if not os.access(path, os.W_OK):
        shown = "/" / path.relative_to(root)
        raise HostError(
            f"may not write {shown}: changing a huge-page pool needs root on the host",
            f"run it as root, or let root reserve first: echo PAGES > {shown}",
        )


def _add(
    reservation: Reservation, size_bytes: int, pages: int, node: int | None, root: Path
) -> None:
    """Add pages to one pool; the record follows, whatever happens."""
    # A write to the host's file may land on any node. Each is noted, so that giving back is exact.
    nodes: tuple[int | None, ...] = pool_nodes(root, size_bytes) if node is None else (node,)
    folder = reservation.record.path.parent
    with _locked(folder):
        for record in dead_records([folder], root):
            _settle(record, root)
        others = [r for r in records([folder], root) if r.path != reservation.record.path]
        new = []
        for each in nodes or (None,):
            share = Share(size_bytes, each, before=0, base=0, wanted=pages)
            now = _persistent(root, share)
            theirs = sum(
                other.added or 0
                for record in others
                for other in record.shares
                if (other.size_bytes, other.node) == (size_bytes, each)
            )
            new.append(replace(share, before=now, base=max(0, now - theirs)))
        earlier = reservation.record.shares
        reservation.record = replace(reservation.record, shares=(*earlier, *new))
        reservation.record.write()
        whole = read_pool(root, size_bytes, node)
        _set_pages(
            pool_folder(root, size_bytes, node) / "nr_hugepages", (whole.persistent or 0) + pages
        )
        done = [replace(s, added=max(0, _persistent(root, s) - s.before)) for s in new]
        reservation.record = replace(reservation.record, shares=(*earlier, *done))
        reservation.record.write()
    obtained = sum(share.added or 0 for share in done)
    if obtained < pages:
        where = "" if node is None else f" on node {node}"
        hint = compaction_hint(size_bytes, pages, node, root)
        size_option = {1024**3: "1G", 2 * 1024**2: "2M"}.get(size_bytes, f"{size_bytes // 1024}K")
        raise HostError(
            f"the kernel found contiguous memory for {obtained} of {pages} pages of"
            f" {format_size(size_bytes)}{where}; they were given back",
            (f"{hint}; or " if hint else "")
            + f"reserve at boot: hugepagesz={size_option} hugepages={pages}",
        )


def _give_back(reservation: Reservation, root: Path) -> None:
    """Take this run's pages out and note what could not be."""
    if reservation.record.shares:
        with _locked(reservation.record.path.parent):
            reservation.record, problems = _take_out(reservation.record, root)
        reservation.problems += problems


def _take_out(record: Record, root: Path) -> tuple[Record, list[str]]:
    """Take a run's pages out, as far as they are free; keep its state file for the rest."""
    problems = []
    deadline = time.monotonic() + _RELEASE_WAIT_S
    for index, share in enumerate(record.shares):
        now = _persistent(root, share)
        left = share.remaining(now)
        while _removable(root, share, left) < left and time.monotonic() < deadline:
            time.sleep(0.05)
        now = _persistent(root, share)
        left = share.remaining(now)
        share = replace(share, added=left, target=now - left)
        record = _noted(record, index, share)
        # Writing less than what is in use would turn pages in use into surplus pages.
        removable = _removable(root, share, left)
        if removable:
            _set_pages(_pool_file(root, share), now - removable)
        stuck = share.remaining(_persistent(root, share))
        if stuck:
            # The target served its purpose; kept, it would claim what others add from now on.
            share = replace(share, added=stuck, target=None)
            record = _noted(record, index, share)
            where = "" if share.node is None else f" on node {share.node}"
            problems.append(
                f"{stuck} pages of {format_size(share.size_bytes)}{where} are still in use"
                " and stay in the pool"
            )
    if not problems:
        record.path.unlink(missing_ok=True)
    return record, problems


def _noted(record: Record, index: int, share: Share) -> Record:
    """Write the record down with one share replaced."""
    shares = (*record.shares[:index], share, *record.shares[index + 1 :])
    record = replace(record, shares=shares)
    record.write()
    return record


def _settle(record: Record, root: Path) -> None:
    """Write down what a killed run really has in the pools, before others change them."""
    shares = tuple(
        replace(share, added=share.remaining(_persistent(root, share)), target=None)
        for share in record.shares
    )
    if not any(share.added for share in shares):
        record.path.unlink(missing_ok=True)
    elif shares != record.shares:
        replace(record, shares=shares).write()


def _removable(root: Path, share: Share, pages: int) -> int:
    own = read_pool(root, share.size_bytes, share.node)
    whole = read_pool(root, share.size_bytes, None)
    unpromised = (whole.free or 0) - (whole.reserved or 0)
    return max(0, min(pages, own.free or 0, unpromised))


def _persistent(root: Path, share: Share) -> int:
    return read_pool(root, share.size_bytes, share.node).persistent or 0


def _pool_file(root: Path, share: Share) -> Path:
    return pool_folder(root, share.size_bytes, share.node) / "nr_hugepages"


def _set_pages(path: Path, pages: int) -> None:
    """Ask the kernel for a pool size. It may stop short without an error."""
    try:
        path.write_text(str(pages))
    except OSError as error:
        raise HostError(
            f"cannot write {pages} to {path}: {error.strerror}", "run it as root on the host"
        ) from error


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield  # closing the file drops the lock
