"""Grids, lanes and bytes of msm are those of the pass described step by step."""

import itertools
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from msm_module import driver

from bench import native
from bench.mix import Actor

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))
from curve import GROUPS, read_scalars
from msm import GRIDS, SCALAR_BITS, digit, fold, lane_sum, tiles, useful_bytes

MIB = 1 << 20
GROUP_NAMES = sorted(GROUPS)


def actor(threads=1, size=16 * MIB, **params):
    return Actor("msm", "scalar", "base", threads, size, tuple(params.items()))


@pytest.mark.parametrize("threads", GRIDS)
def test_grids_are_the_published_ones(threads):
    for n in (1 << 20, 1_500_000, (1 << 21) - 1):
        assert driver().grid(n, threads) == GRIDS[threads]


def test_tiles_cover_every_bit_of_every_point_once_from_the_top_window_down():
    for n in (1, 2, 5, 31, 32, 100, 4096, 10_000):
        for threads in (1, 2, 3, 7, 16, 64, 192, 1000):
            for window in (0, 1, 7, 24):
                grid = driver().grid(n, threads, window)
                found = [driver().tile(grid, n, t) for t in range(grid[0] * grid[1])]
                assert found == [(t.first, t.last, t.bit, t.bits) for t in tiles(n, *grid)]
                rows = [found[i : i + grid[0]] for i in range(0, len(found), grid[0])]
                for row in rows:
                    borders = [(first, last) for first, last, _, _ in row]
                    assert borders[0][0] == 0
                    assert borders[-1][1] == n
                    assert all(a[1] == b[0] for a, b in itertools.pairwise(borders))
                covered = sorted((row[0][2], row[0][3]) for row in rows)
                assert covered[0][0] == 0
                assert sum(covered[-1]) == SCALAR_BITS
                assert all(a + b == c for (a, b), (c, _) in itertools.pairwise(covered))
                assert [row[0][2] for row in rows] == sorted((b for b, _ in covered), reverse=True)


def test_a_digit_is_the_window_of_the_scalar():
    assert digit(0b1011_0110, 1, 3) == 0b011


def run(**given):
    """(arrays, plain scalars, grid, work)."""
    threads, passes = given.pop("threads", 1), given.pop("passes", 1)
    once = native.run_once(actor(threads, **given), passes)
    scalars = read_scalars(once.arrays["plain"][0], montgomery=False)
    return once, scalars, driver().grid(len(scalars), threads, given.get("window", 0))


@pytest.mark.parametrize("arithmetic", ["none", "delay"])
@pytest.mark.parametrize("name", GROUP_NAMES)
@pytest.mark.parametrize(("threads", "window"), [(1, 0), (2, 0), (3, 7), (90, 8)])
@pytest.mark.parametrize("digits", ["uniform", "skewed"])
def test_lanes_add_up_to_the_last_bit(name, arithmetic, digits, threads, window):
    given = {"delay_ns": 1} if arithmetic == "delay" else {}
    once, scalars, grid = run(
        group=name,
        points=500,
        arithmetic=arithmetic,
        digits=digits,
        threads=threads,
        window=window,
        **given,
    )
    n, words = len(scalars), GROUPS[name].point_bytes // 8
    lanes = np.frombuffer(once.arrays["points"][0], np.uint64)[2:].reshape(n, words)
    # The other half of a bucket counts.
    lanes = np.hstack([lanes, np.ones((n, words), np.uint64)])
    sums = [lane_sum(tile, scalars, lanes) for tile in tiles(n, *grid)]
    assert once.arrays["partials"][0] == b"".join(row.tobytes() for row in sums)
    assert once.arrays["result"][0] == fold(sums, grid[0], grid[2]).tobytes()


@pytest.mark.parametrize("name", GROUP_NAMES)
@pytest.mark.parametrize("digits", ["uniform", "skewed"])
@pytest.mark.parametrize(("threads", "window"), [(1, 0), (2, 0), (8, 0), (3, 7), (90, 8)])
def test_useful_bytes_are_those_the_accesses_touch(name, digits, threads, window):
    once, scalars, grid = run(
        group=name,
        points=300,
        arithmetic="none",
        digits=digits,
        threads=threads,
        window=window,
    )
    group = GROUPS[name]
    found = tuple(once.work[f"{kind}_bytes"] for kind in ("read", "written", "updated"))
    assert found == useful_bytes(scalars, grid, group.point_bytes, group.bucket_bytes)
    assert once.work["ops"] == 300
    assert once.work["n_steps"] == 1 + grid[0] * grid[1] + 1
    assert once.work["n_stages"] == 3


def test_bus_bytes_enclose_the_useful_ones_and_tell_the_alignments_apart():
    def work(**given):
        return run(points=2000, arithmetic="none", **given)[0].work

    for name, spans in (("g1", (4, 3)), ("g2", (7, 6))):
        at_16, at_64 = (work(group=name, align=align) for align in (16, 64))
        useful = sum(at_64[f"{kind}_bytes"] for kind in ("read", "written", "updated"))
        assert at_64["bus_min_bytes"] < useful < at_64["bus_max_bytes"]
        assert at_16["bus_min_bytes"] == at_64["bus_min_bytes"]
        accesses = round((at_16["bus_max_bytes"] - at_64["bus_max_bytes"]) / (2 * 64))
        others = at_64["bus_max_bytes"] - accesses * spans[1] * 2 * 64
        assert others == at_16["bus_max_bytes"] - accesses * spans[0] * 2 * 64
        assert others > 0
    # Two in a hundred scalars have digits above the lowest window.
    assert work(digits="skewed")["bus_max_bytes"] < work()["bus_max_bytes"] / 2


def test_none_makes_the_accesses_of_real():
    works = [run(points=300, arithmetic=kind)[0].work for kind in ("real", "none", "delay")]
    assert works[0] == works[1] == works[2]


@pytest.mark.hw
def test_a_delay_takes_about_as_long_as_told():
    def seconds(ns):
        case = actor(points=2000, arithmetic="delay", delay_ns=ns)
        start = time.perf_counter()
        once = native.run_once(case, 3)
        assert time.perf_counter() > start
        return once.seconds_per_pass

    scalars, grid = run(points=2000, arithmetic="none")[1:]
    additions = sum(
        sum(value > 0 for value in tile.digits(scalars)) + 2 * ((1 << tile.bits) - 1)
        for tile in tiles(2000, *grid)
    )
    grown = (seconds(2000) - seconds(0)) / additions
    assert 1e-6 < grown < 6e-6
