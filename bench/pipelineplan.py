"""Plans of pipelines: settings side by side in one block, and every task alone in another."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from bench.blocks import Block, Entry, Plan, Settings, Skip
from bench.budget import rounded_up
from bench.errors import HostError
from bench.mix import Actor, Mix, mix_name
from bench.mixplan import MixPlanner
from bench.pipeline import Pipeline
from bench.pipelinemix import Compiled, Compiler, log_room
from bench.pipelineplain import to_plain
from bench.plan import PATIENCE
from bench.remedyplan import Solo, alone, each_alone
from bench.units import counted, format_duration

PIPELINE, ALONE = "pipeline", "alone"
"""Ids of the blocks."""
ALONE_SETTINGS = Settings(window_s=0.3, warm_s=0.05)
LEAST_JOBS = 4
WAKE_S = 1e-3
"""Handing an item on, on a busy host; of the estimate only."""


@dataclass(frozen=True)
class Trial:
    """One setting of a pipeline."""

    name: str
    """``pw=4``, ``mutex:mv``; ``as it is`` for the file's own values."""
    pipeline: Pipeline
    compiled: Compiled

    @classmethod
    def of(cls, name: str, pipeline: Pipeline, compiler: Compiler, seed: int) -> "Trial":
        """Compile a pipeline."""
        return cls(name, pipeline, compiler.mix(pipeline, seed))

    @property
    def mix(self) -> str:
        """Name of its mix."""
        return mix_name(self.compiled.mix)

    def actors(self, compiler: Compiler) -> dict[str, Actor]:
        """Kernels of the tasks, by task."""
        found = {task.name: compiler.alone(task) for task in self.pipeline.tasks}
        return {name: actor for name, actor in found.items() if actor is not None}


@dataclass
class Made:
    """A plan, and what its options say of it."""

    plan: Plan
    options: dict[str, Any]
    skips: list[Skip] = field(default_factory=list)


def jobs_of(trials: Sequence[Trial], wanted: int) -> int:
    """Jobs of a sample: whole blocks of as many as are in flight."""
    most = max(trial.pipeline.in_flight for trial in trials)
    return math.ceil(max(wanted, LEAST_JOBS if wanted else 2 * most, LEAST_JOBS) / most) * most


def make(
    trials: Sequence[Trial],
    compiler: Compiler,
    planner: MixPlanner,
    *,
    jobs: int,
    deadline_s: float,
    rounds: int,
    seed: int,
    costs: bool = False,
    skips: Sequence[Skip] = (),
    least_rounds: int = 1,
    budget_s: float = math.inf,
) -> Made:
    """Plan the settings, and every task alone; ``costs``: also with one and with all CPUs.

    Where the fewest rounds exceed the budget, settings go from the end, then the tasks alone: not
    with ``costs``, which nothing can be predicted without. The first setting stays.

    Raises
    ------
    HostError
        Where the first setting cannot be run here.
    """
    kept: list[Trial] = []
    refused = list(skips)
    for trial in trials:
        refusal = planner.refusal(trial.compiled.mix)
        if refusal is None:
            kept.append(trial)
        elif not kept:
            raise HostError(f"{trial.name} cannot be run here: {refusal.reason}", refusal.remedy)
        else:
            refused.append(Skip(trial.name, refusal.reason, refusal.remedy))
    rounds_s = min(rounds, least_rounds)
    drafts = [_draft(kept, compiler, planner, jobs, deadline_s, costs)]
    while drafts[-1].estimate_s * rounds_s > budget_s and len(kept) > 1:
        kept = kept[:-1]
        drafts.append(_draft(kept, compiler, planner, jobs, deadline_s, costs))
    if drafts[-1].estimate_s * rounds_s > budget_s and not costs and drafts[-1].alone is not None:
        drafts.append(replace(drafts[-1], alone=None))
    draft = drafts[-1]
    blocks = draft.blocks
    plan = Plan(
        "pipeline",
        blocks,
        rounds,
        seed,
        (*refused, *draft.missing),
        tuple(reversed(_shed(drafts, rounds_s, budget_s))),
        planner.memory_bytes(blocks),
        (*_notes(kept), *_over(draft, rounds_s, budget_s)),
    )
    described = [_plain(trial, draft.solos[trial.name]) for trial in kept]
    return Made(plan, {"jobs": jobs, "settings": described}, [*refused, *draft.missing])


@dataclass(frozen=True)
class _Draft:
    """Blocks of some settings, before it is known whether there is time for them."""

    kept: Sequence[Trial]
    settings: Block
    alone: Block | None
    solos: dict[str, Solo]
    missing: tuple[Skip, ...]
    jobs: int
    job_s: float
    """Of the first setting."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (self.settings,) if self.alone is None else (self.settings, self.alone)

    @property
    def estimate_s(self) -> float:
        """Of one round."""
        return sum(block.estimate_s for block in self.blocks)


def _draft(
    kept: Sequence[Trial],
    compiler: Compiler,
    planner: MixPlanner,
    jobs: int,
    deadline_s: float,
    costs: bool,
) -> _Draft:
    in_flight = max(trial.pipeline.in_flight for trial in kept)
    job_s = {trial.name: job_estimate_s(trial, compiler, planner) for trial in kept}
    settings = Settings(
        window_s=1e-3,
        warm_s=0.0,
        min_passes=jobs,
        deadline_s=max(deadline_s, PATIENCE * jobs * max(job_s.values())),
        # Filled once every job that was let in at the start is through.
        warm_passes=in_flight,
        log_events=max(log_room(t.compiled, t.pipeline, jobs + in_flight) for t in kept),
    )
    entries: dict[str, Entry] = {}
    for trial in kept:
        entry = planner.entry(trial.compiled.mix, settings)
        longer = entry.estimate_s + (jobs + 1.5 * in_flight) * job_s[trial.name]
        entries.setdefault(trial.mix, replace(entry, estimate_s=longer))
    block = Block(PIPELINE, "settings", tuple(entries.values()), settings)
    solos, mixes = _alone(kept, compiler, planner, costs)
    alone, missing = planner.block(ALONE, "alone", mixes, ALONE_SETTINGS) if mixes else (None, [])
    return _Draft(kept, block, alone, solos, tuple(missing), jobs, job_s[kept[0].name])


def _shed(drafts: Sequence[_Draft], rounds: int, budget_s: float) -> list[Skip]:
    """What each draft lacks of the one before it."""
    everything = f"--budget {rounded_up(rounds * drafts[0].estimate_s)} measures everything"
    found = []
    for more, less in pairwise(drafts):
        gone = more.kept[-1].name if len(less.kept) < len(more.kept) else "tasks alone"
        seconds = rounds * (more.estimate_s - less.estimate_s)
        reason = f"over the budget of {format_duration(budget_s)}"
        found.append(Skip(gone, f"{reason}: takes {format_duration(seconds)}", everything))
    return found


def _over(draft: _Draft, rounds: int, budget_s: float) -> tuple[str, ...]:
    """What to say where even the first setting exceeds the budget."""
    seconds = rounds * draft.estimate_s
    if seconds <= budget_s:
        return ()
    in_flight = draft.kept[0].pipeline.in_flight
    too_many = (seconds - budget_s) / (rounds * draft.job_s)
    fewer = int((draft.jobs - too_many) // in_flight) * in_flight
    samples = int(budget_s / draft.estimate_s)
    if fewer >= LEAST_JOBS:
        way_out = f"--jobs {fewer} would fit"
    else:
        fewer_rounds = f"--samples {samples} or " if samples else ""
        way_out = f"no --jobs would fit, {fewer_rounds}--budget {rounded_up(seconds)} would"
    what = draft.kept[0].name if draft.alone is None else f"{draft.kept[0].name} and tasks alone"
    return (
        f"{what} in {counted(rounds, 'round')} of {draft.jobs} jobs: about"
        f" {format_duration(seconds)}, over the budget of {format_duration(budget_s)}; {way_out}",
    )


def _notes(trials: Sequence[Trial]) -> tuple[str, ...]:
    elsewhere = dict.fromkeys(
        task.name
        for trial in trials
        for task in trial.pipeline.tasks
        if task.traffic and not task.threads
    )
    if not elsewhere:
        return ()
    return (f"{', '.join(elsewhere)}: time goes by elsewhere, and traffic is not made",)


def _alone(
    trials: Sequence[Trial], compiler: Compiler, planner: MixPlanner, costs: bool
) -> tuple[dict[str, Solo], list[Mix]]:
    """Names of the mixes of one actor for every setting, and the mixes, each once."""
    solos: dict[str, Solo] = {}
    mixes: dict[str, Mix] = {}
    for trial in trials:
        made = solos[trial.name] = Solo(Plan("", (), 0, 0))
        actors = list(trial.actors(compiler).values())
        if costs:
            found = each_alone(made, actors, planner, pinned=False) if actors else []
        else:
            found = [alone(actor, pin=actor.pin) for actor in actors]
            made.own = [mix_name(mix) for mix in found]
        mixes.update((mix_name(mix), mix) for mix in found)
    return solos, list(mixes.values())


def _plain(trial: Trial, solo: Solo) -> dict[str, Any]:
    """What ``analysis.visits.Layout`` and the tables need."""
    pipeline, compiled = trial.pipeline, trial.compiled
    kernels = [task.name for task in pipeline.tasks if task.actor is not None]
    return {
        "name": trial.name,
        "mix": trial.mix,
        "tasks": list(compiled.tasks),
        "links": list(compiled.links),
        "whole": [task.name for task in pipeline.tasks if task.whole],
        "items": pipeline.items,
        "in_flight": pipeline.in_flight,
        "events": dict(pipeline.events),
        "kernels": kernels,
        "passes": {t.name: t.passes for t in pipeline.tasks if t.actor is not None},
        "seconds": {t.name: t.seconds for t in pipeline.tasks if t.actor is None and t.seconds},
        "alone": solo.plain(),
        "pipeline": to_plain(pipeline),
    }


def job_estimate_s(trial: Trial, compiler: Compiler, planner: MixPlanner) -> float:
    """Seconds per job, roughly: the longest of what each task, and all CPUs, have to do."""
    pipeline = trial.pipeline
    task_s: Mapping[str, float] = {
        name: pipeline.task(name).passes
        * planner.estimator.window_s(alone(actor), Settings(0, 0, 1))
        for name, actor in trial.actors(compiler).items()
    }
    longest, cpu_s = 0.0, 0.0
    for task in pipeline.tasks:
        each = task_s.get(task.name, task.seconds) + WAKE_S
        times = 1 if task.whole else pipeline.items
        longest = max(longest, each * times / pipeline.at_once(task.name))
        cpu_s += each * times * task.threads
    return max(longest, cpu_s / planner.resources.threads)
