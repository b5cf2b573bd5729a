"""What reports and verdicts need to know of a plan's kernels and pages; kept in ``plan.toml``."""

from typing import Any

from bench.blocks import CommandEntry, Plan
from bench.mix import Actor


def plan_facts(plan: Plan) -> dict[str, Any]:
    """Facts that no benchmark's name holds, for ``analysis.report.build`` and its like.

    None of a plan whose entries are commands: what those do with memory is not known.
    """
    entries = [e for b in plan.blocks for e in b.entries if not isinstance(e, CommandEntry)]
    actors = [actor for entry in entries for actor in entry.mix.actors]
    if not actors:
        return {}
    return {**page_rule(actors), **kernel_facts(actors)}


def page_rule(actors: list[Actor]) -> dict[str, Any]:
    """What tables and verdicts of page policies depend on."""
    from bench import native
    from bench.probe import known_probe
    from bench.sizes import telling

    probe = known_probe()
    pages = {n: native.policies()[n].page_bytes for n in sorted({a.policy for a in actors})}
    return {
        "least_bytes": {name: telling(size, probe) for name, size in pages.items()},
        "divided": sorted({a.kernel for a in actors if native.kernel(a.kernel).divided}),
        "page_order": [name for name in native.policies() if name in pages],
    }


def kernel_facts(actors: list[Actor]) -> dict[str, Any]:
    """What a report says of kernels and no name holds: defaults of the parameters that vary."""
    from bench import native

    varied: dict[str, set[str]] = {}
    for actor in actors:
        varied.setdefault(actor.kernel, set()).update(key for key, _ in actor.params)
    kernels = {actor.kernel: native.kernel(actor.kernel) for actor in actors}
    return {
        "ops": {name: kernel.op for name, kernel in sorted(kernels.items()) if kernel.op},
        "churn": sorted(name for name, kernel in kernels.items() if kernel.memory == "churn"),
        "defaults": {
            name: {key: native.kernel(name).param(key).default for key in sorted(keys)}
            for name, keys in sorted(varied.items())
            if keys
        },
    }
