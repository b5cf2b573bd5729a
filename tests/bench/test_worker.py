"""A worker answers one request as the protocol says; what the host cannot give is a skip."""

import json
import subprocess
import sys

import pytest

from bench import native, worker
from bench.schema import ACTOR_FIELDS, SAMPLE_FIELDS, SCHEMA
from bench.spawn import run_worker


def ask(mix, place=((-1,),), **changes):
    request = {
        "mix": mix,
        "place": place,
        "window_s": 0.02,
        "warm_s": 0.002,
        "min_passes": 3,
        "deadline_s": 5,
        **changes,
    }
    done = subprocess.run(
        [sys.executable, "-m", "bench.worker"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_field_of_the_protocol_is_answered():
    response = ask("scan/scalar/base/1t/1MiB")
    assert response["schema"] == SCHEMA
    assert set(SAMPLE_FIELDS) <= set(response)
    assert set(response["actors"][0]) == set(ACTOR_FIELDS)
    assert response["actors"][0]["seconds"] > 0


def test_bytes_are_of_all_threads():
    one = ask("scan/scalar/base/1t/4MiB")["actors"][0]
    two = ask("scan/scalar/base/2t/4MiB", place=[[-1, -1]])["actors"][0]
    assert two["useful_bytes"] == pytest.approx(one["useful_bytes"], rel=0.01)
    assert two["threads"] == 2


@pytest.mark.parametrize("shared", [True, False])
def test_the_driver_says_whether_threads_share_cpus(shared):
    """Only it knows all CPUs that may be used: threads that are not pinned may have enough."""
    response = ask("spin/scalar/base/1t/0B", oversubscribed=[shared])
    assert response["actors"][0]["oversubscribed"] is shared


def test_where_threads_that_are_not_pinned_ran_is_unknown():
    assert ask("spin/scalar/base/2t/0B", place=[[-1, -1]])["where"]["state"] == "unknown"
    assert ask("spin/scalar/base/1t/0B")["where"]["state"] == "one"


def test_memory_the_host_does_not_have_is_a_skip_with_its_stage():
    if not native.policy_available("1g"):
        pytest.skip("the 1g pool has pages; the refusal needs an empty one")
    response = ask("scan/scalar/1g/1t/1MiB")
    assert response["error"]["kind"] == "skip"
    assert response["error"]["stage"] == "map"
    assert "1g" in response["error"]["message"]


@pytest.mark.parametrize("mix", ["scam/scalar/base/1t/1MiB", "scan/scalar/base/1t/1MiB/x", "scan"])
def test_a_request_that_makes_no_sense_is_a_failure_with_words(mix):
    error = ask(mix)["error"]
    assert error["kind"] == "fail"
    assert error["message"]


def test_the_worker_imports_nothing_heavy():
    program = "import bench.worker, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "rich", "pydantic", "scipy", "pyperf", "psutil"} & set(loaded)


@pytest.mark.parametrize(
    ("before", "after", "cpus", "expected"),
    [
        (None, None, [3], "one"),
        (None, None, [3, 3], "one"),
        (None, None, [-1], "one"),
        (90.0, 110.0, [0, 1], "near"),
        (450.0, 430.0, [0, 1], "far"),
        (90.0, 450.0, [0, 1], "moved"),
        (450.0, 90.0, [0, 1], "moved"),
        (90.0, None, [0, 1], "unknown"),
        (None, None, [0, 1], "unknown"),
        (None, None, [-1, -1], "unknown"),
        (90.0, 90.0, [0, 1, -1], "unknown"),
    ],
)
def test_state_is_the_placement_before_and_after(before, after, cpus, expected):
    assert worker.state(before, after, cpus) == expected


def test_what_a_sample_costs_beside_its_window_is_told():
    """From the moment the driver began: a process, Python and its imports are most of it."""
    request = {"mix": "scan/scalar/base/1t/1MiB", "place": [[-1]], "window_s": 0.02}
    request |= {"warm_s": 0.002, "min_passes": 3, "deadline_s": 5}
    outcome = run_worker(request, 60)
    cost = outcome.response["worker"]
    assert set(cost) == {"start_s", "touch_s", "fill_s", "total_s"}
    parts = cost["start_s"] + cost["touch_s"] + cost["fill_s"]
    assert parts + outcome.response["window_s"] <= cost["total_s"] <= outcome.wall_s
    assert cost["start_s"] > cost["fill_s"], "Python starts slower than a MiB is filled"


@pytest.mark.parametrize("policy", ["base", "thp"])
def test_a_worker_starts_itself_anew_with_the_environment_a_kernel_needs(policy, monkeypatch):
    if native.policy_available(policy):
        pytest.skip(native.policy_available(policy))
    mix = f"storm[chunk=33554432,method=heap]/scalar/{policy}/1t/64MiB"
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.check=0")
    response = ask(mix)
    assert "error" not in response
    evidence = response["actors"][0]["evidence"]["before"]
    assert evidence["matching"] >= 0.99 * evidence["known"] > 0
