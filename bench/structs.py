"""Actors and mixes as C structs, and what the extension says of them before they run."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.descriptors import checked, find_row, kernel, policy
from bench.errors import UsageError, unknown_name
from bench.extension import module, text
from bench.mix import Actor, FileRef, Mix

OPS = {"pass": 0, "rest": 1, "take": 2, "put": 3}
COURTESIES = {"proceed": 0, "yield": 1, "pause": 2}
MOST_NODES = 64


class Spec:
    """C structs of a mix, and everything they point to (cffi frees what Python forgets)."""

    def __init__(
        self,
        mix: Mix,
        cpus: Sequence[Sequence[int]] | None,
        nodes: Sequence[Sequence[int]] | None,
        seed: int,
    ) -> None:
        self.ffi = module().ffi
        self.keep: list[Any] = []
        self.mix = mix
        self.actors = self._new("ps_actor[]", len(mix.actors))
        self.pools = self._new("ps_pool[]", max(1, len(mix.pools)))
        pool_index = {pool.name: i for i, pool in enumerate(mix.pools)}
        labels: dict[str, int] = {}
        for i, pool in enumerate(mix.pools):
            row = self.pools[i]
            row.tokens, row.capacity, row.fair = pool.tokens, pool.capacity, pool.fair
        for i, actor in enumerate(mix.actors):
            own = list(cpus[i]) if cpus is not None else [-1] * actor.threads
            if len(own) != actor.threads:
                raise UsageError(f"actor {i} has {actor.threads} threads and {len(own)} CPUs")
            row = self.actors[i]
            row.cpus = self._new("int32_t[]", own)
            row.nodes = self._new("int32_t[]", list(nodes[i])) if nodes else self.ffi.NULL
            row.seed = seed
            row.process = labels.setdefault(actor.process, len(labels))
            row.script = self._new("ps_op[]", max(1, len(actor.script)))
            row.n_ops = len(actor.script)
            for k, op in enumerate(actor.script):
                row.script[k].kind, row.script[k].amount = OPS[op.kind], op.amount
                row.script[k].pool = pool_index.get(op.pool, 0)
            self._fill(row, actor)

    def _new(self, kind: str, value: Any) -> Any:
        made = self.ffi.new(kind, value)
        self.keep.append(made)
        return made

    def _fill(self, row: Any, actor: Actor) -> None:
        described = kernel(actor.kernel)
        row.kernel = find_row("kernel", actor.kernel)
        row.policy = find_row("policy", policy(actor.policy).name)
        known = [variant.name for variant in described.variants]
        if actor.variant not in known:
            raise unknown_name(f"variant of {actor.kernel}", actor.variant, known)
        row.variant = known.index(actor.variant)
        row.size_bytes, row.n_threads = actor.size, actor.threads
        row.split = actor.process == "each"
        row.measured = actor.role == "measured"
        row.joined, row.aligned = actor.joined, actor.aligned
        row.priority, row.courtesy = actor.priority, COURTESIES[actor.courtesy]
        row.pace_bytes_per_s = actor.pace
        given = dict(actor.params)
        values = self._new("ps_value[]", max(1, len(described.params)))
        for i, param in enumerate(described.params):
            value = checked(described, param, given.pop(param.name)) if param.name in given else ""
            if value == "":
                value = param.default
            if param.kind == "choice":
                values[i].number = param.choices.index(str(value))
            elif isinstance(value, FileRef):
                if not value.path:
                    raise UsageError(f"{described.name}[{param.name}]: no path for {value}")
                values[i].path = self._new("char[]", os.fsencode(value.path))
            elif isinstance(value, int):
                values[i].number = value
        for name in given:
            described.param(name)
        row.values = values


@dataclass(frozen=True)
class Footprint:
    """What an actor maps: bytes used and mapped on each of its NUMA nodes (one entry: unbound)."""

    used: tuple[int, ...]
    mapped: tuple[int, ...]

    @property
    def mapped_bytes(self) -> int:
        """Total over the nodes."""
        return sum(self.mapped)


def footprint(actor: Actor, nodes: Sequence[int] | None = None) -> Footprint:
    """Bytes the actor uses and maps, on each NUMA node; a split actor's is of one process each.

    Raises
    ------
    UsageError
        Where the parameters cannot be met (a size too small, an impossible combination).
    """
    spec = Spec(
        Mix((replace(actor, role="measured", script=()),)), None, [nodes] if nodes else None, 0
    )
    ffi, lib = module().ffi, module().lib
    used, mapped = ffi.new("uint64_t[]", MOST_NODES), ffi.new("uint64_t[]", MOST_NODES)
    count, why = ffi.new("uint32_t *"), ffi.new("char[]", 256)
    code = lib.ps_plan_actor(spec.actors, used, mapped, count, why)
    if code:
        raise UsageError(text(why) or f"{actor.kernel}: {os.strerror(code)}")
    n = count[0]
    return Footprint(tuple(used[i] for i in range(n)), tuple(mapped[i] for i in range(n)))


@dataclass(frozen=True)
class Effort:
    """What a pass takes as its kernel estimates it: of one thread, or of a team altogether."""

    ops: int = 0
    """0: a pass streams its memory once."""
    op_ns: float = 0.0
    """Computing."""
    op_waits: float = 0.0
    """In latencies of memory."""


def effort(actor: Actor) -> Effort:
    """Rough length of a pass, before there is any data.

    Raises
    ------
    UsageError
        Where the parameters cannot be met.
    """
    spec = Spec(Mix((replace(actor, role="measured", script=()),)), None, None, 0)
    out, why = module().ffi.new("ps_effort *"), module().ffi.new("char[]", 256)
    code = module().lib.ps_plan_effort(spec.actors, out, why)
    if code:
        raise UsageError(text(why) or f"{actor.kernel}: {os.strerror(code)}")
    return Effort(out.ops, out.op_ns, out.op_waits)


def accepts(actor: Actor) -> str:
    """Why the kernel cannot run with this page policy and these parameters; empty where it can."""
    spec = Spec(Mix((replace(actor, role="measured", script=()),)), None, None, 0)
    why = module().ffi.new("char[]", 256)
    code = module().lib.ps_accepts(spec.actors, why)
    return text(why) or os.strerror(code) if code else ""


def environment(mix: Mix) -> dict[str, str]:
    """Variables the process that runs a mix must be started with; an empty value: must not be set.

    Only some kernels need any, and most need none: malloc, say, chooses its pages when a program
    starts. A run in a process started otherwise is refused.

    Raises
    ------
    UsageError
        Where two actors of the mix need different values of one variable.
    """
    ffi, lib = module().ffi, module().lib
    needed: dict[str, str] = {}
    for actor in mix.actors:
        spec = Spec(Mix((replace(actor, role="measured", script=()),)), None, None, 0)
        out, why = ffi.new("char[]", 256), ffi.new("char[]", 256)
        code = lib.ps_environment(spec.actors, out, why)
        if code:
            raise UsageError(text(why) or f"{actor.kernel}: {os.strerror(code)}")
        name, equals, value = text(out).partition("=")
        if not equals:
            continue
        if needed.setdefault(name, value) != value:
            raise UsageError(
                f"{actor.kernel} with page policy {actor.policy} needs {name}={value!r}, another "
                f"actor of the mix {needed[name]!r}",
                "give both the same page policy, or measure them in mixes of their own",
            )
    return needed
