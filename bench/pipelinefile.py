"""Pipelines from TOML files and from the package, checked as scenarios are, for one host."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from bench.errors import UsageError
from bench.mix import Actor, Pool
from bench.pipeline import Pipeline, Task
from bench.registry import BASE, Registry
from bench.resources import Resources
from bench.scenariofile import check_one_kernel, kernel_actor, read_scenario, thread_counts
from bench.sizes import Probe
from bench.sweep import (
    Courtesy,
    Duration,
    KernelChoice,
    Pin,
    Rate,
    Share,
    Size,
    Table,
    _Digits,
    _Many,
    _Some,
    _text,
    parse_share,
)
from bench.sweepfile import refusal

DEFAULT = "prover-pipeline"
"""The pipeline of a command that is given none."""
MOST_JOBS = 100_000
"""Of one sample: more are a slip."""
EVENTS = ("SYNTH_START", "SYNTH_END", "CHAN_SEND", "GPU_PICKUP", "GPU_START", "GPU_END")
"""Names that ``[timeline]`` may give to starts and ends of tasks."""
_POINT = re.compile(r"([a-z0-9_]+)\.(start|end)")
_TOKENS = re.compile(r"([a-z0-9_]+)(?::(\d+))?")


def _tokens(value: object) -> object:
    """``"room:2"`` as a pool and a number."""
    if not isinstance(value, str):
        return value
    match = _TOKENS.fullmatch(value)
    if match is None or match[2] == "0":
        raise ValueError(f"not tokens of a pool: {value!r}; write room, or room:2 for two")
    return match[1], int(match[2] or 1)


Portion = Annotated[float, _text(parse_share), Field(gt=0, le=1)]
"""Of the CPUs."""
Threads = Annotated[int, Field(ge=0)] | Literal["rest"] | Portion
Amounts = Annotated[tuple[Annotated[tuple[str, int], BeforeValidator(_tokens)], ...], _Many]


class TaskTable(Table):
    """One task: passes of a kernel, a fixed time, or nothing but tokens."""

    name: str = Field(pattern="^[a-z0-9_]+$")
    kernel: KernelChoice | None = None
    pages: str = BASE
    size: Size | Literal["auto"] = "auto"
    passes: int = Field(default=1, ge=1)
    seconds: Duration = 0.0
    traffic: Rate = 0.0
    jitter: Annotated[float, _text(parse_share), Field(ge=0, le=2)] = 0.0
    threads: Annotated[Threads, _Digits] = 1
    """A count, a share of the CPUs, what the others leave, or 0: the time goes by elsewhere."""
    after: Annotated[tuple[str, ...], _Many] = ()
    takes: Amounts = ()
    puts: Amounts = ()
    workers: int = Field(default=0, ge=0)
    whole: bool = False
    priority: int = Field(default=0, ge=0, le=7)
    courtesy: Courtesy = "proceed"
    process: str = ""
    pin: Pin = "none"

    @model_validator(mode="after")
    def _one_kind(self, info: ValidationInfo) -> Self:
        given = self.model_fields_set
        fixed = sorted({"seconds", "traffic", "jitter"} & given)
        if self.kernel is not None:
            if fixed:
                raise ValueError(f"{fixed[0]} belongs to a task without a kernel")
            if self.threads == 0:
                raise ValueError("a kernel needs a thread")
            check_one_kernel(self.kernel, self.pages, info)
            return self
        kernels = sorted({"pages", "size", "passes", "courtesy", "process", "pin"} & given)
        if kernels:
            raise ValueError(f"{kernels[0]} belongs to a task with a kernel")
        if fixed and not self.seconds:
            raise ValueError(f"{fixed[0]} belongs to a task with seconds")
        return self


class PoolTable(Table):
    """A pool of tokens."""

    name: str = Field(pattern="^[a-z0-9_]+$")
    tokens: Annotated[Annotated[int, Field(ge=0)] | Portion, _Digits]
    """A count, or a share of the CPUs (at least one)."""
    capacity: int = Field(default=0, ge=0)


class PipelineFile(Table):
    """A whole pipeline file."""

    summary: str = ""
    items: int = Field(default=1, ge=1)
    in_flight: int = Field(default=1, ge=1)
    bandwidth: Rate = 0.0
    jobs: int = Field(default=0, ge=0, le=MOST_JOBS)
    """Of one sample; 0: the command decides."""
    deadline: Duration = 60.0
    """A sample in which that long too few jobs come through is invalid."""
    dead_band: Share = 0.02
    task: Annotated[tuple[TaskTable, ...], _Many, _Some]
    pool: Annotated[tuple[PoolTable, ...], _Many] = ()
    timeline: dict[str, str] = Field(default_factory=dict)
    tested: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    """Most of a limit with which a simulation was compared with what was measured."""

    @model_validator(mode="after")
    def _events(self) -> Self:
        names = {task.name for task in self.task}
        for event, point in self.timeline.items():
            if event not in EVENTS:
                raise ValueError(f"timeline: unknown event {event}; known: {', '.join(EVENTS)}")
            match = _POINT.fullmatch(point)
            if match is None or match[1] not in names:
                raise ValueError(f"timeline.{event}: write TASK.start or TASK.end, not {point!r}")
        return self


_TABLES = (PipelineFile, TaskTable, PoolTable, KernelChoice)


def load(name: str, registry: Registry | None = None) -> PipelineFile:
    """Read a packaged pipeline by name, or a file: a path with a folder, or ending in ``.toml``.

    Raises
    ------
    UsageError
        With every fault of the file, one a line, each with its dotted path.
    """
    data, source, folder = read_scenario(name, "task")
    return validate(data, source, registry, folder)


def validate(
    data: object,
    source: str,
    registry: Registry | None = None,
    folder: Path | None = None,
) -> PipelineFile:
    """Check plain data; a kernel that is not there is a fault, nothing takes its place."""
    try:
        return PipelineFile.model_validate(data, context={"registry": registry, "folder": folder})
    except ValidationError as error:
        raise refusal(source, error, _TABLES) from None


def resolve(
    read: PipelineFile, name: str, registry: Registry, resources: Resources, probe: Probe
) -> Pipeline:
    """Pipeline for one host: threads, tokens and sizes decided.

    Raises
    ------
    UsageError
        Where tasks name what is not there, or wait for each other.
    """
    cpus = resources.threads
    # Threads that the others leave: tasks that use no CPU leave all of them.
    counts = thread_counts([t.threads if t.kernel or t.seconds else 0 for t in read.task], cpus)
    tasks = []
    for table, threads in zip(read.task, counts, strict=True):
        actor = None
        if table.kernel is not None:
            actor = _actor(table, threads, registry, resources, probe)
        tasks.append(_task(table, actor, threads))
    pools = [
        Pool(p.name, p.tokens if isinstance(p.tokens, int) else max(1, int(p.tokens * cpus)))
        for p in read.pool
    ]
    return Pipeline(
        Path(name).stem,
        tuple(tasks),
        tuple(replace(made, capacity=p.capacity) for made, p in zip(pools, read.pool, strict=True)),
        items=read.items,
        in_flight=read.in_flight,
        bandwidth=read.bandwidth,
        summary=read.summary,
        events=tuple(read.timeline.items()),
    )


def _actor(
    table: TaskTable, threads: int, registry: Registry, resources: Resources, probe: Probe
) -> Actor:
    if table.kernel is None:
        raise UsageError(f"task {table.name} has no kernel")
    bare = kernel_actor(table.kernel, table.pages, threads, table.size, registry, resources, probe)
    return replace(
        bare,
        process=table.process,
        priority=table.priority,
        courtesy=table.courtesy,
        pin=table.pin,
    )


def _task(table: TaskTable, actor: Actor | None, threads: int) -> Task:
    return Task(
        table.name,
        actor,
        passes=table.passes,
        seconds=table.seconds,
        threads=threads,
        traffic=table.traffic,
        jitter=table.jitter,
        after=table.after,
        takes=_merged(table.takes),
        puts=_merged(table.puts),
        workers=table.workers,
        whole=table.whole,
        priority=table.priority,
    )


def _merged(tokens: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """One entry a pool: two takes of one token would be able to wait for each other."""
    found: dict[str, int] = {}
    for name, amount in tokens:
        found[name] = found.get(name, 0) + amount
    return tuple(found.items())
