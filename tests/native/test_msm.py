"""A bucket pass gives the sum of the multiples, whatever the points, scalars and digits are."""

import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from driver_build import cases, host_driver
from msm_module import driver, isas

from bench import native
from bench.errors import UsageError
from bench.mix import Actor, Mix

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))
from curve import GROUPS, R, read_scalars, write_scalars

MIB = 1 << 20
GROUP_NAMES = sorted(GROUPS)


def msm(variant="scalar", threads=1, size=8 * MIB, **params):
    return Actor("msm", variant, "base", threads, size, tuple(params.items()))


def inputs(once, group, align=16):
    """Points and plain scalars of a run, from its input arrays."""
    start = 16 if align == 16 else 0
    n = len(once.arrays["scalars"][0]) // 32
    raw = once.arrays["points"][0][start : start + n * group.point_bytes]
    return group.read_points(raw), read_scalars(once.arrays["scalars"][0], montgomery=True)


# ---- generated inputs ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", GROUP_NAMES)
def test_the_sum_is_what_a_library_computes(name):
    library = pytest.importorskip("py_ecc.optimized_bls12_381", reason="not installed: py_ecc")
    group = GROUPS[name]
    once = native.run_once(msm(isas()[-1], group=name, points=20))
    points, scalars = inputs(once, group)
    if name == "g1":
        lifted = [tuple(library.FQ(c) for c in (*point, 1)) for point in points]
    else:
        lifted = [tuple(library.FQ2(c) for c in (*point, (1, 0))) for point in points]
    total = None
    for point, scalar in zip(lifted, scalars, strict=True):
        term = library.multiply(point, scalar)
        total = term if total is None else library.add(total, term)
    x, y = library.normalize(total)
    expected = (
        (int(x), int(y)) if name == "g1" else tuple(tuple(map(int, c.coeffs)) for c in (x, y))
    )
    assert group.read_bucket(once.arrays["result"][0]) == expected


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("digits", ["uniform", "skewed"])
@pytest.mark.parametrize(("name", "n"), [("g1", 1500), ("g2", 600)])
def test_the_sum_is_what_bit_planes_add_up_to(name, n, digits, threads):
    group = GROUPS[name]
    results = []
    for variant in isas():
        actor = msm(variant, threads, group=name, points=n, digits=digits)
        once = native.run_once(actor, seed=threads)
        results.append(once.arrays["result"][0])
    points, scalars = inputs(once, group)
    expected = group.sum_of_multiples(scalars, points)
    assert expected is not None
    assert [group.read_bucket(result) for result in results] == [expected] * len(results)
    assert read_scalars(once.arrays["plain"][0], montgomery=False) == scalars


@pytest.mark.parametrize("name", GROUP_NAMES)
def test_points_are_a_progression_on_the_curve(name):
    """Longer than a batch, and over the borders of the threads' shares."""
    group = GROUPS[name]
    points, _ = inputs(native.run_once(msm(threads=2, group=name, points=1100)), group)
    step = group.add(points[1], group.negative(points[0]))
    assert all(group.holds(point) for point in points)
    assert len(set(points)) == len(points)
    for i in [*range(0, 20), *range(250, 270), *range(500, 530), *range(1020, 1030), 1098]:
        assert group.add(points[i], step) == points[i + 1], i
    assert group.multiply(R, points[7]) is None


@pytest.mark.parametrize("arithmetic", ["real", "none"])
@pytest.mark.parametrize("name", GROUP_NAMES)
def test_inputs_are_a_function_of_seed_and_index_alone(name, arithmetic):
    def contents(threads, n, seed=5):
        actor = msm(threads=threads, group=name, points=n, arithmetic=arithmetic)
        arrays = native.run_once(actor, seed=seed).arrays
        size = GROUPS[name].point_bytes
        return arrays["points"][0][16 : 16 + 600 * size], arrays["scalars"][0][: 600 * 32]

    reference = contents(1, 600)
    for threads, n in ((2, 600), (3, 1300), (1, 1300)):
        assert contents(threads, n) == reference, (threads, n)
    other = contents(1, 600, seed=6)
    assert other[0] != reference[0]
    assert other[1] != reference[1]


def test_scalars_are_spread_as_their_names_say():
    n = 20_000
    params = {"points": n, "arithmetic": "none"}
    uniform = native.run_once(msm(**params)).arrays["plain"][0]
    skewed = native.run_once(msm(**params, digits="skewed")).arrays["plain"][0]
    uniform, skewed = (read_scalars(raw, montgomery=False) for raw in (uniform, skewed))
    assert len(set(uniform)) == n
    assert abs(sum(uniform) / n / R - 0.5) < 0.01
    assert max(uniform) < R
    ones, zeros = skewed.count(1), skewed.count(0)
    assert abs(zeros / n - 0.49) < 0.015
    assert abs(ones / n - 0.49) < 0.015
    assert len(set(skewed)) == n - ones - zeros + 2


# ---- chosen inputs -------------------------------------------------------------------------------


def chosen(group):
    """Name -> (points, scalars) that ordinary data hardly ever are."""
    g = group.generator
    distinct = [group.multiply(k, g) for k in (3, 5, 7, 11, 13, 17)]
    n = 40
    draw = random.Random(4)
    scalars = [draw.randrange(R) for _ in range(n)]
    points = [draw.choice(distinct) for _ in range(n)]
    opposite = [point if i % 2 else group.negative(point) for i, point in enumerate(points)]
    holes = [None if i % 3 == 0 else point for i, point in enumerate(points)]
    return {
        "zero scalars": (points, [0] * n),
        "one scalar that is not zero": (points, [0] * (n - 1) + [R - 1]),
        "ones": (points, [1] * n),
        "equal points": ([g] * n, scalars),
        "equal points and scalars": ([g] * n, [scalars[0]] * n),
        "opposite points that cancel": ([g, group.negative(g)] * (n // 2), [scalars[0]] * n),
        "opposite points": (opposite, scalars),
        "points at infinity": (holes, scalars),
        "nothing but infinity": ([None] * n, scalars),
        "top bits only": (points, [1 << 254] * n),
        "all bits of a window": (points, [(1 << 254) - 1] * n),
        "largest scalars": (points, [R - 1 - i for i in range(n)]),
        "the sum is infinity": ([g] * 2, [scalars[0], R - scalars[0]]),
        "one point": ([g], [scalars[0]]),
    }


@pytest.mark.parametrize("case", chosen(GROUPS["g1"]))
@pytest.mark.parametrize("name", GROUP_NAMES)
def test_points_and_scalars_of_every_kind(name, case):
    group = GROUPS[name]
    points, scalars = chosen(group)[case]
    expected = group.sum_of_multiples(scalars, points)
    raw = group.write_points(points), write_scalars(scalars)
    for isa in isas():
        for threads, window in ((1, 0), (2, 0), (3, 4), (300, 5), (1, 13)):
            found = driver().sum(isa, threads, *raw, group.bucket_bytes, group=name, window=window)
            assert group.read_bucket(found) == expected, (isa, threads, window)


@pytest.mark.parametrize("prefetch", [0, 1, 2])
@pytest.mark.parametrize("align", [16, 64])
def test_prefetch_and_alignment_change_nothing_but_where_points_lie(align, prefetch):
    group = GROUPS["g1"]
    plain = native.run_once(msm(points=300))
    once = native.run_once(msm(points=300, align=align, prefetch=prefetch))
    assert once.arrays["result"] == plain.arrays["result"]
    assert inputs(once, group, align) == inputs(plain, group)
    assert len(once.arrays["points"][0]) == len(plain.arrays["points"][0])


# ---- runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("arithmetic", ["real", "none"])
@pytest.mark.parametrize("window", [0, 6])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_later_passes_leave_what_the_first_left(threads, window, arithmetic):
    actor = msm(threads=threads, points=700, window=window, arithmetic=arithmetic)
    first, third = (native.run_once(actor, passes).arrays for passes in (1, 3))
    for name in ("result", "plain", "partials", "points", "scalars"):
        assert first[name] == third[name], name


def test_buckets_are_empty_between_passes():
    once = native.run_once(msm(points=700))
    raw = once.arrays["buckets"][0][16:]
    assert any(raw)
    assert all(not any(raw[i + 96 : i + 192]) for i in range(0, len(raw), 192))


def test_threads_in_processes_of_their_own_get_it_right_too():
    code = (
        "from bench import native; from bench.mix import Actor, Mix\n"
        "params = (('points', 700),)\n"
        "actor = Actor('msm', 'scalar', 'base', 2, 1 << 22, params, process='each')\n"
        "raw = native.run(Mix((actor,)), native.RunSettings(window_s=0.05, warm_s=0.01))\n"
        "print(int(raw.actors[0].passes))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 3


def test_a_paced_pass_is_a_whole_pass():
    actor = replace(msm(points=300), pace=1e12)
    raw = native.run(Mix((actor,)), native.RunSettings(window_s=0.01, warm_s=0.001))
    assert raw.actors[0].passes >= 3
    fast = native.run_once(actor)
    assert fast.arrays["result"] == native.run_once(msm(points=300)).arrays["result"]


@pytest.mark.parametrize("fault", ["uncounted", "wrong", "input"])
def test_the_check_notices_faults(fault):
    command = [host_driver(), "131072", "1", "1", fault, "msm"]
    found = cases(subprocess.run(command, capture_output=True, text=True).stdout)
    assert len(found) >= 12
    # A point whose scalar is zero may be anything.
    shown = {case: said for case, said in found.items() if fault != "input" or "uniform" in case}
    assert {case for case, said in shown.items() if "FAILED" not in said} == set()


# ---- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 8, 16, 32, 36, 37, 64, 96, 128, 192, 384])
@pytest.mark.parametrize("size", [64 * MIB, 1 << 30, 1 << 34])
@pytest.mark.parametrize("name", GROUP_NAMES)
def test_buckets_of_any_number_of_threads_fit_beside_the_points(name, size, threads):
    footprint = native.footprint(msm(threads=threads, size=size, group=name, arithmetic="none"))
    assert size / 5 < sum(footprint.used) <= size


@pytest.mark.parametrize("name", GROUP_NAMES)
def test_real_arithmetic_takes_no_more_points_than_a_second_unless_told(name):
    most = {"g1": 1 << 16, "g2": 1 << 14}[name]
    assert native.effort(msm(size=1 << 30, group=name)).ops == most
    assert native.effort(msm(size=1 << 30, group=name, points=2 * most)).ops == 2 * most
    assert native.effort(msm(size=1 << 30, group=name, arithmetic="none")).ops > 2 * most


def test_points_fill_a_quarter_of_the_size_whatever_the_threads():
    """Else the sums of one thread and of many could not be compared."""
    for name, each in (("g1", 160), ("g2", 256)):
        n = len(native.run_once(msm(threads=2, group=name, size=MIB)).arrays["scalars"][0]) // 32
        assert n == (MIB // 4 - 3 * 4096) // each
        other = native.run_once(msm(threads=5, group=name, size=MIB))
        assert len(other.arrays["scalars"][0]) // 32 == n


@pytest.mark.parametrize(
    ("params", "size", "reason"),
    [
        ({}, 4096, "at least"),
        ({"points": 10_000}, MIB, "fewer points"),
        ({"points": 100, "window": 20}, MIB, "smaller window"),
        ({"delay_ns": 5}, MIB, "arithmetic=delay"),
        ({"prefetch": 3}, MIB, "0 to 2"),
        ({"window": 25}, MIB, "0 to 24"),
        ({"align": 32}, MIB, "align is 16 or 64"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(params, size, reason):
    with pytest.raises(UsageError, match=reason):
        native.footprint(msm(size=size, **params))
