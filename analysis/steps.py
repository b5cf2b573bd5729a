"""The event loop of the pipeline simulation.

Tasks that nothing can slow down end at a known time. All items at one other task have the same
speed, so each such task has a clock of its own that runs at that speed, and an item's end is a
reading of that clock: a change of speed costs one number, not one an item.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from analysis.plant import PUT, TAKE, Plant
from bench.errors import UsageError

SAME = 1e-12
"""Relative difference of clock readings that are one instant, parted by rounding."""


@dataclass(frozen=True)
class Event:
    """One item's work at one task."""

    start_s: float
    end_s: float
    task: str
    item: int
    job: int


@dataclass
class Played:
    """All that happened."""

    completions: list[float]
    durations: list[list[float]]
    """By task."""
    areas: list[list[float]]
    """By job completion: token-seconds that lay in each pool until then."""
    waits: list[int]
    waited_s: list[float]
    busy_s: float
    """CPU-seconds of tasks that can be slowed."""
    memory_s: float
    """Seconds times share of the interface asked for by tasks that can be slowed."""
    events: list[Event]


def play(plant: Plant, jobs: int, work: Sequence[Sequence[float]], record: bool) -> Played:
    """Let jobs go through, from an empty pipeline until the last is out.

    Raises
    ------
    UsageError
        Everybody waits for tokens that nobody will put: names who waits for what.
    """
    line = plant.pipeline
    items, n_tasks = line.items, len(plant.tasks)
    unit = n_tasks  # step from an item to the next in the numbers of what is to be done
    all_steps = plant.steps
    ends_step = [len(steps) for steps in all_steps]
    whole = [task.whole for task in plant.tasks]
    urgency = [-p for p in plant.priority]
    nexts = [[s for s in range(n_tasks) if t in plant.after[s]] for t in range(n_tasks)]
    group_of = [-1] * n_tasks
    for g, t in enumerate(plant.groups):
        group_of[t] = g
    groups = range(len(plant.groups))
    tokens, capacity = list(plant.tokens), plant.capacity
    pools = range(len(tokens))
    waiting: list[list[tuple[int, int, int, int, float]]] = [[] for _ in pools]
    putting: list[deque[tuple[int, int, float]]] = [deque() for _ in pools]
    area, since = [0.0] * len(tokens), [0.0] * len(tokens)
    waits, waited = [0] * len(tokens), [0.0] * len(tokens)
    # What has to end before a task of an item may begin.
    pending = [
        sum(items if whole[t] and not whole[p] else 1 for p in plant.after[t])
        for t in range(n_tasks)
    ] * (items * jobs)
    last = [not nexts[t] for t in range(n_tasks)]
    open_ = [sum((1 if whole[t] else items) for t in range(n_tasks) if last[t])] * jobs
    durations: list[list[float]] = [[] for _ in range(n_tasks)]
    ends: list[tuple[float, int, int, int, float]] = []
    clocks = [0.0] * len(groups)
    at: list[list[tuple[float, int, int, int, float]]] = [[] for _ in groups]
    counts = [0] * len(groups)
    played = Played([], durations, [], waits, waited, 0.0, 0.0, [])
    events, completions = played.events, played.completions
    todo: deque[tuple[int, int]] = deque()
    now, sequence, admitted = 0.0, 0, 0
    busy_s = memory_s = 0.0

    def admit() -> None:
        nonlocal admitted
        base = admitted * items * unit
        for i in range(items):
            for t in range(n_tasks):
                if not plant.after[t] and (i == 0 or not whole[t]):
                    todo.append((base + i * unit + t, 0))
        admitted += 1

    def serve(p: int) -> None:
        """Let those go on that wait at a pool, first come first served within a priority."""
        while True:
            if waiting[p]:
                _, _, uid, pos, began = waiting[p][0]
                amount = all_steps[uid % n_tasks][pos][2]
                if tokens[p] >= amount:
                    heappop(waiting[p])
                    move(p, -amount)
                    waited[p] += now - began
                    todo.append((uid, pos + 1))
                    continue
            if putting[p]:
                uid, pos, began = putting[p][0]
                amount = all_steps[uid % n_tasks][pos][2]
                if tokens[p] + amount <= capacity[p]:
                    putting[p].popleft()
                    move(p, amount)
                    waited[p] += now - began
                    todo.append((uid, pos + 1))
                    continue
            return

    def move(p: int, amount: int) -> None:
        area[p] += tokens[p] * (now - since[p])
        since[p] = now
        tokens[p] += amount

    def finish(uid: int, t: int) -> None:
        """Tell those that waited for this task of this item."""
        job = uid // (unit * items)
        first = job * items * unit
        for s in nexts[t]:
            if whole[t] == whole[s]:
                targets: Sequence[int] = (uid - t + s,)
            elif whole[s]:
                targets = (first + s,)
            else:
                targets = range(first + s, first + items * unit + s, unit)
            for target in targets:
                pending[target] -= 1
                if not pending[target]:
                    todo.append((target, 0))
        if last[t]:
            open_[job] -= 1
            if not open_[job]:
                completions.append(now)
                played.areas.append([area[p] + tokens[p] * (now - since[p]) for p in pools])
                if admitted < jobs:
                    admit()

    for _ in range(min(line.in_flight, jobs)):
        admit()
    changed = True
    state = plant.speeds(tuple(counts))
    speeds = state.speeds
    while True:
        while todo:
            uid, pos = todo.popleft()
            t = uid % n_tasks
            steps, stop = all_steps[t], ends_step[t]
            while pos < stop:
                kind, p, amount = steps[pos]
                if kind == TAKE:
                    queue = waiting[p]
                    # Who comes later waits behind those of its own priority, even where the tokens
                    # would do for it.
                    if tokens[p] < amount or (queue and queue[0][0] <= urgency[t]):
                        heappush(queue, (urgency[t], sequence, uid, pos, now))
                        sequence += 1
                        waits[p] += 1
                        break
                    move(p, -amount)
                    if putting[p]:
                        serve(p)
                elif kind == PUT:
                    if capacity[p] and (putting[p] or tokens[p] + amount > capacity[p]):
                        putting[p].append((uid, pos, now))
                        waits[p] += 1
                        break
                    move(p, amount)
                    if waiting[p]:
                        serve(p)
                else:
                    seconds = work[t][uid // unit]
                    if seconds > 0:
                        g = group_of[t]
                        if g < 0:
                            heappush(ends, (now + seconds, sequence, uid, pos, now))
                        else:
                            heappush(at[g], (clocks[g] + seconds, sequence, uid, pos, now))
                            counts[g] += 1
                            changed = True
                        sequence += 1
                        break
                    durations[t].append(0.0)
                    if record:
                        events.append(_event(plant, uid, now, now))
                pos += 1
            else:
                finish(uid, t)
        if len(completions) == jobs:
            break
        if changed:
            state = plant.speeds(tuple(counts))
            speeds = state.speeds
            changed = False
        then, reached = ends[0][0] if ends else math.inf, -1
        for g, first in enumerate(at):
            if first and speeds[g] > 0:
                end = now + (first[0][0] - clocks[g]) / speeds[g]
                if end < then:
                    then, reached = end, g
        if then == math.inf:
            raise _stalled(plant, waiting, putting, tokens)
        step = then - now
        now = then
        busy_s += state.busy * step
        memory_s += state.memory * step
        while ends and ends[0][0] <= now * (1 + SAME):
            _, _, uid, pos, began = heappop(ends)
            durations[uid % n_tasks].append(now - began)
            todo.append((uid, pos + 1))
            if record:
                events.append(_event(plant, uid, began, now))
        for g, first in enumerate(at):
            if not first:
                continue
            clocks[g] = first[0][0] if g == reached else clocks[g] + speeds[g] * step
            due = clocks[g] * (1 + SAME)
            while first and first[0][0] <= due:
                _, _, uid, pos, began = heappop(first)
                durations[uid % n_tasks].append(now - began)
                todo.append((uid, pos + 1))
                counts[g] -= 1
                changed = True
                if record:
                    events.append(_event(plant, uid, began, now))
            if not counts[g]:
                clocks[g] = 0.0  # keeps readings small, and so exact
    played.busy_s, played.memory_s = busy_s, memory_s
    return played


def _event(plant: Plant, uid: int, start: float, end: float) -> Event:
    index, t = divmod(uid, len(plant.tasks))
    job, item = divmod(index, plant.pipeline.items)
    return Event(start, end, plant.tasks[t].name, item, job)


def _stalled(
    plant: Plant,
    waiting: Sequence[Sequence[tuple[int, int, int, int, float]]],
    putting: Sequence[Sequence[tuple[int, int, float]]],
    tokens: Sequence[int],
) -> UsageError:
    found = []
    for p, name in enumerate(plant.pools):
        for uid in [entry[2] for entry in waiting[p]][:1]:
            found.append(f"{plant.tasks[uid % len(plant.tasks)].name} waits to take from {name}")
        for uid in [entry[0] for entry in putting[p]][:1]:
            found.append(f"{plant.tasks[uid % len(plant.tasks)].name} waits to put into {name}")
        if found and found[-1].endswith(name):
            found[-1] += f" ({tokens[p]} in it)"
    return UsageError(
        f"pipeline {plant.pipeline.name} stands still: {'; '.join(found) or 'nobody runs'}",
        "every token a task takes must be put back by it or by a task behind it",
    )
