"""``bench list``: what can be measured, on which pages, by which sweeps; from registries only."""

import argparse
import json
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench.errors import PagestormError

if TYPE_CHECKING:
    from bench.native import Kernel, Param

SUMMARY = "kernels, page policies, presets and scenarios, and what of them this host can do"
EPILOG = """  {prog} list                what there is, one line each
  {prog} list kernels scan   parameters, variants and byte counts of one kernel
  {prog} list policies       page policies and why one is not available
  {prog} list scenarios      workloads for remedy, and what runs in them here
  {prog} list --json         everything, for a program"""

CONVENTIONS = (
    "GB/s is 1e9 bytes a second; KiB, MiB and GiB are powers of 1024. Useful bytes count each byte"
    " once: as read, written, or updated (read and written back). Bus bytes are the traffic behind"
    " the caches that they take at least, and at most."
)

TOPICS = ("kernels", "policies", "presets", "scenarios")
# Large enough for any kernel's smallest layout, small enough to be run while listing.
SAMPLE_BYTES = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("topic", nargs="?", choices=TOPICS, help="default: all four")
    parser.add_argument("name", nargs="?", help="one of them, in full")
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def run(args: argparse.Namespace) -> int:
    """Print the registries."""
    topics = [args.topic] if args.topic else list(TOPICS)
    rows = {topic: ROWS[topic](args.name) for topic in topics}
    if args.json:
        print(json.dumps({**rows, "conventions": CONVENTIONS}, indent=2))
        return 0
    for i, topic in enumerate(topics):
        print("\n" * (i > 0) + f"{topic}:")
        PRINT[topic](rows[topic], args.name is not None)
    if "kernels" in topics and args.name:
        print("\n" + _wrapped(CONVENTIONS, 2))
    return 0


# ---- kernels ------------------------------------------------------------------------------------


def kernel_rows(name: str | None) -> list[dict[str, Any]]:
    """Kernels with parameters and variants; of one kernel also what a pass does."""
    from bench import native

    if name is not None:
        return [{**kernel_row(native.kernel(name)), "pass": _work(native.kernel(name))}]
    return [kernel_row(kernel) for kernel in native.kernels().values()]


def kernel_row(kernel: "Kernel") -> dict[str, Any]:
    """One kernel as JSON data."""
    return {
        "name": kernel.name,
        "summary": kernel.summary,
        "quoted_per": kernel.op or None,
        "sharing": kernel.sharing,
        "memory": kernel.memory,
        "phases": list(kernel.phases),
        "params": [_param_row(param) for param in kernel.params],
        "variants": [
            {
                "name": variant.name,
                "available": variant.available,
                "why_not": "" if variant.available else f"this CPU lacks {variant.needs}",
                "default": variant.name == kernel.best_variant,
            }
            for variant in kernel.variants
        ],
        "arrays": [
            {"name": array.name, "element": array.element, "per_thread": array.per_thread}
            for array in kernel.arrays
        ],
    }


def _param_row(param: "Param") -> dict[str, Any]:
    numeric = param.kind in ("u64", "size")
    return {
        "name": param.name,
        "kind": param.kind,
        "default": None if param.kind == "file" else param.default,
        "min": param.min if numeric else None,
        "max": param.max if numeric else None,
        "choices": list(param.choices),
        "unit": param.unit,
        "help": param.help,
    }


def _work(kernel: "Kernel") -> Mapping[str, int] | None:
    """Counts of one pass over 1 MiB by one thread, as the kernel gives them for its data."""
    from bench import native
    from bench.mix import Actor

    policy = next(iter(native.policies()))
    try:
        once = native.run_once(Actor(kernel.name, kernel.best_variant, policy, 1, SAMPLE_BYTES))
    except PagestormError:
        return None  # it needs a file, or more memory
    return once.work


def print_kernels(rows: list[dict[str, Any]], in_full: bool) -> None:
    """Two lines each, or everything about one kernel."""
    for row in rows:
        if in_full:
            _print_kernel(row)
            continue
        params = ", ".join(param["name"] for param in row["params"]) or "none"
        print(f"  {row['name']:<10} {row['summary']}")
        print(f"  {'':<10} parameters: {params}; variants: {_variant_names(row)}")


def _variant_names(row: dict[str, Any]) -> str:
    return ", ".join(
        variant["name"] + ("" if variant["available"] else " (not here)")
        for variant in row["variants"]
    )


def _print_kernel(row: dict[str, Any]) -> None:
    print(f"  {row['name']}: {row['summary']}")
    per = f"one {row['quoted_per']}" if row["quoted_per"] else "bandwidth"
    print(f"  quoted as {per}; threads {SHARING[row['sharing']]}; {MEMORY[row['memory']]}")
    for param in row["params"]:
        print(f"\n  {param['name']}={_shown(param, param['default'])}")
        print(_wrapped(_bounds(param), 4))
        print(_wrapped(param["help"], 4))
    print("\n  variants:")
    for variant in row["variants"]:
        note = variant["why_not"] or ("used unless another is named" if variant["default"] else "")
        print(f"    {variant['name']:<10} {note}".rstrip())
    if row["pass"] is not None:
        print("\n  one pass with the defaults, one thread, 1 MiB:")
        for key in ("read", "written", "updated"):
            print(f"    {key:<9} {row['pass'][f'{key}_bytes']:>9} useful bytes")
        low, high = row["pass"]["bus_min_bytes"], row["pass"]["bus_max_bytes"]
        print(f"    {'bus':<9} {low if low == high else f'{low} to {high}':>9} bytes")
        if row["quoted_per"]:
            print(f"    {'':<9} {row['pass']['ops']:>9} {row['quoted_per']}s")


SHARING = {"sliced": "have a slice each", "team": "share every pass"}
MEMORY = {"arena": "memory is mapped once", "churn": "maps and unmaps memory as it runs"}


def _bounds(param: dict[str, Any]) -> str:
    if param["choices"]:
        return "one of " + ", ".join(param["choices"])
    if param["kind"] == "file":
        return "a file; default: none"
    low, high = _shown(param, param["min"]), _shown(param, param["max"])
    return f"{low} to {high}" + ("" if param["kind"] == "size" else f" {param['unit']}").rstrip()


def _shown(param: dict[str, Any], value: Any) -> str:  # noqa: ANN401 - a parameter's value
    from bench.units import format_size

    if value is None:
        return ""
    return format_size(value) if param["kind"] == "size" else str(value)


def _wrapped(text: str, indent: int) -> str:
    return textwrap.fill(text, 96, initial_indent=" " * indent, subsequent_indent=" " * indent)


# ---- page policies ------------------------------------------------------------------------------


def policy_rows(name: str | None) -> list[dict[str, Any]]:
    """Page policies, whether this host gives them, and how much of a pool is free."""
    from bench import native
    from bench.resources import read_resources

    resources = read_resources()
    chosen = [native.policy(name)] if name is not None else native.policies().values()
    return [
        {
            "name": policy.name,
            "summary": policy.summary,
            "page_bytes": policy.page_bytes,
            "hugetlb": policy.hugetlb,
            "why_not": native.policy_available(policy.name),
            "free_pages": resources.pools.get((policy.page_bytes, None))
            if policy.hugetlb
            else None,
        }
        for policy in chosen
    ]


def print_policies(rows: list[dict[str, Any]], in_full: bool) -> None:
    """Name, page size and whether each can be had; equal reasons (all sizes of a feature) once."""
    from bench.remarks import folded, policy_skip
    from bench.units import format_size

    for row in rows:
        state = "not here" if row["why_not"] else "available"
        if not row["why_not"] and row["free_pages"] is not None:
            state = f"{row['free_pages']} pages free"
        size = format_size(row["page_bytes"])
        print(f"  {row['name']:<10} {size:>7}  {state:<16} {row['summary']}")
    missing = [policy_skip(row["name"], row["why_not"]) for row in rows if row["why_not"]]
    for skip in folded(missing):
        print(_wrapped(f"{skip.what}: {skip.reason}", 2))
        if skip.remedy:
            print(f"    -> {skip.remedy}")


# ---- presets ------------------------------------------------------------------------------------


def preset_rows(name: str | None) -> list[dict[str, Any]]:
    """Presets, with what they would take on this host as it is now."""
    from bench import sweepfile

    names = sweepfile.preset_names() if name is None else [name]
    return [_preset_row(each) for each in names]


def _preset_row(name: str) -> dict[str, Any]:
    from bench import native, plan, sweepfile
    from bench.resources import read_resources

    config = sweepfile.load(name)
    row: dict[str, Any] = {"name": name, "summary": config.summary, "rounds": config.rounds}
    try:
        config = sweepfile.load(name, native)
        made = plan.make_plan(config, read_resources(), native, preset=name)
    except PagestormError as error:
        return {**row, "estimate_s": None, "blocks": None, "why_not": str(error)}
    return {**row, "estimate_s": made.estimate_s, "blocks": len(made.blocks), "why_not": ""}


def print_presets(rows: list[dict[str, Any]], in_full: bool) -> None:
    """Name, length, summary; the quickest first."""
    from bench.units import format_duration

    for row in sorted(rows, key=lambda row: row["estimate_s"] or 0.0):
        length = "?" if row["why_not"] else f"about {format_duration(round(row['estimate_s']))}"
        print(f"  {row['name']:<16} {length:<12}  {row['summary']}")
        if row["why_not"]:
            print(_wrapped(row["why_not"], 32))
        elif in_full:
            print(_wrapped(f"{row['blocks']} comparisons in {row['rounds']} rounds", 32))


# ---- scenarios ----------------------------------------------------------------------------------


def scenario_rows(name: str | None) -> list[dict[str, Any]]:
    """Scenarios, with their actors as they come out on this host."""
    from bench import native, scenariofile
    from bench.mix import actor_name
    from bench.probe import known_probe
    from bench.resources import read_resources

    found = []
    for each in scenariofile.scenario_names() if name is None else [name]:
        read = scenariofile.load(each, native)
        made = scenariofile.resolve(read, each, native, read_resources(), known_probe())
        actors = [
            {"name": called, "actor": actor_name(actor), "critical": called == made.critical}
            for called, actor in zip(made.names, made.mix.actors, strict=True)
        ]
        found.append({"name": made.name, "summary": made.summary, "actors": actors})
    return found


def print_scenarios(rows: list[dict[str, Any]], in_full: bool) -> None:
    """Name and summary; of one also its actors."""
    for row in rows:
        print(f"  {row['name']:<16} {row['summary']}")
        for actor in row["actors"] if in_full else ():
            told = " (critical)" if actor["critical"] else ""
            print(f"    {actor['name'] + told:<20} {actor['actor']}")


ROWS = {
    "kernels": kernel_rows,
    "policies": policy_rows,
    "presets": preset_rows,
    "scenarios": scenario_rows,
}
PRINT = {
    "kernels": print_kernels,
    "policies": print_policies,
    "presets": print_presets,
    "scenarios": print_scenarios,
}
