"""prep finds and gathers what numpy does, counts its bytes, and has the mix it says."""

import sys
from pathlib import Path

import numpy as np
import pytest

from bench import native
from bench.errors import UsageError
from bench.mix import Actor

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))
from prepare import Prepared, words

SIZE = 4 << 20


def prep(threads=1, size=SIZE, pace=0.0, **params):
    return Actor("prep", "scalar", "base", threads, size, tuple(params.items()), pace=pace)


def contents(once, name):
    return words(once.arrays[name][0])


MIXES = [
    {},
    {"run": 1},
    {"run": 7, "full": 5000, "one": 5000, "density_b": 6000},
    {"full": 0},
    {"full": 10000, "one": 0, "full_b": 2540},
    {"density_a": 10000, "density_b": 10000, "full_b": 10000},
    {"density_a": 0, "density_b": 100, "full_b": 0},
    {"one": 0},
    {"density_b": 0, "full_b": 0},
]


@pytest.mark.parametrize("branches", ["branchy", "free"])
@pytest.mark.parametrize("mix", MIXES, ids=str)
def test_results_are_bit_for_bit_what_numpy_makes_of_the_inputs(mix, branches):
    for threads, chunk, passes in ((1, 8192, 1), (2, 64, 2), (3, 640, 1)):
        once = native.run_once(prep(threads, branches=branches, chunk=chunk, **mix), passes)
        want = Prepared(once.arrays)
        full, ones = want.bitmaps(want.full), want.bitmaps(want.one)
        scalars, g1, g2 = want.tails()
        for name, wanted in (
            ("bits", full),
            ("mask", full),
            ("ones", ones),
            ("tail_scalar", scalars),
            ("tail_g1", g1),
            ("tail_g2", g2),
        ):
            assert np.array_equal(contents(once, name), wanted.ravel()), (name, threads)


def test_inputs_do_not_depend_on_threads_or_chunks():
    first = native.run_once(prep(1)).arrays
    for threads, chunk in ((2, 8192), (3, 8192), (3, 64)):
        other = native.run_once(prep(threads, chunk=chunk)).arrays
        assert other["aux"][0][:65536] == first["aux"][0][:65536]
        assert other["point_b2"][0][:65536] == first["point_b2"][0][:65536]
        for name in ("aux", "density", "point_l", "bits", "tail_g1", "tail_g2"):
            if chunk == 8192:
                assert other[name] == first[name], name


def test_another_seed_is_other_data():
    first, second = (native.run_once(prep(), seed=seed).arrays for seed in (1, 2))
    for name in ("aux", "density", "point_l", "bits"):
        assert first[name] != second[name]


def test_the_mix_is_the_published_one():
    made = Prepared(native.run_once(prep(size=64 << 20), check=False).arrays)
    n = len(made.aux)
    assert made.one.sum() / n == pytest.approx(0.49, abs=0.01)
    assert made.zero.sum() / n == pytest.approx(1 - 0.49 - 0.0133, abs=0.01)
    # Whole runs: at most one more or less than n blocks have.
    assert made.full.sum() == pytest.approx(0.0133 * n, abs=530)
    assert made.member["a"].sum() / n == pytest.approx(0.997, abs=0.001)
    assert made.member["b"].sum() / n == pytest.approx(0.254, abs=0.005)
    assert made.member["b"][made.full].mean() == pytest.approx(0.75, abs=0.05)


def runs(flags):
    edges = np.diff(np.concatenate(([0], flags.astype(np.int8), [0])))
    return np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)


def test_full_scalars_come_in_runs_of_the_length_asked_for():
    clustered = runs(Prepared(native.run_once(prep(size=32 << 20), check=False).arrays).full)
    assert np.median(clustered) == 530
    spread = runs(Prepared(native.run_once(prep(run=1), check=False).arrays).full)
    assert (spread == 1).mean() > 0.95


@pytest.mark.parametrize("mix", MIXES, ids=str)
def test_bytes_are_those_the_sweeps_touch(mix):
    once = native.run_once(prep(size=1 << 20, **mix))
    want = Prepared(once.arrays)
    read, written = want.useful_bytes()
    distinct, each = want.point_lines()
    points = sum(part.nbytes for part in want.tails()[1:])
    work = once.work
    assert (work["read_bytes"], work["written_bytes"], work["updated_bytes"]) == (read, written, 0)
    assert work["bus_min_bytes"] == read - points + 64 * distinct + 2 * written
    assert work["bus_max_bytes"] == read - points + 64 * each + 2 * written
    assert work["ops"] == len(want.aux)


@pytest.mark.parametrize("threads", [1, 3])
def test_arrays_use_the_size_and_fit_it(threads):
    for size in (1 << 20, SIZE, 3_333_333):
        used = native.footprint(prep(threads, size)).used[0]
        # 64 scalars more, of up to about 400 B each, would not fit.
        assert size - 64 * 400 - 14 * 4096 < used <= size


def test_pacing_changes_no_result():
    plain, paced = (native.run_once(prep(pace=pace)).arrays for pace in (0.0, 2e9))
    assert plain == paced


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"chunk": 100}, "multiple of 64"),
        ({"one": 9900}, "more than all"),
        ({"full": 5000, "one": 0}, "denser than density_b"),
        ({"full": 9000, "one": 0, "full_b": 0}, "cannot be reached"),
        ({"size": 50_000}, "at least"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(params, reason):
    with pytest.raises(UsageError, match=reason):
        native.footprint(prep(**params))


def test_the_smallest_size_named_in_a_refusal_is_enough():
    with pytest.raises(UsageError) as refused:
        native.footprint(prep(size=1000))
    least = int(str(refused.value).split()[-2])
    native.run_once(prep(size=least))
    with pytest.raises(UsageError):
        native.footprint(prep(size=least - 1))
