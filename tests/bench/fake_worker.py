"""A worker that measures nothing: speaks the protocol of ``bench.schema``, and fails as told.

``FAKE_WORKER`` names a folder. ``script.json`` in it maps a kernel's name to a list of deeds, one a
sample (the last one repeats): ``ok``, ``ok:SECONDS`` (seconds per pass), ``slow:SECONDS``
(sleeps, then ok), ``hang``, ``exit``, ``segv``, ``kill``, ``skip``, ``fail``, ``garbage``,
``silent``, ``nan``, ``short``, ``wrong``, ``wrong-after``, ``unknown``, ``partly``,
``unknown-node``, ``misplaced``, ``misplaced-rest``, ``deadline``, ``starved``, ``near``/``far``
(placement state), ``disturbed``,
``small`` (uses a part of its arena). Each sample appends a line to ``calls`` there: an independent
record of what was run.
"""

import ctypes
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

FOLDER = Path(os.environ["FAKE_WORKER"])


def main():
    request = json.load(sys.stdin)
    kernel = request["mix"].split("/")[0].split("[")[0]
    deeds = json.loads((FOLDER / "script.json").read_text()).get(kernel, ["ok"])
    n = take_number(kernel)
    with (FOLDER / "calls").open("a") as calls:
        calls.write(request["mix"] + "\n")
    deed, _, amount = deeds[min(n, len(deeds) - 1)].partition(":")
    if deed == "slow":
        time.sleep(float(amount))
    if deed == "hang":
        if os.fork() == 0:  # a child must die with the worker
            (FOLDER / "child").write_text(str(os.getpid()))
            os.close(1)
        time.sleep(1000)
    if deed == "exit":
        sys.stderr.write("out of paper\n")
        sys.exit(7)
    if deed == "segv":
        ctypes.string_at(0)
    if deed == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if deed == "garbage":
        sys.stdout.write("hello")
    elif deed == "silent":
        pass
    elif deed in ("skip", "fail"):
        error = {"kind": deed, "stage": "map", "message": "no page of 2 MiB is free"}
        json.dump({"schema": 1, "error": error}, sys.stdout)
    else:
        answer = respond(request, deed, float(amount) if deed == "ok" and amount else 0.0, n)
        json.dump(answer, sys.stdout)


def take_number(kernel):
    """How often this kernel was sampled before."""
    path = FOLDER / f"count-{kernel}"
    n = int(path.read_text()) if path.exists() else 0
    path.write_text(str(n + 1))
    return n


def respond(request, deed, seconds, n):
    places = request["place"]
    answer = {
        "schema": 1,
        "window_s": request["window_s"],
        "deadline_hit": deed == "deadline",
        "actors": [actor(request, i, cpus, deed, seconds, n) for i, cpus in enumerate(places)],
        "pools": {},
        "where": {
            "pingpong_before_ns": 100.0,
            "pingpong_after_ns": 100.0,
            "state": deed if deed in ("near", "far") else "near",
            "adds_per_ns": 9.0,
        },
        "disturbed": {"steal_s": 0.5}
        if deed == "disturbed"
        else {"tlb_received": 70, "probed_s": 0.4},
        "worker": {"start_s": 0.0, "touch_s": 0.0, "fill_s": 0.0, "total_s": 0.1},
        "pyperf": {"hostname": "fake", "cpu_count": 2, "platform": "Linux-fake", "note": None},
    }
    if deed == "short":
        del answer["actors"]
    return answer


def actor(request, i, cpus, deed, seconds, n):
    mix = request["mix"]
    size = 1 << 30
    if not seconds:
        # Larger pages are a fifth faster, with one per cent of noise that differs by sample.
        gain = 0.8 if "/thp/" in mix else 1.0
        seconds = 0.1 * gain * random.Random(f"{mix} {n} {i}").uniform(0.99, 1.01)
    if deed == "nan":
        seconds = float("nan")
    if deed == "starved":
        seconds = 0
    total = size
    good = {"matching": total, "known": total, "total": total, "source": "smaps"}
    good |= {"wrong_node": 0, "unknown_node": 0}
    bad = {**good, "matching": total // 2}
    before = after = good
    if deed == "wrong":
        before = after = bad
    if deed == "wrong-after":
        after = bad
    if deed == "unknown":
        before = after = {**good, "matching": 0, "known": 0}
    if deed == "unknown-node":
        before = after = {**good, "unknown_node": total}
    if deed == "misplaced-rest":
        before = after = {**good, "wrong_node": total // 200, "unknown_node": total * 3 // 4}
    if deed == "partly":  # a hundredth of the pages can be told, and is as promised
        before = after = {**good, "matching": total // 100, "known": total // 100}
    if deed == "misplaced":
        before = after = {**good, "wrong_node": total // 4}
    chase, storm = mix.startswith("chase"), mix.startswith("storm")
    return {
        "seconds": seconds,
        "passes": 3.5,
        "active_s": seconds,
        "threads": len(cpus),
        "useful_bytes": size,
        "read_bytes": size,
        "written_bytes": 0,
        "updated_bytes": 0,
        "bus_min_bytes": size,
        "bus_max_bytes": size * 2 if chase else size,
        "ops": 1_000_000 if chase else 100 if storm else 0,
        "mapped_bytes": size,
        "used_bytes": size // 32 if deed == "small" else 0 if storm else size,
        "evidence": {"before": before, "after": after},
        "cpus": [[cpu, cpu] for cpu in cpus],
        "start_skew_s": 1e-6,
        "stop_skew_s": 1e-6,
        "oversubscribed": False,
        "steps": 100,
        "step_bins": {"120": 100},
        "max_step_s": 1e-3,
        "rest_s": 0.0,
        "wait_s": 0.0,
        "courtesy_s": 0.0,
        "minor_faults": 700 if storm else 0,
        "touched_bytes": 0,
        "switches": 0,
        "forced_switches": 0,
        "phases": {"touch": 0.007, "release": 0.0035} if storm else {},
        "thread_passes": [3.5] * len(cpus),
    }


if __name__ == "__main__":
    main()
