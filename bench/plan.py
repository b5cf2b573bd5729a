"""From a sweep to a plan: what fits this host, what is left out and why, and what it will take.

Nothing is replaced by something else: what cannot be had is a skip with its reason and the way to
have it. What the plan may choose (the working set, shorter windows, cases to shed) it chooses
before anything is measured.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bench import budget, remarks
from bench.blocks import Block, Entry, Plan, Settings, Skip
from bench.capacity import SHARE, demand, lacking_pages, memory_limit
from bench.costs import Costs
from bench.errors import UsageError
from bench.estimate import Estimator
from bench.expand import Expander, Group
from bench.mix import Mix, mix_name
from bench.place import Placement
from bench.registry import Registry
from bench.resources import Resources
from bench.sizes import Probe, telling
from bench.sweep import Config, Within

# A sample is given up after this many times its estimate: neighbours on a shared machine were seen
# to slow dependent loads five-fold.
PATIENCE = 10.0


def make_plan(
    config: Config,
    resources: Resources,
    registry: Registry,
    *,
    preset: str = "",
    probe: Probe | None = None,
    assume_pools: bool = False,
) -> Plan:
    """Plan a sweep for a host.

    ``assume_pools`` plans as if every huge-page pool held enough: ``pool_need`` of that plan is
    what to reserve.

    Raises
    ------
    UsageError
        Where nothing of the sweep is left, saying why.
    HostError
        Where CPUs or nodes that the sweep names are not there.
    """
    if assume_pools:
        resources = replace(resources, pools=dict.fromkeys(resources.pools))
    return _Planner(config, resources, registry, probe or Probe()).plan(preset)


def pool_need(plan: Plan, resources: Resources, registry: Registry) -> dict[int, int]:
    """Pages that each pool must have free for the plan, by page size: the most a sample takes."""
    need: dict[int, int] = {}
    for block in plan.blocks:
        for entry in block.entries:
            placement = Placement(entry.cpus, entry.nodes, ())
            pages = demand(entry.mix, placement, registry, resources).pages
            for size in {size for size, _ in pages}:
                total = sum(n for (other, _), n in pages.items() if other == size)
                need[size] = max(need.get(size, 0), total)
    return need


@dataclass(frozen=True)
class _Lack:
    """A pool that is too small for one block."""

    policy: str
    block: str
    page_bytes: int
    wanted: int
    missing: int


@dataclass
class _Draft:
    """Blocks under way, and what was left out of them."""

    blocks: list[Block] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    lacks: list[_Lack] = field(default_factory=list)
    terms: dict[str, budget.Terms] = field(default_factory=dict)
    """Block id -> what a budget may do to it."""
    enlarged: dict[str, Group] = field(default_factory=dict)
    """Block id -> group, where it is larger than it would be but for page verdicts."""


class _Planner:
    def __init__(
        self, config: Config, resources: Resources, registry: Registry, probe: Probe
    ) -> None:
        self.config, self.resources, self.registry, self.probe = config, resources, registry, probe
        self.estimator = Estimator(registry, resources, Costs().refined(probe.costs))
        self.limit = memory_limit(resources, config.max_memory)
        self.unavailable = remarks.unavailable(registry, resources)
        self.kept_small: set[tuple[Mix, ...]] = set()
        """Groups that there is no time to make large enough for page verdicts."""

    def plan(self, preset: str) -> Plan:
        draft = self._affordable(self._working_set())
        fitted = budget.fit(
            draft.blocks,
            draft.terms,
            self.config.rounds,
            self.config.budget,
            self.config.stretch,
            self.estimator,
        )
        if not fitted.blocks:
            raise self._nothing_left(draft)
        mixes = [entry.mix for block in fitted.blocks for entry in block.entries]
        kernels = [self.registry.kernels()[a.kernel] for mix in mixes for a in mix.actors]
        notes = remarks.host_notes(self.resources, self.probe, self.limit is not None, kernels)
        if any(any(self.estimator.placement(mix).oversubscribed) for mix in mixes):
            notes.append("some cases have more threads than CPUs: their results are marked")
        return Plan(
            preset=preset,
            blocks=fitted.blocks,
            rounds=self.config.rounds,
            seed=self.config.seed,
            skips=tuple(self._skips(draft)),
            shed=fitted.shed,
            memory_bytes=max(self.estimator.demand(mix).total_bytes for mix in mixes),
            notes=(
                *notes,
                *remarks.page_notes(fitted.blocks, self.registry, self.probe),
                *fitted.notes,
            ),
        )

    # ---- the working set ------------------------------------------------------------------------

    def _working_set(self) -> int:
        """Largest power of two that memory, pools and time allow; the smallest one in any case."""
        within = self.config.working_set
        if not isinstance(within, Within):
            return within
        least = self._least(within)
        most = within.most or self.limit or least
        size = 1 << (most.bit_length() - 1)
        # A pool too small even for the smallest working set is no reason to take a smaller one.
        hopeless = {page for mix, _ in self._cases(least) for page in self._missing(mix)}
        while size > least and not self._comfortable(size, hopeless):
            size //= 2
        return max(size, least)

    def _least(self, within: Within) -> int:
        """Smallest working set: the sweep's, or less where there is no memory for it."""
        floor = telling(self.resources.page_bytes, self.probe)
        least = within.least
        while least // 2 >= floor and not all(self._has_memory(m) for m, _ in self._cases(least)):
            least //= 2
        return least

    def _has_memory(self, mix: Mix) -> bool:
        return self.limit is None or self.estimator.demand(mix).memory_bytes <= self.limit

    def _comfortable(self, working_set: int, hopeless: set[int]) -> bool:
        """Whether every case that takes the working set fits memory, pools and time."""
        for mix, settings in self._cases(working_set):
            missing = set(self._missing(mix))
            if missing - hopeless:
                return False
            if missing:
                continue
            if not self._has_memory(mix):
                return False
            if self.estimator.sample_s(mix, settings) > self.config.longest_sample:
                return False
        return True

    def _cases(self, working_set: int) -> list[tuple[Mix, Settings]]:
        """What takes the working set and makes sense on this host."""
        return [
            (mix, group.settings)
            for group in self._expanded(working_set)
            if group.by_working_set
            for mix in self._possible(group.smaller or group.mixes)
        ]

    def _possible(self, mixes: Iterable[Mix]) -> list[Mix]:
        return [m for m in mixes if not self._is_unavailable(m) and not self._is_impossible(m)]

    def _is_impossible(self, mix: Mix) -> bool:
        try:
            self.estimator.demand(mix)
        except UsageError:
            return True
        return False

    def _missing(self, mix: Mix) -> dict[int, int]:
        return lacking_pages(self.estimator.demand(mix), self.resources)

    def _affordable(self, working_set: int) -> _Draft:
        """Blocks at this working set, or at a smaller one that the budget can pay for."""
        draft = self._draft(working_set)
        within = self.config.working_set
        if self.config.budget is None or not isinstance(within, Within):
            return draft
        while self._total(draft) > self.config.budget and working_set // 2 >= within.least:
            smaller = self._draft(working_set // 2)
            if self._total(smaller) >= self._total(draft):
                break
            working_set //= 2
            draft = smaller
        # What is essential is measured, if need be at a size that tells nothing of pages.
        most = max(self.config.budget, self.config.stretch or 0.0)
        while self._essential_s(draft) > most:
            large = [i for i in draft.enlarged if draft.terms[i].essential]
            if not large:
                break
            self.kept_small.add(draft.enlarged[large[-1]].smaller or ())
            draft = self._draft(working_set)
        return draft

    def _essential_s(self, draft: _Draft) -> float:
        return budget.essential_s(draft.blocks, draft.terms, self.config.rounds, self.estimator)

    def _total(self, draft: _Draft) -> float:
        return self.config.rounds * sum(block.estimate_s for block in draft.blocks)

    # ---- blocks ---------------------------------------------------------------------------------

    def _groups(self, working_set: int) -> list[Group]:
        """Groups at the size that page verdicts take where memory and time allow it."""
        return [
            group
            if group.smaller is None or self._can_be_large(group)
            else replace(group, mixes=group.smaller, smaller=None)
            for group in self._expanded(working_set)
        ]

    def _can_be_large(self, group: Group) -> bool:
        # A pool that is too small is a skip: to judge the other policies is worth more.
        return group.smaller not in self.kept_small and all(
            self._has_memory(mix)
            and self.estimator.sample_s(mix, group.settings) <= self.config.longest_sample
            for mix in self._possible(group.mixes)
        )

    def _expanded(self, working_set: int) -> list[Group]:
        fixed = not isinstance(self.config.working_set, Within)
        expander = Expander(
            self.config, self.registry, self.resources, self.probe, working_set, fixed
        )
        return expander.groups()

    def _draft(self, working_set: int) -> _Draft:
        draft = _Draft()
        known: dict[str, list[set[str]]] = {}
        for group in self._groups(working_set):
            baseline = f"{group.question}:{mix_name(group.mixes[0])}"
            earlier = known.setdefault(baseline, [])
            block_id = baseline if not earlier else f"{baseline}#{len(earlier) + 1}"
            part = self._block(group, block_id)
            names = {mix_name(entry.mix) for block in part.blocks for entry in block.entries}
            if any(names <= others for others in earlier):
                continue  # an earlier, more important table has measured all of it
            if part.blocks:
                earlier.append(names)
                draft.terms[block_id] = budget.Terms(group.shortest_window_s, group.essential)
                if group.smaller is not None:
                    draft.enlarged[block_id] = group
            draft.blocks += part.blocks
            draft.skips += part.skips
            draft.lacks += part.lacks
        return draft

    def _block(self, group: Group, block_id: str) -> _Draft:
        """One block, or none and the reasons."""
        part = _Draft()
        entries: list[Entry] = []
        for mix in group.mixes:
            if self._is_unavailable(mix):
                continue
            refusal = self._refusal(mix)
            if refusal is not None and mix is group.mixes[0]:
                # Alternatives without their baseline answer nothing.
                return _Draft(skips=[replace(refusal, what=block_id)])
            if refusal is not None:
                part.skips.append(refusal)
                continue
            lacks = self._lacks(mix, block_id)
            part.lacks += lacks
            if not lacks:
                entries.append(self._entry(mix, group.settings))
        if entries:
            slowest = max(self.estimator.window_s(entry.mix, group.settings) for entry in entries)
            deadline = max(Settings.deadline_s, PATIENCE * slowest)
            settings = replace(group.settings, deadline_s=deadline)
            part.blocks.append(Block(block_id, group.question, tuple(entries), settings))
        return part

    def _entry(self, mix: Mix, settings: Settings) -> Entry:
        placement = self.estimator.placement(mix)
        estimate = self.estimator.sample_s(mix, settings)
        return Entry(mix, placement.cpus, placement.nodes, estimate)

    # ---- what is left out -----------------------------------------------------------------------

    def _is_unavailable(self, mix: Mix) -> bool:
        return any(actor.policy in self.unavailable for actor in mix.actors)

    def _refusal(self, mix: Mix) -> Skip | None:
        """Why a mix makes no sense or takes too much memory; None where it can be measured."""
        try:
            for actor in mix.actors:
                reason = self.registry.accepts(actor)
                if reason:
                    return Skip(mix_name(mix), reason)
            need = self.estimator.demand(mix).memory_bytes
        except UsageError as error:
            return Skip(mix_name(mix), str(error), error.remedy)
        if self.limit is None or self._has_memory(mix):
            return None
        given = self.config.max_memory is not None
        bound = "--max-memory" if given else f"{SHARE:.0%} of what is available"
        return Skip(
            mix_name(mix),
            f"takes {remarks.about(need)}, more than {remarks.about(self.limit)} ({bound})",
            f"--max-memory {remarks.about(need, up=True)}, or a smaller --size or --working-set",
        )

    def _lacks(self, mix: Mix, block_id: str) -> list[_Lack]:
        need, missing = self.estimator.demand(mix), self._missing(mix)
        policies = self.registry.policies()
        found = []
        for name in dict.fromkeys(actor.policy for actor in mix.actors):
            size = policies[name].page_bytes
            if policies[name].hugetlb and size in missing:
                wanted = sum(n for (page, _), n in need.pages.items() if page == size)
                found.append(_Lack(name, block_id, size, wanted, missing[size]))
        return found

    def _skips(self, draft: _Draft) -> list[Skip]:
        asked = {p for sweep in self.config.sweep for p in (sweep.pages or self.config.pages)}
        skips = remarks.folded(
            skip for name, skip in self.unavailable.items() if name in asked or "all" in asked
        )
        served = {
            actor.policy
            for block in draft.blocks
            for entry in block.entries
            for actor in entry.mix.actors
        }
        for policy, rows in _by_policy(draft.lacks):
            most = max(rows, key=lambda row: row.missing)
            skips.append(
                remarks.pool_skip(
                    policy if policy not in served else f"{policy} in {len(rows)} blocks",
                    most.page_bytes,
                    most.wanted,
                    most.missing,
                    [row.block for row in rows] if policy in served else [],
                    self.resources,
                )
            )
        return skips + draft.skips

    def _nothing_left(self, draft: _Draft) -> UsageError:
        skips = draft.skips or self._skips(draft)
        if not skips:
            return UsageError("the sweep leaves nothing to measure", "check its [[exclude]] tables")
        return UsageError(
            f"nothing of this sweep can be measured here; {skips[0].what}: {skips[0].reason}",
            skips[0].remedy,
        )


def _by_policy(lacks: Iterable[_Lack]) -> list[tuple[str, list[_Lack]]]:
    rows: dict[str, list[_Lack]] = {}
    for lack in lacks:
        rows.setdefault(lack.policy, []).append(lack)
    return list(rows.items())
