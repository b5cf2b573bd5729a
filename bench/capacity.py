"""Memory and huge pages one mix takes while it runs, and whether the host has that much."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.mix import Actor, Mix
from bench.place import Placement, nodes_of
from bench.registry import Registry
from bench.resources import Resources
from bench.units import format_size

SHARE = 0.25
"""Of the available memory a sample may use unless told otherwise: the rest is the host's."""


@dataclass(frozen=True)
class Demand:
    """What one mix takes."""

    memory_bytes: int
    """From free memory; huge pages of pools are not part of it, they are set apart already."""
    total_bytes: int
    pages: Mapping[tuple[int, int | None], int]
    """Pool pages by (page size, node); node None: may come from any."""
    used_bytes: tuple[int, ...]
    """Of every actor, over all its processes."""


def demand(mix: Mix, placement: Placement, registry: Registry, resources: Resources) -> Demand:
    """Memory of a mix. Raises UsageError where an actor's parameters do not fit its size."""
    memory = total = 0
    used = []
    pages: Counter[tuple[int, int | None]] = Counter()
    for i, actor in enumerate(mix.actors):
        policy = registry.policies()[actor.policy]
        shares = _mapped(actor, placement, i, policy.page_bytes, registry, resources)
        mapped = sum(shares.values())
        used.append(sum(registry.footprint(actor, _nodes(placement, i)).used))
        total += mapped
        if policy.hugetlb:
            for node, size in shares.items():
                pages[policy.page_bytes, node] += size // policy.page_bytes
        else:
            memory += mapped
    return Demand(memory, total, pages, tuple(used))


def _nodes(placement: Placement, i: int) -> Sequence[int] | None:
    return placement.nodes[i] if placement.nodes is not None else None


def _mapped(
    actor: Actor,
    placement: Placement,
    i: int,
    page_bytes: int,
    registry: Registry,
    resources: Resources,
) -> dict[int | None, int]:
    """Bytes mapped by node; None is memory that may lie on any node."""
    nodes = _nodes(placement, i)
    footprint = registry.footprint(actor, nodes)
    if actor.process == "each":
        return _split(actor, nodes, sum(footprint.used), page_bytes, registry)
    if nodes is None:
        own = nodes_of(placement.cpus[i], resources.topology)
        # Memory is taken where it is first touched: on the node of the threads, if that is one.
        node = own[0] if len(own) == 1 and len(resources.topology.nodes) > 1 else None
        return {node: footprint.mapped_bytes}
    # Segments come in the order in which nodes first appear; one more is interleaved over all.
    order: list[int | None] = list(dict.fromkeys(nodes))
    shares: Counter[int | None] = Counter()
    for k, size in enumerate(footprint.mapped):
        shares[order[k] if k < len(order) else None] += size
    return dict(shares)


def _split(
    actor: Actor,
    nodes: Sequence[int] | None,
    used: int,
    page_bytes: int,
    registry: Registry,
) -> dict[int | None, int]:
    """Every thread is a process: own slices, own copies of shared arrays, each rounded up."""
    arrays = registry.kernels()[actor.kernel].arrays
    each = -(-used // actor.threads) if all(array.per_thread for array in arrays) else used
    rounded = -(-each // page_bytes) * page_bytes
    shares: Counter[int | None] = Counter()
    for thread in range(actor.threads):
        shares[nodes[thread] if nodes is not None else None] += rounded
    return dict(shares)


def memory_limit(resources: Resources, max_memory: int | None) -> int | None:
    """Bytes a sample may take from free memory; None where nothing limits or nothing is known."""
    if max_memory is not None:
        return max_memory
    return None if resources.memory_bytes is None else int(resources.memory_bytes * SHARE)


def lacking_pages(need: Demand, resources: Resources) -> dict[int, int]:
    """Pages missing by page size; empty where the pools hold what the mix takes."""
    missing: dict[int, int] = {}
    for page_bytes in {size for size, _ in need.pages}:
        whole = sum(n for (size, _), n in need.pages.items() if size == page_bytes)
        short = _short(whole, resources.pools.get((page_bytes, None), 0))
        for (size, node), n in need.pages.items():
            if size == page_bytes and node is not None:
                short = max(short, _short(n, resources.pools.get((size, node))))
        if short:
            missing[page_bytes] = short
    return missing


def _short(wanted: int, free: int | None) -> int:
    # None: the kernel does not say. Then the pool is tried, and a refusal becomes a skip.
    return 0 if free is None else max(0, wanted - free)


def reserve_hint(page_bytes: int, missing: int, resources: Resources) -> str:
    """Say how to add pages to a pool."""
    file = f"/sys/kernel/mm/hugepages/hugepages-{page_bytes // 1024}kB/nr_hugepages"
    pages = resources.reserved.get(page_bytes, 0) + missing
    return f"add --reserve-hugepages (as root), or reserve: echo {pages} > {file}"


def page_word(page_bytes: int, n: int) -> str:
    """``512 pages of 2MiB (1GiB)``."""
    if n == 1:
        return f"1 page of {format_size(page_bytes)}"
    return f"{n} pages of {format_size(page_bytes)} ({format_size(n * page_bytes)})"
