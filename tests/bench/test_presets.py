"""The presets keep what they promise, on small hosts and on large ones."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hosttrees import NAMES, expand

from bench import native
from bench.plan import make_plan
from bench.resources import read_resources
from bench.sweep import Config, Extra, Sweep
from bench.sweepfile import load, preset_names, validate

MIB, GIB = 1 << 20, 1 << 30
PLENTY = {2 * MIB: 1 << 20, GIB: 1 << 10}
QUICK_LIMIT_S = {"vm2": 75, "threadripper": 120, "snc4": 120, "arm64k": 120}
TELLING = 4 * 2048 * 4096
"""Bytes a thread must walk for a verdict against 4 KiB pages, where no TLB was measured."""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    return {name: read_resources(expand(name, tmp_path_factory.mktemp(name))) for name in NAMES}


def planned(preset, resources, pools=None):
    free = {(size, None): n for size, n in (pools if pools is not None else {}).items()}
    host = replace(resources, pools=free, transparent_bytes=2 * MIB)
    return make_plan(load(preset, native), host, native, preset=preset)


def kernels_of(plan):
    return {
        (actor.kernel, dict(actor.params).get("op", "read"), actor.threads)
        for block in plan.blocks
        for actor in [block.entries[0].mix.actors[0]]
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pools", [{}, PLENTY], ids=["without pools", "with pools"])
def test_quick_is_quick_on_every_host_with_every_policy(hosts, name, pools):
    plan = planned("quick", hosts[name], pools)
    assert plan.estimate_s <= QUICK_LIMIT_S[name]
    assert plan.rounds >= 6
    threads = hosts[name].threads
    # What it is for is never shed.
    assert {("scan", "read", threads), ("scan", "triad", threads)} <= kernels_of(plan)
    assert {("chase", "read", 1), ("chase", "read", threads)} <= kernels_of(plan)
    assert ("scan", "read", 1) in kernels_of(plan)
    if not pools:
        assert "beside" in {block.question for block in plan.blocks}
    policies = {entry.mix.actors[0].policy for block in plan.blocks for entry in block.entries}
    assert {"base", "thp"} | ({"2m", "1g"} if pools else set()) <= policies


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pools", [{}, PLENTY], ids=["without pools", "with pools"])
def test_quick_judges_pages_of_its_main_cases_on_every_host(hosts, name, pools):
    """A thread's share of a shared arena decides, not the arena."""
    plan = planned("quick", hosts[name], pools)
    shares = {
        (actor.kernel, dict(actor.params).get("op", "read"), actor.threads): actor.size
        // actor.threads
        for block in plan.blocks
        if block.question == "pages"
        for actor in [block.entries[0].mix.actors[0]]
    }
    small = {case for case, share in shares.items() if share < TELLING}
    assert not {case for case in small if case[:2] != ("scan", "triad")}
    told = [note for note in plan.notes if "too small for page verdicts" in note]
    assert bool(told) == bool(small), "what is measured at less is named"


def test_quick_measures_bandwidth_on_one_cpu_too_where_time_allows(hosts):
    assert not planned("quick", hosts["vm2"]).shed


def test_quick_judges_pages_between_a_quarter_and_one_gib(hosts):
    for name in NAMES:
        for pools in ({}, PLENTY):
            plan = planned("quick", hosts[name], pools)
            sizes = {
                entry.mix.actors[0].size
                for block in plan.blocks
                for entry in block.entries
                if entry.mix.actors[0].kernel == "chase" and entry.mix.actors[0].threads == 1
            }
            (size,) = sizes
            assert size >= 256 * MIB


def test_standard_takes_ten_minutes_at_most_on_two_cpus(hosts):
    for pools in ({}, PLENTY):
        plan = planned("standard", hosts["vm2"], pools)
        assert plan.estimate_s <= 600
        ops = {op for kernel, op, _ in kernels_of(plan) if kernel == "scan"}
        assert {"read", "write", "copy", "triad", "update", "daxpy"} <= ops
    assert not planned("standard", hosts["vm2"]).shed


@pytest.mark.parametrize("preset", preset_names())
@pytest.mark.parametrize("name", NAMES)
def test_no_preset_asks_for_what_a_kernel_refuses(hosts, preset, name):
    plan = planned(preset, hosts[name], PLENTY)
    # What may be missing where there are pools: other sizes of transparent pages, and memory.
    expected = ("no transparent pages", "takes")
    assert not [skip for skip in plan.skips if not skip.reason.startswith(expected)]


def test_the_examples_of_the_documentation_can_be_planned(hosts):
    text = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```toml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(examples) == 3
    for example in examples:
        config = validate(tomllib.loads(example), "example", native)
        assert make_plan(config, hosts["vm2"], native).blocks


def test_the_documentation_names_every_key():
    text = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text(encoding="utf-8")
    for table in (Config, Sweep, Extra):
        for name in table.model_fields:
            assert f"`{name}`" in text or f"[[{name}]]" in text, name


def test_standard_shows_what_msm_takes_without_its_arithmetic(hosts):
    for resources in hosts.values():
        plan = planned("standard", resources)
        (block,) = (block for block in plan.blocks if block.question == "kernels")
        real, none = (entry.mix.actors[0] for entry in block.entries)
        assert dict(none.params) == {**dict(real.params), "arithmetic": "none"}
        assert (real.size, real.threads, real.policy) == (none.size, none.threads, none.policy)


@pytest.mark.parametrize("name", NAMES)
def test_shootdowns_are_measured_at_six_cpu_counts_where_there_are_as_many(hosts, name):
    block = planned("shootdown", hosts[name]).blocks[0]
    counts = {
        sum(actor.threads for actor in entry.mix.actors)
        for entry in block.entries
        if all(actor.process == "" for actor in entry.mix.actors)
    }
    # On one CPU a spinner takes turns, is marked and makes no point of the curve.
    assert max(counts) == max(2, hosts[name].threads)
    assert len(counts) >= min(hosts[name].threads, 6)
