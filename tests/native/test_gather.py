"""gather visits the elements it says, all alike, and counts what it touches."""

import sys
from pathlib import Path

import numpy as np
import pytest

from bench import native
from bench.errors import UsageError
from bench.mix import Actor

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))
from random_access import visits

LANES = (1, 2, 4, 8, 16, 32)
ELEMENTS = (8, 16, 32, 64)


def gather(threads=1, size=100_000, pace=0.0, **params):
    return Actor("gather", "scalar", "base", threads, size, tuple(params.items()), pace=pace)


def counts(threads=1, passes=1, seed=1, size=100_000, **params):
    """How often each word of each thread was counted up, one row an element."""
    run = gather(threads, size, op="update", **params)
    before = native.run_once(gather(threads, size, **params), seed=seed).arrays["table"]
    after = native.run_once(run, passes, seed=seed).arrays["counters"]
    words = params.get("element", 32) // 8
    return [
        (np.frombuffer(b, "<u8") - np.frombuffer(a, "<u8")).reshape(-1, words)
        for a, b in zip(before, after, strict=True)
    ]


@pytest.mark.parametrize("inflight", LANES)
@pytest.mark.parametrize("element", ELEMENTS)
def test_updates_are_those_of_the_reference(element, inflight):
    for threads in (1, 2):
        params = {"element": element, "inflight": inflight, "accesses": 8192}
        found = counts(threads, passes=2, seed=4, **params)
        for thread, table in enumerate(found):
            want = np.zeros(len(table), np.uint64)
            for step in range(4):
                for at in visits(4, thread, step, inflight, 4096 // inflight, len(table)):
                    want[at] += 1
            assert (table == want[:, None]).all()


@pytest.mark.parametrize("op", ["read", "update"])
@pytest.mark.parametrize("element", ELEMENTS)
def test_figures_are_those_of_the_accesses(element, op):
    for inflight in LANES:
        for accesses in (1, 100, 5000, 100_000):
            params = {"element": element, "inflight": inflight, "accesses": accesses}
            work = native.run_once(gather(op=op, **params)).work
            made = sum(int(table[:, 0].sum()) for table in counts(**params))
            assert work["ops"] == made
            moved = work["read_bytes"], work["written_bytes"], work["updated_bytes"]
            assert moved == ((made * element, 0, 0) if op == "read" else (0, 0, made * element))
            assert work["bus_min_bytes"] == 0
            assert work["bus_max_bytes"] == made * 64 * (1 if op == "read" else 2)
            # Rounded to whole steps of whole rounds.
            assert abs(made - accesses) <= max(inflight, work["n_steps"] * inflight)


def test_every_element_is_visited_about_as_often_as_the_others():
    (table,) = counts(accesses=400_000)
    visited = table[:, 0].astype(float)
    assert visited.min() > 0
    assert visited.var() == pytest.approx(visited.mean(), rel=0.1)


def test_passes_threads_and_seeds_visit_other_elements():
    first, second = (np.concatenate(counts(passes=p, accesses=4096)) for p in (1, 2))
    assert not np.array_equal(second, 2 * first)
    one, two = counts(threads=2, accesses=4096)
    assert not np.array_equal(one, two)
    assert not np.array_equal(first, np.concatenate(counts(seed=2, accesses=4096)))


def test_reads_leave_the_table_as_it_was():
    before = native.run_once(gather(accesses=1)).arrays["table"]
    assert native.run_once(gather(accesses=50_000), 3).arrays["table"] == before


@pytest.mark.parametrize("op", ["read", "update"])
def test_pacing_changes_no_result(op):
    """The kernel's own check compares the sum of what was read."""
    for inflight in (1, 8, 32):
        params = {"op": op, "inflight": inflight, "element": 64}
        plain, paced = (
            native.run_once(gather(pace=pace, **params), 2).arrays for pace in (0.0, 10e9)
        )
        assert plain == paced


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"element": 24}, "8, 16, 32 or 64"),
        ({"inflight": 3}, "power of two"),
        ({"size": 4000}, "at least"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(params, reason):
    with pytest.raises(UsageError, match=reason):
        native.footprint(gather(**params))


def test_the_smallest_size_named_in_a_refusal_is_enough():
    for threads in (1, 3):
        with pytest.raises(UsageError) as refused:
            native.footprint(gather(threads, size=10))
        least = int(str(refused.value).split()[-2])
        for op in ("read", "update"):
            native.run_once(gather(threads, size=least, op=op))
        with pytest.raises(UsageError):
            native.footprint(gather(threads, size=least - 1))
