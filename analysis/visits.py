"""A sample's log of operations -> what happened to every item at every task of a pipeline.

Tokens have no names. The n-th item taken from a pool between two tasks is the n-th that was put
there: items pass in order of arrival.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bench.mix import Mix, Op, parse_mix
from bench.passlog import Event, decode

JOB = "job"
"""Name of what counts the jobs, in place of a task."""


@dataclass(frozen=True)
class Layout:
    """What the actors and pools of a mix are in the pipeline that it was made of."""

    mix_name: str
    tasks: tuple[str, ...]
    """Of every actor; ``JOB`` where jobs are counted."""
    links: frozenset[str]
    """Pools that hand items on; the others are the pipeline's own."""
    whole: frozenset[str]
    """Tasks that are done once a job."""
    items: int
    """Of a job."""
    in_flight: int
    events: Mapping[str, str] = field(default_factory=dict)
    """Name in a log -> start or end of a task that it stands for: ``mv.end``."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Layout":
        """Layout of a plan's options."""
        return cls(
            data["mix"],
            tuple(data["tasks"]),
            frozenset(data["links"]),
            frozenset(data["whole"]),
            data["items"],
            data["in_flight"],
            data["events"],
        )

    @cached_property
    def mix(self) -> Mix:
        """The mix itself."""
        return parse_mix(self.mix_name)

    @property
    def own_pools(self) -> list[str]:
        """Pools of the pipeline."""
        return [pool.name for pool in self.mix.pools if pool.name not in self.links]

    @property
    def job(self) -> int:
        """Position of the actor that counts jobs."""
        return self.tasks.index(JOB)


@dataclass(frozen=True)
class Visit:
    """One item at one task; nanoseconds from the opening of the window."""

    task: str
    worker: int
    """Which of the task's actors, from 0."""
    item: int
    """Counted over all jobs; of a task that is done once a job: the job."""
    job: int
    ready: int
    """The item was there."""
    begin: int
    """Work began: tokens were had."""
    end: int
    works: bool
    """Whether anything was done: a task may only move tokens."""


@dataclass
class _Round:
    """One time through a script."""

    actor: int
    arrival: int | None = None
    ready: int = 0
    tokens: int | None = None
    begin: int | None = None
    end: int | None = None
    puts: dict[str, int] = field(default_factory=dict)
    item: int = 0


class LostEventsError(ValueError):
    """The log had no room for all events: what is missing might have happened, or not."""


def events_of(line: Mapping[str, Any]) -> list[Event]:
    """Events of a sample.

    Raises
    ------
    LostEventsError
        Where the log was too small.
    """
    log = line["log"]
    if log["lost"]:
        raise LostEventsError(f"{log['lost']} events found no room in the log")
    return decode(log["events"])


def visits(events: Sequence[Event], layout: Layout) -> list[Visit]:
    """Every visit whose work came to its end, in the order in which work began."""
    rounds = _rounds(events, layout)
    _name_items(rounds, layout)
    first = {task: layout.tasks.index(task) for task in layout.tasks}
    found = []
    for r in rounds:
        task = layout.tasks[r.actor]
        works = r.begin is not None
        # Times before the window are negative: what did not happen must not stand for its opening.
        end = r.end if works else r.ready if r.tokens is None else max(r.ready, r.tokens)
        complete = works if _works(layout, r.actor) else bool(r.puts)
        if end is None or not complete:
            continue
        begin = r.begin if r.begin is not None else end
        job = r.item if _by_job(layout, task) else r.item // layout.items
        found.append(Visit(task, r.actor - first[task], r.item, job, r.ready, begin, end, works))
    return sorted(found, key=lambda visit: (visit.begin, visit.end))


def _by_job(layout: Layout, task: str) -> bool:
    return task in layout.whole or task == JOB


def _works(layout: Layout, actor: int) -> bool:
    return any(op.kind in ("pass", "rest") for op in layout.mix.actors[actor].script)


def _rounds(events: Sequence[Event], layout: Layout) -> list[_Round]:
    """Rounds of every actor: a script may hold several, one after the other."""
    found: dict[tuple[int, int], _Round] = {}
    sizes = [_round_length(actor.script) for actor in layout.mix.actors]
    for event in events:
        script = layout.mix.actors[event.actor].script
        size = sizes[event.actor]
        number = event.cycle * (len(script) // size) + event.op // size
        r = found.setdefault((event.actor, number), _Round(event.actor))
        op = script[event.op]
        if op.kind in ("pass", "rest"):
            r.begin = event.start_ns if r.begin is None else r.begin
            r.end = event.end_ns
        elif op.kind == "put":
            if op.pool in layout.links:
                r.puts[op.pool] = event.end_ns
        elif op.pool in layout.links:
            r.arrival = event.end_ns if r.arrival is None else r.arrival
            r.ready = event.end_ns
        else:
            r.tokens = event.end_ns
    return list(found.values())


def _round_length(script: Sequence[Op]) -> int:
    """Operations until the script takes its next item."""
    again = [
        i for i, op in enumerate(script) if i and (op.kind, op.pool) == ("take", script[0].pool)
    ]
    return again[0] if again else len(script)


def _name_items(rounds: Sequence[_Round], layout: Layout) -> None:
    """Give every round its item: tasks in the order in which items reach them."""
    by_task: dict[str, list[_Round]] = defaultdict(list)
    for r in sorted(rounds, key=lambda r: r.arrival or 0):
        by_task[layout.tasks[r.actor]].append(r)
    makers = {
        op.pool: task
        for actor, task in zip(layout.mix.actors, layout.tasks, strict=True)
        if task != JOB
        for op in actor.script
        if op.kind == "put" and op.pool in layout.links
    }
    done: set[str] = set()

    def name(task: str) -> None:
        if task in done:
            return
        done.add(task)
        take = layout.mix.actors[layout.tasks.index(task)].script[0]
        maker = makers.get(take.pool)
        if maker is None:  # the first tasks: as they come
            for number, r in enumerate(by_task[task]):
                r.item = number
            return
        name(maker)
        items = _handed_on(by_task[maker], take.pool, layout, maker, task)
        for number, r in enumerate(by_task[task]):
            at = number * take.amount
            item = items[at] if at < len(items) else number
            split = _by_job(layout, task) and not _by_job(layout, maker)
            r.item = item // layout.items if split else item

    for task in by_task:
        name(task)


def _handed_on(
    rounds: Sequence[_Round], pool: str, layout: Layout, maker: str, taker: str
) -> list[int]:
    """Items put into a pool, in order."""
    put = sorted((r.puts[pool], r.item) for r in rounds if pool in r.puts)
    if _by_job(layout, maker) and not _by_job(layout, taker):
        return [job * layout.items + i for _, job in put for i in range(layout.items)]
    return [item for _, item in put]


# ---- pools ---------------------------------------------------------------------------------------


def pool_use(events: Sequence[Event], layout: Layout, window_ns: float) -> dict[str, float]:
    """Mean share of each own pool's tokens that was out during the window."""
    moves: dict[str, list[tuple[int, int]]] = defaultdict(list)
    bounded = {pool.name for pool in layout.mix.pools if pool.capacity}
    for event in events:
        op = layout.mix.actors[event.actor].script[event.op]
        if op.pool in layout.links:
            continue
        if op.kind == "take":
            moves[op.pool].append((event.end_ns, op.amount))
        elif op.kind == "put":
            # Without a bound it is in at once, and who wakes up may run before its end is noted.
            at = event.end_ns if op.pool in bounded else event.start_ns
            moves[op.pool].append((at, -op.amount))
    found = {}
    for pool in layout.mix.pools:
        if pool.name in layout.links or not pool.tokens:
            continue
        out, since, total = 0, 0.0, 0.0
        for at, amount in sorted(moves[pool.name]):
            now = min(max(0.0, at), window_ns)
            total += min(out, pool.tokens) * (now - since)
            out, since = out + amount, now
        total += min(out, pool.tokens) * (window_ns - since)
        found[pool.name] = total / (window_ns * pool.tokens) if window_ns else 0.0
    return found
