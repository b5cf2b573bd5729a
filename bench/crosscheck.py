"""Our kernels beside other tools, in interleaved pairs: the same work, seconds apart.

A pair is one run of ours and one of theirs, in random order, on the same CPUs, the same bytes and
the same kind of pages, with the distance between the CPUs looked at before and after. Ratios are
ours over theirs in speed: above 1 we are faster. What the ratios mean is for the caller to say.
"""

import contextlib
import os
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import native, peerrun, spmvpair, worker
from bench.errors import HostError, PagestormError, unknown_name
from bench.mix import Actor, Mix, mix_name
from bench.peer import Job, Part, Peer, PeerTest, Reading, ToolError
from bench.peerrun import Ready
from bench.peers import peers
from bench.spawn import run_worker
from bench.topology import pin_order, read_topology
from bench.units import counted

CHASE_BYTES = 256 << 20
SLACK_BYTES = 65536
"""A thread: padding of its arrays and gaps between streams, on top of the bytes to match."""
MOST_UNEQUAL = 0.01
"""Bytes of a pass may differ by this share, as each tool rounds to its own step."""
TRIAL_PASSES, MOST_PASSES = 20, 2000
MIXED_PAGES = (0.05, 0.9)
"""Shares of huge pages between which memory counts as neither."""


@dataclass(frozen=True)
class Settings:
    """How much to run."""

    rounds: int = 12
    threads: tuple[int, ...] = (1, 2)
    n_bytes: int = 256 * 10**6
    """All arrays of a streaming test together."""
    seconds: float = 0.5
    """About so long each side measures, where the tool lets us choose."""
    seed: int = 1
    tools: Mapping[str, str] = field(default_factory=dict)
    """Paths of peers that are not on PATH, by name."""


@dataclass(frozen=True)
class Pair:
    """One round of one comparison; speeds in bytes or loads a second."""

    ours: float
    theirs: float
    ours_first: bool
    state: str
    """``near``, ``far``, ``moved``, ``one`` or ``unknown``: the CPUs' distance, over both runs."""


@dataclass
class Comparison:
    """All rounds of one comparison, or why there are none."""

    peer: str
    test: str
    threads: int
    unit: str = "byte"
    version: str = ""
    ours: str = ""
    """The mixes of ours."""
    cpus: tuple[int, ...] = ()
    pages: str = ""
    """Our page policy, chosen by the pages theirs got."""
    their_huge_share: float | None = None
    pass_bytes: int = 0
    skipped: str = ""
    way_out: str = ""
    failed: str = ""
    """Why it ended before the last round."""
    other_pages: int = 0
    """Pairs left out because theirs got other pages than in the first run."""
    pairs: list[Pair] = field(default_factory=list)

    @property
    def name(self) -> str:
        """``likwid:load_avx``."""
        return f"{self.peer}:{self.test}"


@dataclass(frozen=True)
class _Contest:
    """A comparison that can be run."""

    result: Comparison
    ready: Ready
    test: PeerTest
    job: Job
    about_s: float

    def run_pair(self, ours_first: bool) -> None:
        result = self.result
        before = worker.pingpong(result.cpus)
        if not self.test.ours:  # one program measures both
            ours_first = True
            reading, share = self._theirs()
            ours = reading.ours
        elif ours_first:
            ours = self._ours()
            reading, share = self._theirs()
        else:
            reading, share = self._theirs()
            ours = self._ours()
        state = worker.state(before, worker.pingpong(result.cpus), result.cpus)
        if self.test.ours and share is not None and _kind(share) != result.pages:
            result.other_pages += 1
            return
        result.pairs.append(Pair(ours, reading.rate, ours_first, state))

    def _theirs(self) -> tuple[Reading, float | None]:
        return self.ready.run(self.test, self.job)

    def _ours(self) -> float:
        """Of all parts together: what they did over the time that they took."""
        done = seconds = 0.0
        mixes = []
        for part in self.test.ours:
            actor = _actor(part, self.test, self.result, self.ready.peer.joins)
            mixes.append(mix_name(Mix((actor,))))
            row = _run_ours(actor, self.result.cpus, self.job, self.test.unit == "load")
            work = row["ops"] if self.test.unit == "load" else row["useful_bytes"]
            if self.test.unit == "byte":
                _check_equal(self.result, work, self.result.pass_bytes * part.share)
            done, seconds = done + work, seconds + row["seconds"]
        self.result.ours = " then ".join(mixes)
        return float(done / seconds)


def chosen(names: Sequence[str]) -> list[tuple[Peer, PeerTest]]:
    """Tests named as ``PEER``, ``PEER:TEST`` or ``TEST``; all usual ones where none is named.

    Raises
    ------
    UsageError
        An unknown name.
    """
    known = peers()
    everything = [(peer, test) for peer in known.values() for test in peer.tests]
    usual = [(peer, test) for peer, test in everything if not test.on_request]
    if not names:
        return usual
    found: list[tuple[Peer, PeerTest]] = []
    for name in names:
        tests = [(p, t) for p, t in usual if p.name == name]
        tests = tests or [(p, t) for p, t in everything if name in (t.name, f"{p.name}:{t.name}")]
        if not tests:
            words = [*known, *(f"{p.name}:{t.name}" for p, t in everything)]
            raise unknown_name("peer or test", name, [*words, *(t.name for _, t in everything)])
        found.extend(pair for pair in tests if pair not in found)
    return found


def compare(
    wanted: Sequence[tuple[Peer, PeerTest]],
    settings: Settings,
    results: list[Comparison],
    tell: Callable[[str], None] = lambda text: None,
) -> None:
    """Make the comparisons, round by round in shuffled order; ``tell`` is given the progress.

    ``results`` is filled as it goes on, so that an interrupt leaves what is known. A peer that
    fails is left out from then on.

    Raises
    ------
    HostError
        Nothing could be compared: the other tools are not there.
    PagestormError
        A run of ours failed, or the two sides did not do the same work.
    """
    order = random.Random(settings.seed)
    contests: list[_Contest] = []
    with tempfile.TemporaryDirectory(prefix="pagestorm-peers-") as folder:
        found: dict[str, Ready | HostError | ToolError] = {}
        for peer, test in wanted:
            if peer.name not in found:
                found[peer.name] = _find(peer, Path(folder), settings)
            for threads in settings.threads:
                result = Comparison(peer.name, test.name, threads, test.unit)
                results.append(result)
                tell(f"preparing {result.name}, {counted(threads, 'thread')}")
                with _noted(result):
                    contests.append(_prepare(result, found[peer.name], test, settings))
        if not contests:
            reasons = sorted({(result.skipped, result.way_out) for result in results})
            ways_out = "; ".join(way for _, way in reasons if way)
            raise HostError(
                "nothing to compare with: " + "; ".join(why for why, _ in reasons), ways_out
            )
        about = sum(contest.about_s for contest in contests) * settings.rounds
        tell(
            f"{counted(len(contests), 'comparison')}, {settings.rounds} rounds: about {about:.0f} s"
        )
        for done in range(settings.rounds):
            tell(f"round {done + 1} of {settings.rounds}")
            for contest in order.sample(contests, len(contests)):
                try:
                    contest.run_pair(order.random() < 0.5)
                except ToolError as error:
                    contest.result.failed = f"in round {done + 1}: {error}"
                    contests.remove(contest)


def _find(peer: Peer, folder: Path, settings: Settings) -> Ready | HostError | ToolError:
    try:
        return peerrun.ready(peer, folder, settings.tools.get(peer.name, ""))
    except (HostError, ToolError) as error:
        return error


@contextlib.contextmanager
def _noted(result: Comparison) -> Any:  # noqa: ANN401 - a generator
    """Turn what a peer cannot do here into a skip."""
    try:
        yield
    except (HostError, ToolError) as error:
        result.skipped, result.way_out = str(error), error.remedy


def _prepare(
    result: Comparison, found: Ready | HostError | ToolError, test: PeerTest, settings: Settings
) -> _Contest:
    if not isinstance(found, Ready):
        raise found
    result.version = found.version
    if test.most_threads is not None and result.threads > test.most_threads:
        raise HostError(f"has {counted(test.most_threads, 'thread')} at most")
    order = pin_order(read_topology(), os.sched_getaffinity(0))
    if result.threads > len(order):
        raise HostError(f"{counted(len(order), 'CPU')} for {counted(result.threads, 'thread')}")
    result.cpus = tuple(order[: result.threads])
    n_bytes = CHASE_BYTES if test.unit == "load" else settings.n_bytes
    job = Job(n_bytes, result.threads, result.cpus, TRIAL_PASSES, settings.seconds)
    for part in test.ours:
        _variant(part)
    began = time.monotonic()
    trial, share = found.run(test, job)
    trial_s = time.monotonic() - began
    result.cpus = trial.cpus or result.cpus
    result.pass_bytes = trial.pass_bytes
    if test.ours:
        result.their_huge_share, result.pages = share, _policy(share)
    else:
        result.pages, result.ours = spmvpair.policy_here(), f"spmv on {result.test}"
    if trial.pass_bytes and test.ours:
        wanted = round(trial.rate * settings.seconds / trial.pass_bytes)
        job = replace(job, passes=min(MOST_PASSES, max(5, wanted)))
    ours_s = (0.5 + settings.seconds) * len(test.ours)
    return _Contest(result, found, test, job, trial_s + settings.seconds + ours_s)


def _policy(huge_share: float | None) -> str:
    """Our policy for the pages theirs got; HostError where those are unknown or mixed."""
    if huge_share is None:
        raise HostError("it ended before /proc showed which pages it got: a larger --size may do")
    if not _kind(huge_share):
        raise HostError(f"it got {huge_share:.0%} huge pages: neither small nor large")
    return _kind(huge_share)


def _kind(huge_share: float) -> str:
    """``base``, ``thp``, or nothing where it is neither."""
    least, most = MIXED_PAGES
    return "base" if huge_share <= least else "thp" if huge_share >= most else ""


def _variant(part: Part) -> str:
    kernel = native.kernel(part.kernel)
    variant = part.variant or kernel.best_variant
    if not any(v.name == variant and v.available for v in kernel.variants):
        raise HostError(f"this CPU has no {variant}")
    return variant


def _actor(part: Part, test: PeerTest, result: Comparison, joins: bool) -> Actor:
    size = CHASE_BYTES
    if test.unit == "byte":
        size = round(result.pass_bytes * part.share) + result.threads * SLACK_BYTES
    actor = Actor(
        part.kernel,
        _variant(part),
        result.pages,
        result.threads,
        size,
        part.params,
        joined=joins and test.unit == "byte",
    )
    return native.canonical(actor)


def _check_equal(result: Comparison, ours: float, theirs: float) -> None:
    if abs(ours / theirs - 1) > MOST_UNEQUAL:
        raise PagestormError(
            f"{result.name}: a pass of ours has {ours:.0f} bytes, of theirs {theirs:.0f}"
        )


def _run_ours(actor: Actor, cpus: tuple[int, ...], job: Job, one_pass: bool) -> dict[str, Any]:
    """The actor's report of a sample in a fresh worker: so many passes, or so long."""
    name = mix_name(Mix((actor,)))
    fixed = 1 if one_pass else job.passes if actor.joined else 0
    request = {
        "mix": name,
        "place": [list(cpus)],
        "window_s": 0.0 if fixed else job.seconds,
        "warm_s": 0.0,
        "min_passes": 1 if fixed else 3,
        "fixed_passes": fixed,
        "deadline_s": peerrun.TIMEOUT_S,
        "probes": False,
    }
    outcome = run_worker(request, 2 * peerrun.TIMEOUT_S)
    assert outcome is not None  # only a wake_fd makes it so
    response = outcome.response
    if "error" in response:
        raise PagestormError(f"{name}: {response['error']['message']}")
    report: dict[str, Any] = response["actors"][0]
    evidence = report["evidence"]["after"]
    if evidence["known"] and evidence["matching"] < 0.99 * evidence["known"]:
        raise PagestormError(f"{name}: did not get the pages of {actor.policy}")
    return report
