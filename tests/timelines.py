"""Logs of pipelines with everything in them planted, for tests and for tests/data."""

import math
from uuid import UUID

import numpy as np

from analysis.timeline.spans import NONE, Run, Spans


def record(ms, event, job, **detail):
    """One line; ``_`` in place of a detail's value leaves out the key."""
    return ",".join(
        ["TIMELINE", f"{ms:g}" if ms % 1 else f"{ms:.0f}", event, job]
        + [f"{key}={value}" for key, value in detail.items()]
    )


def job_name(number):
    """Name of a job in the form programs give them."""
    return str(UUID(int=(0x9E3779B97F4A7C15 * (number + 1)) % (1 << 128) << 40 & (1 << 128) - 1))


def task_lines(spans, form=".0f"):
    """Lines of (task, job, item, worker, start s, end s), in the order of time."""
    found = []
    for task, job, item, worker, start, end in spans:
        for at, event in ((start, "TASK_START"), (end, "TASK_END")):
            ms = format(1e3 * at, form)
            told = f"task={task},worker={worker},item={item}"
            found.append((float(ms), event == "TASK_START", f"TIMELINE,{ms},{event},{job},{told}"))
    return [line for *_, line in sorted(found, key=lambda f: f[:2])]


def spans_of(start, end, first_job=0):
    """Spans of a phase, each of a job of its own."""
    order = np.argsort(start, kind="stable")
    n = len(order)
    none = np.full(n, NONE, dtype=np.int32)
    return Spans(
        np.asarray(start, dtype=float)[order],
        np.asarray(end, dtype=float)[order],
        np.arange(first_job, first_job + n, dtype=np.int32),
        none,
        none,
        np.full(n, np.nan),
    )


def run_of(**phases):
    """A run of phases given as (start, end)."""
    made = {
        name: spans_of(*times, first_job=10**6 * k)
        for k, (name, times) in enumerate(phases.items())
    }
    return Run("planted", made)


def slowed(start, work, beside, slope, drift=None):
    """Ends of spans whose work takes exp(slope) times as long for each span open beside them.

    ``beside``: (starts, ends). ``drift``: a function of time by which everything slows, in logs.
    """
    horizon = float(max(np.max(start), np.max(beside[1]))) + 20 * float(np.max(work))
    t = np.unique(np.concatenate([np.linspace(0, horizon, 20_000), *beside]))
    middle = (t[:-1] + t[1:]) / 2
    open_now = np.searchsorted(np.sort(beside[0]), middle) - np.searchsorted(
        np.sort(beside[1]), middle
    )
    rate = np.exp(-slope * open_now)
    if drift is not None:
        rate = rate * np.exp(-drift(middle))
    done = np.concatenate([[0.0], np.cumsum(rate * np.diff(t))])
    return np.interp(np.interp(start, t, done) + work, done, t)


def autoregressive(rng, horizon, memory, spread):
    """A drift with a memory of some seconds."""
    step = memory / 5
    grid = np.arange(0, horizon, step)
    keep = math.exp(-step / memory)
    values = np.zeros(grid.size)
    for i in range(1, grid.size):
        values[i] = keep * values[i - 1] + math.sqrt(1 - keep**2) * spread * rng.standard_normal()
    return lambda t: np.interp(t, grid, values)


def prover_lines(
    jobs=6,
    items=10,
    places=10,
    workers=2,
    synth_s=30.0,
    gpu_s=3.0,
    spread=0.1,
    slope=0.0,
    in_flight=3,
    seed=0,
):
    """Log of a pipeline like a prover's, second by second of its own clock.

    Each job has ``items`` parts. A part is worked on in one of ``places``, then waits for one of
    ``workers``, which hold it for ``gpu_s`` stretched by exp(``slope``) for each part worked on.
    """
    rng = np.random.default_rng(seed)

    def jitter(mean):
        return mean * math.exp(spread * rng.standard_normal() - spread**2 / 2)

    lines = []

    def tell(event, part, **detail):
        job, item = part
        lines.append(record(round(1e3 * now), event, job_name(job), **detail, partition=item))

    now, admitted = 0.0, 0
    left = {}
    to_do, queue, synths, gpus = [], [], {}, {}
    free = list(range(workers))
    while True:
        while admitted < jobs and len(left) < in_flight:
            to_do += [(admitted, item) for item in range(items)]
            left[admitted] = items
            admitted += 1
        while to_do and len(synths) < places:
            part = to_do.pop(0)
            synths[part] = [jitter(synth_s), now]
            tell("SYNTH_START", part)
        while queue and free:
            part, worker = queue.pop(0), free.pop(0)
            tell("GPU_PICKUP", part, worker=worker)
            tell("GPU_START", part, worker=worker)
            gpus[part] = [jitter(gpu_s), now, worker]
        if not synths and not gpus:
            return lines
        rate = math.exp(-slope * len(synths))
        step = min([s[0] for s in synths.values()] + [g[0] / rate for g in gpus.values()])
        now += step
        for part in list(synths):
            synths[part][0] -= step
            if synths[part][0] <= 1e-9:
                took = now - synths.pop(part)[1]
                lines_at = round(1e3 * took)
                job, item = part
                lines.append(
                    record(
                        round(1e3 * now), "SYNTH_END", job_name(job), partition=item,
                        synth_ms=lines_at,
                    )
                )  # fmt: skip
                tell("CHAN_SEND", part)
                queue.append(part)
        for part in list(gpus):
            gpus[part][0] -= step * rate
            if gpus[part][0] <= 1e-9:
                _, began, worker = gpus.pop(part)
                free.append(worker)
                job, item = part
                lines.append(
                    record(
                        round(1e3 * now), "GPU_END", job_name(job), worker=worker, partition=item,
                        gpu_ms=round(1e3 * (now - began)),
                    )
                )  # fmt: skip
                left[job] -= 1
                if not left[job]:
                    del left[job]


def sample_lines():
    """The log in tests/data: what a prover writes, among other lines, and a few faults.

    Twelve places, one worker; each part worked on makes the worker's calls 8 % longer.
    """
    lines = prover_lines(
        jobs=40, items=5, places=12, in_flight=3, workers=1, synth_s=20.0, gpu_s=1.5, spread=0.3,
        slope=0.08, seed=1,
    )  # fmt: skip
    found = []
    for number, line in enumerate(lines):
        if number % 50 == 10:
            found.append("\x1b[2m12:00:00\x1b[0m \x1b[32m INFO\x1b[0m engine: jobs in flight 3")
        if "GPU_END" in line:
            ms = int(line.rpartition("=")[2])
            found.append(f"CUZK_TIMING: prep_msm_ms={ms // 3} num_circuits=1")
            found.append(f"CUZK_TIMING: gpu_tid=0 ntt_msm_h_ms={ms // 2} gpu_total_ms={ms}")
        found.append(line)
    # One overtaken, one that comes twice, one of another program, one cut off.
    found[110], found[100] = found[100], found[110]
    found.insert(200, found[199])
    found.insert(300, record(5, "CACHE_HIT", job_name(0), key=7))
    return [*found, found[-1][:30]]


def write_sample():
    """Write it: ``python tests/timelines.py``, from the top of the checkout."""
    import gzip
    from pathlib import Path

    path = Path(__file__).parent / "data" / "timelines" / "prover.log.gz"
    path.parent.mkdir(exist_ok=True)
    # The last line has no end.
    path.write_bytes(gzip.compress("\n".join(sample_lines()).encode(), mtime=0))


if __name__ == "__main__":
    write_sample()
