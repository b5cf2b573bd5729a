"""Which resource a pipeline's throughput hangs on.

For every resource the seconds it must be at work a job: what a pool's holders *do* between taking
and putting (what they wait for in between is the fault of another resource), over its tokens. The
throughput cannot be more than one over the largest of these (the bottleneck bound of operational
analysis). Where the largest is well below the time a job takes, nothing is used up.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bench.pipeline import Pipeline

USED_UP = 0.9
"""Of its time a resource is at work, from which it is called used up: above, the rest is what
variation leaves idle."""

WORTH_SAYING = 0.02
"""Slowdown of a resource's tasks that is mentioned."""
CPUS, MEMORY, IN_FLIGHT = "CPUs", "memory interface", "jobs in flight"
HOST = (CPUS, MEMORY)


@dataclass(frozen=True)
class Binding:
    """The resource that is used most."""

    name: str
    use: float
    """Share of the steady state's time it must be at work."""
    why: str


def demands(
    pipeline: Pipeline, seconds: Mapping[str, float], busy_s: float, memory_s: float, cpus: int
) -> dict[str, float]:
    """Seconds a job of each resource.

    Parameters
    ----------
    pipeline : Pipeline
    seconds : mapping
        Of every task's work: means, as it was among the others or as it is alone.
    busy_s, memory_s : float
        CPU-seconds, and seconds times share of the memory interface asked for, a job.
    cpus : int
        0: as many as are asked for.
    """
    longest = _Paths(pipeline, seconds)
    found = {}
    for pool in pipeline.pools:
        if pool.tokens:
            held = longest.held(pool.name)
            if held > 0:
                found[pool.name] = held / pool.tokens
    for task in pipeline.tasks:
        if task.workers:
            items = 1 if task.whole else pipeline.items
            found[f"{task.name} workers"] = items * seconds[task.name] / task.workers
    if cpus:
        found[CPUS] = busy_s / cpus
    if memory_s:
        found[MEMORY] = memory_s
    found[IN_FLIGHT] = longest.through() / pipeline.in_flight
    return found


def binding(
    demand: Mapping[str, float], alone: Mapping[str, float], seconds_per_job: float
) -> Binding:
    """Name the resource that throughput hangs on.

    Parameters
    ----------
    demand, alone : mapping
        Seconds a job, with tasks as slow as they were and as they are alone. A pool that is used up
        only because CPUs or the interface are, and slow down its tasks, is not to blame.
    """
    if not demand or not seconds_per_job > 0:
        return Binding("", math.nan, "no job took any time")
    used = {name: min(1.0, value / seconds_per_job) for name, value in demand.items()}
    # Sums of seconds round; what is equal but for that goes to the pool, then by name.
    order = sorted(used, key=lambda name: (-round(used[name], 9), name == IN_FLIGHT, name))
    name = order[0]
    hosts = [other for other in order if other in HOST and used[other] >= USED_UP]
    if hosts and name not in HOST and alone[name] < USED_UP * seconds_per_job:
        name = hosts[0]
    use = used[name]
    if use < USED_UP:
        why = f"nothing is used up: {name}, which is used most, is at work {use:.0%}"
    else:
        why = f"{name} at work {use:.0%} of the time"
    slower = demand[name] / alone[name] - 1 if alone[name] > 0 else 0.0
    if name not in HOST and slower >= WORTH_SAYING:
        why += f", its tasks {slower:.0%} slower than alone"
    return Binding(name, use, why)


class _Paths:
    """Longest ways through the tasks, by their seconds."""

    def __init__(self, pipeline: Pipeline, seconds: Mapping[str, float]) -> None:
        self.pipeline, self.seconds = pipeline, seconds

    def through(self) -> float:
        return max(max(self._from(task.name).values()) for task in self.pipeline.first)

    def held(self, pool: str) -> float:
        """Token-seconds a job that a pool's tokens are at work."""
        total = 0.0
        for task in self.pipeline.tasks:
            amount = sum(n for name, n in task.takes if name == pool)
            if not amount:
                continue
            ways = self._from(task.name)
            back = [
                ways[other.name]
                for other in self.pipeline.tasks
                if other.name in ways and any(name == pool for name, _ in other.puts)
            ]
            if back:  # taken and given again before: the nearest that gives it back
                times = 1 if task.whole else self.pipeline.items
                total += amount * times * min(back)
        return total

    def _from(self, name: str) -> dict[str, float]:
        """Longest way from a task's beginning to the end of each behind it."""
        found = {name: self.seconds[name]}
        for task in self.pipeline.order:
            ways = [found[before] for before in task.after if before in found]
            if ways and task.name != name:
                found[task.name] = max(ways) + self.seconds[task.name]
        return found
