"""What holds for every pipeline, whatever its tasks and pools."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.simulate import simulate
from bench.mix import Pool
from bench.pipeline import Pipeline, Task

seconds = st.sampled_from([0.0, 0.3, 0.7, 1.0, 1.9])


@st.composite
def pipelines(draw):
    """Any graph of up to five tasks; all take pools in one order, so nobody can stand still."""
    pools = tuple(Pool(f"p{i}", draw(st.integers(1, 3))) for i in range(draw(st.integers(0, 2))))
    tasks = []
    for i in range(draw(st.integers(1, 5))):
        used = tuple((pool.name, 1) for pool in pools if draw(st.booleans()))
        tasks.append(
            Task(
                f"t{i}",
                seconds=draw(seconds) + (0.5 if i == 0 else 0),
                threads=draw(st.integers(0, 2)),
                traffic=draw(st.sampled_from([0.0, 1.0])),
                jitter=draw(st.sampled_from([0.0, 0.3])),
                after=tuple(t.name for t in tasks if draw(st.booleans())),
                takes=used,
                puts=used,
                workers=draw(st.integers(0, 2)),
                whole=draw(st.booleans()),
                priority=draw(st.integers(0, 2)),
            )
        )
    return Pipeline(
        "any",
        tuple(tasks),
        pools,
        items=draw(st.integers(1, 3)),
        in_flight=draw(st.integers(1, 3)),
        bandwidth=2.0,
    )


cpus = st.sampled_from([0, 1, 3])


def concurrency(events, weight):
    """Most at once, by event; what ends makes room for what begins at that instant."""
    changes = sorted(
        [(e.end_s, 0, -weight(e)) for e in events if e.end_s > e.start_s]
        + [(e.start_s, 1, weight(e)) for e in events if e.end_s > e.start_s]
    )
    now = most = 0
    for _, _, change in changes:
        now += change
        most = max(most, now)
    return most


@settings(max_examples=60, deadline=None)
@given(pipelines(), cpus)
def test_no_pool_is_over_its_tokens_and_all_work_is_done(line, n):
    found = simulate(line, jobs=4, cpus=n, events=True)
    for pool in line.pools:
        users = {t.name for t in line.tasks if (pool.name, 1) in t.takes}
        assert concurrency([e for e in found.events if e.task in users], lambda e: 1) <= pool.tokens
    for task in line.tasks:
        mine = [e for e in found.events if e.task == task.name]
        assert len(mine) == 4 * (1 if task.whole else line.items)
        if task.workers:
            assert concurrency(mine, lambda e: 1) <= task.workers
        for event in mine:
            for name in task.after:
                before = [e for e in found.events if e.task == name and e.job == event.job]
                if not task.whole and not line.task(name).whole:
                    before = [e for e in before if e.item == event.item]
                assert max(e.end_s for e in before) <= event.start_s + 1e-9


@settings(max_examples=60, deadline=None)
@given(pipelines(), cpus)
def test_littles_law_holds_at_every_pool(line, n):
    """Mean tokens out = rate of taking × mean time of holding."""
    tasks = tuple(replace(t, workers=0, takes=t.takes[:1], puts=t.takes[:1]) for t in line.tasks)
    found = simulate(replace(line, tasks=tasks), jobs=4, cpus=n, events=True)
    for pool in line.pools:
        users = {t.name for t in tasks if (pool.name, 1) in t.takes}
        held = [e.end_s - e.start_s for e in found.events if e.task in users]
        if not found.seconds_per_job > 0:  # then use is of the whole run
            out = found.pool_use[pool.name].held * pool.tokens
            rate = len(held) / found.total_s
            assert out == pytest.approx(rate * sum(held) / max(1, len(held)), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(pipelines(), cpus, st.randoms(use_true_random=False))
def test_the_order_of_listing_decides_nothing(line, n, random):
    tasks, pools = list(line.tasks), list(line.pools)
    random.shuffle(tasks)
    random.shuffle(pools)
    other = replace(line, tasks=tuple(tasks), pools=tuple(pools))
    assert simulate(line, jobs=4, cpus=n).completions == simulate(other, jobs=4, cpus=n).completions


@settings(max_examples=60, deadline=None)
@given(pipelines(), cpus, st.integers(1, 3))
def test_more_tokens_never_bring_it_to_a_standstill(line, n, more):
    pools = tuple(replace(pool, tokens=pool.tokens + more) for pool in line.pools)
    found = simulate(replace(line, pools=pools), jobs=4, cpus=n)
    assert len(found.completions) == 4


@settings(max_examples=60, deadline=None)
@given(pipelines(), cpus)
def test_nothing_is_at_work_for_longer_than_the_run(line, n):
    """The bottleneck bound: no resource's seconds a job exceed what the jobs took."""
    found = simulate(line, jobs=5, cpus=n)
    for name, demand in found.demands.items():
        assert 5 * demand <= found.total_s * (1 + 1e-9), name
    assert found.binding.use <= 1


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), seconds, seconds)
def test_an_interlock_cannot_help_where_the_interface_is_not_full(workers, tokens, memory, compute):
    """Sharing is work-conserving: a lock among memory phases only takes away overlap."""
    free = Pipeline(
        "free",
        (
            Task("memory", seconds=memory + 0.2, traffic=1.0, workers=workers),
            Task("compute", seconds=compute + 0.2, after=("memory",), workers=2),
        ),
        (Pool("lock", tokens),),
        items=2,
        in_flight=3,
        bandwidth=float(workers),  # what they can ask for at most
    )
    lock = (("lock", 1),)
    locked = replace(free, tasks=(replace(free.tasks[0], takes=lock, puts=lock), free.tasks[1]))
    assert simulate(locked, jobs=30).total_s >= simulate(free, jobs=30).total_s - 1e-9


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 6), st.integers(1, 3), seconds)
def test_an_interlock_cannot_help_where_the_interface_is_never_idle(workers, tokens, memory):
    """Saturated by one class of phases alone, the interface gives the same with a lock."""
    free = Pipeline(
        "free",
        (Task("memory", seconds=memory + 0.2, traffic=1.0, workers=workers),),
        (Pool("lock", tokens),),
        items=6,
        in_flight=2,
        bandwidth=1.0,
    )
    lock = (("lock", 1),)
    locked = replace(free, tasks=(replace(free.tasks[0], takes=lock, puts=lock),))
    assert simulate(locked, jobs=20).total_s == pytest.approx(simulate(free, jobs=20).total_s)


def test_an_interlock_helps_where_company_costs_more_than_it_moves():
    """X(k) falls with k: the one exception, and the gain is X(1)/X(k)."""
    line = Pipeline(
        "line",
        (Task("memory", seconds=1, traffic=1.0, workers=4),),
        (Pool("lock", 1),),
        items=4,
        in_flight=2,
        bandwidth=4.0,
    )
    lock = (("lock", 1),)
    locked = replace(line, tasks=(replace(line.tasks[0], takes=lock, puts=lock),))

    def retrograde(k):
        return 1 / k**1.5

    free, apart = (
        simulate(p, jobs=30, crowding=retrograde).seconds_per_job for p in (line, locked)
    )
    assert free / apart == pytest.approx(2.0, rel=0.01)
