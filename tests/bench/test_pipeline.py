"""The description of a pipeline: what it refuses, and what bounds a task."""

import math

import pytest

from bench.errors import UsageError
from bench.mix import Pool
from bench.pipeline import Pipeline, Task

POOLS = (Pool("pw", 10), Pool("room", 3), Pool("gw", 2), Pool("gpu", 1))
TASKS = (
    Task("synth", seconds=29, takes=(("pw", 1),)),
    Task("send", after=("synth",), takes=(("room", 1),), puts=(("pw", 1),)),
    Task("prep", seconds=1.7, after=("send",), takes=(("gw", 1),), puts=(("room", 1),)),
    Task("gpu", seconds=1.1, threads=0, after=("prep",), takes=(("gpu", 1),), puts=(("gpu", 1),)),
    Task("b_g2", seconds=0.4, threads=32, after=("prep",)),
    Task("done", after=("gpu", "b_g2"), puts=(("gw", 1),)),
)


def test_a_pool_bounds_every_task_between_take_and_put():
    line = Pipeline("line", TASKS, POOLS, items=10, in_flight=5)
    at_once = {task.name: line.at_once(task.name) for task in line.order}
    assert at_once == {"synth": 10, "send": 3, "prep": 2, "gpu": 1, "b_g2": 2, "done": 2}


def test_without_pools_all_that_is_in_flight_may_be_at_a_task():
    line = Pipeline("line", (Task("a", seconds=1), Task("b", whole=True, after=("a",))), (), 4, 3)
    assert line.at_once("a") == 12
    assert line.at_once("b") == 3


def test_order_puts_each_task_behind_those_it_waits_for():
    line = Pipeline("line", tuple(reversed(TASKS)), POOLS)
    place = {task.name: i for i, task in enumerate(line.order)}
    assert all(place[name] < place[task.name] for task in TASKS for name in task.after)
    assert [task.name for task in line.first] == ["synth"]
    assert [task.name for task in line.last] == ["done"]


@pytest.mark.parametrize(
    ("tasks", "says"),
    [
        ((Task("a", after=("b",)), Task("b", after=("a",))), "wait for each other"),
        ((Task("a", after=("c",)),), "no 'c'"),
        ((Task("a", takes=(("lock", 1),)),), "no 'lock'"),
        ((Task("a"), Task("a")), "two tasks"),
        ((), "no task"),
    ],
)
def test_faults_are_named(tasks, says):
    with pytest.raises(UsageError, match=says):
        Pipeline("line", tasks)


@pytest.mark.parametrize("changed", [{"seconds": math.nan}, {"jitter": math.inf}])
def test_what_is_no_number_is_a_fault(changed):
    with pytest.raises(UsageError, match="is a number"):
        Task("a", **changed)


@pytest.mark.parametrize(
    "changed", [{"items": 10**8}, {"in_flight": 10**8}, {"pools": (Pool("p", 2**40),)}]
)
def test_slips_by_orders_of_magnitude_are_faults(changed):
    with pytest.raises(UsageError, match="more than"):
        Pipeline("line", (Task("a"),), **changed)
