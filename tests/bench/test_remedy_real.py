"""Constructed cases on real CPUs: where an interlock must help, and where it must not."""

import json

import pytest
from test_remedy_command import bench

from bench.resources import read_resources

pytestmark = [pytest.mark.hw, pytest.mark.slow, pytest.mark.multicore, pytest.mark.isolated]

ENOUGH = 8
"""CPUs that surely fill a memory interface, and of which two surely do not."""

# Long phases and short rests: a lock that keeps two of them apart nearly halves what they do.
RESTLESS = "rest(20us)"


def cores():
    """One CPU of every core that may be used: two of one core would share it."""
    host = read_resources()
    by_core = {host.topology.by_id[cpu].core: cpu for cpu in sorted(host.allowed, reverse=True)}
    return sorted(by_core.values())


def actor(name, kernel, size, **rest):
    # An array of TOML is one of JSON, and so are its strings and numbers.
    values = {"name": name, "kernel": kernel, "size": size, **rest}
    return "[[actor]]\n" + "".join(f"{key} = {json.dumps(v)}\n" for key, v in values.items())


def verdicts(tmp_path, actors, remedy, window="40ms"):
    case = tmp_path / "case.toml"
    case.write_text(f'window = "{window}"\n' + "".join(actors))
    done = bench(
        *("remedy", str(case), "--remedies", remedy, "--samples", "20"),
        *("--budget", "3m", "-o", str(tmp_path / "out"), "--json"),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (found,) = report["remedies"]
    return report, found


def cached(name, cpu, script, priority):
    """Reads what a first-level cache holds: it shares its CPU, or nothing."""
    return actor(
        name,
        "scan[op=read,step=4096]",
        "16KiB",
        priority=priority,
        pin=f"cpus:{cpu}",
        script=script,
    )


def test_a_pause_must_help_a_critical_actor_that_shares_its_cpu_and_it_is_scheduling(tmp_path):
    cpu = cores()[0]
    actors = [
        # Bursts longer than a time slice: who wakes on a busy CPU waits for the end of one, and
        # only who runs can be given way to.
        cached("first", cpu, "pass(50000).rest(200us)", 1),
        cached("other", cpu, "pass(500)", 0),
    ]
    _, found = verdicts(tmp_path, actors, "pause", window="200ms")
    assert found["critical"]["verdict"] == "helps"
    assert found["cause"] != "memory"


def test_a_mutex_must_not_help_two_that_share_nothing(tmp_path):
    if len(cores()) < 2:
        pytest.skip("two cores are what this is about")
    actors = [
        cached(name, cpu, f"pass(500).{RESTLESS}", 0)
        for name, cpu in zip(("one", "two"), cores(), strict=False)
    ]
    report, found = verdicts(tmp_path, actors, "mutex")
    assert found["total"]["verdict"] == "hurts"
    assert report["best"] == ""


@pytest.mark.skipif(len(cores()) < ENOUGH, reason=f"needs {ENOUGH} cores")
def test_a_pause_must_help_a_critical_reader_whose_bandwidth_a_background_job_takes(tmp_path):
    """Nobody shares a CPU, so it is memory; among spinners the pause changes nothing."""
    first, *others = cores()
    actors = [
        actor(
            "reader",
            "scan[op=read]",
            "256MiB",
            priority=1,
            pin=f"cpus:{first}",
            script="pass.rest(20ms)",
        ),
        actor(
            "hog",
            "scan[op=copy,store=nt]",
            f"{64 * len(others)}MiB",
            threads=len(others),
            pin="cpus:" + ",".join(map(str, others)),
            role="background",
        ),
    ]
    report, found = verdicts(tmp_path, actors, "pause", window="400ms")
    assert found["critical"]["verdict"] == "helps"
    assert found["total"]["verdict"] == "helps"
    assert found["cause"] != "scheduling"
    assert report["best"] == "pause"


@pytest.mark.skipif(len(cores()) < ENOUGH, reason=f"needs {ENOUGH} cores")
def test_a_mutex_must_not_help_two_readers_that_leave_the_interface_room(tmp_path):
    """Work-conserving and unsaturated: it is said before, and then measured."""
    actors = [
        actor(name, "scan[op=read]", "128MiB", pin=f"cpus:{cpu}", script=f"pass.{RESTLESS}")
        for name, cpu in zip(("one", "two"), cores(), strict=False)
    ]
    report, found = verdicts(tmp_path, actors, "mutex", window="200ms")
    assert any("cannot raise the total" in line for line in report["before"])
    assert found["total"]["verdict"] == "hurts"
    assert report["best"] == ""
