"""Scenario files: faults at once, threads and sizes for a host, and the way to a mix and back."""

import re
import tomllib
from pathlib import Path

import pytest
from hosttrees import NAMES, expand
from simulated import REGISTRY, cpus, scenario

from bench import native
from bench.errors import UsageError
from bench.mix import mix_name
from bench.mixplan import MixPlanner
from bench.resources import read_resources
from bench.scenario import Scenario, from_plain, to_plain
from bench.scenariofile import Member, load, resolve, scenario_names, thread_counts, validate
from bench.sizes import Probe

ONE = {"kernel": "stream"}


def faults_of(data):
    with pytest.raises(UsageError) as caught:
        validate(data, "mine.toml", REGISTRY)
    first, *rest = str(caught.value).split("\n")
    assert first.startswith("mine.toml: ")
    return dict(line.strip().split(": ", 1) for line in rest)


def test_every_fault_of_a_file_is_told_at_once_with_its_place():
    found = faults_of(
        {
            "windw": "1s",
            "actor": [
                {"kernel": "steam"},
                {"kernel": "stream[op=read]", "threads": 0, "pages": "tph", "script": "dance"},
                {"kernel": {"name": "stream", "params": {"op": ["read", "copy"]}}},
            ],
            "pool": [{"name": "Lock!", "tokens": -1}],
        }
    )
    assert {
        "windw",
        "actor[0].kernel",
        "actor[1].threads",
        "actor[1].script",
        "actor[2]",
        "pool[0].name",
        "pool[0].tokens",
    } <= set(found)
    assert "did you mean window" in found["windw"]
    assert "did you mean stream" in found["actor[0].kernel"]


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"actor": []},
        {"actor": [ONE, ONE]},
        {"actor": [ONE], "critical": "other"},
        {"actor": [{**ONE, "pages": "tph"}]},
        {"actor": [{**ONE, "priority": 8}]},
        {"actor": [{**ONE, "threads": "half"}]},
    ],
)
def test_wrong_values_are_faults_and_not_crashes(data):
    assert faults_of(data)


def test_a_kernel_that_is_missing_is_an_error_and_nothing_takes_its_place():
    with pytest.raises(UsageError, match=r"actor\[0\].kernel: unknown kernel"):
        load("prover", REGISTRY)


@pytest.mark.parametrize(
    ("wanted", "n", "counts"),
    [
        (["rest", 0.25, 1, 1], 2, [1, 1, 1, 1]),
        (["rest", 0.25, 1, 1], 16, [10, 4, 1, 1]),
        (["rest", 0.25, 1, 1], 192, [142, 48, 1, 1]),
        (["rest", "rest", 2], 9, [4, 3, 2]),
        ([3, 1.0], 8, [3, 8]),
    ],
)
def test_threads_of_a_host(wanted, n, counts):
    assert thread_counts(wanted, n) == counts


def test_rests_may_have_units():
    member = Member.model_validate({**ONE, "script": "pass(2).rest(1.5ms).take(m).rest(7)"})
    assert [str(op) for op in member.script] == ["pass(2)", "rest(1500000)", "take(m,1)", "rest(7)"]


def test_the_critical_actor_is_the_one_of_highest_priority():
    first, second = {**ONE, "name": "a"}, {**ONE, "name": "b"}

    def critical(*actors, **head):
        read = validate({"actor": list(actors), **head}, "x", REGISTRY)
        return resolve(read, "x.toml", REGISTRY, cpus(4), Probe()).critical

    assert critical(first, second) == ""
    assert critical(first, {**second, "priority": 1}) == "b"
    assert critical({**first, "priority": 1}, {**second, "priority": 1}) == ""
    assert critical(first, {**second, "priority": 1}, critical="a") == "a"


def test_weights_are_shares():
    assert scenario().weights == {"reader": pytest.approx(2 / 3), "storm": pytest.approx(1 / 3)}


def test_a_scenario_comes_back_from_its_plain_form():
    case = scenario()
    assert from_plain(to_plain(case)) == case


def test_names_must_fit_the_mix():
    case = scenario()
    for names, critical in ((("a",), ""), (("a", "a"), ""), (("a", "b"), "c")):
        with pytest.raises(UsageError):
            Scenario("x", case.mix, names, critical)


@pytest.mark.parametrize("name", scenario_names())
@pytest.mark.parametrize("host", NAMES)
def test_packaged_scenarios_run_on_every_host_at_most_one_thread_a_cpu(name, host, tmp_path):
    resources = read_resources(expand(host, tmp_path))
    read = load(name, native)
    case = resolve(read, name, native, resources, Probe())
    threads = sum(actor.threads for actor in case.mix.actors)
    assert threads <= max(resources.threads, len(case.mix.actors))
    assert read.summary
    assert MixPlanner(native, resources).refusal(case.mix) is None
    assert mix_name(from_plain(to_plain(case)).mix) == mix_name(case.mix)


def test_the_example_of_the_documentation_is_a_scenario():
    text = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```toml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    read = validate(tomllib.loads(example), "example", native)
    case = resolve(read, "example", native, cpus(4), Probe())
    assert [actor.threads for actor in case.mix.actors] == [3, 1]


def test_the_documentation_names_every_key_of_an_actor():
    text = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    for key in Member.model_fields:
        assert f"`{key}`" in text, key
