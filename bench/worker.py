"""The fresh process behind every sample: one JSON request on stdin, one JSON response on stdout.

Imports no numpy, rich or pydantic: starting it is part of every sample's cost. The protocol is in
``bench.schema``. Probe files are read by the engine at the edges of the window and parsed here.
"""

import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import disturbance, native, passlog
from bench.errors import PagestormError
from bench.mix import Mix, mix_name, parse_mix, with_paths
from bench.schema import SCHEMA

# Round trips seen: 80 to 130 ns inside a core complex, 140 to 190 ns across a large mesh, 410 to
# 520 ns between complexes of a virtual machine whose CPUs move. Only the last kind moves.
NEAR_NS = 300.0
# Set in a worker that started itself again: once is enough.
ANEW = "PAGESTORM_WORKER_ANEW"
# More pairs would take longer than they tell.
PINGPONG_PAIRS = 4


def pingpong(cpus: Sequence[int]) -> float | None:
    """Median line round trip between the first CPU and a few of the others; None for one CPU."""
    others = [cpu for cpu in dict.fromkeys(cpus) if cpu >= 0]
    if len(others) < 2:
        return None
    stride = max(1, (len(others) - 1) // PINGPONG_PAIRS)
    pairs = others[1::stride][:PINGPONG_PAIRS]
    try:
        return statistics.median(native.pingpong_ns(others[0], cpu) for cpu in pairs)
    except native.RunFailedError:
        return None


def state(before: float | None, after: float | None, cpus: Sequence[int]) -> str:
    """Stratum of a sample: ``one`` CPU, ``near``, ``far``, ``moved`` or ``unknown``.

    Where several threads run is not known unless all of them are pinned.
    """
    if len(cpus) == 1 or (len(set(cpus)) == 1 and cpus[0] >= 0):
        return "one"
    if before is None or after is None or min(cpus) < 0:
        return "unknown"
    near = before < NEAR_NS, after < NEAR_NS
    return "moved" if near[0] != near[1] else "near" if near[0] else "far"


def evidence(row: Any) -> dict[str, Any]:  # noqa: ANN401 - a C struct
    """``ps_evidence`` as the journal has it."""
    return {
        "matching": row.matching_bytes,
        "known": row.known_bytes,
        "total": row.total_bytes,
        "wrong_node": row.wrong_node_bytes,
        "unknown_node": row.unknown_node_bytes,
        "source": native.text(row.source),
    }


def actor_report(raw: native.RawRun, mix: Mix, index: int, shared: bool) -> dict[str, Any]:
    """One actor's result: ``schema.ACTOR_FIELDS``; ``shared``: it has to share a CPU."""
    actor, row = mix.actors[index], raw.actors[index]
    kernel = native.kernel(actor.kernel)
    work = native.work_of(row.work)
    threads = [raw.threads[row.first_thread + i] for i in range(actor.threads)]
    each = actor.threads if kernel.sharing == "sliced" else 1
    bins: dict[int, int] = {}
    for thread in threads:
        for i, count in enumerate(thread.bins):
            if count:
                bins[i] = bins.get(i, 0) + count
    useful = work["read_bytes"] + work["written_bytes"] + work["updated_bytes"]
    return {
        "seconds": row.seconds_per_pass,
        "passes": row.passes,
        "active_s": row.active_seconds_per_pass,
        "threads": actor.threads,
        "useful_bytes": useful * each,
        "read_bytes": work["read_bytes"] * each,
        "written_bytes": work["written_bytes"] * each,
        "updated_bytes": work["updated_bytes"] * each,
        "bus_min_bytes": work["bus_min_bytes"] * each,
        "bus_max_bytes": work["bus_max_bytes"] * each,
        "ops": work["ops"],
        "mapped_bytes": row.mapped_bytes,
        "used_bytes": row.used_bytes,
        "evidence": {"before": evidence(row.before), "after": evidence(row.after)},
        "cpus": [[thread.cpu_before, thread.cpu_after] for thread in threads],
        "start_skew_s": (max(t.first_ns for t in threads) - min(t.first_ns for t in threads))
        * 1e-9,
        "stop_skew_s": (max(t.last_ns for t in threads) - min(t.last_ns for t in threads)) * 1e-9,
        "oversubscribed": shared,
        "steps": sum(thread.steps for thread in threads),
        "step_bins": bins,
        "max_step_s": max(thread.max_step_ns for thread in threads) * 1e-9,
        "rest_s": sum(thread.rest_ns for thread in threads) * 1e-9,
        "wait_s": sum(thread.wait_ns for thread in threads) * 1e-9,
        "courtesy_s": sum(thread.courtesy_ns for thread in threads) * 1e-9,
        "minor_faults": sum(thread.minor_faults for thread in threads),
        "touched_bytes": sum(thread.touched_bytes for thread in threads),
        "switches": sum(thread.switches for thread in threads),
        "forced_switches": sum(thread.forced_switches for thread in threads),
        "phases": {
            name: sum(thread.phase_ns[i] for thread in threads) * 1e-9
            for i, name in enumerate(kernel.phases)
        },
        "thread_passes": [thread.passes for thread in threads],
    }


def measure(request: dict[str, Any], began: float) -> dict[str, Any]:
    """Run the request's mix and build the response."""
    mix = with_paths(parse_mix(request["mix"]), request.get("files", {}))
    place = request["place"]
    used = [cpu for actor in place for cpu in actor]
    settings = native.RunSettings(
        window_s=request["window_s"],
        warm_s=request["warm_s"],
        min_passes=request["min_passes"],
        warm_passes=request.get("warm_passes", 0),
        log_events=request.get("log_events", 0),
        fixed_passes=request.get("fixed_passes", 0),
        deadline_s=request["deadline_s"],
        check=request.get("check", True),
        seed=request.get("seed", 1),
    )
    before = pingpong(used)
    adds = native.add_rate(used[0] if used[0] >= 0 else -1)
    paths = disturbance.PATHS if request.get("probes", True) else ()
    raw = native.run(mix, settings, place, request.get("nodes"), paths)
    after = pingpong(used)
    shared = request.get("oversubscribed") or [False] * len(mix.actors)
    actors = [actor_report(raw, mix, i, shared[i]) for i in range(len(mix.actors))]
    log = {"events": passlog.encode(raw.events), "lost": raw.lost_events}
    return {
        "schema": SCHEMA,
        **({"log": log} if settings.log_events else {}),
        "mix": mix_name(mix),
        "window_s": raw.window_s,
        "deadline_hit": raw.deadline_hit,
        "actors": actors,
        "pools": {
            pool.name: {
                "wait_s": raw.pools[i].wait_ns * 1e-9,
                "takes": raw.pools[i].takes,
                "puts": raw.pools[i].puts,
                "blocked": raw.pools[i].blocked,
                "stuck": raw.pools[i].stuck,
            }
            for i, pool in enumerate(mix.pools)
        },
        "where": {
            "pingpong_before_ns": before,
            "pingpong_after_ns": after,
            "state": state(before, after, used),
            "adds_per_ns": adds,
        },
        "disturbed": disturbance.deltas(raw.probes, raw.probe_s, used),
        "worker": {
            "start_s": began - request.get("spawned_s", began),
            "touch_s": max(row.touch_ns for row in (raw.actors[i] for i in range(len(actors))))
            * 1e-9,
            "fill_s": max(row.fill_ns for row in (raw.actors[i] for i in range(len(actors))))
            * 1e-9,
            "total_s": time.monotonic() - request.get("spawned_s", began),
        },
        "pyperf": collect_metadata(),
    }


def collect_metadata() -> dict[str, Any]:
    """Facts of this process in pyperf's names, without importing pyperf (it costs 0.1 s)."""
    import platform

    return {
        "hostname": platform.node(),
        "platform": platform.platform(True, False),
        "python_version": platform.python_version(),
        "python_implementation": platform.python_implementation().lower(),
    }


def answer(request: dict[str, Any], began: float) -> dict[str, Any]:
    """Response to a request; what the host cannot give is a skip, what broke a failure."""
    try:
        return measure(request, began)
    except native.RefusedError as refused:
        kind, stage, message = "skip", refused.stage, str(refused)
    except native.RunFailedError as failed:
        kind, stage, message = "fail", failed.stage, str(failed)
    except PagestormError as error:
        kind, stage, message = "fail", "request", str(error)
    return {"schema": SCHEMA, "error": {"kind": kind, "stage": stage, "message": message}}


def start_anew(request_text: str, needed: dict[str, str]) -> None:
    """Replace this process by one with the environment a mix needs; returns where it has it.

    malloc, for one, chooses its pages when a program starts.
    """
    changes = {name: value for name, value in needed.items() if os.environ.get(name, "") != value}
    if not changes or ANEW in os.environ:
        return
    root = str(Path(__file__).resolve().parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, **changes, ANEW: "1", "PYTHONPATH": os.pathsep.join(paths)}
    for name, value in changes.items():
        if not value:
            del environment[name]
    again = os.memfd_create("pagestorm")
    os.write(again, request_text.encode())
    os.lseek(again, 0, os.SEEK_SET)
    os.dup2(again, 0)
    os.execve(sys.executable, [sys.executable, "-P", "-m", "bench.worker"], environment)


def main() -> int:
    """Answer one request."""
    native.load()
    text = sys.stdin.read()
    request = json.loads(text)
    with contextlib.suppress(PagestormError):  # the run itself will say it better
        start_anew(text, native.environment(parse_mix(request["mix"])))
    json.dump(answer(request, time.monotonic()), sys.stdout)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
