"""Our scan and chase beside other tools, in interleaved pairs: the same work, seconds apart.

A pair is one run of ours and one of theirs, in random order, on the same CPUs, the same bytes and
the same kind of pages, with the distance between the CPUs looked at before and after. Ratios are
ours over theirs in speed: above 1 we are faster. What the ratios mean is for the caller to say.
"""

import contextlib
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench import native, othertools, worker
from bench.errors import HostError, PagestormError, unknown_name
from bench.mix import Actor, Mix, Value, mix_name
from bench.spawn import run_worker
from bench.units import counted

CHASE = "chase"
CHASE_BYTES = 256 << 20
CHASE_LOADS = 1 << 20
SLACK_BYTES = 65536
"""A thread: padding of its arrays and gaps between streams, on top of the bytes to match."""
MOST_UNEQUAL = 0.01
"""Bytes of a pass may differ by this share, as each tool rounds to its own step."""


@dataclass(frozen=True)
class LikwidTest:
    """A test of likwid-bench, and what of ours does the same work."""

    name: str
    params: tuple[tuple[str, Value], ...]
    variant: str = "avx2"
    """Empty: the best the CPU has."""


# likwid's triad is a = b * c + d, its stream a = b * s + c.
LIKWID_TESTS = (
    LikwidTest("load_avx", (("op", "read"),), variant=""),
    LikwidTest("copy_avx", (("op", "copy"),)),
    LikwidTest("copy_mem_avx", (("op", "copy"), ("store", "nt"))),
    LikwidTest("triad_avx", (("op", "vtriad"),)),
    LikwidTest("triad_mem_avx_fma", (("op", "vtriad"), ("store", "nt"))),
    LikwidTest("stream_avx", (("op", "triad"),)),
    LikwidTest("stream_mem_avx_fma", (("op", "triad"), ("store", "nt"))),
)
NAMES = (*(test.name for test in LIKWID_TESTS), CHASE)


@dataclass(frozen=True)
class Settings:
    """How much to run."""

    rounds: int = 12
    threads: tuple[int, ...] = (1, 2)
    n_bytes: int = 256 * 10**6
    """All arrays of a streaming test together."""
    iterations: int = 20
    """Passes a run; our threads join after each, likwid's after the last."""
    seed: int = 1


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

    name: str
    threads: int
    unit: str = "byte"
    ours: str = ""
    """The mix of ours."""
    cpus: tuple[int, ...] = ()
    pages: str = ""
    """Our page policy, chosen by the pages theirs got."""
    their_huge_share: float | None = None
    our_pass_bytes: int = 0
    their_pass_bytes: int = 0
    skipped: str = ""
    pairs: list[Pair] = field(default_factory=list)


@dataclass(frozen=True)
class _Contest:
    """A comparison that can be run."""

    result: Comparison
    run_ours: Callable[[], float]
    run_theirs: Callable[[], float]

    def run_pair(self, ours_first: bool) -> None:
        before = worker.pingpong(self.result.cpus)
        if ours_first:
            ours, theirs = self.run_ours(), self.run_theirs()
        else:
            theirs, ours = self.run_theirs(), self.run_ours()
        after = worker.pingpong(self.result.cpus)
        state = worker.state(before, after, self.result.cpus)
        self.result.pairs.append(Pair(ours, theirs, ours_first, state))


def chosen(names: list[str]) -> tuple[str, ...]:
    """Comparisons to make: all where none is named; UsageError for an unknown name."""
    for name in names:
        if name not in NAMES:
            raise unknown_name("comparison", name, list(NAMES))
    return tuple(names) or NAMES


def compare(
    names: tuple[str, ...], settings: Settings, tell: Callable[[str], None] = lambda text: None
) -> list[Comparison]:
    """Make the comparisons, round by round in shuffled order; ``tell`` is given the progress.

    Raises
    ------
    HostError
        Nothing could be compared: the other tools are not there.
    PagestormError
        A run failed, or the two sides did not do the same work.
    """
    order = random.Random(settings.seed)
    results: list[Comparison] = []
    contests: list[_Contest] = []
    with contextlib.ExitStack() as stack:
        for threads in settings.threads:
            for name in names:
                if name == CHASE and threads > 1:
                    continue
                tell(f"preparing {name}, {counted(threads, 'thread')}")
                result = Comparison(name, threads)
                results.append(result)
                try:
                    if name == CHASE:
                        contests.append(_chase(result, stack.enter_context(othertools.own_chase())))
                    else:
                        contests.append(_likwid(result, settings))
                except HostError as error:
                    result.skipped = str(error)
        if not contests:
            reasons = "; ".join(sorted({result.skipped for result in results}))
            raise HostError(f"nothing to compare with: {reasons}")
        for done in range(settings.rounds):
            tell(f"round {done + 1} of {settings.rounds}")
            for contest in order.sample(contests, len(contests)):
                contest.run_pair(order.random() < 0.5)
    return results


def _likwid(result: Comparison, settings: Settings) -> _Contest:
    if missing := othertools.likwid_missing():
        raise HostError(missing)
    test = next(test for test in LIKWID_TESTS if test.name == result.name)
    variants = {v.name: v for v in native.kernel("scan").variants}
    variant = test.variant or native.kernel("scan").best_variant
    if variant not in variants or not variants[variant].available:
        raise HostError(f"this CPU has no {variant}")

    def theirs() -> othertools.Reading:
        return othertools.run_likwid(
            test.name, settings.n_bytes, result.threads, settings.iterations
        )

    try:
        trial = theirs()
    except othertools.ToolError as error:
        raise HostError(str(error)) from None
    result.cpus, result.their_pass_bytes = trial.cpus, trial.pass_bytes
    _match_pages(result, trial.huge_share)
    actor = Actor(
        "scan",
        variant,
        result.pages,
        result.threads,
        trial.pass_bytes + result.threads * SLACK_BYTES,
        test.params,
        joined=True,
    )

    def ours() -> float:
        report = _run_ours(result, actor, settings.iterations)
        result.our_pass_bytes = report["useful_bytes"]
        if abs(result.our_pass_bytes / result.their_pass_bytes - 1) > MOST_UNEQUAL:
            raise PagestormError(
                f"{result.name}: a pass of ours has {result.our_pass_bytes} bytes, "
                f"of theirs {result.their_pass_bytes}"
            )
        return float(report["useful_bytes"] / report["seconds"])

    return _Contest(result, ours, lambda: theirs().rate)


def _chase(result: Comparison, own: othertools.OwnChase) -> _Contest:
    result.unit = "load"
    cpu = min(os.sched_getaffinity(0))
    result.cpus = (cpu,)
    _match_pages(result, own.run(cpu, CHASE_BYTES, 1).huge_share)
    actor = Actor("chase", "scalar", result.pages, 1, CHASE_BYTES, (("loads", CHASE_LOADS),))

    def ours() -> float:
        report = _run_ours(result, actor, 1)
        return float(report["ops"] / report["seconds"])

    return _Contest(result, ours, lambda: own.run(cpu, CHASE_BYTES, CHASE_LOADS).rate)


def _match_pages(result: Comparison, huge_share: float | None) -> None:
    """Our policy for the pages theirs got; HostError where those are unknown or mixed."""
    result.their_huge_share = huge_share
    if huge_share is None:
        raise HostError(f"{result.name}: /proc does not show which pages the other tool gets")
    if 0.05 < huge_share < 0.9:
        raise HostError(f"{result.name}: the other tool gets {huge_share:.0%} huge pages: neither")
    result.pages = "thp" if huge_share >= 0.9 else "base"


def _run_ours(result: Comparison, actor: Actor, passes: int) -> dict[str, Any]:
    """The actor's report of a sample in a fresh worker, exactly ``passes`` passes."""
    mix = Mix((actor,))
    result.ours = mix_name(mix)
    request = {
        "mix": result.ours,
        "place": [list(result.cpus)],
        "window_s": 0.0,
        "warm_s": 0.0,
        "min_passes": 1,
        "fixed_passes": passes,
        "deadline_s": othertools.TIMEOUT_S,
        "probes": False,
    }
    outcome = run_worker(request, 2 * othertools.TIMEOUT_S)
    assert outcome is not None  # only a wake_fd makes it so
    response = outcome.response
    if "error" in response:
        raise PagestormError(f"{result.ours}: {response['error']['message']}")
    report: dict[str, Any] = response["actors"][0]
    evidence = report["evidence"]["after"]
    if evidence["known"] and evidence["matching"] < 0.99 * evidence["known"]:
        raise PagestormError(f"{result.ours}: did not get the pages of {actor.policy}")
    return report
