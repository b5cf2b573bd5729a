"""Actors, pools, mixes and cases, and their names. Frozen; knows no kernel, no host and no file.

A name carries everything that changes the work, because pyperf compares by name alone::

    scan[op=read]/avx2/thp/4t/1GiB
    chase/scalar/base/1t/256MiB+scan[op=copy]/avx2/base/1t/256MiB{pace=2e9;role=background}@0

Parts of an actor: kernel, parameters that differ from their defaults, variant (instruction set),
page policy, threads, size of its arena, options that differ from their defaults. ``@i`` picks the
measured actor of a mix that has more than one actor. ``parse(name(case)) == case``.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace

from bench.errors import UsageError
from bench.units import counted, format_size, parse_size


@dataclass(frozen=True)
class FileRef:
    """A user's file as a parameter value: compared and named by digest, opened by path."""

    digest: str
    path: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"file:{self.digest}"


Value = int | str | FileRef


@dataclass(frozen=True)
class Op:
    """One step of a script: ``pass``, ``rest`` (nanoseconds), ``take`` or ``put`` (tokens)."""

    kind: str
    amount: int = 1
    pool: str = ""

    def __str__(self) -> str:
        inside = f"{self.pool},{self.amount}" if self.pool else str(self.amount)
        return f"{self.kind}({inside})"


@dataclass(frozen=True)
class Actor:
    """One kernel at work: what it runs, on what memory, by how many threads, under which script."""

    kernel: str
    variant: str
    policy: str
    threads: int
    size: int
    params: tuple[tuple[str, Value], ...] = ()
    role: str = "measured"
    process: str = ""
    """Equal label: one address space. ``each``: every thread a process of its own (twin)."""
    priority: int = 0
    courtesy: str = "proceed"
    """Towards active actors of higher priority: ``proceed``, ``yield`` or ``pause``."""
    pace: float = 0.0
    """Useful bytes a second of one thread; 0: as fast as possible."""
    weight: float = 1.0
    """Share of this actor's work in a scenario's total."""
    joined: bool = False
    """Threads join after every pass (team kernels always do)."""
    aligned: bool = False
    """Array starts are not staggered: the control case for 4 KiB aliasing."""
    pin: str = "compact"
    """``compact``, ``scatter``, ``none`` or ``cpus:0-3,8``; ``compact:1`` keeps to node 1."""
    script: tuple[Op, ...] = ()

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise UsageError(f"an actor needs at least one thread, not {self.threads}")
        if self.size < 0:
            raise UsageError(f"a size cannot be negative: {self.size}")
        if self.role not in ("measured", "background"):
            raise UsageError(f"role is measured or background, not {self.role!r}")
        if self.courtesy not in ("proceed", "yield", "pause"):
            raise UsageError(f"courtesy is proceed, yield or pause, not {self.courtesy!r}")
        if not 0 <= self.priority <= 7:
            raise UsageError(f"priority is 0 to 7, not {self.priority}")
        object.__setattr__(self, "params", tuple(sorted(self.params, key=lambda item: item[0])))


@dataclass(frozen=True)
class Pool:
    """Counted tokens: a mutex has 1, ``sem:k`` has k, a channel is an item and a space pool."""

    name: str
    tokens: int
    capacity: int = 0
    """A put waits while this many are in; 0: unbounded."""
    fair: bool = False
    """Takes go by priority, then in the order they came; else as at a mutex."""

    def __str__(self) -> str:
        return f"pool({self.name},{self.tokens},{self.capacity}{',fair' * self.fair})"


@dataclass(frozen=True)
class Mix:
    """Actors started together; the only thing the engine runs. Alone is a mix of one."""

    actors: tuple[Actor, ...]
    pools: tuple[Pool, ...] = ()

    def __post_init__(self) -> None:
        if not self.actors:
            raise UsageError("a mix needs at least one actor")
        if not self.measured:
            raise UsageError("a mix needs at least one measured actor")
        known = {pool.name for pool in self.pools}
        if len(known) < len(self.pools):
            raise UsageError("two pools of a mix have the same name")
        for actor in self.actors:
            for op in actor.script:
                if op.kind in ("take", "put") and op.pool not in known:
                    raise UsageError(f"script uses pool {op.pool!r}, which the mix does not have")

    @property
    def measured(self) -> tuple[int, ...]:
        """Positions of the measured actors."""
        return tuple(i for i, actor in enumerate(self.actors) if actor.role == "measured")


@dataclass(frozen=True)
class Case:
    """One benchmark: a measured actor of a mix."""

    mix: Mix
    actor: int = 0

    def __post_init__(self) -> None:
        if self.actor not in self.mix.measured:
            raise UsageError(f"actor {self.actor} of the mix is not measured")


def cases(mix: Mix) -> tuple[Case, ...]:
    """Every benchmark of a mix: one value a measured actor."""
    return tuple(Case(mix, i) for i in mix.measured)


_OPTIONS = ("role", "process", "priority", "courtesy", "pace", "weight", "joined", "aligned", "pin")
_DEFAULTS = {item.name: item.default for item in fields(Actor)}


def actor_name(actor: Actor) -> str:
    """Name of one actor, without position."""
    params = ",".join(f"{key}={value}" for key, value in actor.params)
    parts = [
        f"{actor.kernel}[{params}]" if params else actor.kernel,
        actor.variant,
        actor.policy,
        f"{actor.threads}t",
        format_size(actor.size),
    ]
    options = []
    for key in _OPTIONS:
        value = getattr(actor, key)
        if value != _DEFAULTS[key]:
            options.append(f"{key}={value:.17g}" if isinstance(value, float) else f"{key}={value}")
    if actor.script:
        options.append("script=" + ".".join(str(op) for op in actor.script))
    return "/".join(parts) + ("{" + ";".join(options) + "}" if options else "")


def mix_name(mix: Mix) -> str:
    """Name of a mix: actors, then pools, joined with ``+``."""
    return "+".join([actor_name(a) for a in mix.actors] + [str(pool) for pool in mix.pools])


def name(case: Case) -> str:
    """Benchmark name of a case; ``parse`` reads it back."""
    suffix = f"@{case.actor}" if len(case.mix.actors) > 1 else ""
    return mix_name(case.mix) + suffix


def parse(text: str) -> Case:
    """Case of a benchmark name.

    Raises
    ------
    UsageError
        Where the text is not a name this module writes; says which part.
    """
    body, at, position = text.rpartition("@")
    if not at:
        body, position = text, "0"
    if not position.isdigit():
        raise UsageError(f"not an actor's position: @{position} in {text!r}")
    return Case(parse_mix(body), int(position))


def parse_mix(text: str) -> Mix:
    """Mix of a mix's name; ``mix_name`` writes it."""
    actors, pools = [], []
    for part in _split(text, "+"):
        if part.startswith("pool("):
            pools.append(_parse_pool(part))
        else:
            actors.append(_parse_actor(part))
    return Mix(tuple(actors), tuple(pools))


def with_paths(mix: Mix, paths: Mapping[str, str]) -> Mix:
    """Give file parameters, which names carry by digest, their paths back."""

    def located(value: Value) -> Value:
        return FileRef(value.digest, paths[value.digest]) if isinstance(value, FileRef) else value

    def found(actor: Actor) -> Actor:
        return replace(actor, params=tuple((key, located(value)) for key, value in actor.params))

    return replace(mix, actors=tuple(found(actor) for actor in mix.actors))


def parse_script(text: str) -> tuple[Op, ...]:
    """Script of ``take(m,1).pass(1).put(m,1)``; amounts default to 1, rests are nanoseconds."""
    ops = []
    for part in _split(text, "."):
        match = re.fullmatch(r"(pass|rest|take|put)(?:\(([^()]*)\))?", part)
        if match is None:
            raise UsageError(f"not a script step: {part!r}", "use pass, rest(ns), take(p), put(p)")
        kind, inside = match[1], [item for item in (match[2] or "").split(",") if item]
        pool = inside.pop(0) if kind in ("take", "put") and inside else ""
        if kind in ("take", "put") and not pool:
            raise UsageError(f"{kind} needs a pool: {part!r}", f"write {kind}(name)")
        ops.append(Op(kind, _integer(inside[0], part) if inside else 1, pool))
    return tuple(ops)


_ACTOR = re.compile(
    r"(?P<kernel>[a-z0-9_]+)(?:\[(?P<params>[^\[\]]*)\])?/(?P<variant>[a-z0-9_]+)"
    r"/(?P<policy>[a-z0-9_]+)/(?P<threads>\d+)t/(?P<size>\d+(?:[KMGT]iB|B))"
    r"(?:\{(?P<options>[^{}]*)\})?"
)


def _parse_actor(text: str) -> Actor:
    match = _ACTOR.fullmatch(text)
    if match is None:
        raise UsageError(
            f"not an actor's name: {text!r}",
            "kernel[param=value]/variant/policy/Nt/SIZE{option=value}",
        )
    options: dict[str, object] = {}
    for item in filter(None, (match["options"] or "").split(";")):
        key, _, value = item.partition("=")
        if key == "script":
            options[key] = parse_script(value)
        elif key in _OPTIONS:
            options[key] = _option(key, value)
        else:
            raise UsageError(f"unknown option {key!r} in {text!r}", f"known: {', '.join(_OPTIONS)}")
    params = []
    for item in filter(None, (match["params"] or "").split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise UsageError(f"parameter without a value: {item!r} in {text!r}")
        params.append((key, _param(value)))
    return Actor(
        match["kernel"],
        match["variant"],
        match["policy"],
        int(match["threads"]),
        parse_size(match["size"]),
        tuple(params),
        **options,  # type: ignore[arg-type]  # keys and types are checked by _option above
    )


def _param(text: str) -> Value:
    if text.startswith("file:"):
        return FileRef(text[5:])
    return int(text) if re.fullmatch(r"\d+", text) else text


def _option(key: str, text: str) -> object:
    default = _DEFAULTS[key]
    try:
        if isinstance(default, bool):
            return {"True": True, "False": False}[text]
        if isinstance(default, int):
            return int(text)
        return float(text) if isinstance(default, float) else text
    except (KeyError, ValueError):
        raise UsageError(f"option {key} cannot be {text!r}") from None


def _parse_pool(text: str) -> Pool:
    match = re.fullmatch(r"pool\(([a-z0-9_]+),(\d+),(\d+)(,fair)?\)", text)
    if match is None:
        raise UsageError(f"not a pool: {text!r}", "pool(name,tokens,capacity) or with ,fair")
    return Pool(match[1], int(match[2]), int(match[3]), bool(match[4]))


def _integer(text: str, where: str) -> int:
    if not text.isdigit():
        raise UsageError(f"not a whole number: {text!r} in {where!r}")
    return int(text)


def _split(text: str, separator: str) -> Iterator[str]:
    """Split outside brackets only."""
    depth, start = 0, 0
    for i, char in enumerate(text):
        if char in "[({":
            depth += 1
        elif char in "])}":
            depth -= 1
        elif char == separator and depth == 0:
            yield text[start:i]
            start = i + 1
    yield text[start:]


def told_stuck(mix: Mix, stuck: Mapping[str, int]) -> str:
    """Pools that scripts waited for when a deadline passed, for a message; empty where none did.

    Fair pools first: the others may hand work on, and to wait for work is nothing unusual.
    """
    fair = [pool.name for pool in mix.pools if pool.fair and stuck.get(pool.name)]
    names = fair or [pool.name for pool in mix.pools if stuck.get(pool.name)]
    waits = (f"{counted(stuck[name], 'actor')} for {name}" for name in names)
    return f"; waiting: {', '.join(waits)}" if names else ""
