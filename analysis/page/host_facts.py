"""Facts of ``host.json`` in words: those that bear on memory."""

from collections.abc import Mapping
from typing import Any

from bench.units import counted, format_size

UNKNOWN = "unknown"


def summary(facts: Mapping[str, Any]) -> str:
    """Processor, number of CPUs and memory, in a line; empty without facts."""
    if not facts:
        return ""
    parts = [processor(facts), _cpus(facts), f"{_memory(facts)} of memory"]
    if virtual := _virtual(facts):
        parts.append(virtual)
    return ", ".join(parts)


def listed(facts: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Name and value of what bears on memory; empty without facts."""
    if not facts:
        return ()
    cpus, kernel, thp = facts.get("cpus", {}), facts.get("kernel", {}), facts.get("thp", {})
    found = [
        ("processor", processor(facts)),
        ("CPUs", _cpus(facts, cpus.get("cores"), cpus.get("threads_per_core"))),
        ("caches, as reported", _caches(cpus)),
        ("memory", f"{_memory(facts)} on {counted(len(cpus.get('nodes', ())), 'node')}"),
        ("kernel", f"{kernel.get('release') or UNKNOWN} {kernel.get('machine') or ''}".strip()),
        ("small page", _size(kernel.get("page_bytes"))),
        ("transparent huge pages", _thp(thp)),
        ("sizes between (mTHP)", _between(thp)),
        ("reserved huge pages", _pools(facts)),
        ("virtualisation", _virtual(facts) or "none seen"),
        ("clock", _clock(cpus)),
        ("counters", _counters(facts)),
    ]
    return tuple(found)


def processor(facts: Mapping[str, Any]) -> str:
    """Name of the processor."""
    cpu = facts.get("cpu", {})
    name = cpu.get("name") or cpu.get("vendor") or facts.get("kernel", {}).get("machine")
    return " ".join(str(name or f"{UNKNOWN} processor").split())


def _cpus(facts: Mapping[str, Any], cores: int | None = None, siblings: int | None = None) -> str:
    cpus = facts.get("cpus", {})
    online = cpu_count(facts)
    text = counted(online, "CPU") if online else f"{UNKNOWN} CPUs"
    if cores:
        text += f" of {counted(cores, 'core')}"
        text += f", {siblings} threads a core" if siblings and siblings > 1 else ""
    allowed = _count(cpus.get("allowed"))
    return text if not allowed or allowed == online else f"{text}, {allowed} of them allowed"


def cpu_count(facts: Mapping[str, Any]) -> int:
    """CPUs that are online; 0 where that is not known."""
    return _count(facts.get("cpus", {}).get("online"))


def _count(cpulist: str | None) -> int:
    total = 0
    for part in filter(None, (cpulist or "").split(",")):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total


def _size(n_bytes: int | None) -> str:
    return format_size(n_bytes) if n_bytes else UNKNOWN


def _memory(facts: Mapping[str, Any]) -> str:
    total = facts.get("memory", {}).get("total_bytes")
    return f"{total / 1024**3:.3g} GiB" if total else f"{UNKNOWN} amount"


def _caches(cpus: Mapping[str, Any]) -> str:
    told = [
        f"L{c['level']} {_size(c['size_bytes'])}"
        + (f" × {c['instances']}" if c["instances"] > 1 else "")
        for c in cpus.get("caches", ())
        if c["kind"] != "Instruction"
    ]
    return ", ".join(told) or UNKNOWN


def _thp(thp: Mapping[str, Any]) -> str:
    if not thp.get("enabled"):
        return UNKNOWN
    size = f", {_size(thp['pmd_bytes'])}" if thp.get("pmd_bytes") else ""
    return f"{thp['enabled']}{size}, defrag {thp.get('defrag') or UNKNOWN}"


def _between(thp: Mapping[str, Any]) -> str:
    sizes = thp.get("sizes") or {}
    if not sizes:
        return "this kernel has none"
    whole = str(thp.get("pmd_bytes"))
    on = [
        format_size(int(size))
        for size, state in sizes.items()
        if state != "never" and size != whole
    ]
    return f"on: {', '.join(on)}" if on else "all off"


def _pools(facts: Mapping[str, Any]) -> str:
    told = [
        f"{p['pages'] or 0} of {format_size(p['size_bytes'])}"
        for p in facts.get("pools", ())
        if p["node"] is None
    ]
    return ", ".join(told) or "this kernel has none"


def _virtual(facts: Mapping[str, Any]) -> str:
    found = facts.get("virtualisation", {})
    if not found.get("hypervisor"):
        return ""
    return f"virtual machine ({found['vendor']})" if found.get("vendor") else "virtual machine"


def _clock(cpus: Mapping[str, Any]) -> str:
    governor, turbo = cpus.get("governor"), cpus.get("turbo")
    if governor is None and turbo is None:
        return "governor and turbo not shown"
    state = {True: "on", False: "off", None: UNKNOWN}.get(turbo, str(turbo))
    return f"governor {governor or UNKNOWN}, turbo {state}"


def _counters(facts: Mapping[str, Any]) -> str:
    found = facts.get("counters", {})
    if found.get("usable"):
        return "usable"
    reason = found.get("reason")
    return f"not usable: {reason}" if reason else "not usable"
