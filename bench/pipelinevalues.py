"""``--set pw=4`` and ``--sweep pw=1..8``: a pipeline with one value changed. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

from bench.errors import UsageError
from bench.mix import Pool
from bench.pipeline import Pipeline, Task
from bench.registry import BASE
from bench.sweep import parse_rate, parse_share
from bench.units import parse_duration, parse_size

MOST_SETTINGS = 1000
"""Of a sweep: more are a slip."""


def settable(pipeline: Pipeline) -> list[str]:
    """Every name that ``with_value`` knows for this pipeline."""
    names = ["items", "in_flight", "bandwidth", *(pool.name for pool in pipeline.pools)]
    for task in pipeline.tasks:
        own = _OF_KERNELS if task.actor else _OF_TIMES if task.seconds else ()
        names += [f"{task.name}.{key}" for key in (*own, *_OF_ALL)]
    return names


def with_value(pipeline: Pipeline, name: str, text: str) -> Pipeline:
    """The same pipeline with one value in place of another.

    A pool's value is its tokens; a capacity that was equal to them stays equal.

    Raises
    ------
    UsageError
        For a name that this pipeline does not have, listing those it has, or a wrong value.
    """
    if name not in settable(pipeline):
        raise UsageError(
            f"{pipeline.name} has no {name!r} to set", f"known: {', '.join(settable(pipeline))}"
        )
    pools = {pool.name: pool for pool in pipeline.pools}
    if name in pools:
        changed = _pool(pools[name], _count(name, text))
        return replace(
            pipeline, pools=tuple(changed if p.name == name else p for p in pipeline.pools)
        )
    task_name, _, key = name.rpartition(".")
    if not task_name:
        value = parse_rate(text) if name == "bandwidth" else _count(name, text, 1)
        return replace(pipeline, **{name: value})  # type: ignore[arg-type]  # items or in_flight: int; bandwidth: float
    made = _CHANGES[key](pipeline.task(task_name), name, text)
    return replace(pipeline, tasks=with_tasks(pipeline, {task_name: made}))


def with_tasks(pipeline: Pipeline, changed: dict[str, Task]) -> tuple[Task, ...]:
    """Tasks of a pipeline with some of them replaced."""
    return tuple(changed.get(task.name, task) for task in pipeline.tasks)


def with_values(pipeline: Pipeline, settings: Sequence[str]) -> Pipeline:
    """Apply ``NAME=VALUE`` after ``NAME=VALUE``."""
    for setting in settings:
        pipeline = with_value(pipeline, *parse_setting(setting))
    return pipeline


def parse_setting(text: str) -> tuple[str, str]:
    """Name and value of ``pw=4``."""
    name, equals, value = text.partition("=")
    if not (equals and name.strip() and value.strip()):
        raise UsageError(f"not a setting: {text!r}", "write NAME=VALUE, such as pw=4")
    return name.strip(), value.strip()


def parse_sweep(text: str) -> list[str]:
    """Settings of ``pw=1..8``, ``pw=1,2,4`` or ``pw=1..16:5``, which steps by five."""
    name, values = parse_setting(text)
    found: list[str] = []
    for part in values.split(","):
        first, dots, rest = part.partition("..")
        if not dots:
            found.append(part.strip())
            continue
        last, _, step = rest.partition(":")
        if not all(word.strip().isdigit() for word in (first, last, step or "1")):
            raise UsageError(f"not a range: {part!r} in {text!r}", "write 1..8, or 1..16:5")
        found += map(str, range(int(first), int(last) + 1, max(1, int(step or 1))))
    if not found or not all(found):
        raise UsageError(f"no value in {text!r}", "write NAME=1..8 or NAME=1,2,4")
    return [f"{name}={value}" for value in dict.fromkeys(found)]


def combinations(sweeps: Sequence[str]) -> list[tuple[str, ...]]:
    """Every combination of the settings of several sweeps; one empty one where there is none."""
    made = list(product(*(parse_sweep(sweep) for sweep in sweeps)))
    if len(made) > MOST_SETTINGS:
        raise UsageError(f"{len(made)} combinations", f"at most {MOST_SETTINGS}")
    return made


# ---- one value ----------------------------------------------------------------------------------


def _count(name: str, text: str, least: int = 0) -> int:
    if not text.isdigit() or int(text) < least:
        raise UsageError(f"{name} is a whole number from {least} on, not {text!r}")
    return int(text)


def _pool(pool: Pool, tokens: int) -> Pool:
    capacity = tokens if pool.capacity == pool.tokens else pool.capacity
    return Pool(pool.name, tokens, capacity)


def _threads(task: Task, name: str, text: str) -> Task:
    count = _count(name, text, 1 if task.actor else 0)
    actor = replace(task.actor, threads=count) if task.actor else None
    return replace(task, threads=count, actor=actor)


def _priority(task: Task, name: str, text: str) -> Task:
    rank = _count(name, text)
    actor = replace(task.actor, priority=rank) if task.actor else None
    return replace(task, priority=rank, actor=actor)


def _actor(key: str, convert: Callable[[str], object]) -> Callable[[Task, str, str], Task]:
    def change(task: Task, name: str, text: str) -> Task:
        if task.actor is None:
            raise UsageError(f"{name}: {task.name} has no kernel")
        return replace(task, actor=replace(task.actor, **{key: convert(text)}))  # type: ignore[arg-type]  # convert makes what key holds

    return change


def _number(text: str) -> float:
    if text.endswith("%"):
        return parse_share(text)
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"not a number: {text!r}") from None


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return parse_duration(text)


_CHANGES: dict[str, Callable[[Task, str, str], Task]] = {
    "pages": _actor("policy", lambda text: BASE if text == "4k" else text),
    "size": _actor("size", parse_size),
    "courtesy": _actor("courtesy", str),
    "process": _actor("process", str),
    "passes": lambda task, name, text: replace(task, passes=_count(name, text, 1)),
    "seconds": lambda task, name, text: replace(task, seconds=_seconds(text)),
    "traffic": lambda task, name, text: replace(task, traffic=parse_rate(text)),
    "jitter": lambda task, name, text: replace(task, jitter=_number(text)),
    "threads": _threads,
    "priority": _priority,
    "workers": lambda task, name, text: replace(task, workers=_count(name, text)),
}
_OF_KERNELS = ("threads", "pages", "size", "passes", "courtesy", "process")
_OF_TIMES = ("seconds", "threads", "traffic", "jitter")
_OF_ALL = ("workers", "priority")
