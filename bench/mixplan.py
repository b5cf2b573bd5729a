"""Blocks of mixes that a command puts together itself, as ``plan`` makes them of a sweep."""

from collections.abc import Iterable
from dataclasses import replace

from bench import remarks
from bench.blocks import Block, Entry, Settings, Skip
from bench.capacity import SHARE, lacking_pages, memory_limit, reserve_hint
from bench.costs import Costs
from bench.errors import UsageError
from bench.estimate import Estimator
from bench.mix import Mix, mix_name
from bench.plan import PATIENCE
from bench.registry import Registry
from bench.resources import Resources
from bench.sizes import Probe
from bench.units import format_size


class MixPlanner:
    """Turns mixes into entries of blocks, or says why the host cannot run them."""

    def __init__(
        self,
        registry: Registry,
        resources: Resources,
        probe: Probe | None = None,
        max_memory: int | None = None,
        assume_pools: bool = False,
    ) -> None:
        if assume_pools:
            # As if every pool held enough: what is missing is then added before it is measured.
            resources = replace(resources, pools=dict.fromkeys(resources.pools))
        self.registry, self.resources = registry, resources
        self.assume_pools = assume_pools
        self.estimator = Estimator(registry, resources, Costs().refined((probe or Probe()).costs))
        self.limit = memory_limit(resources, max_memory)

    def unavailable(self, policy: str) -> str:
        """Why the host cannot give a page policy; empty where it can."""
        described = self.registry.policies()[policy]
        has_pool = described.hugetlb and (described.page_bytes, None) in self.resources.pools
        if self.assume_pools and has_pool:
            return ""
        return self.registry.policy_available(policy)

    def refusal(self, mix: Mix) -> Skip | None:
        """Why the host cannot run a mix; None where it can."""
        name = mix_name(mix)
        try:
            for actor in mix.actors:
                reason = self.registry.policy_available(actor.policy) or self.registry.accepts(
                    actor
                )
                if reason:
                    return Skip(name, f"{actor.kernel} on {actor.policy}: {reason}")
            need = self.estimator.demand(mix)
        except UsageError as error:
            return Skip(name, str(error), error.remedy)
        if self.limit is not None and need.memory_bytes > self.limit:
            return Skip(
                name,
                f"takes {remarks.about(need.memory_bytes)}, more than {remarks.about(self.limit)}"
                f" ({SHARE:.0%} of what is available, or --max-memory)",
                f"--max-memory {remarks.about(need.memory_bytes, up=True)}",
            )
        for page_bytes, missing in lacking_pages(need, self.resources).items():
            return Skip(
                name,
                f"{missing} pages of {format_size(page_bytes)} are missing in the pool",
                reserve_hint(page_bytes, missing, self.resources),
            )
        return None

    def block(
        self, block_id: str, question: str, mixes: Iterable[Mix], settings: Settings
    ) -> tuple[Block | None, list[Skip]]:
        """Block of the mixes that can be run, each once; none where the baseline cannot."""
        entries: list[Entry] = []
        skips: list[Skip] = []
        unique = {mix_name(mix): mix for mix in mixes}
        for i, mix in enumerate(unique.values()):
            refused = self.refusal(mix)
            if refused is None:
                entries.append(self.entry(mix, settings))
            else:
                skips.append(refused)
                if i == 0:
                    return None, skips
        if not entries:
            return None, skips
        slowest = max(self.estimator.window_s(entry.mix, settings) for entry in entries)
        deadline = max(settings.deadline_s, PATIENCE * slowest)
        return Block(
            block_id, question, tuple(entries), replace(settings, deadline_s=deadline)
        ), skips

    def entry(self, mix: Mix, settings: Settings) -> Entry:
        """Where a mix runs and how long a sample takes, about."""
        placement = self.estimator.placement(mix)
        return Entry(mix, placement.cpus, placement.nodes, self.estimator.sample_s(mix, settings))

    def memory_bytes(self, blocks: Iterable[Block]) -> int:
        """Largest live memory of any sample."""
        return max(
            (
                self.estimator.demand(entry.mix).total_bytes
                for block in blocks
                for entry in block.entries
            ),
            default=0,
        )
