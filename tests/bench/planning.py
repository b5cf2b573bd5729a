"""Kernels, page policies and hosts for planning tests: nothing here exists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bench import native
from bench.errors import UsageError
from bench.mix import Actor, FileRef
from bench.native import Array, Effort, Footprint, Kernel, Param, Policy, Variant
from bench.resources import Resources
from bench.sweepfile import validate
from bench.topology import Topology

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def _choice(name, *choices):
    return Param(name, "choice", choices[0], 0, 0, choices, "", "")


def _number(name, default, low, high, unit="", kind="u64"):
    return Param(name, kind, default, low, high, (), unit, "")


def _kernel(
    name,
    op="",
    params=(),
    per_thread=(True,),
    variants=("scalar", "wide"),
    memory="arena",
    sharing="sliced",
):
    arrays = tuple(Array(f"a{i}", "u8", "in", each) for i, each in enumerate(per_thread))
    found = tuple(Variant(variant, "", variant != "wider") for variant in variants)
    return Kernel(name, name, op, tuple(params), arrays, found, (), sharing, memory)


KERNELS = {
    kernel.name: kernel
    for kernel in (
        _kernel(
            "stream",
            params=[_choice("op", "read", "copy", "triad"), _choice("store", "plain", "nt")],
            variants=("scalar", "wide", "wider"),
        ),
        _kernel("walk", "load", [_number("loads", 262144, 1, 1 << 40, "loads")]),
        _kernel("shared", per_thread=(True, False)),
        _kernel("rows", "entry", per_thread=(False,), sharing="team"),
        _kernel(
            "chunks", params=[_number("chunk", MIB, 4 * KIB, GIB, "B", "size")], memory="churn"
        ),
        _kernel("matrix", params=[Param("file", "file", "", 0, 0, (), "", "")]),
        _kernel("spin", "round", [_number("steps", 20, 1, 1000)], per_thread=()),
    )
}
POLICIES = {
    policy.name: policy
    for policy in (
        Policy("base", "", 4 * KIB, False),
        Policy("mthp16k", "", 16 * KIB, False),
        Policy("mthp64k", "", 64 * KIB, False),
        Policy("thp", "", 2 * MIB, False),
        Policy("2m", "", 2 * MIB, True),
        Policy("1g", "", GIB, True),
    )
}
MTHP_OFF = {
    f"mthp{k}k": f"/sys/hugepages-{k}kB/enabled is never; as root: echo always > it"
    for k in (16, 64)
}


@dataclass
class Made:
    """A registry. ``why_not`` is what the running host would say of its policies."""

    why_not: Mapping[str, str] = field(default_factory=lambda: dict(MTHP_OFF))
    refuses: Mapping[str, str] = field(default_factory=dict)
    """Policy -> reason of every kernel against it."""

    def kernels(self):
        return KERNELS

    def policies(self):
        return POLICIES

    def policy_available(self, name):
        return self.why_not.get(name, "")

    def canonical(self, actor: Actor) -> Actor:
        kernel, params = KERNELS[actor.kernel], []
        for name, value in actor.params:
            checked = native.checked(kernel, kernel.param(name), value)
            if checked != kernel.param(name).default:
                params.append((name, checked))
        return replace(actor, params=tuple(params))

    def footprint(self, actor: Actor, nodes: Sequence[int] | None = None) -> Footprint:
        if KERNELS[actor.kernel].arrays and actor.size < 4096 * actor.threads:
            raise UsageError(f"{actor.size} B are too few for {actor.threads} threads")
        order = list(dict.fromkeys(nodes or [0]))
        threads = [list(nodes or [0] * actor.threads).count(node) for node in order]
        used = tuple(actor.size * n // actor.threads for n in threads)
        page = POLICIES[actor.policy].page_bytes
        return Footprint(used, tuple(-(-size // page) * page for size in used))

    def effort(self, actor: Actor) -> Effort:
        if actor.kernel == "walk":
            return Effort(int(dict(actor.params).get("loads", 262144)), op_waits=1.0)
        return Effort()

    def accepts(self, actor: Actor) -> str:
        return self.refuses.get(actor.policy, "")


def config(*sweeps, **head):
    """A checked sweep of plain tables."""
    return validate({"sweep": list(sweeps), **head}, "test", Made())


def resources(topology: Topology, memory=64 * GIB, pools=None, **changes) -> Resources:
    """Use of all CPUs; ``pools`` are free pages of the whole host by page size."""
    cpus = tuple(cpu.id for cpu in topology.cpus)
    free = {(size, None): pages for size, pages in ({2 * MIB: 0, GIB: 0} | (pools or {})).items()}
    made = Resources(topology, cpus, len(cpus), memory, 4096, free, {})
    return replace(made, **changes)


def file_of(actor: Actor) -> FileRef:
    """The one file an actor has."""
    return next(value for _, value in actor.params if isinstance(value, FileRef))
