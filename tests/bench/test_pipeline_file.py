"""Pipeline files: faults at once, threads and tokens for a host, and those of the package."""

import re
import tomllib
from pathlib import Path

import pytest
from hosttrees import NAMES, expand
from simulated import REGISTRY, cpus

from bench import native, scenariofile
from bench.errors import UsageError
from bench.mix import Pool
from bench.pipelinefile import DEFAULT, load, resolve, validate
from bench.pipelinemix import Compiler
from bench.resources import read_resources
from bench.scenariofile import scenario_names
from bench.sizes import Probe

ROOT = Path(__file__).parents[2]
LINE = """
items = 4
in_flight = 3
bandwidth = "20GB/s"

[[pool]]
name = "pw"
tokens = "50%"

[[pool]]
name = "room"
tokens = 2
capacity = 3

[[task]]
name = "read"
kernel = "stream[op=copy]"
threads = "25%"
size = "64MiB"
passes = 2
priority = 3
courtesy = "yield"
process = "own"
takes = ["pw", "room:2"]

[[task]]
name = "gpu"
after = "read"
seconds = "1.5s"
threads = 0
jitter = "10%"
puts = ["pw", "room:2"]

[[task]]
name = "sum"
after = ["read", "gpu"]
seconds = 0.25
threads = "rest"
traffic = "2GB/s"
whole = true

[timeline]
SYNTH_START = "read.start"
GPU_END = "gpu.end"
"""


def faults_of(data):
    with pytest.raises(UsageError) as caught:
        validate(data, "mine.toml", REGISTRY)
    first, *rest = str(caught.value).split("\n")
    assert first.startswith("mine.toml: ")
    return dict(line.strip().split(": ", 1) for line in rest)


def resolved(text, n_cpus=8):
    return resolve(
        validate(tomllib.loads(text), "x", REGISTRY), "x", REGISTRY, cpus(n_cpus), Probe()
    )


def test_every_fault_of_a_file_is_told_at_once_with_its_place():
    found = faults_of(
        {
            "item": 3,
            "task": [
                {"name": "A!", "kernel": "steam"},
                {"name": "b", "kernel": "stream", "seconds": "1s"},
                {"name": "c", "passes": 2},
                {"name": "d", "jitter": 0.1},
                {"name": "e", "takes": ["pw:0"], "seconds": "soon"},
                {"name": "f", "kernel": "stream", "threads": 0},
            ],
            "pool": [{"name": "pw", "tokens": "200%"}],
        }
    )
    assert {
        "item",
        "task[0].name",
        "task[0].kernel",
        "task[1]",
        "task[2]",
        "task[3]",
        "task[4].takes[0]",
        "task[4].seconds",
        "task[5]",
        "pool[0].tokens",
    } == set(found)
    assert "did you mean items" in found["item"]
    assert "without a kernel" in found["task[1]"]


@pytest.mark.parametrize(
    ("event", "point", "says"),
    [("SYNTH_BEGIN", "a.start", "unknown event"), ("SYNTH_START", "b.start", "TASK.start")],
)
def test_names_in_the_log_must_be_known(event, point, says):
    found = faults_of({"task": [{"name": "a", "seconds": "1s"}], "timeline": {event: point}})
    assert says in " ".join(found.values())


def test_shares_are_of_the_cpus_and_at_least_one():
    line = resolved(LINE, 8)
    assert line.pools == (Pool("pw", 4), Pool("room", 2, 3))
    # The GPU needs no CPU; what the reader leaves is for the sum.
    assert {task.name: task.threads for task in line.tasks} == {"read": 2, "gpu": 0, "sum": 6}
    small = resolved(LINE, 1)
    assert small.pools[0].tokens == 1
    assert small.task("read").threads == 1


def test_a_file_becomes_tasks():
    line = resolved(LINE)
    read, gpu, total = line.tasks
    assert read.takes == (("pw", 1), ("room", 2))
    assert (read.actor.kernel, read.actor.size, read.passes) == ("stream", 64 << 20, 2)
    assert (read.actor.priority, read.actor.courtesy, read.actor.process) == (3, "yield", "own")
    assert read.actor.pin == "none"
    assert (gpu.seconds, gpu.jitter, gpu.actor) == (1.5, 0.1, None)
    assert (total.whole, total.traffic, total.seconds) == (True, 2e9, 0.25)
    assert (line.items, line.in_flight, line.bandwidth) == (4, 3, 20e9)
    assert line.events == (("SYNTH_START", "read.start"), ("GPU_END", "gpu.end"))


def test_a_pool_named_twice_by_a_task_is_one_take():
    line = resolved(LINE.replace('["pw", "room:2"]', '["pw", "pw:2", "room"]', 1))
    assert line.task("read").takes == (("pw", 3), ("room", 1))


def test_mixes_and_pipelines_are_told_apart():
    assert DEFAULT in scenario_names("task")
    assert DEFAULT not in scenario_names()
    with pytest.raises(UsageError, match="describes a pipeline") as caught:
        scenariofile.load(DEFAULT)
    assert "pipeline run" in caught.value.remedy
    with pytest.raises(UsageError, match="no pipeline"):
        load("prover")
    with pytest.raises(UsageError) as caught:
        load("no-such-thing", native)
    assert DEFAULT in caught.value.remedy


def test_the_example_of_the_documentation_runs():
    text = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    example = re.search(r"```toml\n(.*?)```", text, re.S)[1]
    read = validate(tomllib.loads(example), "example", native)
    line = resolve(read, "example", native, cpus(4), Probe())
    made = Compiler(native, cpus(4), Probe()).mix(line)
    assert made.tasks.count("build") == 2
    for key in ("takes", "jitter", "whole", "in_flight", "dead_band"):
        assert f"`{key}`" in text


@pytest.mark.parametrize("name", scenario_names("task"))
@pytest.mark.parametrize("host", NAMES)
def test_packaged_pipelines_become_mixes_on_any_host(tmp_path, name, host):
    resources = read_resources(expand(host, tmp_path))
    line = resolve(load(name, native), name, native, resources, Probe())
    made = Compiler(native, resources, Probe()).mix(line)
    assert set(made.tasks) == {*(task.name for task in line.tasks), "job"}
    assert all(task.threads <= max(resources.threads, 192) for task in line.tasks)


def test_the_provers_pipeline_holds_its_place_until_it_has_sent():
    line = resolve(load(DEFAULT, native), DEFAULT, native, cpus(16), Probe())
    holding = {task.name: (task.takes, task.puts) for task in line.tasks}
    assert holding["witness"][0] == (("pw", 1),)
    assert holding["send"] == ((("room", 1),), (("pw", 1),))
    # One worker prepares while another has the lock.
    assert line.at_once("prep") == 2
    assert line.at_once("batch") == 1
    assert line.task("batch").after == ("ntt", "prep")
