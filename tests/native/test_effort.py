"""What kernels say a pass takes, against what it does take."""

import pytest

from bench import native
from bench.costs import Costs, Load, pass_s
from bench.estimate import Estimator
from bench.mix import Actor, Mix
from bench.native import RunSettings
from bench.plan import make_plan
from bench.resources import read_resources
from bench.sweepfile import validate

MIB = 1 << 20
CASES = {
    "msm g1": ("msm", {"points": 8192}),
    "msm g1 skewed": ("msm", {"points": 16384, "digits": "skewed"}),
    "msm g1 none": ("msm", {"points": 65536, "arithmetic": "none"}),
    "msm g2": ("msm", {"group": "g2", "points": 2048}),
    "msm g2 none": ("msm", {"group": "g2", "points": 65536, "arithmetic": "none"}),
    "spmv f64": ("spmv", {}),
    "spmv fr": ("spmv", {"values": "fr"}),
    "chase": ("chase", {}),
    "gather": ("gather", {}),
}


def an_actor(kernel, params, threads=1, size=64 * MIB):
    """Of the best variant, with small pages."""
    given = tuple(sorted(params.items()))
    return Actor(kernel, native.kernel(kernel).best_variant, "base", threads, size, given)


def expected_s(actor, costs):
    """Seconds of a pass as planned, on one thread."""
    effort = native.effort(actor)
    busy, waits = effort.ops * effort.op_ns * 1e-9, effort.ops * effort.op_waits
    used = sum(native.footprint(actor).used)
    return pass_s(Load(1, used, 4096, False, busy, waits), costs)


@pytest.mark.hw
def test_passes_take_what_their_kernels_say_to_a_factor_of_four():
    # The host's speed and its latency of memory are its own; kernels only say how much of each.
    # So times are compared with each other, and latency is that of the chase.
    taken = {}
    for name, (kernel, params) in CASES.items():
        row = native.run(Mix((an_actor(kernel, params),)), RunSettings(fixed_passes=3)).actors[0]
        taken[name] = row.seconds_per_pass
    loads = native.effort(an_actor("chase", {})).ops
    costs = Costs(wait_s=taken["chase"] / loads)
    ratios = {
        name: taken[name] / expected_s(an_actor(kernel, params), costs)
        for name, (kernel, params) in CASES.items()
    }
    middle = sorted(ratios.values())[len(ratios) // 2]
    assert {name: r for name, r in ratios.items() if not 1 / 4 < r / middle < 4} == {}


@pytest.mark.parametrize("params", ["", "group=g2,", "points=400000,", "group=g2,points=100000,"])
def test_the_deadline_admits_the_passes_of_a_slow_kernel(params):
    sweep = {"kernels": f"msm[{params}window=0]", "threads": 1, "sizes": "1GiB", "pages": "base"}
    plan = make_plan(validate({"sweep": [sweep]}, "test", native), read_resources(), native)
    (block,) = plan.blocks
    actor = block.entries[0].mix.actors[0]
    # A slow core: 27 us a point of G1, 55 us of G2, one thread.
    point_s = 55e-6 if "g2" in params else 27e-6
    seconds = block.settings.min_passes * native.effort(actor).ops * point_s
    assert block.settings.deadline_s > seconds
    assert block.entries[0].estimate_s > seconds / 8


def test_threads_share_the_work_of_a_team_and_have_their_own_of_a_sliced_kernel():
    estimator = Estimator(native, read_resources(), Costs())
    settings = RunSettings(window_s=0.0, warm_s=0.0)

    def window_s(kernel, params, threads):
        mix = Mix((an_actor(kernel, params, threads),))
        return estimator.window_s(mix, settings)

    spmv = {"values": "fr"}
    assert window_s("spmv", spmv, 2) == pytest.approx(window_s("spmv", spmv, 1) / 2, rel=0.01)
    assert window_s("chase", {}, 2) == window_s("chase", {}, 1)


def test_chains_and_accesses_in_flight_wait_less():
    for kernel, name in (("chase", "chains"), ("gather", "inflight")):
        one, four = (native.effort(an_actor(kernel, {name: n})) for n in (1, 4))
        assert four.ops == one.ops
        assert four.op_waits == one.op_waits / 4


@pytest.mark.parametrize("name", sorted(native.kernels()))
def test_a_kernel_that_is_quoted_per_operation_says_how_many_a_pass_has(name):
    actor = an_actor(name, {"points": 500} if name == "msm" else {}, threads=2)
    if native.accepts(actor):
        pytest.skip("not with small pages")
    raw = native.run(Mix((actor,)), RunSettings(fixed_passes=1, check=False))
    ops = native.effort(actor).ops
    assert bool(ops) >= bool(native.kernel(name).op)
    if name not in ("spin", "sleep"):  # steps there: what they do is calibrated later, or nothing
        # Where numbers of things depend on the seed, that of the run is not known to a plan.
        assert ops == 0 or ops == pytest.approx(raw.actors[0].work.ops, rel=0.02)
