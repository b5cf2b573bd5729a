"""Remedies for a pipeline: those for mixes, and locks over tasks of one's choice.

``mutex:mv,prep`` is one pool that only these tasks take; ``mutex`` and ``sem:2`` alone are for
every task that moves memory. ``thp``, ``cap:2``, ``yield``, ``pause`` and ``pool`` do to the tasks
what they do to actors, to all of them or to those named behind a colon: ``thp:mv``. ``+`` joins.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.errors import UsageError, unknown_name
from bench.mix import Mix, Op, Pool
from bench.pipeline import Pipeline, Task
from bench.pipelinevalues import with_tasks
from bench.remedies import REMEDIES, TOKEN, Choice, Setting, parse
from bench.remedies import treat as treat_mix

_LOCKS = ("mutex", "sem")
_COUNTED = ("cap", "sem")
_NOT_HERE = {"apart": "give tasks a pin in the file instead"}


@dataclass(frozen=True)
class TreatedPipeline:
    """What remedies make of a pipeline, or why they make nothing of it."""

    pipeline: Pipeline | None
    reason: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Part:
    """One remedy, and for which tasks; none named: for all it concerns."""

    choice: Choice
    tasks: tuple[str, ...]


def treat(pipeline: Pipeline, text: str, setting: Setting) -> TreatedPipeline:
    """Apply ``thp+mutex:mv,prep``.

    Raises
    ------
    UsageError
        For a remedy or a task that there is not.
    """
    parts = [_parse(word.strip(), pipeline, setting) for word in text.split("+")]
    order = list(REMEDIES)
    notes: tuple[str, ...] = ()
    for part in sorted(parts, key=lambda part: order.index(part.choice.remedy)):
        apply = _locked if part.choice.remedy in _LOCKS else _as_actors
        made = apply(pipeline, part, setting)
        if made.pipeline is None:
            return TreatedPipeline(None, f"{part.choice}: {made.reason}")
        pipeline, notes = made.pipeline, (*notes, *made.notes)
    return TreatedPipeline(pipeline, notes=notes)


def _parse(word: str, pipeline: Pipeline, setting: Setting) -> _Part:
    key, *arguments = word.split(":")
    if key in _NOT_HERE:
        raise UsageError(f"{key} is no remedy for a pipeline", _NOT_HERE[key])
    spec = key
    if key in _COUNTED and arguments:
        spec = f"{key}:{arguments.pop(0)}"
    (choice,) = parse(spec, list(setting.registry.policies()))
    names = tuple(name.strip() for name in ",".join(arguments).split(",") if name.strip())
    known = [task.name for task in pipeline.tasks]
    for name in names:
        if name not in known:
            raise unknown_name(f"task of {pipeline.name}", name, known)
    return _Part(choice, names)


# ---- locks ---------------------------------------------------------------------------------------


def moves_memory(task: Task, setting: Setting) -> bool:
    """Whether there is something to keep apart."""
    return setting.has_memory(task.actor) if task.actor else task.traffic > 0


def _locked(pipeline: Pipeline, part: _Part, setting: Setting) -> TreatedPipeline:
    tokens = int(part.choice.argument or 1)
    chosen = [
        task
        for task in pipeline.tasks
        if (task.name in part.tasks if part.tasks else moves_memory(task, setting))
    ]
    idle = [task.name for task in chosen if task.actor is None and not task.seconds]
    if idle:
        return TreatedPipeline(None, f"{', '.join(idle)} does nothing that could be kept apart")
    most = sum(pipeline.at_once(task.name) for task in chosen)
    if most <= tokens:
        return TreatedPipeline(
            None, f"{most} at once at most of {', '.join(t.name for t in chosen) or 'no task'}"
        )
    taken = {pool.name for pool in pipeline.pools}
    name = next(n for n in (TOKEN, *(f"{TOKEN}{i}" for i in range(2, 99))) if n not in taken)
    # Taken last and put back first: the lock is around the work alone.
    guarded = {
        task.name: replace(task, takes=(*task.takes, (name, 1)), puts=((name, 1), *task.puts))
        for task in chosen
    }
    return TreatedPipeline(
        replace(
            pipeline,
            tasks=with_tasks(pipeline, guarded),
            pools=(*pipeline.pools, Pool(name, tokens, tokens)),
        )
    )


# ---- what is done to actors ----------------------------------------------------------------------


def _as_actors(pipeline: Pipeline, part: _Part, setting: Setting) -> TreatedPipeline:
    """Let a remedy for mixes at the kernels of the tasks."""
    tasks = [task for task in pipeline.tasks if task.actor is not None]
    if not tasks:
        return TreatedPipeline(None, "no task has a kernel")
    mix = _resting(tasks)
    made = treat_mix(mix, (part.choice,), setting)
    if made.mix is None:
        return TreatedPipeline(None, made.reason)
    changed: dict[str, Task] = {}
    for task, before, after in zip(tasks, mix.actors, made.mix.actors, strict=True):
        if after != before and task.actor is not None and task.name in (part.tasks or [task.name]):
            own = replace(after, script=task.actor.script)
            changed[task.name] = replace(task, actor=own, threads=own.threads)
    if not changed:
        return TreatedPipeline(None, f"changes nothing of {', '.join(part.tasks) or 'any task'}")
    return TreatedPipeline(replace(pipeline, tasks=with_tasks(pipeline, changed)), notes=made.notes)


def _resting(tasks: Sequence[Task]) -> Mix:
    """Kernels of the tasks as a mix: each of them waits for items between two passes."""
    return Mix(
        tuple(
            replace(task.actor, script=(Op("pass"), Op("rest")))
            for task in tasks
            if task.actor is not None
        )
    )
