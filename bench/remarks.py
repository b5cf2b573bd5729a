"""What a plan says besides its blocks: what the host cannot give, and what results will mean."""

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bench.blocks import Block, Skip
from bench.capacity import page_word, reserve_hint
from bench.mix import Actor, actor_name
from bench.registry import BASE, Registry
from bench.resources import Resources
from bench.sizes import BEYOND, Probe, last_level, telling
from bench.units import counted, format_size

if TYPE_CHECKING:
    from bench.native import Kernel, Policy

_NUMBER = re.compile(r"\d+(?: ?[KMG]iB)?")
_SOURCES = {
    "measured": "as measured",
    "sysfs": "as sysfs reports",
    "assumed": "assumed: this system shows no third level",
}


def about(n_bytes: int, up: bool = False) -> str:
    """Size with two or three digits: ``5.7GiB``; rounded down, or up to whole units."""
    for exponent, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        scale = 1024**exponent
        if n_bytes >= scale:
            if up:
                return f"{-(-n_bytes // scale)}{unit}"
            whole = n_bytes % scale == 0 or n_bytes >= 10 * scale
            return f"{n_bytes // scale}{unit}" if whole else f"{n_bytes * 10 // scale / 10}{unit}"
    return f"{n_bytes}B"


def unavailable(registry: Registry, resources: Resources) -> dict[str, Skip]:
    """Page policies that the host cannot give at all, by name.

    A pool that exists but is empty is not one of them: what it lacks is counted a block.
    """
    found = {}
    for name, policy in registry.policies().items():
        if policy.hugetlb and (policy.page_bytes, None) in resources.pools:
            continue
        if resources.stored:
            reason = _stored_reason(policy, resources)
        else:
            reason = registry.policy_available(name)
        if policy.hugetlb and not reason:
            reason = f"this host has no pool of {format_size(policy.page_bytes)} pages"
        if reason:
            found[name] = policy_skip(name, reason)
    return found


def _stored_reason(policy: "Policy", resources: Resources) -> str:
    if policy.hugetlb or policy.name == BASE or policy.page_bytes == resources.transparent_bytes:
        return ""
    return f"no transparent pages of {format_size(policy.page_bytes)} in the stored files"


def policy_skip(name: str, reason: str) -> Skip:
    """Make the skip for a policy from the registry's reason, which may end with a command."""
    why, _, command = reason.partition("; as root: ")
    return Skip(name, why, f"as root: {command}" if command else "")


def folded(skips: Iterable[Skip]) -> list[Skip]:
    """Skips whose reasons differ in numbers only (all sizes of a feature), told once."""
    groups: dict[str, list[Skip]] = {}
    for skip in skips:
        groups.setdefault(_NUMBER.sub("#", skip.reason), []).append(skip)
    return [_fold(rows) for rows in groups.values()]


def _fold(rows: list[Skip]) -> Skip:
    if len(rows) == 1:
        return rows[0]
    names = [row.what for row in rows]
    what = ", ".join(names) if len(names) == 2 else f"{names[0]} … {names[-1]}"
    if rows[0].remedy:
        return Skip(what, "off on this host", "`bench host` has the commands")
    return Skip(what, f"{rows[0].reason}, and so on")


def pool_skip(
    what: str,
    page_bytes: int,
    wanted: int,
    missing: int,
    blocks: Sequence[str],
    resources: Resources,
) -> Skip:
    """Make the skip for a policy whose pool has too few pages for these blocks (none: for any)."""
    needs = "needs" if len(blocks) < 2 else "needs up to"
    where = f" ({', '.join(blocks)})" if blocks else ""
    return Skip(
        what.replace(" in 1 blocks", " in one block"),
        f"{needs} {page_word(page_bytes, wanted)} of the pool, which has {wanted - missing} free"
        + where,
        reserve_hint(page_bytes, missing, resources),
    )


def host_notes(
    resources: Resources, probe: Probe, limited: bool, kernels: Iterable["Kernel"]
) -> list[str]:
    """What about this host the plan rests on; ``limited``: memory is limited by something known."""
    notes = list(resources.notes)
    if any(kernel.arrays and not kernel.op for kernel in kernels):
        llc = last_level(resources.topology, resources.allowed, probe)
        notes.append(
            f"bandwidth arenas are at least {BEYOND} times the last-level caches"
            f" ({about(llc.bytes)}, {_SOURCES[llc.source]})"
        )
    if resources.threads < len(resources.allowed):
        notes.append(
            f"a CPU quota allows {counted(resources.threads, 'thread')} at once on"
            f" {len(resources.allowed)} CPUs"
        )
    if not limited:
        notes.append("available memory is not known: nothing limits sizes")
    if probe.small_host_pages:
        notes.append(
            "the hypervisor backs large pages with small ones: page verdicts hold for this virtual"
            " machine and say nothing about bare metal"
        )
    return notes


def page_notes(blocks: Sequence[Block], registry: Registry, probe: Probe) -> list[str]:
    """Up to which size page policies are judged, and what is too small to judge them."""
    paged = [block for block in blocks if block.question == "pages"]
    if not paged:
        return []
    actors = [entry.mix.actors[0] for block in paged for entry in block.entries]
    notes = [f"page policies are not tested above {about(max(actor.size for actor in actors))}"]
    page_bytes = {actor.policy: registry.policies()[actor.policy].page_bytes for actor in actors}
    largest = max(walked(actor, registry) for actor in actors)
    for smaller, larger in itertools.pairwise(sorted(set(page_bytes.values()))):
        if largest < telling(smaller, probe):
            notes.append(
                f"{format_size(larger)} against {format_size(smaller)} pages: no verdict below"
                f" {_told_telling(smaller, probe)}"
            )
    small: dict[int, list[str]] = {}
    for block in (block for block in paged if len(block.entries) > 1):
        actor = block.entries[0].mix.actors[0]
        page = min(page_bytes[entry.mix.actors[0].policy] for entry in block.entries)
        if walked(actor, registry) < telling(page, probe) <= largest:
            small.setdefault(page, []).append(
                f"{actor_name(actor).partition('/')[0]} {actor.threads}t {about(actor.size)}"
            )
    for page, told in small.items():
        notes.append(
            f"too small for page verdicts, which take {_told_telling(page, probe)}:"
            f" {', '.join(dict.fromkeys(told))}"
        )
    return notes


def walked(actor: Actor, registry: Registry) -> int:
    """Bytes that one thread of an actor goes over, again and again."""
    divided = registry.kernels()[actor.kernel].divided
    return actor.size // actor.threads if divided else actor.size


def _told_telling(page_bytes: int, probe: Probe) -> str:
    source = "measured" if page_bytes in probe.reach_bytes else "assumed"
    return f"{about(telling(page_bytes, probe))} a thread ({BEYOND} times the TLB's {source} reach)"
