"""The simulation against another simulator, on random small pipelines."""

import random

import pytest

from analysis.simulate import simulate
from bench.mix import Pool
from bench.pipeline import Pipeline, Task

ciw = pytest.importorskip("ciw")
N = 40


def arrivals(rng):
    """Gaps that no service time is a multiple of: who comes first is never a tie."""
    return [rng.uniform(0.05, 1.5) for _ in range(N)]


def stages(rng):
    count = rng.randint(1, 4)
    return [(rng.randint(1, 3), rng.uniform(0.2, 2.0)) for _ in range(count)]


def departures_of_ciw(gaps, services, servers, room, kind=None, thresholds=None):
    """Times at which customers leave a line of stations that block when the next is full."""
    n = len(services)
    options = {}
    if kind is not None:
        options["ps_thresholds"] = thresholds
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([*gaps, float("inf")])] + [None] * (n - 1),
        service_distributions=[ciw.dists.Deterministic(s) for s in services],
        number_of_servers=servers,
        queue_capacities=room,
        routing=[[1.0 if j == i + 1 else 0.0 for j in range(n)] for i in range(n)],
        **options,
    )
    made = ciw.Simulation(network, node_class=kind)
    made.simulate_until_max_customers(N, method="Complete")
    return sorted(r.exit_date for r in made.get_all_records() if r.node == n)


def departures_of_ours(line, gaps):
    at = [sum(gaps[: i + 1]) for i in range(N)]
    found = simulate(line, jobs=1, times={"arrive": at}, events=True)
    # An item leaves its place when the next stage takes it, or when it is through.
    return sorted(e.end_s for e in found.events if e.task == line.last[0].name)


@pytest.mark.parametrize("seed", range(12))
def test_stations_with_workers_in_a_row(seed):
    rng = random.Random(seed)
    gaps, line = arrivals(rng), stages(rng)
    tasks = [Task("arrive", seconds=1, threads=0)]
    for i, (servers, seconds) in enumerate(line):
        tasks.append(Task(f"s{i}", seconds=seconds, workers=servers, after=(tasks[-1].name,)))
    ours = departures_of_ours(Pipeline("line", tuple(tasks), items=N), gaps)
    theirs = departures_of_ciw(
        gaps, [s for _, s in line], [k for k, _ in line], [float("inf")] * len(line)
    )
    assert ours == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_stations_that_hold_their_place_until_the_next_has_room(seed):
    rng = random.Random(100 + seed)
    gaps, line = arrivals(rng), stages(rng)
    room = [float("inf")] + [rng.randint(0, 2) for _ in line[1:]]
    tasks, pools, held = [Task("arrive", seconds=1, threads=0)], [], ()
    for i, (servers, seconds) in enumerate(line):
        # Whoever is at a station or queues for it takes up its room.
        entered = tasks[-1].name
        if i:
            pools.append(Pool(f"room{i}", int(room[i]) + servers))
            tasks.append(Task(f"enter{i}", after=(entered,), takes=((f"room{i}", 1),), puts=held))
            entered = tasks[-1].name
        pools.append(Pool(f"server{i}", servers))
        tasks.append(Task(f"s{i}", seconds=seconds, after=(entered,), takes=((f"server{i}", 1),)))
        held = ((f"server{i}", 1), *(((f"room{i}", 1),) if i else ()))
    tasks.append(Task("leave", after=(tasks[-1].name,), puts=held))
    ours = departures_of_ours(Pipeline("line", tuple(tasks), tuple(pools), items=N), gaps)
    theirs = departures_of_ciw(gaps, [s for _, s in line], [k for k, _ in line], room)
    assert ours == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_a_memory_phase_is_capacity_limited_processor_sharing(seed):
    rng = random.Random(200 + seed)
    gaps, threshold = arrivals(rng), rng.randint(1, 3)
    services = [rng.uniform(0.3, 1.5), rng.uniform(0.2, 0.8)]
    tasks = (
        Task("arrive", seconds=1, threads=0),
        Task("memory", seconds=services[0], traffic=1.0, after=("arrive",)),
        Task("then", seconds=services[1], workers=1, after=("memory",)),
    )
    line = Pipeline("line", tasks, items=N, bandwidth=float(threshold))
    theirs = departures_of_ciw(
        gaps,
        services,
        [float("inf"), 1],
        [float("inf")] * 2,
        [ciw.PSNode, ciw.Node],
        [threshold, 1],
    )
    assert departures_of_ours(line, gaps) == pytest.approx(theirs, rel=1e-9)
