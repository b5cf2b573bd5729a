"""chase walks one cycle through all lines, in an order without a pattern."""

import numpy as np
import pytest

from bench import native
from bench.errors import UsageError
from bench.mix import Actor

PAGE = 4096


def chase(threads=1, size=300_000, **params):
    return Actor("chase", "scalar", "base", threads, size, tuple(params.items()))


def next_slots(once, stride, thread=0):
    """Slot that follows each slot, from the offsets stored."""
    words = np.frombuffer(once.arrays["next"][thread], np.uint64)
    offsets = words[:: stride // 8]
    assert (offsets % stride == 0).all()
    return (offsets // stride).astype(int)


def page_slots(once, stride):
    """The same for within=page. The array is mapped at a page: its last one is spare."""
    return next_slots(once, stride)[: -PAGE // stride]


def walk(following):
    """Slots in the order of the cycle from slot 0, until one comes again."""
    at, seen = 0, []
    visited = set()
    while at not in visited:
        visited.add(at)
        seen.append(at)
        at = following[at]
    assert at == 0
    return np.array(seen)


def in_pages(order, lines):
    """The cycle as one row a page, begun where a row has one page alone."""
    for start in range(lines):
        rows = np.roll(order, -start).reshape(-1, lines)
        if (rows[0] // lines == rows[0, 0] // lines).all():
            return rows
    raise AssertionError("the cycle leaves pages before they are finished")


@pytest.mark.parametrize("size", [5_000, 10_000, 16_384, 100_000, 300_000])
@pytest.mark.parametrize("stride", [64, 128, 192])
def test_one_cycle_visits_every_slot_once(size, stride):
    for seed in (1, 2, 3):
        following = next_slots(native.run_once(chase(size=size, stride=stride), seed=seed), stride)
        assert sorted(walk(following)) == list(range(len(following)))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_thread_has_a_cycle_of_its_own(threads):
    once = native.run_once(chase(threads, size=100_000 * threads))
    for thread in range(threads):
        following = next_slots(once, 64, thread)
        assert len(walk(following)) == len(following) > 1000


def test_4160_takes_one_line_of_every_page_and_all_cache_sets_evenly():
    once = native.run_once(chase(size=4 << 20, stride=4160))
    following = next_slots(once, 4160)
    assert len(walk(following)) == len(following)
    starts = np.arange(len(following)) * 4160
    assert len(set(starts // PAGE)) >= len(starts) - len(starts) // 64 - 1
    sets = np.bincount(starts % PAGE // 64, minlength=64)
    assert sets.max() - sets.min() <= 1


@pytest.mark.parametrize("stride", [64, 512, 2048])
def test_within_page_finishes_a_page_before_the_next(stride):
    following = page_slots(native.run_once(chase(within="page", stride=stride)), stride)
    order = walk(following)
    assert sorted(order) == list(range(len(following)))
    by_page = in_pages(order, PAGE // stride) // (PAGE // stride)
    assert (by_page == by_page[:, :1]).all()


def test_pages_differ_in_the_order_of_their_lines():
    order = walk(page_slots(native.run_once(chase(within="page")), 64))
    by_page = in_pages(order, 64) % 64
    assert len({tuple(row) for row in by_page}) > len(by_page) / 2


def test_the_order_has_no_pattern():
    """As in a random cycle: distances spread evenly, and hardly a step stays near."""
    following = next_slots(native.run_once(chase(size=8 << 20)), 64)
    n = len(following)
    distance = (following - np.arange(n)) % n
    counts = np.bincount(distance * 64 // n, minlength=64)
    # Even counts scatter by sqrt(n / 64); chi-squared with 63 degrees of freedom is below 110 in
    # all but 2 of 10,000 random cycles.
    assert ((counts - n / 64) ** 2 / (n / 64)).sum() < 110
    near = np.minimum(distance, n - distance) < 64
    assert near.mean() < 4 * 128 / n
    assert abs(np.corrcoef(distance, distance[following])[0, 1]) < 0.02


def test_the_order_depends_on_the_seed_and_on_nothing_else():
    first = native.run_once(chase(), passes=1, seed=4).arrays
    assert native.run_once(chase(loads=10, chains=3), passes=5, seed=4).arrays == first
    assert native.run_once(chase(), seed=5).arrays != first


@pytest.mark.parametrize("chains", range(1, 9))
@pytest.mark.parametrize("loads", [1, 1000, 1024, 5000, 262_144])
def test_a_pass_makes_the_loads_asked_for_to_within_a_step(chains, loads):
    work = native.run_once(chase(loads=loads, chains=chains), passes=3).work
    assert work["ops"] % (chains * work["n_steps"]) == 0
    assert abs(work["ops"] - max(loads, chains)) < chains * work["n_steps"]
    assert work["read_bytes"] == 8 * work["ops"]
    assert (work["bus_min_bytes"], work["bus_max_bytes"]) == (0, 64 * work["ops"])


def test_pacing_changes_no_result():
    """The check knows where every chain must stand."""
    actor = Actor("chase", "scalar", "base", 1, 300_000, (("chains", 3),), pace=1e9)
    native.run_once(actor, 2)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"stride": 100}, "multiple of 64"),
        ({"stride": 4160, "within": "page"}, "within=page"),
        ({"stride": 192, "within": "page"}, "within=page"),
        ({"stride": 1 << 20, "chains": 2}, "too few"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(params, reason):
    with pytest.raises(UsageError, match=reason):
        native.footprint(chase(**params))
