"""A pipeline as a mix: every task as many actors as can be at it at once, linked by pools.

An actor's script takes an item from each task before, then the tokens its task takes, works, puts
the tokens it puts and hands the item on. A last actor counts jobs and lets the next one in. Tokens
have no names: items pass in order of arrival.

Threads are not pinned unless the pipeline says so: there are more of them than can work at once,
and a program's own are not pinned either.
"""

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.errors import UsageError
from bench.mix import Actor, Mix, Op, Pool
from bench.pipeline import Pipeline, Task
from bench.registry import BASE, Registry
from bench.resources import Resources
from bench.sizes import Probe, bandwidth_size, last_level
from bench.spinners import KERNEL, spinner
from bench.units import counted

JOB = "job"
"""The actor that takes what the last tasks hand on and lets the next job in."""
WHOLE_PASSES = 16
"""Of a fixed time, so that the pass before the first item does not take all of it."""
SHORTEST_PASS_S = 1e-3
JITTERED_PASSES = 64
JITTERED_ITEMS = 8
"""Times a script goes through until its jitter begins again."""
MOST_LOGGED = 1 << 16
"""Operations of one script."""
MOST_THREADS = 4096
"""Of all tasks together: more are a slip, and looking for a standstill takes long."""
ORDERS = 8
"""In which actors are let go when looking for a standstill."""


@dataclass(frozen=True)
class Compiled:
    """A mix, and what its actors and pools are."""

    mix: Mix
    tasks: tuple[str, ...]
    """Task of every actor; ``JOB`` for the last one."""
    links: tuple[str, ...]
    """Pools that hand items on: all that are not the pipeline's own."""

    @property
    def job(self) -> int:
        """Position of the actor that counts jobs."""
        return self.tasks.index(JOB)


class Compiler:
    """Turns pipelines into mixes on one host."""

    def __init__(self, registry: Registry, resources: Resources, probe: Probe) -> None:
        self.registry, self.resources, self.probe = registry, resources, probe

    def mix(self, pipeline: Pipeline, seed: int = 1) -> Compiled:
        """Mix of a pipeline.

        Raises
        ------
        UsageError
            Where nothing can get through, naming who waits for what.
        """
        taken = {pool.name for pool in pipeline.pools}
        copies = sum(_copies(pipeline, task) for task in pipeline.tasks)
        threads = sum(_copies(pipeline, task) * max(1, task.threads) for task in pipeline.tasks)
        if max(copies, threads) > MOST_THREADS:
            raise UsageError(
                f"{pipeline.name} takes {counted(copies, 'actor')} with {threads} threads, at most"
                f" {MOST_THREADS} can run",
                "fewer items or jobs in flight, or workers and pools that let fewer at a task",
            )
        link = _Links(pipeline, taken)
        actors: list[Actor] = []
        tasks: list[str] = []
        for task in pipeline.tasks:
            if task.name == JOB:
                raise UsageError(f"no task can be called {JOB}: that counts the jobs")
            for copy in range(_copies(pipeline, task)):
                bare, work = self._work(task, f"{seed} {task.name} {copy}")
                script = [op for ops in work for op in _around(pipeline, task, link, ops)]
                actors.append(replace(bare, script=tuple(script), role="background"))
                tasks.append(task.name)
        actors.append(replace(self._idle(), role="measured", script=_job_script(pipeline, link)))
        tasks.append(JOB)
        # In order of priority and arrival, as the simulation has it.
        own = tuple(replace(pool, fair=True) for pool in pipeline.pools)
        made = Compiled(Mix(tuple(actors), (*own, *link.pools())), tuple(tasks), tuple(link.names))
        waiting = standstill(made, 2 * pipeline.in_flight + 2)
        if waiting:
            raise UsageError(
                f"{pipeline.name} can come to a standstill: {'; '.join(waiting)}",
                "put back what is taken, or give the pool more tokens",
            )
        return made

    def alone(self, task: Task) -> Actor | None:
        """Actor of a kernel task, as one that runs by itself; None for a fixed time."""
        return task.actor and _joined(self.registry, task.actor)

    # ---- what a task does ------------------------------------------------------------------------

    def _work(self, task: Task, luck: str) -> tuple[Actor, list[tuple[Op, ...]]]:
        """Actor of a task, and its work on each item in turn."""
        if task.actor is not None:
            return _joined(self.registry, task.actor), [(Op("pass", task.passes),)]
        if not task.seconds:
            return self._idle(task.priority), [()]
        factors = _luck(task.jitter, luck)
        if not task.threads:
            nanoseconds = [max(1, round(task.seconds * f * 1e9)) for f in factors]
            return self._idle(task.priority), [(Op("rest", ns),) for ns in nanoseconds]
        if task.traffic:
            actor, passes = self._streaming(task)
            return actor, [(Op("pass", max(1, round(passes * f))),) for f in factors]
        passes = max(1, min(WHOLE_PASSES, int(task.seconds / SHORTEST_PASS_S)))
        passes = JITTERED_PASSES if task.jitter else passes
        bare = replace(self._idle(task.priority), threads=task.threads)
        actor = replace(spinner(bare, task.seconds / passes, self.registry), joined=True)
        return actor, [(Op("pass", max(1, round(passes * f))),) for f in factors]

    def _idle(self, priority: int = 0) -> Actor:
        """Actor whose pass is as good as nothing."""
        variant = self.registry.kernels()[KERNEL].variants[0].name
        bare = Actor(
            KERNEL,
            variant,
            BASE,
            1,
            0,
            (("iterations", 1), ("steps", 1)),
            priority=priority,
            joined=True,
            pin="none",
        )
        return self.registry.canonical(bare)

    def _streaming(self, task: Task) -> tuple[Actor, int]:
        """Reads at a pace, and how many passes are the task: longer where the pace is not had."""
        bytes_ = task.traffic * task.seconds
        llc = last_level(self.resources.topology, self.resources.allowed, self.probe)
        beyond = bandwidth_size(llc, self.resources.page_bytes, self.probe)
        passes = max(JITTERED_PASSES if task.jitter else 1, math.ceil(bytes_ / beyond))
        kernel = self.registry.kernels()["scan"]
        padding = 4096 * task.threads
        actor = Actor(
            "scan",
            kernel.best_variant,
            BASE,
            task.threads,
            int(bytes_ / passes) + padding,
            (("op", "read"),),
            priority=task.priority,
            pace=task.traffic / task.threads,
            joined=True,
            pin="none",
        )
        return self.registry.canonical(actor), passes


def _joined(registry: Registry, actor: Actor) -> Actor:
    """Threads of a task work on one item together."""
    team = registry.kernels()[actor.kernel].sharing == "team"
    return registry.canonical(replace(actor, joined=not team))


def _luck(jitter: float, seed: str) -> list[float]:
    """Factors on a fixed time: log-normal with mean 1, one of each of equal parts, shuffled."""
    if not jitter:
        return [1.0]
    sigma = math.sqrt(math.log1p(jitter * jitter))
    normal = statistics.NormalDist(-sigma * sigma / 2, sigma)
    found = [math.exp(normal.inv_cdf((i + 0.5) / JITTERED_ITEMS)) for i in range(JITTERED_ITEMS)]
    mean = statistics.fmean(found)
    random.Random(seed).shuffle(found)
    return [factor / mean for factor in found]


# ---- how items are handed on ---------------------------------------------------------------------


class _Links:
    """Pools between tasks, made as they are asked for."""

    def __init__(self, pipeline: Pipeline, taken: set[str]) -> None:
        self.pipeline, self.taken = pipeline, taken
        self.names: dict[str, int] = {}

    def _named(self, wanted: str, tokens: int = 0) -> str:
        name = wanted
        while name in self.taken:
            name += "_"
        self.names.setdefault(name, tokens)
        return name

    def between(self, before: Task, after: Task) -> str:
        return self._named(f"{before.name}_to_{after.name}")

    def start(self, task: Task) -> str:
        return self._named(f"start_of_{task.name}", self.pipeline.in_flight * self.a_job(task))

    def end(self, task: Task) -> str:
        return self._named(f"end_of_{task.name}")

    def a_job(self, task: Task) -> int:
        """Times a task is done for one job."""
        return 1 if task.whole else self.pipeline.items

    def pools(self) -> list[Pool]:
        return [Pool(name, tokens) for name, tokens in self.names.items()]


def _around(pipeline: Pipeline, task: Task, link: _Links, work: Sequence[Op]) -> list[Op]:
    """One round of a task's script."""
    ops: list[Op] = []
    for name in task.after:
        before = pipeline.task(name)
        gathered = pipeline.items if task.whole and not before.whole else 1
        ops.append(Op("take", gathered, link.between(before, task)))
    if not task.after:
        ops.append(Op("take", 1, link.start(task)))
    ops += [Op("take", amount, pool) for pool, amount in task.takes]
    ops += work
    ops += [Op("put", amount, pool) for pool, amount in task.puts]
    behind = [other for other in pipeline.tasks if task.name in other.after]
    for other in behind:
        spread = pipeline.items if task.whole and not other.whole else 1
        ops.append(Op("put", spread, link.between(task, other)))
    if not behind:
        ops.append(Op("put", 1, link.end(task)))
    return ops


def _job_script(pipeline: Pipeline, link: _Links) -> tuple[Op, ...]:
    takes = [Op("take", link.a_job(task), link.end(task)) for task in pipeline.last]
    puts = [Op("put", link.a_job(task), link.start(task)) for task in pipeline.first]
    return (*takes, Op("pass"), *puts)


def _copies(pipeline: Pipeline, task: Task) -> int:
    """Actors of a task: one where nothing is done and at most one pool is waited for."""
    works = task.actor is not None or task.seconds > 0
    return pipeline.at_once(task.name) if works or len(task.takes) > 1 or task.workers else 1


# ---- whether anything gets through ---------------------------------------------------------------


def standstill(made: Compiled, jobs: int) -> list[str]:
    """Who waits for which pool when nothing moves any more; empty where ``jobs`` get through.

    Work takes no time here: several orders are tried, because a standstill may depend on who comes
    first. None found is no proof, and the deadline of a sample remains.
    """
    for seed in range(ORDERS):
        waiting = _stuck(made, jobs, random.Random(seed))
        if waiting:
            return waiting
    return []


def _stuck(made: Compiled, jobs: int, luck: random.Random) -> list[str]:
    tokens = {pool.name: pool.tokens for pool in made.mix.pools}
    most = {pool.name: pool.capacity for pool in made.mix.pools}
    at = [0] * len(made.mix.actors)
    order = list(range(len(at)))
    done = 0
    moved = True
    while moved and done < jobs:
        moved = False
        luck.shuffle(order)
        for i in order:
            script = made.mix.actors[i].script
            # Not always until it waits: others may come in between two takes.
            for _ in range(luck.randint(1, len(script))):
                op = script[at[i]]
                if not _goes(op, tokens, most):
                    break
                moved = True
                at[i] = (at[i] + 1) % len(script)
                done += i == made.job and op.kind == "pass"
    if done >= jobs:
        return []
    waits: dict[str, None] = {}
    for i, actor in enumerate(made.mix.actors):
        op = actor.script[at[i]]
        if op.pool not in made.links:
            what = "a token" if op.kind == "take" else "room"
            waits[f"{made.tasks[i]} waits for {what} of {op.pool}"] = None
    return list(waits) or ["no task has anything to do"]


def _goes(op: Op, tokens: dict[str, int], most: dict[str, int]) -> bool:
    if op.kind == "take":
        if tokens[op.pool] < op.amount:
            return False
        tokens[op.pool] -= op.amount
    elif op.kind == "put":
        if most[op.pool] and tokens[op.pool] + op.amount > most[op.pool]:
            return False
        tokens[op.pool] += op.amount
    return True


def log_room(made: Compiled, pipeline: Pipeline, jobs: int) -> int:
    """Events to make room for where ``jobs`` come through: one actor might do all of a task."""
    # A script that varies its times holds several rounds.
    rounds = [len(a.script) // a.script.count(a.script[0]) for a in made.mix.actors]
    longest = max(rounds)
    items = (jobs + 2 * pipeline.in_flight + 2) * pipeline.items
    return len(made.mix.actors) * min(MOST_LOGGED, max(64, items * longest))
