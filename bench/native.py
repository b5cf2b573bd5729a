"""The only importer of the extension: registries as dataclasses, C codes as exceptions.

Imports no numpy, so that a worker starts quickly. Nothing here knows a kernel or a policy by name.
"""

import errno
import functools
import importlib
import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from bench.errors import HostError, PagestormError, UsageError, unknown_name
from bench.mix import Actor, FileRef, Mix, Value
from bench.units import format_size

MODULE = "bench._native"
PARAM_KINDS = ("u64", "size", "choice", "file")
OPS = {"pass": 0, "rest": 1, "take": 2, "put": 3}
COURTESIES = {"proceed": 0, "yield": 1, "pause": 2}
N_BINS = 640


class NotBuiltError(HostError):
    """The compiled module is missing."""


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


@functools.cache
def _module() -> ModuleType:
    try:
        # Another build of the same extension, such as one with sanitizers.
        path = os.environ.get("PAGESTORM_EXTENSION")
        if path and MODULE == "bench._native":
            return _load_file(MODULE, path)
        return importlib.import_module(MODULE)
    except ImportError as error:
        raise NotBuiltError(
            f"the compiled module {MODULE} is missing or does not load ({error})",
            "run `make build` in the checkout, or `pip install -e .`; it needs Linux, gcc and "
            "Python's headers (Debian: apt install gcc python3-dev)",
        ) from None


def _load_file(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"not an extension: {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def use_module(name: str) -> None:
    """Load another build of the engine, for tests with kernels of their own."""
    global MODULE
    MODULE = name
    for cached in (_module, kernels, policies):
        cached.cache_clear()


def load() -> None:
    """Load the extension now rather than at first use."""
    _module()


def text(pointer: Any) -> str:
    """Decode a C string or char array; empty for NULL."""
    ffi = _module().ffi
    return ffi.string(pointer).decode() if pointer else ""


# ---- registries ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Param:
    """One parameter of a kernel."""

    name: str
    kind: str
    default: Value
    min: int
    max: int
    choices: tuple[str, ...]
    unit: str
    help: str


@dataclass(frozen=True)
class Array:
    """One array of a kernel; ``element`` is a numpy type string."""

    name: str
    element: str
    role: str
    per_thread: bool


@dataclass(frozen=True)
class Variant:
    """One instruction set of a kernel."""

    name: str
    needs: str
    available: bool


@dataclass(frozen=True)
class Kernel:
    """One memory access pattern, as its descriptor in C says."""

    name: str
    summary: str
    op: str
    """Unit latency is quoted for (``load``); empty: bandwidth only."""
    params: tuple[Param, ...]
    arrays: tuple[Array, ...]
    variants: tuple[Variant, ...]
    phases: tuple[str, ...]
    sharing: str
    memory: str

    @property
    def divided(self) -> bool:
        """Whether a thread walks a share of the actor's memory only, the same one in each pass.

        Not where threads take what comes next, share arrays, or get new memory all the time.
        """
        own = all(array.per_thread for array in self.arrays)
        return self.sharing == "sliced" and self.memory == "arena" and own

    def param(self, name: str) -> Param:
        """Parameter by name; UsageError lists the close ones."""
        for param in self.params:
            if param.name == name:
                return param
        raise unknown_name(f"parameter of {self.name}", name, [p.name for p in self.params])

    @property
    def best_variant(self) -> str:
        """Last variant this CPU has: descriptors list the plainest first."""
        return [variant.name for variant in self.variants if variant.available][-1]


@dataclass(frozen=True)
class Policy:
    """One page policy."""

    name: str
    summary: str
    page_bytes: int
    hugetlb: bool


@dataclass(frozen=True)
class Footprint:
    """What an actor maps: bytes used and mapped on each of its NUMA nodes (one entry: unbound)."""

    used: tuple[int, ...]
    mapped: tuple[int, ...]

    @property
    def mapped_bytes(self) -> int:
        """Total over the nodes."""
        return sum(self.mapped)


def _param(row: Any) -> Param:
    kind = PARAM_KINDS[row.kind]
    choices = tuple(text(row.choices[i]) for i in range(row.n_choices))
    default: Value = row.default_value
    if kind == "choice":
        default = choices[row.default_value]
    elif kind == "file":
        default = ""
    return Param(
        text(row.name), kind, default, row.min, row.max, choices, text(row.unit), text(row.help)
    )


def _kernel(row: Any) -> Kernel:
    lib, ffi = _module().lib, _module().ffi
    roles = ("in", "out", "scratch")
    variants = []
    for i in range(row.n_variants):
        names = ffi.new("char[]", 256)
        lib.ps_isa_names(row.variants[i].needs, names)
        available = lib.ps_isa_has(row.variants[i].needs)
        variants.append(Variant(text(row.variants[i].name), text(names), bool(available)))
    return Kernel(
        name=text(row.name),
        summary=text(row.summary),
        op=text(row.op),
        params=tuple(_param(row.params[i]) for i in range(row.n_params)),
        arrays=tuple(
            Array(
                text(row.arrays[i].name),
                text(row.arrays[i].element),
                roles[row.arrays[i].role],
                row.arrays[i].extent == 0,
            )
            for i in range(row.n_arrays)
        ),
        variants=tuple(variants),
        phases=tuple(text(row.phases[i]) for i in range(row.n_phases)),
        sharing=("sliced", "team")[row.sharing],
        memory=("arena", "churn")[row.memory],
    )


@functools.cache
def kernels() -> Mapping[str, Kernel]:
    """Every kernel, by name."""
    lib = _module().lib
    rows = (_kernel(lib.ps_kernel_at(i)) for i in range(lib.ps_n_kernels()))
    return {kernel.name: kernel for kernel in sorted(rows, key=lambda kernel: kernel.name)}


@functools.cache
def policies() -> Mapping[str, Policy]:
    """Every page policy, by name, from small pages to large."""
    lib = _module().lib
    found = []
    for i in range(lib.ps_n_policies()):
        row = lib.ps_policy_at(i)
        page = lib.ps_policy_page(row)
        found.append(Policy(text(row.name), text(row.summary), page, bool(row.hugetlb)))
    found.sort(key=lambda policy: (policy.page_bytes, policy.hugetlb))
    return {policy.name: policy for policy in found}


def kernel(name: str) -> Kernel:
    """Kernel by name; UsageError lists the close ones."""
    if name not in kernels():
        raise unknown_name("kernel", name, list(kernels()))
    return kernels()[name]


def policy(name: str) -> Policy:
    """Page policy by name; UsageError lists the close ones."""
    if name not in policies():
        raise unknown_name("page policy", name, list(policies()))
    return policies()[name]


def policy_available(name: str) -> str:
    """Why the host cannot give a page policy, with the way out; empty where it can."""
    policy(name)
    why = _module().ffi.new("char[]", 256)
    code = _module().lib.ps_policy_available(_row("policy", name), why)
    return text(why) or os.strerror(code) if code else ""


def _row(kind: str, name: str) -> Any:
    lib = _module().lib
    count, at = getattr(lib, _COUNT[kind]), getattr(lib, f"ps_{kind}_at")
    for i in range(count()):
        row = at(i)
        if text(row.name) == name:
            return row
    raise KeyError(name)


_COUNT = {"kernel": "ps_n_kernels", "policy": "ps_n_policies"}


# ---- actors --------------------------------------------------------------------------------------


def canonical(actor: Actor) -> Actor:
    """The same actor with checked names and values, and without parameters at their defaults.

    Raises
    ------
    UsageError
        For an unknown kernel, policy, variant or parameter, or a value out of bounds.
    """
    described = kernel(actor.kernel)
    policy(actor.policy)
    known = [variant.name for variant in described.variants]
    if actor.variant not in known:
        raise unknown_name(f"variant of {actor.kernel}", actor.variant, known)
    params = []
    for name, value in actor.params:
        param = described.param(name)
        checked = _checked(described, param, value)
        if checked != param.default:
            params.append((name, checked))
    return replace(actor, params=tuple(params))


def _checked(described: Kernel, param: Param, value: Value) -> Value:
    where = f"{described.name}[{param.name}]"
    if param.kind == "choice":
        if value not in param.choices:
            raise unknown_name(f"value of {where}", str(value), list(param.choices))
        return value
    if param.kind == "file":
        if not isinstance(value, FileRef):
            raise UsageError(f"{where} needs a file, not {value!r}")
        return value
    if not isinstance(value, int):
        raise UsageError(f"{where} needs a whole number, not {value!r}")
    if not param.min <= value <= param.max:
        show = format_size if param.kind == "size" else str
        raise UsageError(f"{where} is {show(param.min)} to {show(param.max)}, not {show(value)}")
    return value


class _Spec:
    """C structs of a mix, and everything they point to (cffi frees what Python forgets)."""

    def __init__(
        self,
        mix: Mix,
        cpus: Sequence[Sequence[int]] | None,
        nodes: Sequence[Sequence[int]] | None,
        seed: int,
    ) -> None:
        self.ffi = _module().ffi
        self.keep: list[Any] = []
        self.mix = mix
        self.actors = self._new("ps_actor[]", len(mix.actors))
        self.pools = self._new("ps_pool[]", max(1, len(mix.pools)))
        pool_index = {pool.name: i for i, pool in enumerate(mix.pools)}
        labels: dict[str, int] = {}
        for i, pool in enumerate(mix.pools):
            self.pools[i].tokens, self.pools[i].capacity = pool.tokens, pool.capacity
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
        row.kernel = _row("kernel", actor.kernel)
        row.policy = _row("policy", policy(actor.policy).name)
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
            value = _checked(described, param, given.pop(param.name)) if param.name in given else ""
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


def footprint(actor: Actor, nodes: Sequence[int] | None = None) -> Footprint:
    """Bytes the actor uses and maps, on each NUMA node; a split actor's is of one process each.

    Raises
    ------
    UsageError
        Where the parameters cannot be met (a size too small, an impossible combination).
    """
    spec = _Spec(
        Mix((replace(actor, role="measured", script=()),)), None, [nodes] if nodes else None, 0
    )
    ffi, lib = _module().ffi, _module().lib
    used, mapped = ffi.new("uint64_t[65]"), ffi.new("uint64_t[65]")
    count, why = ffi.new("uint32_t *"), ffi.new("char[]", 256)
    code = lib.ps_plan_actor(spec.actors, used, mapped, count, why)
    if code:
        raise UsageError(text(why) or f"{actor.kernel}: {os.strerror(code)}")
    n = count[0]
    return Footprint(tuple(used[i] for i in range(n)), tuple(mapped[i] for i in range(n)))


def accepts(actor: Actor) -> str:
    """Why the kernel cannot run with this page policy and these parameters; empty where it can."""
    spec = _Spec(Mix((replace(actor, role="measured", script=()),)), None, None, 0)
    why = _module().ffi.new("char[]", 256)
    code = _module().lib.ps_accepts(spec.actors, why)
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
    ffi, lib = _module().ffi, _module().lib
    needed: dict[str, str] = {}
    for actor in mix.actors:
        spec = _Spec(Mix((replace(actor, role="measured", script=()),)), None, None, 0)
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


# ---- running -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunSettings:
    """How the engine runs a mix; times in seconds."""

    window_s: float = 0.1
    warm_s: float = 0.02
    min_passes: int = 3
    fixed_passes: int = 0
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
    probes: dict[str, tuple[str, str]]
    spec: _Spec
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
    ffi, lib = _module().ffi, _module().lib
    spec = _Spec(mix, cpus, nodes, settings.seed)
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
    c_mix.deadline_ns = int(settings.deadline_s * 1e9)
    c_mix.keep, c_mix.check = keep, settings.check
    c_mix.probe_paths, c_mix.n_probes = ffi.cast("char const *const *", pointers), len(paths)
    c_mix.probe_text, c_mix.probe_cap, c_mix.probe_bytes = contents, cap, lengths
    result = ffi.new("ps_result *")
    actors = ffi.new("ps_actor_result[]", len(mix.actors))
    threads = ffi.new("ps_thread_result[]", n_threads)
    pools = ffi.new("ps_pool_result[]", max(1, len(mix.pools)))
    result.actors, result.threads, result.pools = actors, threads, pools
    code = lib.ps_run(c_mix, result)
    if code:
        message = text(result.why) or os.strerror(code)
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
        probes={path: (read[i], read[n + i]) for i, path in enumerate(probes)},
        spec=spec,
        kept=result.kept,
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
    ffi, lib = _module().ffi, _module().lib
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


# ---- small measurements --------------------------------------------------------------------------


def bin_edges_ns() -> tuple[float, ...]:
    """Lower edges of the step-time histogram's bins, and the end of the last but one."""
    return tuple(_module().lib.ps_bin_edge_ns(i) for i in range(N_BINS + 1))


def _measure(function: str, *arguments: int, n_out: int = 1) -> tuple[float, ...]:
    ffi, lib = _module().ffi, _module().lib
    out = [ffi.new("double *") for _ in range(n_out)]
    code = getattr(lib, function)(*arguments, *out)
    if code:
        raise RunFailedError(f"{function}: {os.strerror(code)}", "probe")
    return tuple(value[0] for value in out)


def pingpong_ns(cpu_a: int, cpu_b: int, rounds: int = 2000) -> float:
    """Cache-line round trip between two CPUs."""
    return _measure("ps_pingpong", cpu_a, cpu_b, rounds)[0]


def add_rate(cpu: int, seconds: float = 0.0005) -> float:
    """Independent 64-bit adds a nanosecond; a busy SMT sibling lowers it."""
    return _measure("ps_add_rate", cpu, int(seconds * 1e9))[0]


def shootdown_cost_ns(cpu_a: int, cpu_b: int, rounds: int = 200) -> tuple[float, float]:
    """One-page munmap, alone and beside a running thread of this process on ``cpu_b``."""
    alone, beside = _measure("ps_shootdown_cost", cpu_a, cpu_b, rounds, n_out=2)
    return alone, beside


def clock_resolution_ns() -> int:
    """Smallest step of the clock, measured."""
    return int(_module().lib.ps_clock_resolution_ns())
