"""The registries of kernels and page policies as dataclasses, and what an actor may ask of them.

Nothing here knows a kernel or a policy by name.
"""

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from bench.errors import UsageError, unknown_name
from bench.extension import module, text
from bench.mix import Actor, FileRef, Value
from bench.units import format_size

PARAM_KINDS = ("u64", "size", "choice", "file")


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
    lib, ffi = module().lib, module().ffi
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


def kernels() -> Mapping[str, Kernel]:
    """Every kernel, by name."""
    return _kernels(module())


@functools.lru_cache(maxsize=1)
def _kernels(extension: ModuleType) -> Mapping[str, Kernel]:
    lib = extension.lib
    rows = (_kernel(lib.ps_kernel_at(i)) for i in range(lib.ps_n_kernels()))
    return {kernel.name: kernel for kernel in sorted(rows, key=lambda kernel: kernel.name)}


def policies() -> Mapping[str, Policy]:
    """Every page policy, by name, from small pages to large."""
    return _policies(module())


@functools.lru_cache(maxsize=1)
def _policies(extension: ModuleType) -> Mapping[str, Policy]:
    lib = extension.lib
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
    why = module().ffi.new("char[]", 256)
    code = module().lib.ps_policy_available(find_row("policy", name), why)
    return text(why) or os.strerror(code) if code else ""


def find_row(kind: str, name: str) -> Any:
    """Row of the extension's registry: ``kind`` is ``kernel`` or ``policy``."""
    lib = module().lib
    count, at = getattr(lib, _COUNT[kind]), getattr(lib, f"ps_{kind}_at")
    for i in range(count()):
        row = at(i)
        if text(row.name) == name:
            return row
    raise KeyError(name)


_COUNT = {"kernel": "ps_n_kernels", "policy": "ps_n_policies"}


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
        good = checked(described, param, value)
        if good != param.default:
            params.append((name, good))
    return replace(actor, params=tuple(params))


def checked(described: Kernel, param: Param, value: Value) -> Value:
    """The value; UsageError where the parameter cannot have it."""
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
