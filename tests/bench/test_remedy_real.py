"""Constructed cases on real CPUs: where an interlock must help, and where it must not."""

import json

import pytest
from test_remedy_command import bench

pytestmark = [pytest.mark.hw, pytest.mark.slow, pytest.mark.multicore, pytest.mark.isolated]

# Arenas that a first-level cache holds: what these actors share is CPUs, or nothing.
ACTOR = """
[[actor]]
name = "{name}"
kernel = "scan[op=read,step=4096]"
size = "16KiB"
priority = {priority}
pin = "{pin}"
script = "{script}"
"""


def verdicts(tmp_path, actors, remedy):
    case = tmp_path / "case.toml"
    case.write_text('window = "40ms"\n' + "".join(ACTOR.format(**actor) for actor in actors))
    done = bench(
        *("remedy", str(case), "--remedies", remedy, "--samples", "12"),
        *("--budget", "2m", "-o", str(tmp_path / "out"), "--json"),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (found,) = report["remedies"]
    return report, found


def test_a_pause_must_help_a_critical_actor_that_shares_its_cpu_and_it_is_scheduling(tmp_path):
    first = {"name": "first", "priority": 1, "pin": "cpus:0", "script": "pass(500).rest(200us)"}
    other = {"name": "other", "priority": 0, "pin": "cpus:0", "script": "pass(500)"}
    _, found = verdicts(tmp_path, [first, other], "pause")
    assert found["critical"]["verdict"] == "helps"
    assert found["cause"] != "memory"


def test_a_mutex_must_not_help_two_that_share_nothing(tmp_path):
    actors = [
        {"name": name, "priority": i, "pin": f"cpus:{i}", "script": "pass(500).rest(200us)"}
        for i, name in enumerate(("one", "two"))
    ]
    report, found = verdicts(tmp_path, actors, "mutex")
    assert found["total"]["verdict"] == "hurts"
    assert report["best"] == ""
