"""Runs of the engine; its codes as exceptions."""

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.descriptors import kernel
from bench.errors import HostError, PagestormError
from bench.extension import module, text
from bench.mix import Actor, Mix, told_stuck
from bench.passlog import Event
from bench.structs import Spec


class RefusedError(HostError):
    """The host cannot give what a mix needs: becomes a skip with its reason, never a number."""

    def __init__(self, message: str, stage: str) -> None:
        super().__init__(message)
        self.stage = stage


class RunFailedError(PagestormError):
    """A run broke: a wrong result, a dead process, a passed deadline."""

    def __init__(self, message: str, stage: str) -> None:
        super().__init__(message)
        self.stage = stage


@dataclass(frozen=True)
class RunSettings:
    """How the engine runs a mix; times in seconds."""

    window_s: float = 0.1
    warm_s: float = 0.02
    min_passes: int = 3
    warm_passes: int = 0
    """Of every measured actor, before the window opens."""
    fixed_passes: int = 0
    log_events: int = 0
    """Operations of scripts that are noted, of all scripts together."""
    deadline_s: float = 30.0
    check: bool = True
    seed: int = 1


@dataclass
class RawRun:
    """What one call of the engine left: C structs plus the text of the probe files.

    Rows of ``actors``, ``threads`` and ``pools`` are only valid as long as this object lives.
    """

    window_s: float
    probe_s: float
    deadline_hit: bool
    actors: Any
    threads: Any
    pools: Any
    events: tuple[Event, ...]
    """Operations of scripts, script after script, times from the opening of the window."""
    lost_events: int
    probes: dict[str, tuple[str, str]]
    spec: Spec
    kept: Any


# What the host could not give; everything else is a failure of the run.
_REFUSALS = (errno.ENOMEM, errno.ENOTSUP, errno.EAGAIN, errno.EPERM, errno.EACCES)
_SKIP_STAGES = ("", "map", "touch", "fill", "fork", "start")


def run(
    mix: Mix,
    settings: RunSettings,
    cpus: Sequence[Sequence[int]] | None = None,
    nodes: Sequence[Sequence[int]] | None = None,
    probes: Sequence[str] = (),
    keep: bool = False,
) -> RawRun:
    """Run a mix once in this process (fresh, if the mix has several address spaces).

    Raises
    ------
    RefusedError
        The host cannot give the memory or the CPU lacks an instruction set.
    RunFailedError
        A result was wrong, a process died, or the deadline passed.
    """
    ffi, lib = module().ffi, module().lib
    spec = Spec(mix, cpus, nodes, settings.seed)
    n_threads = sum(actor.threads for actor in mix.actors)
    cap = 1 << 20
    paths = [ffi.new("char[]", os.fsencode(path)) for path in probes]
    contents = ffi.new("char[]", 2 * len(paths) * cap if paths else 1)
    lengths = ffi.new("uint64_t[]", max(1, 2 * len(paths)))
    pointers = ffi.new("char *[]", paths or [ffi.NULL])
    c_mix = ffi.new("ps_mix *")
    c_mix.actors, c_mix.n_actors = spec.actors, len(mix.actors)
    c_mix.pools, c_mix.n_pools = spec.pools, len(mix.pools)
    c_mix.window_ns, c_mix.warm_ns = int(settings.window_s * 1e9), int(settings.warm_s * 1e9)
    c_mix.min_passes, c_mix.fixed_passes = settings.min_passes, settings.fixed_passes
    c_mix.warm_passes, c_mix.log_events = settings.warm_passes, settings.log_events
    c_mix.deadline_ns = int(settings.deadline_s * 1e9)
    c_mix.keep, c_mix.check = keep, settings.check
    c_mix.probe_paths, c_mix.n_probes = ffi.cast("char const *const *", pointers), len(paths)
    c_mix.probe_text, c_mix.probe_cap, c_mix.probe_bytes = contents, cap, lengths
    result = ffi.new("ps_result *")
    actors = ffi.new("ps_actor_result[]", len(mix.actors))
    threads = ffi.new("ps_thread_result[]", n_threads)
    pools = ffi.new("ps_pool_result[]", max(1, len(mix.pools)))
    events = ffi.new("ps_event[]", max(1, settings.log_events))
    result.actors, result.threads, result.pools = actors, threads, pools
    result.events = events
    code = lib.ps_run(c_mix, result)
    if code:
        stuck = {pool.name: pools[i].stuck for i, pool in enumerate(mix.pools)}
        message = (text(result.why) or os.strerror(code)) + told_stuck(mix, stuck)
        stage = text(result.stage)
        if code in _REFUSALS and stage in _SKIP_STAGES:
            raise RefusedError(message, stage)
        raise RunFailedError(message, stage)
    n = len(paths)
    read = [
        bytes(ffi.buffer(contents + i * cap, lengths[i])).decode(errors="replace")
        for i in range(2 * n)
    ]
    return RawRun(
        window_s=result.window_ns * 1e-9,
        probe_s=result.probe_ns * 1e-9,
        deadline_hit=bool(result.deadline_hit),
        actors=actors,
        threads=threads,
        pools=pools,
        events=_events(result),
        lost_events=result.lost_events,
        probes={path: (read[i], read[n + i]) for i, path in enumerate(probes)},
        spec=spec,
        kept=result.kept,
    )


def _events(result: Any) -> tuple[Event, ...]:
    opened = result.open_ns
    return tuple(
        Event(e.actor, e.thread, e.op, e.cycle, e.start_ns - opened, e.end_ns - opened)
        for e in (result.events[i] for i in range(result.n_events))
    )


@dataclass(frozen=True)
class Once:
    """Arrays and figures after exactly so many passes, for tests."""

    arrays: Mapping[str, tuple[bytes, ...]]
    """Contents by array name: one entry a thread, or one alone for a per-actor array."""
    work: Mapping[str, int]
    seconds_per_pass: float


WORK_FIELDS = (
    "read_bytes",
    "written_bytes",
    "updated_bytes",
    "bus_min_bytes",
    "bus_max_bytes",
    "ops",
    "n_steps",
    "n_stages",
    "chunk_bytes",
)


def work_of(row: Any) -> dict[str, int]:
    """``ps_work`` as a dictionary."""
    return {name: getattr(row, name) for name in WORK_FIELDS}


def run_once(actor: Actor, passes: int = 1, check: bool = True, seed: int = 1) -> Once:
    """Run exactly ``passes`` passes with no warm-up and return the arrays."""
    ffi, lib = module().ffi, module().lib
    settings = RunSettings(fixed_passes=passes, check=check, seed=seed)
    raw = run(Mix((replace(actor, role="measured", script=()),)), settings, keep=True)
    arrays: dict[str, tuple[bytes, ...]] = {}
    start, size = ffi.new("void **"), ffi.new("uint64_t *")
    try:
        for k, array in enumerate(kernel(actor.kernel).arrays):
            contents = []
            for thread in range(actor.threads if array.per_thread else 1):
                lib.ps_kept_array(raw.kept, 0, thread, k, start, size)
                contents.append(bytes(ffi.buffer(start[0], size[0])) if size[0] else b"")
            arrays[array.name] = tuple(contents)
    finally:
        lib.ps_release(raw.kept)
    return Once(arrays, work_of(raw.actors[0].work), raw.actors[0].seconds_per_pass)
