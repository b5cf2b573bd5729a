"""From a sweep to groups of mixes: cross products and words like ``all`` and ``auto`` resolved.

Knows how large and how many, not yet whether the host has the memory: that is ``bench.plan``'s.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

from bench.blocks import Settings
from bench.mix import Actor, Mix, Pool, Value, mix_name
from bench.place import candidates
from bench.registry import BASE, BEST, Registry, param_value
from bench.resources import Resources
from bench.sizes import Probe, bandwidth_size, last_level, telling
from bench.sweep import Beside, Config, Exclude, KernelChoice, Range, Sweep
from bench.topology import pin_order, thread_ladder

if TYPE_CHECKING:
    from bench.native import Kernel

QUESTIONS = {"aligned": "aliasing"}
"""Where a block's question has another name than the axis it compares."""
# Outermost first: blocks of one kernel stay together.
_ORDER = ("kernels", "sizes", "beside", "pin", "threads", "aligned", "process", "pages")
_LADDERS = {"quick": "quick", "ladder": "full", "every": "every"}


@dataclass(frozen=True)
class Group:
    """Mixes to be compared, the baseline first, before anything is known of memory and time."""

    question: str
    mixes: tuple[Mix, ...]
    settings: Settings
    shortest_window_s: float
    by_working_set: bool
    """The plan's working set decides how much memory it takes."""
    essential: bool
    smaller: tuple[Mix, ...] | None = None
    """The same without what page verdicts need for so many threads; None: it needs no more."""


@dataclass(frozen=True)
class _Choice:
    """One kernel with one value of every parameter."""

    kernel: str
    variant: str
    params: tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class _Beside:
    """One extra actor with everything decided but its size, and threads that depend on others."""

    choice: _Choice
    pace: float
    threads: int | str
    spec: Any


@dataclass
class Expander:
    """Expands a sweep for one host and one working set."""

    config: Config
    registry: Registry
    resources: Resources
    probe: Probe
    working_set: int
    fixed: bool
    """The working set was given: it is used as it is, also where caches hold it."""
    _cpus: dict[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)

    def groups(self) -> list[Group]:
        """Every group in the order of the file, each once."""
        found: dict[tuple[str, ...], Group] = {}
        for sweep in self.config.sweep:
            for group in self._sweep(sweep):
                key = (group.question, *(mix_name(mix) for mix in group.mixes))
                found.setdefault(key, group)
        return list(found.values())

    # ---- one table ------------------------------------------------------------------------------

    def _sweep(self, sweep: Sweep) -> Iterator[Group]:
        values = self._values(sweep)
        outer = [axis for axis in _ORDER if axis != sweep.compare]
        for combination in product(*(values[axis] for axis in outer)):
            chosen = dict(zip(outer, combination, strict=True))
            if sweep.compare == "threads":
                words = values["threads"]
                counts = [n for word in words for n in self.counts(word, chosen["pin"])]
                yield from self._group(sweep, chosen, list(dict.fromkeys(counts)))
                continue
            for count in self.counts(chosen["threads"], chosen.get("pin")):
                fixed = {**chosen, "threads": count}
                yield from self._group(sweep, fixed, values[sweep.compare])

    def _group(
        self, sweep: Sweep, chosen: dict[str, Any], alternatives: Sequence[Any]
    ) -> Iterator[Group]:
        mixes: list[Mix] = []
        smaller: list[Mix] = []
        by_working_set = False
        paged = sweep.compare == "pages" and len(alternatives) > 1
        for alternative in alternatives:
            case = {**chosen, sweep.compare: alternative}
            mix, small = (self._mix(sweep, case, each) for each in (paged, False))
            if not any(self._excluded(rule, mix.actors[0], paged) for rule in self.config.exclude):
                mixes.append(mix)
                smaller.append(small)
                by_working_set |= self._sized_by_working_set(sweep, case)
        if not mixes:
            return
        window = sweep.window or self.config.window
        shortest = sweep.shortest_window or self.config.shortest_window or window
        settings = Settings(
            window_s=window,
            warm_s=sweep.warm or self.config.warm,
            min_passes=sweep.min_passes or self.config.min_passes,
            check=self.config.check,
        )
        question = QUESTIONS.get(sweep.compare, sweep.compare)
        unique, less = (
            tuple({mix_name(mix): mix for mix in some}.values()) for some in (mixes, smaller)
        )
        yield Group(
            question,
            unique,
            settings,
            min(shortest, window),
            by_working_set,
            sweep.essential,
            less if less != unique else None,
        )

    def _values(self, sweep: Sweep) -> dict[str, list[Any]]:
        pins = list(sweep.pin)
        if sweep.node:
            nodes = [node for word in sweep.node for node in self._nodes(word)]
            pins = [f"{pin}:{node}" for pin in pins for node in dict.fromkeys(nodes)]
        return {
            "kernels": [each for choice in sweep.kernels for each in self._choices(choice)],
            "sizes": [size for word in sweep.sizes for size in _sizes(word)],
            "beside": [each for beside in sweep.beside for each in self._beside(beside)],
            "pin": pins,
            "threads": list(sweep.threads),
            "aligned": list(sweep.aligned),
            "process": list(sweep.process),
            "pages": self._pages(sweep),
        }

    def _nodes(self, word: int | str) -> list[int]:
        if isinstance(word, int):
            return [word]
        allowed = set(self.resources.allowed)
        return [node.id for node in self.resources.topology.nodes if allowed & set(node.cpus)]

    def _pages(self, sweep: Sweep) -> list[str]:
        names = sweep.pages if sweep.pages is not None else self.config.pages
        listed = [
            p for name in names for p in (self.registry.policies() if name == "all" else [name])
        ]
        # Whatever the order asked for, small pages are what others are compared with.
        return list(dict.fromkeys([BASE] * (BASE in listed) + listed))

    # ---- kernels and mixes ----------------------------------------------------------------------

    def _choices(self, choice: KernelChoice) -> Iterator[_Choice]:
        kernel = self.registry.kernels()[choice.name]
        names = list(choice.params)
        for variant in choice.variant:
            for values in product(*(choice.params[name] for name in names)):
                params = tuple(
                    (name, param_value(kernel, name, value))
                    for name, value in zip(names, values, strict=True)
                )
                used = kernel.best_variant if variant == BEST else variant
                yield _Choice(choice.name, used, params)

    def _beside(self, beside: Beside) -> Iterator[tuple[_Beside, ...]]:
        options = [
            [
                _Beside(choice, pace, threads, extra)
                for choice in self._choices(extra.kernel)
                for pace in extra.pace
                for threads in self._beside_counts(extra.threads)
            ]
            for extra in beside.actors
        ]
        yield from product(*options)

    def _beside_counts(self, word: int | str) -> Sequence[int | str]:
        if word != "ladder":
            return [word]
        most = max(1, self.resources.threads - 1)
        return [n for n in self.counts("ladder") if n < most] + [most]

    def _mix(self, sweep: Sweep, case: dict[str, Any], paged: bool) -> Mix:
        choice: _Choice = case["kernels"]
        threads, policy, pin = case["threads"], case["pages"], case["pin"]
        size = self._size(case["sizes"], choice.kernel, threads, pin, paged)
        measured = Actor(
            choice.kernel,
            choice.variant,
            policy,
            threads,
            size,
            choice.params,
            process=case["process"],
            priority=sweep.priority,
            courtesy=sweep.courtesy,
            pace=sweep.pace,
            weight=sweep.weight,
            joined=sweep.joined,
            aligned=case["aligned"],
            pin=pin,
            script=sweep.script,
        )
        actors = [measured, *(self._extra(item, measured) for item in case["beside"])]
        pools = tuple(Pool(pool.name, pool.tokens, pool.capacity) for pool in sweep.pools)
        return Mix(tuple(self.registry.canonical(actor) for actor in actors), pools)

    def _extra(self, item: _Beside, measured: Actor) -> Actor:
        spec, choice = item.spec, item.choice
        threads = measured.threads
        if isinstance(item.threads, int):
            threads = item.threads
        elif item.threads == "rest":
            threads = max(1, self.resources.threads - measured.threads)
        if spec.size == "same":
            size = measured.size
        else:
            size = self._size(spec.size, choice.kernel, threads, spec.pin, paged=False)
        return Actor(
            choice.kernel,
            choice.variant,
            measured.policy if spec.pages == "same" else spec.pages,
            threads,
            size,
            choice.params,
            role=spec.role,
            process=spec.process,
            priority=spec.priority,
            courtesy=spec.courtesy,
            pace=item.pace,
            weight=spec.weight,
            joined=spec.joined,
            pin=spec.pin,
            script=spec.script,
        )

    # ---- threads --------------------------------------------------------------------------------

    def counts(self, word: int | str, pin: str | None = None) -> list[int]:
        """Thread counts of a word; ``pin`` with a node or a list keeps to its CPUs."""
        if isinstance(word, int):
            return [word]
        topology, allowed = self.resources.topology, list(self.resources.allowed)
        if pin is not None and pin.partition(":")[2]:
            allowed = candidates(pin, topology, allowed)
        limit = min(self.resources.threads, len(allowed))
        if word == "all":
            return [limit]
        if word in _LADDERS:
            return thread_ladder(topology, allowed, _LADDERS[word], limit)  # type: ignore[arg-type]  # _LADDERS has its kinds
        order = [topology.by_id[cpu] for cpu in pin_order(topology, allowed)]
        first = order[0]
        same = [
            cpu.core
            for cpu in order
            if word == "cores"
            or (cpu.node == first.node and (word == "node" or cpu.llc == first.llc))
        ]
        return [min(limit, len(set(same)))]

    # ---- sizes ----------------------------------------------------------------------------------

    def _size(self, word: int | str, kernel: str, threads: int, pin: str, paged: bool) -> int:
        described = self.registry.kernels()[kernel]
        if not described.arrays:
            return 0
        if word == "least":
            return self.least_size(described, threads, pin, paged)
        return word if isinstance(word, int) else self.auto_size(described, threads, pin, paged)

    def auto_size(self, kernel: "Kernel", threads: int, pin: str, paged: bool) -> int:
        """Arena of a kernel whose size is left open.

        Bandwidth: one size for the host, so that thread counts can be compared. Quoted per
        operation: the working set, or more where the caches of these threads would hold it.
        ``paged``: page policies are to be judged at it, which takes so much a thread.
        """
        if not kernel.op:
            everything = self.resources.threads
            size = self.beyond_caches(tuple(self.resources.allowed), everything)
            if self.fixed:
                return max(size, self.working_set)
            return max(size, self._telling(kernel, max(threads, everything)) if paged else 0)
        if self.fixed:
            return self.working_set
        return max(self.working_set, self.least_size(kernel, threads, pin, paged))

    def least_size(self, kernel: "Kernel", threads: int, pin: str, paged: bool) -> int:
        """Size that no cache of these threads can hold, and that tells page policies apart."""
        size = self.beyond_caches(self._cpus_of(pin, threads), threads)
        return max(size, self._telling(kernel, threads) if paged else 0)

    def _telling(self, kernel: "Kernel", threads: int) -> int:
        """Size at which every thread walks enough for a verdict against base pages."""
        each = telling(self.resources.page_bytes, self.probe)
        return each * threads if kernel.divided else each

    def beyond_caches(self, cpus: Sequence[int], threads: int) -> int:
        """Size that the last-level caches of this many threads on these CPUs cannot hold."""
        if len(cpus) > threads:
            cpus = pin_order(self.resources.topology, cpus)[:threads]
        llc = last_level(self.resources.topology, cpus, self.probe)
        return bandwidth_size(llc, self.resources.page_bytes, self.probe)

    def _cpus_of(self, pin: str, threads: int) -> tuple[int, ...]:
        key = (pin, threads)
        if key not in self._cpus:
            order = candidates(pin, self.resources.topology, self.resources.allowed)
            self._cpus[key] = tuple(order[:threads]) or self.resources.allowed
        return self._cpus[key]

    def _sized_by_working_set(self, sweep: Sweep, case: dict[str, Any]) -> bool:
        auto = [case["kernels"].kernel] if case["sizes"] == "auto" else []
        auto += [e.choice.kernel for e in case["beside"] if e.spec.size == "auto"]
        kernels = [self.registry.kernels()[kernel] for kernel in auto]
        return any(kernel.op and kernel.arrays for kernel in kernels)

    # ---- exclusion ------------------------------------------------------------------------------

    def _excluded(self, rule: Exclude, actor: Actor, paged: bool) -> bool:
        kernel = self.registry.kernels()[actor.kernel]
        values = dict(actor.params)

        def has(name: str, wanted: Sequence[int | str]) -> bool:
            own = values.get(name, kernel.param(name).default)
            return own in [param_value(kernel, name, value) for value in wanted]

        return (
            (not rule.kernel or actor.kernel in rule.kernel)
            and (not rule.variant or actor.variant in rule.variant)
            and (not rule.pages or actor.policy in rule.pages)
            and (not rule.threads or actor.threads in self._excluded_counts(rule, actor))
            and (not rule.sizes or actor.size in self._excluded_sizes(rule, actor, kernel, paged))
            and all(
                any(param.name == name for param in kernel.params) and has(name, wanted)
                for name, wanted in rule.params.items()
            )
        )

    def _excluded_counts(self, rule: Exclude, actor: Actor) -> list[int]:
        return [count for word in rule.threads for count in self.counts(word, actor.pin)]

    def _excluded_sizes(
        self, rule: Exclude, actor: Actor, kernel: "Kernel", paged: bool
    ) -> list[int]:
        return [
            self._size(size, kernel.name, actor.threads, actor.pin, paged)
            for word in rule.sizes
            for size in _sizes(word)
        ]


def _sizes(word: int | str | Range) -> list[int | str]:
    return list(word.values()) if isinstance(word, Range) else [word]
