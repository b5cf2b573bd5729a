"""Runs of ``bench remedy`` without workers: sample lines come from a formula, all else is real."""

import math
import random
import time
from dataclasses import replace
from pathlib import Path

from planning import Made, resources

from analysis.load import Results
from analysis.remedy import conclude, judge
from analysis.remedy_stages import Spec
from bench.blocks import Settings
from bench.commands._remedy_schedule import Stages, rows_of
from bench.journal import State
from bench.mix import Actor, Mix, mix_name, parse_mix, parse_script
from bench.mixplan import MixPlanner
from bench.native import Param, Variant
from bench.remedies import Setting, parse, singles, treat
from bench.remedyplan import trial
from bench.scenario import Scenario, to_plain
from bench.topology import Cache, Cpu, Node, Topology

MIB = 1 << 20


def cpus(n, per_llc=0):
    """A host of ``n`` cores on one node."""
    made = tuple(
        Cpu(i, i, 0, None, 0, i // per_llc if per_llc else 0, i, 0, None) for i in range(n)
    )
    groups = sorted({cpu.llc for cpu in made})
    llcs = tuple(
        Cache(3, "unified", 32 * MIB, 64, 16, tuple(c.id for c in made if c.llc == g))
        for g in groups
    )
    return resources(Topology(made, llcs, llcs, (Node(0, tuple(range(n)), None, ()),)))


def number(name, default):
    return Param(name, "u64", default, 1, 1_000_000, (), "", "")


class Kernels(Made):
    """The planning tests' registry, with a team kernel and one that releases memory."""

    def kernels(self):
        known = dict(super().kernels())
        known["team"] = replace(known["stream"], name="team", params=(), sharing="team")
        method = Param("method", "choice", "munmap", 0, 0, ("munmap", "pool"), "", "")
        known["storm"] = replace(known["stream"], name="storm", params=(method,), memory="churn")
        spin = [
            Param(n, "u64", d, 0, 1 << 40, (), "", "")
            for n, d in (("steps", 20), ("iterations", 0))
        ]
        known["spin"] = replace(
            known["spin"], params=tuple(spin), variants=(Variant("scalar", "", True),)
        )
        return known

    def canonical(self, actor):
        kernel = self.kernels()[actor.kernel]
        kept = tuple((k, v) for k, v in actor.params if v != kernel.param(k).default)
        return replace(actor, params=kept)

    def footprint(self, actor, nodes=None):
        known = "spin" if actor.kernel == "spin" else "stream"
        return super().footprint(replace(actor, kernel=known), nodes)


REGISTRY = Kernels()


def actor(kernel="stream", threads=1, script="", size=64 * MIB, **options):
    return Actor(
        kernel,
        "scalar",
        "base",
        threads,
        size,
        script=parse_script(script) if script else (),
        **options,
    )


def scenario():
    """A critical reader that rests, and a streamer beside it."""
    mix = Mix(
        (
            actor(priority=2, script="pass(1).rest(5000000)", weight=2.0),
            actor("storm"),
        )
    )
    return Scenario("test", mix, ("reader", "storm"), "reader")


def setting(host=None, policies=("thp",)):
    return Setting(REGISTRY, host or cpus(2), policies)


def options_of(made, case, budget_s, most_rounds=60, dead_band=0.02):
    return {
        "dead_band": dead_band,
        "accept_unknown": False,
        "remedy": {
            "scenario": to_plain(case),
            "source": case.name,
            "mixes": {name: mix_name(mix) for name, mix in made.mixes.items()},
            "parts": {name: list(parts) for name, parts in made.parts.items()},
            "spin": made.spin,
            "notes": {name: list(notes) for name, notes in made.notes.items()},
            "refused": [],
            "shed": [],
            "predictions": {},
            "before": [],
            "alone": {},
            "budget_s": budget_s,
            "dead_band": dead_band,
            "pilot_rounds": 6,
            "most_rounds": most_rounds,
            "most_pairs": made.most_pairs,
        },
    }


def planned(remedies=None, case=None, budget_s=600.0, host=None):
    """Trial of a scenario; ``remedies`` are names, all by default."""
    case = case or scenario()
    own = setting(host)
    planner = MixPlanner(REGISTRY, own.resources)
    tried = singles(case.mix, own)
    if remedies is not None:
        tried = {
            name: (parse(name, ["thp"]), treat(case.mix, parse(name, ["thp"]), own))
            for name in remedies
        }
    return trial(
        case,
        tried,
        [0.01] * len(case.mix.actors),
        1.0,
        1e9,
        planner,
        own,
        Settings(0.2, 0.0),
        budget_s,
        1,
    )


def run(made, case, effects, noise=0.02, seed=0, budget_s=600.0, most_rounds=60):
    """Run a trial to its end; returns (options, state, names of the blocks in order).

    ``effects(mix, i)`` is the factor on the time of actor ``i``.
    """
    options = options_of(made, case, budget_s, most_rounds)
    stages = Stages(made.plan, options, time.monotonic())
    state, order = State(), []
    rng = random.Random(seed)
    while (block := stages.next_block(state)) is not None:
        round_ = state.next_round(block.id)
        order.append(block.id)
        drift = math.exp(rng.gauss(0, 0.1))
        for entry in block.entries:
            state.apply(line(block, entry, round_, effects, drift, noise, rng))
        state.apply(
            {"kind": "block", "block": block.id, "round": round_, "attempt": 0, "status": "ok"}
        )
        assert len(order) < 5000
    return options, state, order


def line(block, entry, round_, effects, drift, noise, rng):
    """A sample as the journal has it."""
    mix = parse_mix(mix_name(entry.mix))
    seen = {"matching": 1, "known": 1, "total": 1, "wrong_node": 0, "source": "smaps"}
    actors = []
    for i in range(len(mix.actors)):
        seconds = 0.01 * drift * effects(mix, i) * math.exp(rng.gauss(0, noise))
        actors.append(
            {
                "seconds": seconds,
                "passes": 5,
                "ops": 0,
                "useful_bytes": 0 if mix.actors[i].kernel == "spin" else 1 << 20,
                "bus_min_bytes": 1 << 20,
                "bus_max_bytes": 1 << 20,
                "oversubscribed": False,
                "threads": mix.actors[i].threads,
                "forced_switches": 0,
                "evidence": {"before": seen, "after": seen},
            }
        )
    return {
        "kind": "sample",
        "block": block.id,
        "round": round_,
        "attempt": 0,
        "mix": mix_name(entry.mix),
        "time": "2026-01-01T00:00:00.000Z",
        "window_s": 0.2,
        "wall_s": 1.0,
        "where": {"state": "near"},
        "disturbed": {},
        "actors": actors,
    }


def judged(options, state):
    """Results of the remedies that got fresh samples, by name, and the conclusion."""
    results = Results(Path(), rows=rows_of(state), plan={"options": options})
    found = judge(results, Spec.of(options))
    return {r.name: r for r in found}, conclude(found, "reader")
