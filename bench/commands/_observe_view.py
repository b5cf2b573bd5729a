"""Lays out what ``bench observe`` found: for people, and as data."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from bench.blocks import Skip
from bench.cli import program_name
from bench.commands._session import dump_json
from bench.commands._tables import make_console, print_list, print_notes, table
from bench.observe.figures import Observation, ProcessFigures
from bench.observe.finding import COULD, UNKNOWN, Finding, rate, share
from bench.observe.known import Known
from bench.schema import SCHEMA
from bench.sysfs import format_cpulist
from bench.units import about, counted, format_duration

_KERNEL_WORK = (
    *("huge_taken", "huge_refused", "thp_collapses", "thp_splits", "compact_stalls"),
    *("scanned_by_programs", "numa_hints", "swapped_in", "swapped_out"),
)
"""Counts of the host worth a line where they are not zero."""
PSS_SHOWN = 0.95
"""Of resident memory: above, next to nothing is shared."""
MOST_PROCESSES = 12
"""Shown one by one, the busiest; ``--json`` has all."""


@dataclass(frozen=True)
class Page:
    """Everything that is shown."""

    seen: Observation
    findings: Sequence[Finding]
    unread: Sequence[Skip]
    known: Known
    command: str
    """The target's own, for proposals; empty: not known."""
    scenario: str
    """File of the skeleton; empty: not written."""


def dump(page: Page) -> None:
    """Print one JSON document."""
    document = {
        "schema": SCHEMA,
        **asdict(page.seen),
        "cpus_used": page.seen.cpus_used,
        "findings": [asdict(found) for found in page.findings],
        "unread": [asdict(one) for one in page.unread],
        "next_commands": proposals(page),
        "scenario": page.scenario,
    }
    dump_json(document, sys.stdout)


def show(page: Page) -> None:
    """Print tables."""
    console = make_console(sys.stdout)
    seen = page.seen
    console.print(_headline(seen), markup=False)
    table(
        console,
        "memory",
        ("<process", "<kind", "resident", "on huge pages", ""),
        _memory_rows(seen),
    )
    table(console, "activity, a second", ("<process", "<what", "value"), _activity_rows(seen))
    table(console, "around it", ("<whose", "<what", "value"), _around_rows(seen))
    table(
        console,
        "which mechanism could matter",
        ("<mechanism", "|verdict", "<because"),
        ((f.mechanism, f.verdict, "\n".join(f.because)) for f in page.findings),
    )
    host = f"`{program_name()} host`"
    missing = [replace(one, remedy=one.remedy.replace("`host`", host)) for one in page.unread]
    print_notes(console, "not read", missing)
    print_list(console, "notes", _notes(page))
    print_list(console, "files", [page.scenario] if page.scenario else [])
    print_list(console, "next", proposals(page))


def _headline(seen: Observation) -> str:
    ended = {"target": "ended after", "user": "stopped after", "": "observed for"}[seen.ended]
    cost = seen.cost
    return (
        f"{seen.target}: {ended} {format_duration(seen.seconds)}, {counted(cost.looks, 'look')}.\n"
        f"Looking took {share(cost.share)} of a CPU: {format_duration(cost.look_s)} a look,"
        f" {format_duration(cost.walks_s)} walking page tables."
    )


def _shown(seen: Observation) -> Sequence[ProcessFigures]:
    return seen.processes[:MOST_PROCESSES]


def _who(process: ProcessFigures) -> str:
    return f"{process.name} ({process.pid})"


def _memory_rows(seen: Observation) -> Iterator[list[str]]:
    for process in _shown(seen):
        memory, first = process.memory, _who(process)
        for kind, (resident, huge) in memory.kinds.items():
            yield [first, kind, about(resident), about(huge), share(huge / resident)]
            first = ""
        if len(memory.kinds) != 1:
            part = "unknown" if memory.huge is None else about(memory.huge)
            of = "" if not memory.huge else share(memory.huge / memory.resident)
            yield [first, "all", about(memory.resident), part, of]
        fair = memory.shared_fairly
        if fair is not None and fair < PSS_SHOWN * memory.resident:
            yield ["", "all, shared memory split among its users (PSS)", about(fair), "", ""]
    if len(seen.processes) > MOST_PROCESSES:
        rest = seen.processes[MOST_PROCESSES:]
        resident = sum(process.memory.resident for process in rest)
        yield [f"{len(rest)} more", "all", about(resident), "", ""]


def _activity_rows(seen: Observation) -> Iterator[list[str]]:
    for process in _shown(seen):
        rows = list(_activity(process))
        for i, (what, value) in enumerate(rows):
            yield [_who(process) if not i else "", what, value]


def _activity(p: ProcessFigures) -> Iterator[tuple[str, str]]:
    system = "" if p.system_share is None else f", {share(p.system_share)} of it in the kernel"
    yield "CPUs used", f"{p.cpus_used:.2g}{system}"
    threads = f"{p.running:.2g} of {p.threads}"
    if p.on_cpus:
        threads += f", on CPUs {format_cpulist(p.on_cpus)}"
    yield "threads runnable, at most there", threads
    if p.allowed:
        yield "CPUs they may use", format_cpulist(p.allowed)
    if p.waiting is not None:
        yield "threads waiting for a CPU", f"{p.waiting:.2g}"
    if p.switches_per_s is not None:
        yield "times put on a CPU; CPU changes seen", f"{rate(p.switches_per_s)}; {p.moves_seen}"
    yield "faults minor; major", f"{rate(p.minor_per_s)}; {rate(p.major_per_s)}"
    yield "minor faults that left no page", rate(p.untraced_per_s)
    yield "memory given back, at least", f"{about(int(p.released_per_s))}"
    yield (
        "address space mapped; unmapped, at least",
        f"{about(int(p.mapped_per_s))}; {about(int(p.unmapped_per_s))}",
    )
    if p.mappings is not None:
        first, last = p.mappings
        told = f"{last}" if first == last else f"{first} -> {last}"
        yield "mappings; changes seen", f"{told}; {p.mapping_changes}"
    if p.moved_per_s is not None:
        yield "moved by read and write", about(int(p.moved_per_s))


def _around_rows(seen: Observation) -> Iterator[list[str]]:
    group, host = seen.group, seen.host
    rows: list[tuple[str, str, str]] = []
    shared = "group" if group.own else "group (shared)"
    if group.cpus_used is not None:
        rows.append((shared, "CPUs used", f"{group.cpus_used:.2g}"))
    if group.quota is not None:
        rows.append((shared, "CPU quota", f"{group.quota:g}"))
    for name, found in group.throttled.items():
        if found["throttled"]:
            told = f"{found['throttled']:.0f} of {found['periods']:.0f}"
            rows.append((name, "periods throttled", told))
    rows += [(shared, name, f"{n}") for name, n in group.events.items() if n]
    for whose, pressure in ((shared, group.pressure), ("host", host.pressure)):
        for name, kinds in pressure.items():
            rows.append((whose, f"stalled for {name}, some", share(kinds.get("some", 0.0))))
    if host.busy_cpus is not None:
        rows.append(("host", "CPUs at work", f"{host.busy_cpus:.2g}"))
    if host.shootdowns is not None:
        beside = "" if host.elsewhere is None else f"; {rate(host.elsewhere)} each other CPU"
        rows.append(
            ("host", "TLB interrupts/s on the process's CPUs", rate(host.shootdowns) + beside)
        )
    for name in _KERNEL_WORK:
        if host.counts.get(name):
            per_s = rate(host.counts[name] / host.seconds)
            rows.append(("host", f"{name.replace('_', ' ')}/s", per_s))
    for size, number in host.mthp_there.items():
        if number:
            rows.append(("host", f"pages of {about(size)} there", f"{number:,}"))
    if seen.bandwidth is not None:
        told = f"{seen.bandwidth.bytes_per_s / 1e9:.3g}"
        rows.append((seen.bandwidth.group, "GB/s of memory traffic", told))
    yield from (list(row) for row in rows)


def _notes(page: Page) -> list[str]:
    from bench.observe.translation import SMALL_HOST_PAGES

    notes = ["what falls between two looks is not seen: releases and mappings are lower bounds"]
    if page.known.probe.small_host_pages:
        notes.append(SMALL_HOST_PAGES)
    cost = page.seen.cost
    if cost.interval_s > 1.5 * cost.asked_s and cost.looks > 2:
        told = f"{format_duration(cost.interval_s)} apart, not {format_duration(cost.asked_s)}"
        notes.append(f"looks were {told}: they are costly here, or this command had no CPU")
    return notes


def proposals(page: Page) -> list[str]:
    """Commands that could decide what looking cannot, most urgent first."""
    from bench.observe.finding import PROBE

    prog = program_name()
    ordered = [f for f in page.findings if f.verdict == COULD]
    ordered += [f for f in page.findings if f.verdict == UNKNOWN]
    raw = list(dict.fromkeys(line for found in ordered for line in found.proposed))
    assumed = not page.known.reach_measured or page.known.shootdown_s is None
    if assumed and any(PROBE in why for found in page.findings for why in found.because):
        raw.insert(0, PROBE)
    scenario = page.scenario or "scenario.toml"
    lines = [
        f"{prog} " + line.format(command=page.command or "COMMAND", scenario=scenario)
        for line in raw
    ]
    if not page.scenario and any("{scenario}" in line for line in raw):
        lines.append("the scenario comes from this command with -o scenario.toml added")
    return lines
