"""Where a mix runs, what memory it takes and how long a sample lasts; each mix worked out once."""

from typing import TYPE_CHECKING

from bench.blocks import Settings
from bench.capacity import Demand, demand
from bench.costs import Costs, Load, sample_s, window_s
from bench.mix import Actor, Mix
from bench.place import Placement, place
from bench.registry import Registry
from bench.resources import Resources

if TYPE_CHECKING:
    from bench.native import Effort


class Estimator:
    """Placements, demands and times of mixes on one host."""

    def __init__(self, registry: Registry, resources: Resources, costs: Costs) -> None:
        self.registry, self.resources, self.costs = registry, resources, costs
        self._placements: dict[tuple[tuple[str, int], ...], Placement] = {}
        self._demands: dict[Mix, Demand] = {}
        self._efforts: dict[Actor, Effort] = {}

    def placement(self, mix: Mix) -> Placement:
        """CPUs and nodes of the mix's threads."""
        key = tuple((actor.pin, actor.threads) for actor in mix.actors)
        if key not in self._placements:
            self._placements[key] = place(mix, self.resources.topology, self.resources.allowed)
        return self._placements[key]

    def demand(self, mix: Mix) -> Demand:
        """Memory of the mix; raises UsageError where parameters do not fit the size."""
        if mix not in self._demands:
            self._demands[mix] = demand(mix, self.placement(mix), self.registry, self.resources)
        return self._demands[mix]

    def window_s(self, mix: Mix, settings: Settings) -> float:
        """Seconds the window is expected to be open."""
        loads = self._loads(mix)
        return window_s([loads[i] for i in mix.measured], settings, self.costs)

    def sample_s(self, mix: Mix, settings: Settings) -> float:
        """Seconds from the start of the worker to its end."""
        loads = self._loads(mix)
        return sample_s(loads, [loads[i] for i in mix.measured], settings, self.costs)

    def _loads(self, mix: Mix) -> list[Load]:
        used = self.demand(mix).used_bytes
        return [self._load(actor, used[i]) for i, actor in enumerate(mix.actors)]

    def _load(self, actor: Actor, used: int) -> Load:
        kernel = self.registry.kernels()[actor.kernel]
        policy = self.registry.policies()[actor.policy]
        # Free memory is reported to the host in blocks of this size; pools keep theirs.
        large = policy.page_bytes >= 2 << 20 and not policy.hugetlb
        returned = self.resources.virtual and large
        if actor not in self._efforts:
            self._efforts[actor] = self.registry.effort(actor)
        effort = self._efforts[actor]
        # What is said of a team is the work of all its threads.
        ops = effort.ops / (actor.threads if kernel.sharing == "team" else 1)
        busy_s, waits = ops * effort.op_ns * 1e-9, ops * effort.op_waits
        return Load(actor.threads, used, policy.page_bytes, returned, busy_s, waits)
