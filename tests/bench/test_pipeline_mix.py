"""A pipeline as a mix: actors, links, fixed times, and what cannot get through."""

import itertools
import statistics
from dataclasses import replace

import pytest

from bench import native
from bench.errors import UsageError
from bench.mix import Actor, Op, Pool, mix_name, parse_mix
from bench.pipeline import Pipeline, Task
from bench.pipelinemix import JITTERED_ITEMS, JOB, Compiler, log_room
from bench.pipelineplain import from_plain, to_plain
from bench.resources import read_resources
from bench.sizes import Probe

COMPILER = Compiler(native, read_resources(), Probe())
SCAN = Actor("scan", "scalar", "base", 1, 1 << 20, pin="none")
POOLS = (Pool("pw", 2), Pool("room", 1), Pool("gpu", 1))
LINE = Pipeline(
    "line",
    (
        Task("synth", SCAN, passes=3, takes=(("pw", 1),)),
        Task("send", after=("synth",), takes=(("room", 1),), puts=(("pw", 1),)),
        Task(
            "gpu",
            seconds=0.02,
            threads=0,
            after=("send",),
            takes=(("gpu", 1),),
            puts=(("gpu", 1), ("room", 1)),
        ),
        Task("join", seconds=0.01, threads=2, after=("gpu",), whole=True),
    ),
    POOLS,
    items=4,
    in_flight=2,
    events=(("SYNTH_START", "synth.start"),),
)


def compiled(line=LINE):
    return COMPILER.mix(line)


def scripts(made, task):
    chosen = zip(made.mix.actors, made.tasks, strict=True)
    return [".".join(map(str, a.script)) for a, name in chosen if name == task]


def test_a_task_has_as_many_actors_as_can_be_at_it():
    made = compiled()
    counts = {task: made.tasks.count(task) for task in made.tasks}
    assert counts == {"synth": 2, "send": 1, "gpu": 1, "join": 2, JOB: 1}
    assert made.mix.measured == (made.job,)


def test_a_script_takes_items_then_tokens_works_and_hands_on():
    made = compiled()
    assert scripts(made, "synth")[0] == (
        "take(start_of_synth,1).take(pw,1).pass(3).put(synth_to_send,1)"
    )
    assert scripts(made, "gpu") == [
        "take(send_to_gpu,1).take(gpu,1).rest(20000000).put(gpu,1).put(room,1).put(gpu_to_join,1)"
    ]


def test_a_whole_task_gathers_the_items_of_a_job_and_the_job_lets_as_many_in():
    made = compiled()
    assert scripts(made, "join")[0].startswith("take(gpu_to_join,4).")
    assert scripts(made, JOB) == ["take(end_of_join,1).pass(1).put(start_of_synth,4)"]
    assert Pool("start_of_synth", 8) in made.mix.pools
    spread = replace(LINE, tasks=(Task("plan", seconds=0.01, whole=True), *LINE.tasks[:3]))
    first = replace(spread.tasks[1], after=("plan",))
    made = compiled(replace(spread, tasks=(spread.tasks[0], first, *spread.tasks[2:])))
    assert ".put(plan_to_synth,4)" in scripts(made, "plan")[0]
    assert scripts(made, JOB) == ["take(end_of_gpu,4).pass(1).put(start_of_plan,1)"]


def test_pools_of_the_pipeline_are_served_in_order_and_links_have_names_of_their_own():
    taken = replace(LINE, pools=(*POOLS, Pool("synth_to_send", 1)))
    made = compiled(taken)
    assert {pool.name for pool in made.mix.pools if pool.fair} == {p.name for p in taken.pools}
    assert "synth_to_send_" in made.links


def test_a_fixed_time_spins_on_its_threads_for_as_long():
    made = compiled()
    actor = made.mix.actors[made.tasks.index("join")]
    values = dict(actor.params)
    pass_s = values.get("steps", 20) * values.get("step_us", 50) * 1e-6
    (passes,) = [op.amount for op in actor.script if op.kind == "pass"]
    assert (actor.kernel, actor.threads, actor.joined) == ("spin", 2, True)
    assert passes * pass_s == pytest.approx(0.01, rel=0.01)


def test_traffic_is_read_at_its_pace():
    task = Task("stream", seconds=0.1, threads=2, traffic=1e9)
    made = COMPILER.mix(Pipeline("one", (task,)))
    actor = made.mix.actors[0]
    (passes,) = [op.amount for op in actor.script if op.kind == "pass"]
    assert (actor.kernel, actor.pace) == ("scan", 5e8)
    assert passes * actor.size == pytest.approx(1e8, rel=0.01)


@pytest.mark.parametrize("threads", [0, 1])
def test_jitter_varies_the_time_and_keeps_its_mean(threads):
    task = Task("some", seconds=0.05, threads=threads, jitter=0.3, workers=2)
    made = COMPILER.mix(Pipeline("one", (task,), items=4))
    amounts = [
        [op.amount for op in actor.script if op.kind in ("pass", "rest")]
        for actor in made.mix.actors[:2]
    ]
    assert {len(own) for own in amounts} == {JITTERED_ITEMS}
    assert amounts[0] != amounts[1]
    unit = 50_000_000 if not threads else 64
    assert statistics.fmean(amounts[0]) == pytest.approx(unit, rel=0.02)
    assert 0.2 < statistics.pstdev(amounts[0]) / statistics.fmean(amounts[0]) < 0.35


def test_the_name_of_a_compiled_mix_comes_back():
    mix = compiled().mix
    assert parse_mix(mix_name(mix)) == mix


@pytest.mark.parametrize(
    ("pools", "says"),
    [
        ((Pool("pw", 0), Pool("room", 1), Pool("gpu", 1)), "synth waits for a token of pw"),
        ((Pool("pw", 2), Pool("room", 1, 1), Pool("gpu", 0)), "gpu waits for a token of gpu"),
    ],
)
def test_what_cannot_get_through_is_named(pools, says):
    with pytest.raises(UsageError, match="standstill") as caught:
        compiled(replace(LINE, pools=pools))
    assert says in str(caught.value)


def test_a_put_that_never_fits_is_found():
    send = replace(LINE.tasks[1], puts=(("pw", 3),))
    line = replace(LINE, tasks=(LINE.tasks[0], send, *LINE.tasks[2:]))
    with pytest.raises(UsageError, match="send waits for room of pw"):
        compiled(replace(line, pools=(Pool("pw", 2, 2), *POOLS[1:])))


def test_two_locks_taken_in_opposite_orders_are_found():
    tasks = (
        Task("a", takes=(("x", 1),)),
        Task("b", after=("a",), takes=(("y", 1),), puts=(("x", 1), ("y", 1))),
        Task("c", takes=(("y", 1),)),
        Task("d", after=("c",), takes=(("x", 1),), puts=(("x", 1), ("y", 1))),
    )
    with pytest.raises(UsageError, match="waits for a token of"):
        compiled(Pipeline("knot", tasks, (Pool("x", 1), Pool("y", 1)), in_flight=2))


def test_two_locks_that_single_tasks_take_in_opposite_orders_are_found():
    tasks = (
        Task("x", seconds=0.001, takes=(("a", 1), ("b", 1)), puts=(("a", 1), ("b", 1))),
        Task("y", after=("x",), takes=(("b", 1), ("a", 1)), puts=(("a", 1), ("b", 1))),
    )
    knot = Pipeline("knot", tasks, (Pool("a", 1), Pool("b", 1)), items=2, in_flight=2)
    with pytest.raises(UsageError, match="waits for a token of"):
        compiled(knot)


def test_more_actors_than_can_run_are_refused_at_once():
    with pytest.raises(UsageError, match="100000 actors"):
        compiled(Pipeline("many", (Task("x", seconds=0.001),), items=100_000))


def test_no_task_may_take_the_name_of_what_counts_jobs():
    with pytest.raises(UsageError, match="job"):
        compiled(Pipeline("line", (Task(JOB),)))


def test_the_log_has_room_for_all_that_one_actor_might_do():
    made = compiled()
    longest = max(len(actor.script) for actor in made.mix.actors)
    room = log_room(made, LINE, 10)
    assert room >= len(made.mix.actors) * 10 * LINE.items * longest
    varied = replace(LINE.tasks[2], jitter=0.1)
    line = replace(LINE, tasks=(*LINE.tasks[:2], varied, *LINE.tasks[3:]))
    assert log_room(compiled(line), line, 10) == room


def test_a_pipeline_comes_back_from_its_plain_form():
    assert from_plain(to_plain(LINE)) == LINE
    twice = replace(LINE, bandwidth=1e9, summary="s")
    assert from_plain(to_plain(twice)) == twice


def test_items_get_through_a_real_run():
    made = compiled()
    settings = native.RunSettings(
        window_s=1e-3, warm_s=0, min_passes=2, warm_passes=2, log_events=log_room(made, LINE, 4)
    )
    raw = native.run(made.mix, settings)
    assert raw.actors[made.job].passes >= 2
    done = {
        task: sum(
            made.tasks[e.actor] == task and made.mix.actors[e.actor].script[e.op].kind == kind
            for e in raw.events
        )
        for task, kind in (("synth", "pass"), ("gpu", "rest"), ("join", "pass"), (JOB, "pass"))
    }
    assert done["gpu"] <= done["synth"]
    assert done["join"] * LINE.items <= done["gpu"]
    assert done[JOB] <= done["join"]


def test_seeds_change_the_luck_and_nothing_else():
    jittered = Pipeline("one", (Task("some", seconds=0.05, jitter=0.5),))
    names = {mix_name(COMPILER.mix(jittered, seed).mix) for seed in (1, 1, 2)}
    assert len(names) == 2
    assert all(Op("take", 1, "start_of_some") in parse_mix(n).actors[0].script for n in names)
    assert all(a == b for a, b in itertools.pairwise([compiled().mix, COMPILER.mix(LINE, 1).mix]))
