"""The simulation against answers that are published or can be worked out by hand."""

import math
import random

import pytest

from analysis.fluid import Alone
from analysis.models.queueing import mean_value_analysis
from analysis.simulate import simulate
from bench.errors import UsageError
from bench.mix import Actor, Pool
from bench.pipeline import Pipeline, Task


def ends(result, name):
    return [
        event.end_s for event in sorted(result.events, key=lambda e: e.item) if event.task == name
    ]


@pytest.mark.parametrize("number", range(3))
def test_published_traces_of_processor_sharing(cases, number):
    trace = cases["R21_ps_traces"]["traces"][number]
    n = len(trace["arr"])
    line = Pipeline(
        "trace",
        (
            Task("arrive", seconds=1, threads=0),
            Task("serve", seconds=1, traffic=1.0, after=("arrive",)),
        ),
        items=n,
        bandwidth=float(trace["R"]),
    )
    found = simulate(
        line, jobs=1, times={"arrive": trace["arr"], "serve": trace["work"]}, events=True
    )
    assert ends(found, "serve") == pytest.approx(trace["done"], rel=1e-9)


def test_published_stationary_state_of_limited_processor_sharing(cases):
    published = cases["R22_rps_stationary"]
    rng, n = random.Random(7), 60_000
    now, arrivals = 0.0, []
    for _ in range(n):
        now += rng.expovariate(10)
        arrivals.append(now)
    line = Pipeline(
        "open",
        (
            Task("arrive", seconds=1, threads=0),
            Task("serve", seconds=1, traffic=1.0, after=("arrive",)),
        ),
        items=n,
        bandwidth=3.0,
    )
    found = simulate(
        line,
        jobs=1,
        times={"arrive": arrivals, "serve": [rng.expovariate(12) for _ in range(n)]},
        events=True,
    )
    assert found.task_seconds["serve"].mean == pytest.approx(published["ET"], rel=0.03)
    serve = [e for e in found.events if e.task == "serve"]
    changes = sorted([(e.start_s, 1) for e in serve] + [(e.end_s, -1) for e in serve])
    seconds, inside, before = [0.0] * 200, 0, 0.0
    for at, change in changes:
        seconds[inside] += at - before
        inside, before = inside + change, at
    shares = [s / sum(seconds) for s in seconds]
    assert sum(k * p for k, p in enumerate(shares)) == pytest.approx(published["EN"], rel=0.03)
    assert shares[:4] == pytest.approx(published["p"][:4], rel=0.03)


def test_a_line_of_one_job_takes_the_sum_of_its_tasks():
    line = Pipeline("line", (Task("a", seconds=2), Task("b", seconds=3, after=("a",))))
    assert simulate(line, jobs=1).total_s == pytest.approx(5)
    assert math.isnan(simulate(line, jobs=1).seconds_per_job)


def test_totals_are_offset_and_slope():
    line = Pipeline(
        "line",
        (Task("a", seconds=2, workers=1), Task("b", seconds=3, workers=1, after=("a",))),
        in_flight=4,
    )
    for jobs in (20, 40):
        found = simulate(line, jobs=jobs)
        assert found.seconds_per_job == pytest.approx(3)
        assert found.offset_s == pytest.approx(2)
        assert found.total_s == pytest.approx(2 + 3 * jobs)


def test_the_binding_resource_is_the_busiest_by_work_not_by_holding():
    # Synthesis holds its permit until the channel has room: always held, never the fault.
    line = Pipeline(
        "line",
        (
            Task("synth", seconds=2, takes=(("permit", 1),)),
            Task("send", after=("synth",), takes=(("room", 1),), puts=(("permit", 1),)),
            Task("start", after=("send",), takes=(("gpu", 1),), puts=(("room", 1),)),
            Task("prove", seconds=3, threads=0, after=("start",), puts=(("gpu", 1),)),
        ),
        (Pool("permit", 2), Pool("room", 1), Pool("gpu", 1)),
        in_flight=10,
    )
    found = simulate(line, jobs=60)
    assert found.seconds_per_job == pytest.approx(3)
    assert found.pool_use["permit"].held == pytest.approx(1)
    assert found.binding.name == "gpu"
    assert found.binding.use == pytest.approx(1)


def test_few_jobs_in_flight_bind():
    line = Pipeline("line", (Task("a", seconds=2), Task("b", seconds=3, after=("a",))), in_flight=2)
    found = simulate(line, jobs=20)
    assert found.binding.name == "jobs in flight"
    assert found.seconds_per_job == pytest.approx(2.5)


def test_threads_beyond_the_cpus_share_them():
    line = Pipeline("line", (Task("a", seconds=1, threads=2),), items=4)
    assert simulate(line, jobs=1, cpus=4).total_s == pytest.approx(2)
    assert simulate(line, jobs=1, cpus=8).total_s == pytest.approx(1)
    assert simulate(line, jobs=1, cpus=4).binding.name == "CPUs"


def test_kernels_share_the_interface_by_the_law_of_mixes():
    actor = Actor("k", "s", "base", 1, 1)
    line = Pipeline("line", (Task("a", actor=actor, passes=3),), items=4, in_flight=2)
    costs = {"a": Alone(1.0, 5.0, 10.0)}
    found = simulate(line, costs, jobs=10)
    assert found.total_s == pytest.approx(60)
    assert found.binding.name == "memory interface"


def test_a_kernel_without_costs_is_named():
    line = Pipeline("line", (Task("a", actor=Actor("k", "s", "base", 1, 1)),))
    with pytest.raises(UsageError, match="task a"):
        simulate(line, jobs=1)


def test_traffic_without_a_bandwidth_is_refused():
    with pytest.raises(UsageError, match="moves bytes"):
        simulate(Pipeline("line", (Task("a", seconds=1, traffic=1.0),)), jobs=1)


def test_crowding_slows_every_phase_beyond_the_law():
    line = Pipeline("line", (Task("a", seconds=1, traffic=1.0),), items=4, bandwidth=100.0)
    assert simulate(line, jobs=1).total_s == pytest.approx(1)
    assert simulate(line, jobs=1, crowding=lambda k: 1 / (1 + 0.1 * (k - 1))).total_s == (
        pytest.approx(1.3)
    )


def test_releases_take_time_from_all_others():
    line = Pipeline("line", (Task("work", seconds=1), Task("free", seconds=2)))
    found = simulate(line, jobs=1, interrupts={"free": 0.5})
    assert found.task_seconds["work"].mean == pytest.approx(2)
    assert found.task_seconds["free"].mean == pytest.approx(2)


def polite(courtesy):
    actor = Actor("k", "s", "base", 1, 1, courtesy=courtesy)
    return Pipeline(
        "line", (Task("low", actor=actor), Task("high", seconds=1, priority=1)), in_flight=1
    )


def test_who_pauses_waits_for_the_higher_priority():
    costs = {"low": Alone(1.0)}
    assert simulate(polite("pause"), costs, jobs=1).total_s == pytest.approx(2)
    assert simulate(polite("proceed"), costs, jobs=1).total_s == pytest.approx(1)


def test_yielding_is_free_while_there_is_a_cpu_for_everyone():
    costs = {"low": Alone(1.0)}
    assert simulate(polite("yield"), costs, jobs=1, cpus=2).total_s == pytest.approx(1)
    found = simulate(polite("yield"), costs, jobs=1, cpus=1)
    assert found.task_seconds["high"].mean == pytest.approx(1)
    assert found.total_s == pytest.approx(2)


def test_a_put_waits_for_room():
    line = Pipeline(
        "line",
        (
            Task("make", seconds=1, workers=1, puts=(("shelf", 1),)),
            Task("use", seconds=3, workers=1, after=("make",), takes=(("shelf", 1),)),
        ),
        (Pool("shelf", 0, 1),),
        in_flight=5,
    )
    found = simulate(line, jobs=20, events=True)
    made = ends(found, "make")
    assert found.pool_use["shelf"].waits > 0
    assert found.seconds_per_job == pytest.approx(3)
    assert made == sorted(made)


def test_who_is_more_urgent_is_served_first():
    line = Pipeline(
        "line",
        (
            Task("low", seconds=1, takes=(("lock", 1),), puts=(("lock", 1),)),
            Task("soon", seconds=0.5),
            Task(
                "high",
                seconds=1,
                priority=1,
                after=("soon",),
                takes=(("lock", 1),),
                puts=(("lock", 1),),
            ),
        ),
        (Pool("lock", 1),),
        items=3,
    )
    found = simulate(line, jobs=1, events=True)
    order = [e.task for e in sorted(found.events, key=lambda e: e.start_s) if e.task != "soon"]
    assert order == ["low", "high", "high", "high", "low", "low"]


def test_a_standstill_is_named():
    line = Pipeline("line", (Task("a", seconds=1, takes=(("lock", 1),)),), (Pool("lock", 1),))
    with pytest.raises(UsageError, match="a waits to take from lock"):
        simulate(line, jobs=2)


def test_seeds_decide_the_jitter_and_nothing_else():
    line = Pipeline("line", (Task("a", seconds=1, jitter=0.2, workers=2),), items=10, in_flight=3)
    one, again, other = (simulate(line, jobs=50, seed=s) for s in (1, 1, 2))
    assert one == again
    assert one.total_s != other.total_s
    assert one.task_seconds["a"].mean == pytest.approx(1, rel=0.03)


def test_a_closed_network_is_as_mean_value_analysis_says():
    """Two exponential stations in a ring: the next job comes in when one is through."""
    rng, jobs = random.Random(3), 20_000
    service, customers = (1.0, 0.7), 4
    line = Pipeline(
        "ring",
        (
            Task("first", seconds=1, workers=1),
            Task("second", seconds=1, workers=1, after=("first",)),
        ),
        in_flight=customers,
    )
    times = {
        name: [rng.expovariate(1 / mean) for _ in range(jobs)]
        for name, mean in zip(("first", "second"), service, strict=True)
    }
    found = simulate(line, jobs=jobs, times=times)
    expected = mean_value_analysis(service, (1, 1), customers)
    assert 1 / found.seconds_per_job == pytest.approx(expected.throughput, rel=0.02)
    assert found.pool_use["first workers"].held == pytest.approx(expected.utilisation[0], rel=0.02)


def test_a_whole_task_waits_for_all_items_of_its_job():
    line = Pipeline(
        "line",
        (
            Task("part", seconds=1, workers=1),
            Task("join", seconds=5, whole=True, after=("part",)),
            Task("tell", seconds=0.5, after=("join",), workers=1),
        ),
        items=3,
    )
    found = simulate(line, jobs=1, events=True)
    assert [e.start_s for e in found.events if e.task == "join"] == [3]
    assert found.total_s == pytest.approx(3 + 5 + 1.5)


def test_more_items_than_fit_into_memory_are_refused_before_they_are_made():
    with pytest.raises(UsageError, match="are more than"):
        simulate(Pipeline("line", (Task("a", seconds=1.0),), items=1000), jobs=10**6)
