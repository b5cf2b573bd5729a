"""What is measured of a host rather than believed: caches, TLB reach, line transfer, shootdown.

Virtual machines report caches and TLBs they do not have. Each point is a pointer chase on an arena
of its own, all in one fresh process; the TLB's share is what one line a page costs more than the
same number of lines packed together. Results are kept for as long as the machine is up.
"""

import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import native
from bench.errors import PagestormError
from bench.journal import replace_file
from bench.mix import Actor, Mix
from bench.sizes import Probe
from bench.spawn import run_worker
from bench.units import KIB, MIB, format_size

LINE = 64
# One line in each page, at another line of the page each time, so that all cache sets are used.
PAGE_STRIDE = 4096 + LINE
CACHE_SIZES = tuple(size * KIB for size in (64, 256, 512)) + tuple(
    size * MIB for size in (1, 2, 4, 8, 16, 32, 64, 128, 256)
)
PAGE_COUNTS = (64, 512, 1024, 1536, 2048, 3072, 4096, 8192, 16384, 65536)
# Of one pass: a few milliseconds beyond the caches.
LOADS = 1 << 14
WINDOW_S = 0.02
WINDOW_PASSES = 4
PASSES = 3
LIMIT_S = 120.0
# A TLB miss that costs less than this is a hit in the next level or noise.
LEAST_WALK_NS = 4.0
# A walk of a virtual machine's two tables shortened by one of them still costs a third or more.
LEAST_SHARE = 0.2
# Every TLB with entries for large pages has at least this many of them.
LEAST_LARGE_ENTRIES = 64

Ladder = dict[int, float]
"""Nanoseconds a load by size in bytes, or by number of pages."""


@dataclass(frozen=True)
class Measured:
    """One probing of the host."""

    seconds: float
    cache_ns: Ladder
    page_ns: Mapping[str, Ladder]
    """One line a page, by page policy and number of base pages spanned."""
    clock_ns: int
    pingpong_ns: Mapping[str, float]
    shootdown_ns: Mapping[str, float]
    fault_s: float
    load: float
    """Average number of running tasks in the minute before; above 1, others were at work."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """What could not be measured, and why."""


# ---- what the ladders say ------------------------------------------------------------------------


def effective_llc(ladder: Ladder) -> int | None:
    """Largest size that is still served at less than half of memory's latency.

    None where the ladder never leaves the caches.
    """
    ladder = _without_spikes(ladder)
    sizes = sorted(ladder)
    if len(sizes) < 4 or ladder[sizes[-1]] < 2 * ladder[sizes[0]]:
        return None
    memory = sorted(ladder[size] for size in sizes[-2:])[0]
    cached = [size for size in sizes if ladder[size] < memory / 2]
    return max(cached, default=None)


def tlb_cost(pages: Ladder, caches: Ladder) -> Ladder:
    """Nanoseconds a load spends on translation: one line a page, less the same lines packed."""
    return {count: ns - _interpolate(caches, count * LINE) for count, ns in sorted(pages.items())}


def tlb_reach(pages: Ladder, caches: Ladder, walk_ns: float = 0.0) -> int | None:
    """Largest number of base pages spanned before misses begin to cost, for good.

    A miss is cheap while the page tables themselves lie in a near cache, so the break is where a
    tenth of the full cost is paid, not half.

    None where no break was found: the reach is above what was spanned. ``walk_ns`` is the full cost
    under small pages: far less than that is no miss of this ladder, but noise.
    """
    cost = _without_spikes(tlb_cost(pages, caches))
    full = max(cost.values(), default=0.0)
    if full < walk_ns * LEAST_SHARE:
        return None
    least = max(LEAST_WALK_NS, full / 10)
    reached = [count for count, ns in cost.items() if ns < least]
    if not reached or max(reached) == max(cost):
        return None
    return max(reached)


def _without_spikes(ladder: Ladder) -> Ladder:
    """A longer ladder costs no less: what exceeds a later rung was noise."""
    least, smooth = float("inf"), {}
    for rung in sorted(ladder, reverse=True):
        least = min(least, ladder[rung])
        smooth[rung] = least
    return dict(sorted(smooth.items()))


def _interpolate(ladder: Ladder, size: int) -> float:
    """Latency at a size between two of the ladder's, on a straight line."""
    sizes = sorted(ladder)
    if size <= sizes[0]:
        return ladder[sizes[0]]
    for low, high in itertools.pairwise(sizes):
        if size <= high:
            share = (size - low) / (high - low)
            return ladder[low] + share * (ladder[high] - ladder[low])
    return ladder[sizes[-1]]


def conclude(measured: Measured, pages: Mapping[str, int]) -> Probe:
    """What planning needs of it; ``pages``: page size by policy."""
    reach: dict[int, int] = {}
    small_host_pages: bool | None = None
    base = tlb_cost(measured.page_ns.get("base", {}), measured.cache_ns)
    walk_ns = max(base.values(), default=0.0)
    for policy, ladder in measured.page_ns.items():
        count = tlb_reach(ladder, measured.cache_ns, walk_ns)
        if count is not None:
            reach[pages[policy]] = count * pages["base"]
    large = [pages[policy] for policy in measured.page_ns if pages[policy] > pages["base"]]
    if large:
        # Entries that covered whole large pages would reach further than this.
        small_host_pages = any(
            reach.get(size, size * LEAST_LARGE_ENTRIES) < size * LEAST_LARGE_ENTRIES
            for size in large
        )
    costs = {"fault_s": measured.fault_s} if measured.fault_s > 0 else {}
    return Probe(effective_llc(measured.cache_ns), reach, small_host_pages, costs)


# ---- measuring, in a fresh process ---------------------------------------------------------------


def _chase_ns(policy: str, size: int, stride: int, cpu: int) -> tuple[float, float]:
    """Nanoseconds a load, and seconds the first touch took.

    By the quickest tenth of its steps: on a shared machine noise only adds to a latency.
    """
    params = (("loads", LOADS), *((("stride", stride),) if stride != LINE else ()))
    # The arena's padding comes on top: the cycle itself has the size of the ladder's rung.
    actor = Actor("chase", native.kernel("chase").best_variant, policy, 1, size + 8 * KIB, params)
    settings = native.RunSettings(WINDOW_S, 0.0, WINDOW_PASSES, deadline_s=5.0, check=False)
    raw = native.run(Mix((actor,)), settings, [[cpu]])
    # A thread's step is about a thousand loads: the quickest tenth of them is undisturbed.
    return _low_step_ns(raw) / raw.actors[0].work.ops * raw.actors[0].work.n_steps, (
        raw.actors[0].touch_ns * 1e-9
    )


def _low_step_ns(raw: native.RawRun) -> float:
    """Tenth percentile of step times."""
    bins, edges = raw.threads[0].bins, native.bin_edges_ns()
    total, seen = sum(bins), 0
    for i, count in enumerate(bins):
        seen += count
        if count and seen * 10 >= total:
            return (edges[i] + edges[i + 1]) / 2
    raise PagestormError("the probe's window was too short for a step")


def _climb(rungs: Iterable[int], policy: str, stride: int, cpu: int) -> tuple[Ladder, float]:
    """Ladder by number of lines, and the first touch of its longest rung in seconds a base page."""
    found = {lines: _chase_ns(policy, lines * stride, stride, cpu) for lines in rungs}
    longest = max(found)
    pages = max(1, longest * stride // 4096)
    return {lines: ns for lines, (ns, _) in found.items()}, found[longest][1] / pages


def measure() -> Measured:
    """Measure this host, in this process (a fresh one); some seconds, none of it concurrent.

    Several passes over everything, and the best of each rung: others come and go on a shared
    machine, and they only ever add to a latency.
    """
    began = time.monotonic()
    cpus = sorted(os.sched_getaffinity(0))
    reasons = {name: native.policy_available(name) for name in native.policies()}
    skipped = {f"TLB reach, {name}": why for name, why in reasons.items() if why}
    large = "thp" if not reasons.get("thp", "no") else "base"
    lines: list[Ladder] = []
    pages: dict[str, list[Ladder]] = {name: [] for name, why in reasons.items() if not why}
    fault_s = float("inf")
    for _ in range(PASSES):
        lines.append(_climb((size // LINE for size in CACHE_SIZES), large, LINE, cpus[0])[0])
        for name in list(pages):
            try:
                ladder, touch_s = _climb(PAGE_COUNTS, name, PAGE_STRIDE, cpus[0])
            except PagestormError as error:
                skipped[f"TLB reach, {name}"] = str(error)
                del pages[name]
                continue
            pages[name].append(ladder)
            fault_s = min(fault_s, touch_s) if name == "base" else fault_s
    pairs = {f"{cpus[0]}-{cpu}": native.pingpong_ns(cpus[0], cpu) for cpu in _partners(cpus)}
    shootdown: dict[str, float] = {}
    if len(cpus) > 1:
        alone, beside = native.shootdown_cost_ns(cpus[0], cpus[1])
        shootdown = {"munmap_alone": alone, "munmap_beside": beside, "shootdown": beside - alone}
    else:
        skipped["shootdown"] = "needs two CPUs"
    return Measured(
        time.monotonic() - began,
        {count * LINE: ns for count, ns in _best(lines).items()},
        {name: _best(ladders) for name, ladders in pages.items()},
        native.clock_resolution_ns(),
        pairs,
        shootdown,
        fault_s if fault_s < float("inf") else 0.0,
        os.getloadavg()[0],
        skipped,
    )


def _best(ladders: Sequence[Ladder]) -> Ladder:
    return {rung: min(ladder[rung] for ladder in ladders) for rung in ladders[0]}


def _partners(cpus: list[int]) -> list[int]:
    """Every other CPU where there are few, else eight spread over them."""
    others = cpus[1:]
    return others if len(others) <= 8 else others[:: len(others) // 8][:8]


def measure_apart() -> Measured:
    """Measure in a process of its own: the driver's threads and memory stay out of it."""
    outcome = run_worker({}, LIMIT_S, (sys.executable, "-P", "-m", "bench.probe"))
    if outcome is None:
        raise PagestormError("the probe was interrupted")
    if "error" in outcome.response:
        raise PagestormError(f"the probe failed: {outcome.response['error']['message']}")
    return _from_json(outcome.response)


def main() -> int:
    """Print one probing as JSON."""
    json.dump(measure().__dict__, sys.stdout)
    return 0


# ---- once per boot -------------------------------------------------------------------------------


def cache_path() -> Path:
    """Where this boot's results are kept."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return folder / "pagestorm" / f"probe-{boot}.json"


def _save(measured: Measured) -> None:
    # A place that cannot be written is no reason to fail.
    try:
        cache_path().parent.mkdir(parents=True, exist_ok=True)
        replace_file(cache_path(), json.dumps(measured.__dict__).encode())
    except (OSError, RuntimeError, PagestormError):
        return


def _from_json(raw: dict[str, Any]) -> Measured:
    """Ladders have numbers for keys, which JSON turns into text."""
    raw = dict(raw)
    raw["cache_ns"] = {int(key): value for key, value in raw["cache_ns"].items()}
    raw["page_ns"] = {
        policy: {int(key): value for key, value in ladder.items()}
        for policy, ladder in raw["page_ns"].items()
    }
    return Measured(**raw)


def read_cache() -> Measured | None:
    """Results of this boot, or None."""
    try:
        return _from_json(json.loads(cache_path().read_text()))
    except (OSError, RuntimeError, ValueError, TypeError, KeyError, AttributeError):
        return None


def page_sizes() -> dict[str, int]:
    """Page size by policy."""
    return {policy.name: policy.page_bytes for policy in native.policies().values()}


def known_probe() -> Probe:
    """What this boot's results say; an empty ``Probe`` where nothing was measured yet."""
    measured = read_cache()
    return conclude(measured, page_sizes()) if measured is not None else Probe()


def probe_once(begin: Callable[[], None]) -> Probe:
    """Measure unless this boot's results are there; calls ``begin`` first if it must."""
    measured = read_cache()
    if measured is None:
        begin()
        measured = measure_apart()
        _save(measured)
    return conclude(measured, page_sizes())


def run_probe() -> dict[str, Any]:
    """Measure anew, keep it, and return it for people to read."""
    measured = measure_apart()
    _save(measured)
    sizes = page_sizes()
    concluded = conclude(measured, sizes)
    llc = concluded.llc_bytes
    return {
        "load latency in ns, by size": {
            format_size(size): round(ns, 1) for size, ns in measured.cache_ns.items()
        },
        "address translation in ns a load, by pages spanned": {
            policy: {str(n): round(ns, 1) for n, ns in tlb_cost(ladder, measured.cache_ns).items()}
            for policy, ladder in measured.page_ns.items()
        },
        "TLB reach": {
            policy: format_size(concluded.reach_bytes[sizes[policy]])
            if sizes[policy] in concluded.reach_bytes
            else f"above {format_size(max(ladder) * sizes['base'])}"
            for policy, ladder in measured.page_ns.items()
        },
        "line round trip in ns, by CPUs": {
            pair: round(ns) for pair, ns in measured.pingpong_ns.items()
        },
        "one-page munmap in ns": {
            name.replace("_", " "): round(ns) for name, ns in measured.shootdown_ns.items()
        },
        "last-level cache for one thread": format_size(llc) if llc else "not found",
        "small host pages": concluded.small_host_pages,
        "clock step in ns": measured.clock_ns,
        "first touch in ns a base page": round(measured.fault_s * 1e9),
        "tasks running before (load)": round(measured.load, 1),
        "seconds": round(measured.seconds, 1),
        "not measured (`list policies` says why)": ", ".join(measured.skipped) or "nothing",
    }


if __name__ == "__main__":
    sys.exit(main())
