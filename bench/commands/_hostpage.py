"""The page of ``bench host``: facts as labelled rows, then commands that can be pasted."""

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.advice import FORMS, Advice
from bench.hostfacts import HostFacts
from bench.reservation import Leftover
from bench.units import format_size

Section = tuple[str, list[tuple[str, str]]]
_UNKNOWN = "unknown"


def sections(facts: HostFacts) -> list[Section]:
    """Everything worth reading, in the words of the kernel where it has some."""
    return [
        ("Processor", _processor(facts)),
        ("Caches and TLB (reported, not measured: --probe measures)", _caches(facts)),
        ("Memory nodes", _nodes(facts)),
        ("Limits on this process", _limits(facts)),
        ("Transparent huge pages", _thp(facts)),
        ("Huge-page pools", _pools(facts)),
        ("Virtualisation", _virtualisation(facts)),
        ("What can be counted", _counters(facts)),
        ("Kernel", _kernel(facts)),
    ]


def _text(value: object) -> str:
    if value is None:
        return _UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _bytes(n_bytes: int | None) -> str:
    """Exact where short, else in GiB: amounts of memory are rarely round."""
    if n_bytes is None:
        return _UNKNOWN
    exact = format_size(n_bytes)
    return exact if len(exact) <= 7 else f"{n_bytes / 1024**3:.1f}GiB"


def _processor(facts: HostFacts) -> list[tuple[str, str]]:
    cpu, cpus = facts.cpu, facts.cpus
    identity = f"family {cpu.family} model {cpu.model} stepping {cpu.stepping}"
    if cpu.part is not None:
        identity = f"implementer {cpu.implementer} part {cpu.part} MIDR {' '.join(cpus.midr)}"
    return [
        ("name", cpu.name or "not given"),
        ("identity", f"{_text(cpu.vendor or cpu.implementer)}, {identity}"),
        ("flags", " ".join(cpu.flags)),
        (
            "processors",
            f"{cpus.online} online, {_text(cpus.allowed)} allowed; cores: {cpus.cores},"
            f" packages: {cpus.packages}, threads a core: {cpus.threads_per_core}",
        ),
        (
            "frequency",
            f"driver {_text(cpus.frequency_driver)}, governor {_text(cpus.governor)},"
            f" turbo {_text(cpus.turbo)}",
        ),
    ]


def _caches(facts: HostFacts) -> list[tuple[str, str]]:
    rows = [
        (
            f"L{cache.level} {cache.kind.lower()}",
            f"{_bytes(cache.size_bytes)}, number: {cache.instances},"
            f" processors each: {cache.cpus_each}",
        )
        for cache in facts.cpus.caches
    ]
    rows.append(("TLB label", facts.cpu.tlb_label or "none given"))
    return rows


def _nodes(facts: HostFacts) -> list[tuple[str, str]]:
    rows = []
    for node in facts.cpus.nodes:
        distances = " ".join(f"{other}:{distance}" for other, distance in node.distances)
        cpus = f"processors {node.cpus}" if node.cpus else "no processors"
        rows.append(
            (f"node {node.id}", f"{_bytes(node.memory_bytes)}, {cpus}, distances {distances}")
        )
    balancing = {0: "off", 1: "on", None: _UNKNOWN}.get(facts.memory.numa_balancing, "tiering")
    rows.append(("automatic balancing", balancing))
    rows.append(("placement calls", _text(facts.memory.numa_calls)))
    return rows


def _limits(facts: HostFacts) -> list[tuple[str, str]]:
    limits = facts.limits
    rows = [
        (
            "memory",
            f"{_bytes(facts.memory.available_bytes)} of"
            f" {_bytes(facts.memory.total_bytes)} available",
        ),
        (
            "swap",
            f"{_bytes(facts.memory.swap_free_bytes)} of"
            f" {_bytes(facts.memory.swap_total_bytes)} free",
        ),
        ("control groups", limits.version or "none mounted"),
        ("CPU quota", "none" if limits.cpu_quota is None else f"{limits.cpu_quota:g} CPUs"),
    ]
    for level in limits.memory:
        rows.append(
            (
                "memory limit",
                f"{_bytes(level.limit)}, {_bytes(level.headroom)} left ({level.group})",
            )
        )
    for entry in limits.hugetlb:
        size = format_size(entry.size_bytes)
        rows.append((f"{size} pages", f"{_bytes(entry.limit)}, {_bytes(entry.headroom)} left"))
    locked = facts.memory.memlock_limit
    if locked is not None and locked.isdigit():
        locked = _bytes(int(locked))
    rows.append(("lockable memory", _text(locked)))
    return rows


def _thp(facts: HostFacts) -> list[tuple[str, str]]:
    thp = facts.thp
    rows = [
        ("enabled", _text(thp.enabled)),
        ("defrag", _text(thp.defrag)),
        ("size", _bytes(thp.pmd_bytes)),
        ("zero page", _text(thp.use_zero_page)),
        ("for this process", {True: "allowed", False: "off", None: _UNKNOWN}[thp.allowed_here]),
        ("khugepaged", ", ".join(f"{key} {value}" for key, value in thp.khugepaged.items())),
    ]
    by_state: dict[str, list[str]] = {}
    for size, state in thp.sizes.items():
        by_state.setdefault(state, []).append(format_size(size))
    middle = "; ".join(f"{state}: {' '.join(sizes)}" for state, sizes in by_state.items())
    rows.append(("by size (mTHP)", middle or "this kernel has none"))
    return rows


def _pools(facts: HostFacts) -> list[tuple[str, str]]:
    rows = []
    for pool in facts.pools:
        where = "host" if pool.node is None else f"node {pool.node}"
        values = f"{_text(pool.pages)} pages, {_text(pool.free)} free"
        if pool.node is None:
            values += f", {_text(pool.reserved)} promised"
        rows.append(
            (f"{format_size(pool.size_bytes)} {where}", f"{values}, {_text(pool.surplus)} surplus")
        )
    return rows or [("pools", "this kernel has none")]


def _virtualisation(facts: HostFacts) -> list[tuple[str, str]]:
    virtual = facts.virtualisation
    vendor = f"{virtual.vendor} (from {virtual.source})" if virtual.vendor else "not named"
    steal = facts.cpus.steal_share
    return [
        ("hypervisor", _text(virtual.hypervisor)),
        ("vendor", vendor if virtual.hypervisor else "-"),
        ("time stolen since boot", _UNKNOWN if steal is None else f"{steal:.3%}"),
        ("sign of a container", virtual.container_sign or "none"),
        ("system calls filtered", _text(virtual.seccomp_filter)),
    ]


def _counters(facts: HostFacts) -> list[tuple[str, str]]:
    counters = facts.counters
    usable = {True: "yes", False: "no", None: _UNKNOWN}[counters.usable]
    if counters.reason:
        usable += f": {counters.reason}"
    row = {True: "yes", False: "no such row", None: _UNKNOWN}[counters.tlb_row]
    if facts.kernel.machine == "aarch64":
        row = "not counted: arm64 flushes other processors' TLBs without interrupts"
    if counters.tlb_row and counters.invlpgb:
        row += ", but too low: this CPU can flush others without interrupts (INVLPGB)"
    supported = {True: "not mounted", False: "not supported", None: _UNKNOWN}
    return [
        ("CPU counters", usable),
        ("perf_event_paranoid", _text(counters.paranoid)),
        ("TLB shootdowns", row),
        ("bandwidth (resctrl)", counters.resctrl or supported[counters.resctrl_supported]),
        ("stalls (PSI)", " ".join(counters.pressure) or "none"),
    ]


def _kernel(facts: HostFacts) -> list[tuple[str, str]]:
    kernel = facts.kernel
    weak = [name for name, state in kernel.mitigations.items() if state.startswith("Vulnerable")]
    active = [name for name, state in kernel.mitigations.items() if "Mitigation" in state]
    return [
        ("release", f"{_text(kernel.release)} {_text(kernel.machine)}"),
        ("page", _bytes(kernel.page_bytes)),
        ("clock", f"{_text(kernel.clocksource)} of {' '.join(kernel.clocksources)}"),
        ("address randomisation", _text(kernel.aslr)),
        ("mitigations active", " ".join(active) or "none"),
        ("vulnerable", " ".join(weak) or "none"),
        ("boot words", " ".join(kernel.boot_words) or "none that bear on memory"),
    ]


def probe_sections(results: Mapping[str, Any]) -> list[Section]:
    """One section for each nested result, one for the single values."""
    single: list[tuple[str, str]] = []
    nested: list[Section] = []
    for name, value in results.items():
        label = name.replace("_", " ")
        if isinstance(value, Mapping):
            rows = [(str(key), _number(inner)) for key, inner in value.items()]
            nested.append((f"Measured: {label}", rows))
        elif isinstance(value, Sequence) and not isinstance(value, str):
            rows = [("", _number(inner)) for inner in value]
            nested.append((f"Measured: {label}", rows))
        else:
            single.append((label, _number(value)))
    return nested + ([("Measured", single)] if single else [])


def _number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_number(inner)}" for key, inner in value.items())
    return _text(value)


def show(parts: Iterable[Section]) -> None:
    """Print sections: as tables on a terminal, as plain lines elsewhere."""
    if not sys.stdout.isatty():
        for title, rows in parts:
            print(title)
            width = max(22, *(len(label) for label, _ in rows)) + 2
            for label, value in rows:
                print(f"  {label:<{width}}{value}".rstrip())
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    for title, rows in parts:
        table = Table(title=title, title_justify="left", show_header=False, box=box.SIMPLE)
        table.add_column(no_wrap=True, min_width=22)
        table.add_column(overflow="fold")
        for label, value in rows:
            table.add_row(Text(label), Text(value))
        console.print(table)


def show_leftovers(left: Sequence[Leftover], program: str) -> None:
    """Print what killed runs left in the pools, and both ways to undo it."""
    if not left:
        return
    print("\nLeft by runs that were killed")
    for one in left:
        where = "" if one.node is None else f" on node {one.node}"
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.made_at))
        size = format_size(one.size_bytes)
        print(f"  {one.pages} pages of {size}{where} (process {one.pid}, {when})")
    print(f"  undo, as root:  {program} host --undo\n  or by hand:")
    for one in left:
        print(f"    {one.by_hand}")


def show_advice(found: Sequence[Advice]) -> None:
    """Print each missing thing with its commands, unwrapped so that they can be pasted."""
    print("\nWhat is missing, and the commands that add it" if found else "\nNothing is missing.")
    for number, one in enumerate(found, 1):
        print(f"\n{number}. {one.what}\n   {one.why}")
        for form, description in FORMS.items():
            if form in one.commands:
                print(f"   {description}:")
                for line in one.commands[form].splitlines():
                    print(f"     {line}")
