"""Visits as TIMELINE lines: ``TIMELINE,<ms>,<EVENT>,<job>,<key=value,...>``.

``TASK_START`` and ``TASK_END`` for every task that does work, with task, worker and item; and the
prover's own names where the pipeline says which start or end they stand for.
"""

import heapq
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence

from analysis.visits import JOB, Layout, Visit

NAMESPACE = uuid.UUID("6f0d3b52-7c57-5a0a-9d3c-5f6c1d1f7a10")
"""Of job ids: the same job of the same sample always has the same."""

_DETAILS = {
    "SYNTH_START": "partition={item}",
    "SYNTH_END": "partition={item},synth_ms={ms:.0f}",
    "CHAN_SEND": "partition={item}",
    "GPU_PICKUP": "worker={worker},partition={item}",
    "GPU_START": "worker={worker},partition={item}",
    "GPU_END": "worker={worker},partition={item},gpu_ms={ms:.0f}",
}


def timeline(visits: Sequence[Visit], layout: Layout, sample: str) -> list[str]:
    """Lines in the order of time, from the first start on; ``sample`` makes the job ids differ."""
    began = min((visit.begin for visit in visits), default=0)
    lines: list[tuple[int, int, str]] = []

    def add(at: int, rank: int, event: str, visit: Visit, detail: str) -> None:
        job = uuid.uuid5(NAMESPACE, f"{sample} {visit.job}")
        lines.append((at, rank, f"TIMELINE,{(at - began) / 1e6:.3f},{event},{job},{detail}"))

    for visit in visits:
        if visit.task == JOB or not visit.works:
            continue
        item = "" if visit.task in layout.whole else f",item={visit.item % layout.items}"
        detail = f"task={visit.task},worker={visit.worker}{item}"
        # Of what falls on one moment ends come first: they let others start.
        add(visit.begin, 1, "TASK_START", visit, detail)
        add(visit.end, 0, "TASK_END", visit, detail)
    for at, event, visit, worker, ms in _named(visits, layout):
        told = _DETAILS[event].format(item=visit.item % layout.items, worker=worker, ms=ms)
        add(at, 0 if event.endswith("END") else 1, event, visit, told)
    return [text for _, _, text in sorted(lines, key=lambda line: line[:2])]


def _named(visits: Iterable[Visit], layout: Layout) -> list[tuple[int, str, Visit, int, float]]:
    """Moments that the pipeline has names for, with a worker's number and milliseconds so far.

    Events whose names begin alike belong together: whoever is between the first and the last of
    them is a worker, with the lowest number that is free.
    """
    points = defaultdict(list)
    for event, point in layout.events.items():
        task, _, edge = point.rpartition(".")
        points[task].append((event, edge))
    moments = sorted(
        (
            (visit.begin if edge == "start" else visit.end, list(layout.events).index(event), i)
            for i, visit in enumerate(visits)
            for event, edge in points.get(visit.task, [])
        ),
    )
    names, everybody = list(layout.events), list(visits)
    free: dict[str, list[int]] = defaultdict(list)
    used: dict[str, int] = defaultdict(int)
    held: dict[tuple[str, int], tuple[int, int]] = {}
    found = []
    for at, which, i in moments:
        event, visit = names[which], everybody[i]
        group = event.partition("_")[0]
        key = group, visit.item
        if key not in held:
            if not free[group]:
                heapq.heappush(free[group], used[group])
                used[group] += 1
            held[key] = heapq.heappop(free[group]), at
        if event.endswith("_START"):
            held[key] = held[key][0], at
        worker, since = held[key]
        found.append((at, event, visit, worker, (at - since) / 1e6))
        if event.endswith("_END") or event == "CHAN_SEND":
            heapq.heappush(free[group], held.pop(key)[0])
    return found
