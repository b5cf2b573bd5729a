"""Plans of ``bench remedy``: first every actor alone, then the mix under its remedies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bench.blocks import Block, Plan, Settings, Skip
from bench.errors import UsageError
from bench.mix import Actor, Mix, mix_name
from bench.mixplan import MixPlanner
from bench.remedies import Choices, Setting, Treated, pairs, singles, treat
from bench.scenario import Scenario
from bench.spinners import KERNEL, plain, spinning

SOLO_ROUNDS = 3
PILOT_ROUNDS = 6
"""Fewest that give an interval."""
STREAM_BYTES = 64 << 20
"""A thread: past what its part of a cache holds."""
SOLO_SHARE = 0.15
PILOT_SHARE = 0.35
PAIRS_SHARE = 0.12
"""Of the budget; what remains is for the verdict."""
SOLO, PILOT, PAIRS, VERDICT, SPIN = "alone", "pilot", "pairs", "verdict", "spin"


def alone(actor: Actor, threads: int | None = None, pin: str = "compact") -> Mix:
    """An actor with the host to itself, pass after pass."""
    return Mix(
        (
            replace(
                actor,
                threads=threads or actor.threads,
                role="measured",
                script=(),
                priority=0,
                courtesy="proceed",
                process="each" if actor.process == "each" else "",
                weight=1.0,
                pin=pin,
            ),
        )
    )


@dataclass
class Solo:
    """Mixes of one actor: names as ``analysis.forecast`` wants them."""

    plan: Plan
    own: list[str] = field(default_factory=list)
    one: list[str] = field(default_factory=list)
    all: list[str] = field(default_factory=list)
    changed: dict[str, dict[str, str]] = field(default_factory=dict)
    """Remedy -> position (text, as TOML keys are) -> mix."""
    streamer: str = ""
    """All CPUs reading memory."""
    spin: str = ""
    """A spinner, whose rate the others are given."""
    cpus: int = 1

    def plain(self) -> dict[str, Any]:
        """Names for the plan's options, and for ``analysis.forecast.Measured``."""
        keys = ("own", "one", "all", "changed", "streamer", "cpus")
        return {key: getattr(self, key) for key in keys}


def solo(
    scenario: Scenario,
    treated: Mapping[str, Treated],
    planner: MixPlanner,
    settings: Settings,
    budget_s: float,
    seed: int,
) -> Solo:
    """Plan the baseline and every actor alone, most important first, as far as time goes."""
    made = Solo(Plan("remedy", (), 0, seed))
    mixes = [scenario.mix]
    if KERNEL in planner.registry.kernels():
        mixes.append(Mix((plain(planner.registry),)))
        made.spin = mix_name(mixes[-1])
    mixes += each_alone(made, scenario.mix.actors, planner)
    needed = {mix_name(scenario.mix), made.spin, made.streamer, *made.own} - {""}
    for name, outcome in treated.items():
        for i, before in enumerate(scenario.mix.actors):
            after = outcome.mix.actors[i] if outcome.mix else before
            same_threads = replace(after, threads=before.threads)
            changed = alone(same_threads)
            if changed != alone(before):
                made.changed.setdefault(name, {})[str(i)] = mix_name(changed)
                mixes.append(changed)
    block, skips = planner.block(SOLO, "alone", mixes, settings)
    if block is None:
        raise UsageError(f"the scenario cannot be run here: {skips[0].reason}", skips[0].remedy)
    block = _within(block, SOLO_SHARE * budget_s / SOLO_ROUNDS, keep=len(needed))
    made.plan = Plan(
        "remedy", (block,), SOLO_ROUNDS, seed, memory_bytes=planner.memory_bytes([block])
    )
    return made


def each_alone(
    made: Solo, actors: Sequence[Actor], planner: MixPlanner, pinned: bool = True
) -> list[Mix]:
    """Mixes that tell what every actor does with the host to itself; ``made`` has their names.

    ``pinned``: its threads, whatever the actor says; else as it says.
    """
    mixes: list[Mix] = []
    cpus = made.cpus = planner.resources.threads
    streamer = _streamer(planner, cpus)
    if streamer is not None:
        made.streamer = mix_name(streamer)
        mixes.append(streamer)
    # What every prediction needs goes before what refines it: a budget cuts from the end.
    scaled: list[Mix] = []
    for actor in actors:
        has_memory = bool(planner.registry.kernels()[actor.kernel].arrays)
        pin = "compact" if pinned else actor.pin
        own, one = alone(actor, None, pin), alone(actor, 1, pin)
        every = alone(actor, cpus, pin) if has_memory else own
        made.own.append(mix_name(own))
        made.one.append(mix_name(one))
        made.all.append(mix_name(every))
        mixes.append(own)
        scaled += [one, every]
    mixes += scaled
    return mixes


def _streamer(planner: MixPlanner, cpus: int) -> Mix | None:
    """What the memory interface gives where nothing else holds a thread back."""
    kernel = planner.registry.kernels().get("scan")
    if kernel is None:
        return None
    policy = next(iter(planner.registry.policies()))
    return Mix((Actor("scan", kernel.best_variant, policy, cpus, STREAM_BYTES * cpus),))


def _within(block: Block, seconds: float, keep: int) -> Block:
    """Entries from the front as far as the time goes, ``keep`` of them in any case."""
    kept = list(block.entries[:keep])
    for entry in block.entries[keep:]:
        if sum(e.estimate_s for e in kept) + entry.estimate_s <= seconds:
            kept.append(entry)
    return replace(block, entries=tuple(kept))


@dataclass
class Trial:
    """What the main plan tries: remedies by name, and what is left out."""

    plan: Plan
    mixes: dict[str, Mix] = field(default_factory=dict)
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    spin: dict[str, str] = field(default_factory=dict)
    """Remedy -> mix of spinners, "" for the baseline's."""
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    refused: list[Skip] = field(default_factory=list)
    shed: list[Skip] = field(default_factory=list)
    most_pairs: int = 0


def candidates(
    scenario: Scenario, setting: Setting, wanted: Mapping[str, Choices] | None = None
) -> dict[str, tuple[Choices, Treated]]:
    """Remedies on their own, one argument of each before any second one."""
    if wanted is not None:
        return {name: (c, treat(scenario.mix, c, setting)) for name, c in wanted.items()}
    found = singles(scenario.mix, setting)
    seen: dict[str, int] = {}
    rank = {}
    for name, (choices, outcome) in found.items():
        key = choices[0].remedy
        rank[name] = seen.get(key, 0)
        seen[key] = rank[name] + (outcome.mix is not None)
    return dict(sorted(found.items(), key=lambda item: rank[item[0]]))


def trial(
    scenario: Scenario,
    single: Mapping[str, tuple[Choices, Treated]],
    pass_s: Sequence[float],
    wall_s: float,
    spin_rate: float,
    planner: MixPlanner,
    setting: Setting,
    settings: Settings,
    budget_s: float,
    seed: int,
) -> Trial:
    """Plan pilot, pairs, verdict and spinners.

    ``pass_s`` are seconds each actor of the baseline is busy in a pass, ``wall_s`` what a sample of
    the baseline takes, ``spin_rate`` the iterations a second of a spinner, all as measured. Without
    a rate (0) there are no spinners, and causes stay unknown.
    """
    made = Trial(Plan("remedy", (), 0, seed))
    taken = {mix_name(scenario.mix): "the scenario as it is"}
    estimate = planner.estimator.sample_s(scenario.mix, settings)
    scale = wall_s / estimate if wall_s > 0 else 1.0
    allowed_s = PILOT_SHARE * budget_s / PILOT_ROUNDS - wall_s
    chosen: list[Choices] = []
    for name, (choices, outcome) in single.items():
        mix = _admitted(made, name, outcome, taken, planner)
        if mix is None:
            continue
        cost = scale * planner.estimator.sample_s(mix, settings)
        if cost > allowed_s and chosen:
            made.shed.append(Skip(name, "over the budget", "a longer --budget"))
            continue
        allowed_s -= cost
        _take(made, name, (name,), mix, outcome)
        chosen.append(choices)
    if not chosen:
        raise UsageError(
            f"no remedy applies to {scenario.name}: "
            + "; ".join(f"{skip.what}: {skip.reason}" for skip in made.refused)
        )
    n_singles = len(made.mixes)
    for name, (parts, outcome) in pairs(scenario.mix, chosen, setting).items():
        mix = _admitted(made, name, outcome, taken, planner, quietly=True)
        if mix is not None:
            _take(made, name, parts, mix, outcome)
    made.most_pairs = max(0, int(PAIRS_SHARE * budget_s / PILOT_ROUNDS / wall_s) - 1)
    everything = list(made.mixes.values())
    spinners = _spinners(made, scenario, pass_s, spin_rate, planner)
    groups = [
        (PILOT, everything[:n_singles]),
        (PAIRS, everything[n_singles:]),
        (VERDICT, everything),
    ]
    blocks = []
    for block_id, mixes in groups:
        if mixes:
            block, _ = planner.block(block_id, "remedy", [scenario.mix, *mixes], settings)
            if block is not None:
                blocks.append(block)
    if spinners:
        block, _ = planner.block(SPIN, "remedy among spinners", spinners, settings)
        if block is not None:
            blocks.append(block)
    made.plan = Plan("remedy", tuple(blocks), 0, seed, memory_bytes=planner.memory_bytes(blocks))
    return made


def _admitted(
    made: Trial,
    name: str,
    outcome: Treated,
    taken: dict[str, str],
    planner: MixPlanner,
    quietly: bool = False,
) -> Mix | None:
    """Mix of a remedy that can be run here and is not one of the others already."""
    reason, way_out = outcome.reason, ""
    if outcome.mix is not None:
        full = mix_name(outcome.mix)
        refusal = planner.refusal(outcome.mix)
        if full in taken:
            reason = f"comes to the same as {taken[full]}"
        elif refusal is not None:
            reason, way_out = refusal.reason, refusal.remedy
        else:
            taken[full] = name
            return outcome.mix
    if not quietly:
        made.refused.append(Skip(name, reason, way_out))
    return None


def _take(made: Trial, name: str, parts: tuple[str, ...], mix: Mix, outcome: Treated) -> None:
    made.mixes[name] = mix
    made.parts[name] = parts
    if outcome.notes:
        made.notes[name] = outcome.notes


def _spinners(
    made: Trial,
    scenario: Scenario,
    pass_s: Sequence[float],
    rate: float,
    planner: MixPlanner,
) -> list[Mix]:
    """Mixes without memory of the remedies that still change something there."""
    if KERNEL not in planner.registry.kernels() or rate <= 0:
        return []
    base = spinning(scenario.mix, scenario.mix, pass_s, rate, planner.registry)
    found = {mix_name(base): base}
    for name, mix in made.mixes.items():
        treated = spinning(mix, scenario.mix, pass_s, rate, planner.registry)
        if treated != base and planner.refusal(treated) is None:
            made.spin[name] = mix_name(treated)
            found.setdefault(mix_name(treated), treated)
    if made.spin:
        made.spin[""] = mix_name(base)
    return list(found.values()) if made.spin else []
