"""What is measured of a host rather than believed: caches, TLB reach, line transfer, shootdown.

Virtual machines report caches and TLBs they do not have. Each point is a pointer chase in a fresh
worker; the TLB's share is what one line a page costs more than the same number of lines packed
together. Results are kept for as long as the machine is up.
"""

import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import native
from bench.errors import PagestormError
from bench.journal import replace_file
from bench.mix import Actor, Mix
from bench.sizes import Probe
from bench.spawn import run_worker
from bench.units import KIB, MIB

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
LIMIT_S = 60.0
# A TLB miss that costs less than this is a hit in the next level or noise.
LEAST_WALK_NS = 4.0
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
    skipped: Mapping[str, str] = field(default_factory=dict)
    """What could not be measured, and why."""


# ---- what the ladders say ------------------------------------------------------------------------


def effective_llc(ladder: Ladder) -> int | None:
    """Largest size that is still served at less than half of memory's latency.

    None where the ladder never leaves the caches.
    """
    sizes = sorted(ladder)
    if len(sizes) < 4 or ladder[sizes[-1]] < 2 * ladder[sizes[0]]:
        return None
    memory = sorted(ladder[size] for size in sizes[-2:])[0]
    cached = [size for size in sizes if ladder[size] < memory / 2]
    return max(cached, default=None)


def tlb_cost(pages: Ladder, caches: Ladder) -> Ladder:
    """Nanoseconds a load spends on translation: one line a page, less the same lines packed."""
    return {count: ns - _interpolate(caches, count * LINE) for count, ns in sorted(pages.items())}


def tlb_reach(pages: Ladder, caches: Ladder) -> int | None:
    """Largest number of base pages spanned before misses begin to cost, for good.

    A miss is cheap while the page tables themselves lie in a near cache, so the break is where a
    tenth of the full cost is paid, not half.

    None where no break was found: the reach is above what was spanned.
    """
    cost = tlb_cost(pages, caches)
    least = max(LEAST_WALK_NS, max(cost.values(), default=0.0) / 10)
    reached = [count for count, ns in cost.items() if ns < least]
    if not reached or max(reached) == max(cost):
        return None
    return max(reached)


def _interpolate(ladder: Ladder, size: int) -> float:
    """Latency at a size between two of the ladder's, on a logarithmic size axis."""
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
    for policy, ladder in measured.page_ns.items():
        count = tlb_reach(ladder, measured.cache_ns)
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

    The best of a few windows: on a shared machine noise only adds to a latency.
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


def measure() -> Measured:
    """Measure this host, in this process (a fresh one); a few seconds, none of it concurrent."""
    began = time.monotonic()
    cpus = sorted(os.sched_getaffinity(0))
    skipped: dict[str, str] = {}
    large = "thp" if not native.policy_available("thp") else "base"
    caches = {size: _chase_ns(large, size, LINE, cpus[0])[0] for size in CACHE_SIZES}
    page_ns: dict[str, Ladder] = {}
    fault_s = 0.0
    for policy in native.policies():
        why = native.policy_available(policy)
        if why:
            skipped[f"TLB reach, {policy}"] = why
            continue
        try:
            found = {
                count: _chase_ns(policy, count * PAGE_STRIDE, PAGE_STRIDE, cpus[0])
                for count in PAGE_COUNTS
            }
        except PagestormError as error:
            skipped[f"TLB reach, {policy}"] = str(error)
            continue
        page_ns[policy] = {count: ns for count, (ns, _) in found.items()}
        if policy == "base":
            fault_s = found[PAGE_COUNTS[-1]][1] / PAGE_COUNTS[-1]
    pairs = {f"{cpus[0]}-{cpu}": native.pingpong_ns(cpus[0], cpu) for cpu in _partners(cpus)}
    shootdown: dict[str, float] = {}
    if len(cpus) > 1:
        alone, beside = native.shootdown_cost_ns(cpus[0], cpus[1])
        shootdown = {"munmap_alone": alone, "munmap_beside": beside, "shootdown": beside - alone}
    else:
        skipped["shootdown"] = "needs two CPUs"
    return Measured(
        time.monotonic() - began,
        caches,
        page_ns,
        native.clock_resolution_ns(),
        pairs,
        shootdown,
        fault_s,
        skipped,
    )


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
    return {
        "cache_ladder_ns": {str(size): ns for size, ns in measured.cache_ns.items()},
        "effective_llc_bytes": concluded.llc_bytes,
        "tlb_cost_ns": {
            policy: {
                str(count): cost for count, cost in tlb_cost(ladder, measured.cache_ns).items()
            }
            for policy, ladder in measured.page_ns.items()
        },
        "tlb_reach_bytes": {
            policy: concluded.reach_bytes.get(sizes[policy], f"above {max(ladder) * sizes['base']}")
            for policy, ladder in measured.page_ns.items()
        },
        "small_host_pages": concluded.small_host_pages,
        "pingpong_ns": dict(measured.pingpong_ns),
        "shootdown_ns": dict(measured.shootdown_ns),
        "clock_resolution_ns": measured.clock_ns,
        "first_touch_s_per_base_page": measured.fault_s,
        "skipped": dict(measured.skipped),
        "seconds": measured.seconds,
    }


if __name__ == "__main__":
    sys.exit(main())
