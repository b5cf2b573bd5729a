"""Events of a simulation as TIMELINE lines, such as a run of the pipeline gives."""

import heapq
from collections import defaultdict
from collections.abc import Sequence

from analysis.steps import Event
from analysis.timelog import timeline
from analysis.visits import Layout, Visit
from bench.pipeline import Pipeline


def timeline_of(pipeline: Pipeline, events: Sequence[Event]) -> list[str]:
    """Lines in the order of time; workers of a task are numbered from the lowest that is free."""
    whole = {task.name for task in pipeline.tasks if task.whole}
    layout = Layout(
        "",
        tuple(task.name for task in pipeline.tasks),
        frozenset(),
        frozenset(whole),
        pipeline.items,
        pipeline.in_flight,
        dict(pipeline.events),
    )
    busy: dict[str, list[tuple[float, int]]] = defaultdict(list)
    free: dict[str, list[int]] = defaultdict(list)
    made: dict[str, int] = defaultdict(int)
    visits = []
    for event in sorted(events, key=lambda e: (e.start_s, e.end_s, e.task, e.job, e.item)):
        at_it, rest = busy[event.task], free[event.task]
        while at_it and at_it[0][0] <= event.start_s:
            heapq.heappush(rest, heapq.heappop(at_it)[1])
        if not rest:
            rest.append(made[event.task])
            made[event.task] += 1
        worker = heapq.heappop(rest)
        heapq.heappush(at_it, (event.end_s, worker))
        begin, end = round(event.start_s * 1e9), round(event.end_s * 1e9)
        item = event.job if event.task in whole else event.job * pipeline.items + event.item
        works = event.end_s > event.start_s
        visits.append(Visit(event.task, worker, item, event.job, begin, begin, end, works))
    return timeline(visits, layout, pipeline.name)
