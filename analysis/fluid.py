"""Fluid model of a mix: phases that share CPUs and one memory interface, stepped by events.

What a remedy is expected to do before it is measured. Between two events every active pass has a
constant speed: its share of the interface by the sharing law, over what it had alone, with its
CPUs' time divided equally among the threads that want it. Pools and courtesy act as in the engine:
whoever puts a token back and takes it again at once wins against those that sleep.

The model knows no caches, no page tables and no interrupts. What it misses is the point of
measuring.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from analysis.rates import Alone as Alone  # what a mix is described by here
from analysis.rates import Load, gives_way, memory_factors
from bench.mix import Actor, Mix, Op

CYCLES = 200
"""Rounds of the slowest script that are simulated: beats between scripts average out."""
MOST_EVENTS = 40_000
STAGGER = 0.382
"""Of a script's length, by which each stream starts after the one before: in step, all phases would
collide each time, and a lock that breaks the step would look like a remedy."""


@dataclass
class _Stream:
    """One script under way: a team's, or one thread's."""

    actor: int
    cpus: tuple[int, ...]
    ops: tuple[Op, ...]
    alone: Alone
    threads: int
    """Of the actor: its pass time alone was measured with all of them."""
    position: int = 0
    left: float = 0.0
    """Passes, or seconds of rest, that are left of this operation."""
    blocked: bool = False
    waits_s: float = 0.0
    """Left of the stagger at the start."""
    passes: float = 0.0

    @property
    def op(self) -> Op:
        return self.ops[self.position]


@dataclass
class _Model:
    mix: Mix
    streams: list[_Stream]
    tokens: dict[str, int] = field(default_factory=dict)
    known: dict[tuple[float, ...], dict[int, float]] = field(default_factory=dict)
    """Memory factor of the streams that share, by everybody's part of a CPU."""


def pass_rates(
    mix: Mix, alone: Sequence[Alone], cpus: Sequence[Sequence[int]], teams: Sequence[bool]
) -> list[float]:
    """Passes a second of every actor.

    Parameters
    ----------
    mix : Mix
    alone : sequence of Alone
        One an actor, at the actor's number of threads.
    cpus : sequence of sequences of int
        CPUs of every actor's threads; -1 is not pinned, and counts as a CPU of its own.
    teams : sequence of bool
        Whether an actor's threads run one script together.

    Returns
    -------
    list of float
        Of a team, or the mean of the threads. 0 for an actor that never gets to run.
    """
    model = _Model(mix, [], {pool.name: pool.tokens for pool in mix.pools})
    for i, actor in enumerate(mix.actors):
        ops = actor.script or (Op("pass"),)
        together = teams[i] or actor.joined
        groups = [tuple(cpus[i])] if together else [(cpu,) for cpu in cpus[i]]
        model.streams += [_Stream(i, group, ops, alone[i], actor.threads) for group in groups]
    horizon = CYCLES * max(_cycle_s(stream) for stream in model.streams)
    warm, counted_s = horizon / 20, 0.0
    now = 0.0
    for k, stream in enumerate(model.streams):
        stream.left = stream.waits_s = (k * STAGGER % 1) * _cycle_s(stream)
        if not stream.waits_s:
            _begin(model, stream)
    started = False
    for _ in range(MOST_EVENTS):
        _advance_blocked(model)
        speeds = _speeds(model)
        step = _next_event(model, speeds, horizon - now)
        if not math.isfinite(step):
            break
        for stream, speed in zip(model.streams, speeds, strict=True):
            done = speed * step
            stream.left -= done
            if stream.op.kind == "pass" and not stream.waits_s:
                stream.passes += done
        now += step
        counted_s += step
        if not started and now >= warm:
            started, counted_s = True, 0.0
            for stream in model.streams:
                stream.passes = 0.0
        if now >= horizon:
            break
        for stream in model.streams:
            if not stream.blocked and stream.left <= 1e-12:
                _next_op(model, stream)
    rates = []
    for i in range(len(mix.actors)):
        own = [s.passes / counted_s for s in model.streams if s.actor == i] if counted_s else [0.0]
        rates.append(sum(own) / len(own))
    return rates


def _cycle_s(stream: _Stream) -> float:
    return sum(
        op.amount * (stream.alone.pass_s if op.kind == "pass" else 1e-9)
        for op in stream.ops
        if op.kind in ("pass", "rest")
    )


def _begin(model: _Model, stream: _Stream) -> None:
    """Set up the operation the stream is at; pool operations go through or block."""
    for _ in range(2 * len(stream.ops) + 1):
        op = stream.op
        if op.kind == "pass":
            stream.left = float(op.amount)
            return
        if op.kind == "rest":
            stream.left = op.amount * 1e-9
            return
        if not _move(model, op):
            stream.blocked, stream.left = True, math.inf
            return
        stream.position = (stream.position + 1) % len(stream.ops)
    # A script of tokens alone takes no time, and would go round for ever.
    stream.blocked, stream.left = True, math.inf


def _next_op(model: _Model, stream: _Stream) -> None:
    if stream.waits_s:
        stream.waits_s = 0.0
        _begin(model, stream)
        return
    stream.position = (stream.position + 1) % len(stream.ops)
    _begin(model, stream)


def _move(model: _Model, op: Op) -> bool:
    capacity = next(pool.capacity for pool in model.mix.pools if pool.name == op.pool)
    have = model.tokens[op.pool]
    if op.kind == "take":
        if have < op.amount:
            return False
        model.tokens[op.pool] = have - op.amount
        return True
    if capacity and have + op.amount > capacity:
        return False
    model.tokens[op.pool] = have + op.amount
    return True


def _advance_blocked(model: _Model) -> None:
    """Let waiting streams try again, until none of them gets any further."""
    moved = True
    while moved:
        moved = False
        for stream in model.streams:
            if stream.blocked and _could(model, stream.op):
                stream.blocked = False
                _begin(model, stream)
                moved = not stream.blocked or moved


def _could(model: _Model, op: Op) -> bool:
    if op.kind not in ("take", "put"):
        return False
    capacity = next(pool.capacity for pool in model.mix.pools if pool.name == op.pool)
    have = model.tokens[op.pool]
    if op.kind == "take":
        return have >= op.amount
    return not capacity or have + op.amount <= capacity


def _speeds(model: _Model) -> list[float]:
    """Passes a second, or seconds of rest a second, of every stream."""
    actors = model.mix.actors
    wanting = [not s.blocked and not s.waits_s and s.op.kind == "pass" for s in model.streams]
    top = max(
        (
            actors[s.actor].priority
            for s, wants in zip(model.streams, wanting, strict=True)
            if wants
        ),
        default=0,
    )
    active = [
        wants and not gives_way(actors[s.actor].courtesy, actors[s.actor].priority, top)
        for s, wants in zip(model.streams, wanting, strict=True)
    ]
    crowd = Counter(
        cpu for s, on in zip(model.streams, active, strict=True) if on for cpu in s.cpus if cpu >= 0
    )
    cpu_share = [
        sum(1 / crowd[cpu] if cpu >= 0 else 1.0 for cpu in s.cpus) / len(s.cpus) if on else 0.0
        for s, on in zip(model.streams, active, strict=True)
    ]
    memory = _memory_factors(model, cpu_share)
    speeds = []
    for i, stream in enumerate(model.streams):
        if stream.blocked:
            speeds.append(0.0)
        elif stream.waits_s or stream.op.kind == "rest":
            speeds.append(1.0)
        elif not active[i]:
            speeds.append(0.0)
        else:
            factor = min(memory[i], cpu_share[i]) if i in memory else cpu_share[i]
            speeds.append(factor / stream.alone.pass_s)
    return speeds


def _memory_factors(model: _Model, cpu_share: Sequence[float]) -> dict[int, float]:
    """Traffic each sharing stream gets, over what it has while its actor is alone."""
    key = tuple(cpu_share)
    if key not in model.known:
        sharing = [i for i, s in enumerate(model.streams) if cpu_share[i] and s.alone.has_memory]
        loads = [
            Load(s.alone, len(s.cpus) * cpu_share[i], _alone_rate(s))
            for i, s in ((i, model.streams[i]) for i in sharing)
        ]
        model.known[key] = dict(zip(sharing, memory_factors(loads), strict=True))
    return model.known[key]


def _alone_rate(stream: _Stream) -> float:
    """Traffic of this stream while its actor has the host to itself."""
    return stream.alone.traffic(stream.threads) * len(stream.cpus) / stream.threads


def _next_event(model: _Model, speeds: Sequence[float], left_s: float) -> float:
    times = [
        stream.left / speed
        for stream, speed in zip(model.streams, speeds, strict=True)
        if speed > 0
    ]
    return min([*times, left_s]) if times else math.inf


def saturation(alone: Sequence[Alone], cpus: Sequence[Sequence[int]]) -> float:
    """What all phases at once ask of the interface, as a share of what it gives.

    Under 1 nobody is ever slowed down by sharing bandwidth, whatever the phases do.
    """
    most: dict[object, float] = {}
    for i, (a, own) in enumerate(zip(alone, cpus, strict=True)):
        for j, cpu in enumerate(own):
            # Of the threads that share a CPU one runs at a time.
            key: object = cpu if cpu >= 0 else (i, j)
            most[key] = max(most.get(key, 0.0), a.b1 / a.bs if a.has_memory else 0.0)
    return sum(most.values())


SATURATED = 0.85
"""Of what as many threads would move without sharing: with less, they get into each other's way."""
FULL = 0.5
"""Of the most that any kernel moves: with less, it is not the interface that holds threads back.
Saturated bandwidths of streaming kernels differ by a third at most."""


def saturated_traffic(b1: float, several: float, threads: int, capacity: float) -> float:
    """Traffic of a kernel at saturation, from what a few threads of it move.

    Threads that still scale have not met the interface, and threads that move little have met
    something else (each other's locks, latency): what the interface would give them is not less
    than what it gives the kernel that moves most.

    Parameters
    ----------
    b1, several : float
        Traffic of one thread, and of ``threads`` threads.
    capacity : float
        Most that any kernel was seen to move, in the same unit.
    """
    scales = several >= SATURATED * threads * b1
    return max(b1, several, capacity if scales or several < FULL * capacity else 0.0)


def at_threads(alone: Alone, before: int, after: int) -> Alone:
    """The same pass by another number of threads: each its b1, all of them no more than alone."""
    if not alone.has_memory:
        return Alone(alone.pass_s * before / after)
    slower = alone.traffic(before) / alone.traffic(after)
    return replace(alone, pass_s=alone.pass_s * slower)


def shares_a_cpu(actors: Sequence[Actor], cpus: Sequence[Sequence[int]]) -> bool:
    """Whether two actors run on one CPU."""
    used: Mapping[int, int] = Counter(cpu for own in cpus for cpu in set(own) if cpu >= 0)
    return any(n > 1 for n in used.values()) and len(actors) > 1
