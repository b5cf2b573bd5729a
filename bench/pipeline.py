"""A pipeline as tasks and pools: what every item goes through, and what limits how many at once.

A job is split into items; each item goes through all tasks, each task after those it names. Before
a task begins it takes tokens of pools, in the order given, and when it ends it puts tokens back: a
pool of workers, a lock, a place in a channel, a GPU are all the same thing. A worker that holds its
place until the next stage has room is a task without work (``send``) that takes the room and puts
the place back. Frozen and free of files and hosts, so that analysis can read and simulate it.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from bench.errors import UsageError
from bench.mix import Actor, Pool

MOST = 1_000_000
"""Items of a job, jobs in flight, tokens of a pool: more are a slip."""
Tokens = tuple[tuple[str, int], ...]
"""Pools and how many tokens of each, in order."""


@dataclass(frozen=True)
class Task:
    """One piece of work on an item: passes of a kernel, or a fixed time, or nothing."""

    name: str
    actor: Actor | None = None
    """The kernel's work, memory and threads, without a script; None: a fixed time."""
    passes: int = 1
    seconds: float = 0.0
    """Fixed time alone, where there is no kernel."""
    threads: int = 1
    """CPUs a fixed time keeps busy; 0: it goes by elsewhere (a GPU, a disk, a network)."""
    traffic: float = 0.0
    """Bytes a second all threads of a fixed time move alone; it is stretched when they get less."""
    jitter: float = 0.0
    """Coefficient of variation of a fixed time (log-normal)."""
    after: tuple[str, ...] = ()
    takes: Tokens = ()
    puts: Tokens = ()
    workers: int = 0
    """How many may be at it at once; 0: as many as the pools let."""
    whole: bool = False
    """Done once a job, not once an item."""
    priority: int = 0
    """Who is served first at a pool and, where others yield or pause, at the CPUs."""

    def __post_init__(self) -> None:
        for key in ("seconds", "traffic", "jitter", "threads", "workers"):
            value = getattr(self, key)
            if value < 0:
                raise UsageError(f"task {self.name}: {key} cannot be negative")
            if not math.isfinite(value):
                raise UsageError(f"task {self.name}: {key} is a number, not {value}")
        if self.actor is not None and self.seconds:
            raise UsageError(f"task {self.name} has a kernel and a fixed time", "give it one")
        if self.actor is not None and self.passes < 1:
            raise UsageError(f"task {self.name}: passes must be at least 1")


@dataclass(frozen=True)
class Pipeline:
    """Tasks in the order given, the pools between them, and how jobs come in."""

    name: str
    tasks: tuple[Task, ...]
    pools: tuple[Pool, ...] = ()
    items: int = 1
    """Items of one job."""
    in_flight: int = 1
    """Jobs admitted at once: the next comes in when one is through."""
    bandwidth: float = 0.0
    """Bytes a second of the memory interface that fixed times share; 0: what the host has."""
    summary: str = ""
    events: tuple[tuple[str, str], ...] = ()
    """Names in a log, and what they stand for: ``("SYNTH_END", "mv.end")``."""

    def __post_init__(self) -> None:
        if not self.tasks:
            raise UsageError(f"pipeline {self.name} has no task")
        for what, names in (
            ("tasks", [task.name for task in self.tasks]),
            ("pools", [pool.name for pool in self.pools]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise UsageError(f"two {what} are called {', '.join(twice)}")
        if self.items < 1 or self.in_flight < 1:
            raise UsageError("a pipeline has at least one item a job and one job in flight")
        amounts = {"items": self.items, "in_flight": self.in_flight}
        amounts |= {f"pool {p.name}": max(p.tokens, p.capacity) for p in self.pools}
        for what, amount in amounts.items():
            if amount > MOST:
                raise UsageError(f"{what}: {amount} are more than {MOST}")
        known_tasks, known_pools = {t.name for t in self.tasks}, {p.name for p in self.pools}
        for task in self.tasks:
            _known(f"task {task.name}: after", task.after, known_tasks)
            _known(f"task {task.name}: takes", (name for name, _ in task.takes), known_pools)
            _known(f"task {task.name}: puts", (name for name, _ in task.puts), known_pools)
        try:
            self.order  # noqa: B018 - a circle is a fault of the pipeline, found here
        except CycleError as error:
            circle = " -> ".join(map(str, error.args[1]))
            raise UsageError(f"tasks wait for each other: {circle}") from None

    @cached_property
    def order(self) -> tuple[Task, ...]:
        """Tasks so that each comes after those it waits for."""
        by_name = {task.name: task for task in self.tasks}
        graph = {task.name: task.after for task in self.tasks}
        return tuple(by_name[name] for name in TopologicalSorter(graph).static_order())

    @property
    def first(self) -> tuple[Task, ...]:
        """Tasks an item begins with."""
        return tuple(task for task in self.tasks if not task.after)

    @property
    def last(self) -> tuple[Task, ...]:
        """Tasks nobody waits for: a job is through when they are."""
        awaited = {name for task in self.tasks for name in task.after}
        return tuple(task for task in self.tasks if task.name not in awaited)

    def task(self, name: str) -> Task:
        """Task of a name."""
        for task in self.tasks:
            if task.name == name:
                return task
        raise UsageError(f"no task {name!r}", f"tasks: {', '.join(t.name for t in self.tasks)}")

    def at_once(self, name: str) -> int:
        """Most items that can be at a task at once: its workers, its pools, what is in flight.

        A pool bounds every task between the one that takes its token and the one that puts it back.
        """
        task = self.task(name)
        bounds = [self.in_flight * (1 if task.whole else self.items)]
        if task.workers:
            bounds.append(task.workers)
        before = {name} | self._upstream(name)
        behind = {other.name for other in self.tasks if name in self._upstream(other.name)} | {name}
        for pool in self.pools:
            taken = [
                amount
                for other in self.tasks
                if other.name in before
                for key, amount in other.takes
                if key == pool.name
            ]
            given = any(
                key == pool.name and other.name in behind
                for other in self.tasks
                for key, _ in other.puts
            )
            if taken and given:
                bounds.append(max(1, pool.tokens // max(taken)))
        return max(1, min(bounds))

    def _upstream(self, name: str) -> set[str]:
        found: set[str] = set()
        open_ = list(self.task(name).after)
        while open_:
            other = open_.pop()
            if other not in found:
                found.add(other)
                open_ += self.task(other).after
        return found


def _known(where: str, names: Iterable[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"{where}: no {name!r}", f"known: {', '.join(sorted(known))}")
