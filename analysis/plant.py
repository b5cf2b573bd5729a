"""A pipeline made ready to be stepped: numbers instead of names, and the speeds of what runs.

Tasks are ordered by depth and name, so that the order they were listed in decides nothing.
"""

import math
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from analysis.rates import Alone, Load, gives_way, memory_factors, memory_use
from bench.errors import UsageError
from bench.pipeline import Pipeline, Task

TAKE, RUN, PUT = range(3)
Step = tuple[int, int, int]
"""Kind, pool, tokens."""

Crowding = Callable[[int], float]
"""Speed of each of k phases at once over that of one, X(k) / (k X(1)): for interfaces, locks and
caches that lose by company what the sharing law does not say."""


@dataclass(frozen=True)
class Conditions:
    """What a host and its memory do to a pipeline's tasks."""

    cpus: int = 0
    """0: as many as are asked for."""
    bandwidth: float = 0.0
    """Bytes a second of the interface that fixed times share, where the pipeline says nothing."""
    crowding: Crowding | None = None
    company: Collection[str] | None = None
    """Tasks that crowd each other; None: those that use memory."""
    interrupts: Mapping[str, float] = field(default_factory=dict)
    """Task -> share of everybody else's time that each item at it takes away (releases of memory
    interrupt all CPUs of an address space; the storm kernel beside a warm reader measures it)."""


@dataclass(frozen=True)
class Speeds:
    """What is true while the same tasks run: speeds by group, CPUs busy, interface asked for."""

    speeds: tuple[float, ...]
    busy: float
    memory: float


class Plant:
    """One pipeline under given conditions."""

    def __init__(
        self, pipeline: Pipeline, costs: Mapping[str, Alone], conditions: Conditions
    ) -> None:
        self.pipeline, self.conditions = pipeline, conditions
        self.tasks = _by_depth(pipeline)
        number = {task.name: t for t, task in enumerate(self.tasks)}
        limited = [task for task in self.tasks if task.workers]
        self.pools = [p.name for p in pipeline.pools] + [f"{t.name} workers" for t in limited]
        self.tokens = [p.tokens for p in pipeline.pools] + [task.workers for task in limited]
        self.capacity = [p.capacity for p in pipeline.pools] + [0] * len(limited)
        pool = {name: p for p, name in enumerate(self.pools)}
        self.steps = [_steps(task, pool) for task in self.tasks]
        self.alone = [self._alone(task, costs) for task in self.tasks]
        self.threads = [float(_threads(task)) for task in self.tasks]
        self.priority = [_priority(task) for task in self.tasks]
        self.after = [[number[name] for name in task.after] for task in self.tasks]
        self.company = [
            self._crowds(task, a) for task, a in zip(self.tasks, self.alone, strict=True)
        ]
        self.groups = self._groups()
        """Tasks whose speed can change; the others go by at speed 1."""
        self._known: dict[tuple[int, ...], Speeds] = {}

    def _alone(self, task: Task, costs: Mapping[str, Alone]) -> Alone:
        if task.actor is not None:
            if task.name not in costs:
                raise UsageError(
                    f"nobody knows what a pass of task {task.name} takes on this host",
                    "measure it first: pipeline check, or --calibration DIR of one",
                )
            cost = costs[task.name]
            return replace(cost, pass_s=cost.pass_s * task.passes)
        if not task.traffic:
            return Alone(task.seconds)
        bandwidth = self.pipeline.bandwidth or self.conditions.bandwidth
        bandwidth = bandwidth or max((cost.bs for cost in costs.values()), default=0.0)
        if not bandwidth:
            raise UsageError(
                f"task {task.name} moves bytes, but nobody says what the memory interface gives",
                "give the pipeline a bandwidth",
            )
        b1 = task.traffic / max(1, task.threads)
        return Alone(task.seconds, b1, max(bandwidth, b1))

    def _crowds(self, task: Task, alone: Alone) -> bool:
        if self.conditions.crowding is None:
            return False
        company = self.conditions.company
        return alone.has_memory if company is None else task.name in company

    def _groups(self) -> list[int]:
        """Find tasks that something may slow down, so that the others cost no bookkeeping."""
        c, line = self.conditions, self.pipeline
        most = [line.at_once(task.name) for task in self.tasks]
        crowded = 0 < c.cpus < sum(n * t for n, t in zip(most, self.threads, strict=True))
        # Every thread, a GPU's transfers as one, asks for its share of the interface.
        asked = sum(
            n * max(1.0, t) * a.b1 / a.bs
            for n, t, a in zip(most, self.threads, self.alone, strict=True)
            if a.has_memory
        )
        shared = asked >= 1
        lowest = min(
            (p for p, task in zip(self.priority, self.tasks, strict=True) if _pauses(task)),
            default=math.inf,
        )
        self.crowded, self.shared = crowded, shared
        return [
            t
            for t, task in enumerate(self.tasks)
            if (crowded and self.threads[t])
            or (shared and self.alone[t].has_memory)
            or self.company[t]
            or _pauses(task)
            or (self.priority[t] > lowest and self.threads[t])
            or c.interrupts
        ]

    def speeds(self, counts: tuple[int, ...]) -> Speeds:
        """Speeds of the groups while so many items are at each."""
        if counts not in self._known:
            self._known[counts] = self._speeds(counts)
        return self._known[counts]

    def _speeds(self, counts: Sequence[int]) -> Speeds:
        tasks = self.groups
        running = [t for t, n in zip(tasks, counts, strict=True) if n and self.threads[t]]
        top = max((self.priority[t] for t in running), default=0)
        active = [
            n if not gives_way(_courtesy(self.tasks[t]), self.priority[t], top) else 0
            for t, n in zip(tasks, counts, strict=True)
        ]
        cpu = self._cpu_shares(active, top)
        loads, sharing = [], []
        for g, (t, n) in enumerate(zip(tasks, active, strict=True)):
            if n and cpu[g] > 0 and self.alone[t].has_memory:
                threads = max(1.0, self.threads[t])
                undisturbed = n * self.alone[t].traffic(threads)
                loads.append(Load(self.alone[t], n * threads * cpu[g], undisturbed))
                sharing.append(g)
        factors = [share if n else 0.0 for share, n in zip(cpu, active, strict=True)]
        for g, factor in zip(sharing, memory_factors(loads), strict=True):
            factors[g] = min(factors[g], factor)
        together = [g for g, t in enumerate(tasks) if active[g] and self.company[t]]
        if together and self.conditions.crowding is not None:
            most = self.conditions.crowding(sum(active[g] for g in together))
            for g in together:
                factors[g] = min(factors[g], most)
        lost = [self.conditions.interrupts.get(self.tasks[t].name, 0.0) for t in tasks]
        kept = math.prod((1 - loss) ** n for loss, n in zip(lost, active, strict=True))
        for g, (loss, n) in enumerate(zip(lost, active, strict=True)):
            if n and self.threads[tasks[g]]:  # an item does not interrupt itself
                factors[g] *= kept / (1 - loss)
        busy = sum(self.threads[t] * n for t, n in zip(tasks, active, strict=True))
        asked = memory_use(loads)
        return Speeds(tuple(factors), min(busy, self.conditions.cpus or busy), asked)

    def _cpu_shares(self, active: Sequence[int], top: int) -> list[float]:
        """Part of a CPU each thread gets.

        Yielding costs nothing while there is a CPU for everyone; otherwise those that yield get
        what the others leave.
        """
        cpus = self.conditions.cpus
        if not cpus:
            return [1.0] * len(active)
        asked, yielding = 0.0, 0.0
        polite = []
        for t, n in zip(self.groups, active, strict=True):
            polite.append(_courtesy(self.tasks[t]) == "yield" and self.priority[t] < top)
            if polite[-1]:
                yielding += n * self.threads[t]
            else:
                asked += n * self.threads[t]
        first = min(1.0, cpus / asked) if asked else 1.0
        left = max(0.0, min(1.0, (cpus - asked) / yielding)) if yielding else 1.0
        shares = [left if gives else first for gives in polite]
        return [
            share if self.threads[t] else 1.0 for t, share in zip(self.groups, shares, strict=True)
        ]

    def work(self, jobs: int, seed: int, times: Mapping[str, Sequence[float]]) -> list[list[float]]:
        """Seconds alone of every task for every item of every job; jitter goes with the item.

        So two settings of one pipeline meet the same luck.
        """
        items = jobs * self.pipeline.items
        found = []
        for task, alone in zip(self.tasks, self.alone, strict=True):
            if task.name in times:
                given = [float(value) for value in times[task.name]]
                need = jobs if task.whole else items
                if len(given) < need:
                    raise UsageError(f"task {task.name}: {need} times are needed")
                if task.whole:
                    given = [value for value in given for _ in range(self.pipeline.items)]
                found.append(given)
            elif task.jitter and task.actor is None:
                random = np.random.default_rng([seed, zlib.crc32(task.name.encode())])
                sigma = math.sqrt(math.log1p(task.jitter**2))
                factors = random.lognormal(-(sigma**2) / 2, sigma, items)
                found.append((alone.pass_s * factors).tolist())
            else:
                found.append([alone.pass_s] * items)
        return found


def _by_depth(pipeline: Pipeline) -> list[Task]:
    depth: dict[str, int] = {}
    for task in pipeline.order:
        depth[task.name] = 1 + max((depth[name] for name in task.after), default=0)
    return sorted(pipeline.tasks, key=lambda task: (depth[task.name], task.name))


def _steps(task: Task, pool: Mapping[str, int]) -> list[Step]:
    own = [(pool[f"{task.name} workers"], 1)] if task.workers else []
    return [
        *((TAKE, p, n) for p, n in own),
        *((TAKE, pool[name], n) for name, n in task.takes),
        (RUN, 0, 0),
        *((PUT, pool[name], n) for name, n in task.puts),
        *((PUT, p, n) for p, n in own),
    ]


def _threads(task: Task) -> int:
    return task.actor.threads if task.actor is not None else task.threads


def _priority(task: Task) -> int:
    return max(task.priority, task.actor.priority if task.actor is not None else 0)


def _courtesy(task: Task) -> str:
    return task.actor.courtesy if task.actor is not None else "proceed"


def _pauses(task: Task) -> bool:
    return _courtesy(task) == "pause"
