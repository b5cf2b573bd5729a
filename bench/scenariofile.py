"""Scenarios from TOML files and from the package, checked as sweeps are, for one host."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, ValidationInfo, model_validator

from bench.errors import UsageError, unknown_name
from bench.mix import Actor, Mix, Pool
from bench.registry import BASE, BEST, Registry, param_value, told
from bench.resources import Resources
from bench.scenario import Scenario
from bench.sizes import Probe, bandwidth_size, last_level
from bench.sweep import (
    Courtesy,
    Duration,
    KernelChoice,
    Pages,
    Pin,
    Rate,
    Script,
    Share,
    Size,
    Table,
    Tokens,
    _Digits,
    _Many,
    _Some,
    _text,
    parse_share,
)
from bench.sweepfile import packaged_names, read_named, refusal
from bench.topology import pin_order

SCENARIOS = "bench.scenarios"
DEFAULT = "prover"
"""The scenario of a command that is given none."""

Threads = (
    Annotated[int, Field(ge=1)]
    | Literal["rest"]
    | Annotated[float, _text(parse_share), Field(gt=0, le=1)]
)


def check_one_kernel(kernel: KernelChoice, pages: str, info: ValidationInfo) -> None:
    """ValueError for a choice that is more than one kernel, or pages that nobody knows."""
    several = [name for name, values in kernel.params.items() if len(values) > 1]
    if several or len(kernel.variant) > 1:
        raise ValueError("an actor runs one kernel with one value of every parameter")
    registry: Registry | None = (info.context or {}).get("registry")
    if registry is not None and pages not in registry.policies():
        known = list(registry.policies())
        raise ValueError(told(unknown_name("page policy", pages, known)))


class Member(Table):
    """One actor of a scenario."""

    name: str = Field(default="", pattern="^[a-z0-9_-]*$")
    """Default: the kernel's."""
    kernel: KernelChoice
    pages: str = BASE
    threads: Annotated[Threads, _Digits] = 1
    """A count, a share of the CPUs (at least one thread), or what the others leave."""
    size: Size | Literal["auto"] = "auto"
    role: Literal["background", "measured"] = "measured"
    weight: float = Field(default=1.0, ge=0)
    """0: told how it fares, but no part of the total."""
    priority: int = Field(default=0, ge=0, le=7)
    courtesy: Courtesy = "proceed"
    pace: Rate = 0.0
    process: str = ""
    joined: bool = False
    pin: Pin = "compact"
    script: Script = ()

    @model_validator(mode="after")
    def _one_kernel(self, info: ValidationInfo) -> Self:
        check_one_kernel(self.kernel, self.pages, info)
        return self

    @property
    def called(self) -> str:
        """Name of the actor."""
        return self.name or self.kernel.name


class ScenarioFile(Table):
    """A whole scenario file."""

    summary: str = ""
    critical: str = ""
    """The actor others wait for; none given: the only one of the highest priority, if any."""
    window: Duration = 0.4
    warm: Duration = 0.05
    min_passes: int = Field(default=3, ge=1)
    dead_band: Share = 0.02
    pages: Annotated[Pages, _Many] = ("all",)
    """Page policies tried as remedies."""
    actor: Annotated[tuple[Member, ...], _Many, _Some]
    pool: Annotated[tuple[Tokens, ...], _Many] = ()

    @model_validator(mode="after")
    def _names(self) -> Self:
        names = [member.called for member in self.actor]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two actors are called {', '.join(twice)}; give them a name")
        if self.critical and self.critical not in names:
            raise ValueError(f"critical: no actor {self.critical!r} among {', '.join(names)}")
        return self


_TABLES = (ScenarioFile, Member, KernelChoice, Tokens)


def scenario_names(table: str = "actor") -> list[str]:
    """Names of the scenarios that come with the package: the folder is the registry.

    ``table``: those that have such tables; a pipeline has ``task``.
    """
    names = packaged_names(SCENARIOS)
    return [name for name in names if table in read_named(SCENARIOS, "scenario", name)[0]]


def load(name: str, registry: Registry | None = None) -> ScenarioFile:
    """Read a packaged scenario by name, or a file: a path with a folder, or ending in ``.toml``.

    Raises
    ------
    UsageError
        With every fault of the file, one a line, each with its dotted path.
    """
    data, source, folder = read_scenario(name, "actor")
    return validate(data, source, registry, folder)


def read_scenario(name: str, table: str) -> tuple[dict[str, Any], str, Path | None]:
    """Content, source and folder of a packaged scenario or of a file that has such tables.

    ``actor``: a mix for ``remedy``; ``task``: a pipeline. Each is refused where the other is asked.
    """
    data, source, folder = read_named(SCENARIOS, "scenario", name)
    if table == "actor" and table not in data and "task" in data:
        raise UsageError(
            f"{source} describes a pipeline, not a mix of actors",
            f"try remedies on it with: pipeline run {name} --remedy mutex",
        )
    if table == "task" and table not in data and "actor" in data:
        raise UsageError(
            f"{source} has actors and no tasks: it is no pipeline", f"try it with: remedy {name}"
        )
    return data, source, folder


def validate(
    data: object,
    source: str,
    registry: Registry | None = None,
    folder: Path | None = None,
) -> ScenarioFile:
    """Check plain data; a kernel that is not there is a fault, nothing takes its place."""
    try:
        return ScenarioFile.model_validate(data, context={"registry": registry, "folder": folder})
    except ValidationError as error:
        raise refusal(source, error, _TABLES) from None


def resolve(
    read: ScenarioFile, name: str, registry: Registry, resources: Resources, probe: Probe
) -> Scenario:
    """Scenario for one host: threads and sizes decided.

    Threads never add up to more than one a CPU where the file leaves them open, except that every
    actor has one.
    """
    counts = thread_counts([member.threads for member in read.actor], resources.threads)
    actors = [
        _actor(member, threads, registry, resources, probe)
        for member, threads in zip(read.actor, counts, strict=True)
    ]
    pools = tuple(Pool(pool.name, pool.tokens, pool.capacity) for pool in read.pool)
    names = tuple(member.called for member in read.actor)
    return Scenario(
        Path(name).stem, Mix(tuple(actors), pools), names, _critical(read, names), read.summary
    )


def thread_counts(wanted: Sequence[int | float | str], cpus: int) -> list[int]:
    """Threads of every actor: a count, a share of ``cpus``, or ``rest``; each at least one."""
    counts = [
        0 if word == "rest" else word if isinstance(word, int) else max(1, int(float(word) * cpus))
        for word in wanted
    ]
    open_ = [i for i, word in enumerate(wanted) if word == "rest"]
    left = max(0, cpus - sum(counts))
    for rank, i in enumerate(open_):
        counts[i] = max(1, left // len(open_) + (rank < left % len(open_)))
    return counts


def _actor(
    member: Member, threads: int, registry: Registry, resources: Resources, probe: Probe
) -> Actor:
    bare = kernel_actor(
        member.kernel, member.pages, threads, member.size, registry, resources, probe
    )
    return replace(
        bare,
        role=member.role,
        process=member.process,
        priority=member.priority,
        courtesy=member.courtesy,
        pace=member.pace,
        weight=member.weight,
        joined=member.joined,
        pin=member.pin,
        script=member.script,
    )


def kernel_actor(
    choice: KernelChoice,
    pages: str,
    threads: int,
    size: int | str,
    registry: Registry,
    resources: Resources,
    probe: Probe,
) -> Actor:
    """Actor that runs one kernel pass after pass; ``auto`` is a size beyond the caches."""
    kernel = registry.kernels()[choice.name]
    (variant,) = choice.variant
    params = tuple(
        (key, param_value(kernel, key, values[0])) for key, values in choice.params.items()
    )
    if not kernel.arrays:
        size = 0
    elif isinstance(size, str):
        cpus = pin_order(resources.topology, resources.allowed)[:threads]
        llc = last_level(resources.topology, cpus, probe)
        size = bandwidth_size(llc, resources.page_bytes, probe)
    return registry.canonical(
        Actor(
            choice.name,
            kernel.best_variant if variant == BEST else variant,
            pages,
            threads,
            size,
            params,
        )
    )


def _critical(read: ScenarioFile, names: Sequence[str]) -> str:
    if read.critical:
        return read.critical
    top = max(member.priority for member in read.actor)
    first = [names[i] for i, member in enumerate(read.actor) if member.priority == top]
    return first[0] if top > 0 and len(first) == 1 else ""
