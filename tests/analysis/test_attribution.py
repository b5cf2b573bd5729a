"""Contrasts: a planted cause comes out, and nothing else does."""

import json
import math
import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from simulated import REGISTRY, actor, cpus, line

from analysis.attribution import CONTRASTS, LOCK, build, in_words
from bench.attribution import mixes
from bench.blocks import Plan, Settings
from bench.mix import mix_name
from bench.mixplan import MixPlanner
from bench.native import Param
from bench.planfile import write_plan


class Kernels(type(REGISTRY)):
    def kernels(self):
        known = dict(super().kernels())
        choice = Param("op", "choice", "read", 0, 0, ("read", "copy"), "", "")
        store = Param("store", "choice", "plain", 0, 0, ("plain", "nt"), "", "")
        step = Param("step", "size", 1 << 18, 1, 1 << 30, (), "B", "")
        known["scan"] = replace(known["stream"], name="scan", params=(choice, store, step))
        known["fault"] = replace(known["stream"], name="fault", params=(), memory="churn")
        return known

    def footprint(self, own, nodes=None):
        known = own.kernel if own.kernel == "spin" else "stream"
        return super().footprint(replace(own, kernel=known), nodes)


def found(tmp_path, effects, rounds=10, noise=0.01):
    """Report of simulated samples; ``effects(name)`` is the factor on the victim's time."""
    planner = MixPlanner(Kernels(), cpus(2))
    named = mixes(actor("walk"), actor("storm"), 8 << 20, planner)
    block, skips = planner.block("attribute", "attribute", [n.mix for n in named], Settings(0.1, 0))
    assert not skips
    names = {n.name: mix_name(n.mix) for n in named}
    by_mix = {mix: name for name, mix in names.items()}
    plan = Plan("attribute", (block,), rounds, 1)
    write_plan(
        tmp_path, plan, {"attribute": {"victim": "walk", "aggressor": "storm", "mixes": names}}
    )
    rng = random.Random(2)
    lines = []
    for round_ in range(rounds):
        drift = math.exp(rng.gauss(0, 0.2))
        for entry in block.entries:
            name = by_mix[mix_name(entry.mix)]

            def factor(mix, i, name=name):
                return effects(name) if i == 0 else 1.0

            lines.append(line(block, entry, round_, factor, drift, noise, rng))
        closed = {"kind": "block", "block": block.id, "round": round_, "attempt": 0}
        lines.append({**closed, "status": "ok"})
    text = "".join(json.dumps(each) + "\n" for each in lines)
    (tmp_path / "journal.ndjson").write_text(text)
    return build(tmp_path)


def resolved(report):
    return {c.name for c in report.contrasts if c.resolved and abs(math.log(c.ratio)) > 0.03}


def test_every_contrast_names_two_mixes_that_are_planned():
    planner = MixPlanner(Kernels(), cpus(2))
    known = {n.name for n in mixes(actor("walk"), actor("storm"), 8 << 20, planner)}
    for _, pays, free in (*CONTRASTS, LOCK):
        assert {pays, free} <= known


def test_interrupts_are_told_from_bandwidth(tmp_path):
    report = found(tmp_path, lambda name: 1.4 if name.endswith("beside it") else 1.0)
    assert resolved(report) == {"all of it", "one address space", "shootdown"}
    (shootdown,) = [c for c in report.contrasts if c.name == "shootdown"]
    assert shootdown.ratio == pytest.approx(1.4, rel=0.02)
    assert report.residual == pytest.approx(1.0, abs=0.03)


def test_a_lock_is_what_a_first_touch_pays_beyond_interrupts(tmp_path):
    def effects(name):
        if not name.endswith("beside it"):
            return 1.0
        return 3.0 if name.startswith("first") else 1.5

    report = found(tmp_path, effects)
    (lock,) = [c for c in report.contrasts if c.name == "lock"]
    assert lock.ratio == pytest.approx(2.0, rel=0.02)


def test_bandwidth_is_told_from_clock(tmp_path):
    def effects(name):
        clock = 1.1 if "beside" in name else 1.0
        streams = name in ("beside it", "beside it, another process")
        return clock * (1.5 if streams or "streamer" in name else 1.0)

    report = found(tmp_path, effects)
    assert resolved(report) == {
        "all of it",
        "clock and scheduling",
        "memory and caches",
        "bandwidth",
    }
    assert report.residual == pytest.approx(1.0, abs=0.03)
    assert in_words(report.contrasts, report.residual)[0].startswith("bandwidth")


def test_without_any_effect_nothing_is_resolved(tmp_path):
    report = found(tmp_path, lambda name: 1.0, noise=0.1)
    assert resolved(report) <= {c.name for c in report.contrasts if c.resolved}
    assert len([c for c in report.contrasts if c.resolved]) <= 2


def test_causes_without_samples_are_listed(tmp_path):
    report = found(tmp_path, lambda name: 1.0, rounds=4)
    assert not report.contrasts
    assert {note.what for note in report.missing} >= {"all of it", "shootdown", "lock"}
