"""What planning asks of the native side: ``bench.native`` has this shape.

Nothing else of the running host reaches the planner through it, so that a plan can be made for a
host that nobody has at hand, and tests can offer kernels and policies of their own.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from bench.errors import UsageError, unknown_name
from bench.inputs import read_input
from bench.mix import Actor, Value
from bench.units import parse_size

if TYPE_CHECKING:
    from bench.native import Effort, Footprint, Kernel, Policy

BASE = "base"
"""The policy that others are compared with: the system's smallest pages."""
BEST = "best"
"""Instead of a variant's name: the last one the CPU has."""


class Registry(Protocol):
    """Kernels and page policies; a module with these functions is one."""

    def kernels(self) -> "Mapping[str, Kernel]":
        """Every kernel by name."""

    def policies(self) -> "Mapping[str, Policy]":
        """Every page policy by name, from small pages to large."""

    def policy_available(self, name: str, /) -> str:
        """Empty where the host can give the policy, else the reason."""

    def canonical(self, actor: Actor, /) -> Actor:
        """Check parameters, drop those at their defaults; UsageError naming the wrong one."""

    def footprint(self, actor: Actor, nodes: Sequence[int] | None = None, /) -> "Footprint":
        """Memory of one actor; UsageError where its parameters do not fit its size."""

    def effort(self, actor: Actor, /) -> "Effort":
        """What a pass takes, roughly; UsageError where its parameters do not fit its size."""

    def accepts(self, actor: Actor, /) -> str:
        """Empty where the kernel can do with the actor's page policy, else the reason."""


def check_kernel(
    registry: Registry,
    name: str,
    params: Mapping[str, Sequence[int | str]],
    variants: Sequence[str],
) -> None:
    """Check every value that a choice of kernel lists; raises UsageError with all that is wrong."""
    kernels = registry.kernels()
    if name not in kernels:
        raise unknown_name("kernel", name, list(kernels))
    kernel = kernels[name]
    wrong = []
    known_variants = [BEST, *(variant.name for variant in kernel.variants)]
    for variant in variants:
        if variant not in known_variants:
            wrong.append(unknown_name(f"variant of {name}", variant, known_variants))
    policy = next(iter(registry.policies()))
    for key, values in params.items():
        for value in values:
            try:
                one = ((key, param_value(kernel, key, value)),)
                registry.canonical(Actor(name, kernel.variants[0].name, policy, 1, 0, one))
            except UsageError as error:
                wrong.append(error)
    if wrong:
        raise UsageError("; ".join(told(error) for error in wrong))


def told(error: UsageError) -> str:
    """One line of an error and its way out."""
    return f"{error} ({error.remedy})" if error.remedy else str(error)


def param_value(kernel: "Kernel", key: str, value: int | str) -> Value:
    """Value as an actor holds it: files by digest, sizes in bytes."""
    param = kernel.param(key)
    if not isinstance(value, str):
        return value
    if param.kind == "file":
        return read_input(value)
    if param.kind == "size":
        return parse_size(value)
    return int(value) if param.kind == "u64" and value.isdigit() else value
