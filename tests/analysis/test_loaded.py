"""Latency under load, and stalls: from rows to points, limits and rates."""

import math
import random

import pytest

from analysis.loaded import curves
from analysis.stalls import table

CHASE = "chase/scalar/base/1t/64MiB"
SCAN = "scan/avx2/base/1t/64MiB"


def row(pace, traffic, latency, block="b", round_=0, other=SCAN):
    options = ";".join(["role=background"] + ([f"pace={pace:.17g}"] if pace else []))
    return {
        "mix": CHASE if traffic is None else f"{CHASE}+{other}{{{options}}}",
        "actor": 0,
        "run": "r",
        "block": block,
        "round": round_,
        "latency_ns": latency,
        "beside_gbps": traffic or 0.0,
        "kernel": "chase",
        "params": "",
        "pages": "base",
        "size": 64 << 20,
    }


def queue(x, l0=80.0, c=20.0, bmax=20.0):
    return l0 + c * (x / bmax) / (1 - x / bmax)


def measured(noise=0.0, rates=(1, 2, 4, 6, 8, 10, 12, 14, 16, 17, 18), **options):
    rng = random.Random(1)

    def seen(x):
        return queue(x) * math.exp(rng.gauss(0, noise))

    rows = [row(0, None, seen(0.0), round_=i, **options) for i in range(6)]
    for x in rates:
        rows += [row(x * 1e9, float(x), seen(x), round_=i, **options) for i in range(6)]
    return rows


def test_a_queue_is_found_again_with_its_limits():
    (curve,) = curves(measured())
    assert curve.model == "latency_mm1"
    assert curve.params["l0"] == pytest.approx(80, rel=0.01)
    assert curve.params["bmax"] == pytest.approx(20, rel=0.01)
    assert curve.points[0].gb_per_s == 0
    assert [p.gb_per_s for p in curve.points] == sorted(p.gb_per_s for p in curve.points)
    # 1.5 times the idle latency: half of bmax times 2 / (1 + ...), by the formula above.
    assert curve.gb_per_s_at[1.5] == pytest.approx(20 * 2 / 3, rel=0.05)


def test_limits_that_were_never_reached_are_unknown():
    (curve,) = curves(measured(rates=(1, 2, 3, 4, 5, 6)))
    assert math.isnan(curve.gb_per_s_at[1.5])
    assert curve.measured_factor < 1.5


def test_blocks_and_kinds_of_traffic_are_curves_of_their_own():
    other = "scan[op=copy]/avx2/base/1t/64MiB"
    rows = [*measured(), *measured(block="c", other=other)]
    assert {curve.loader for curve in curves(rows)} == {"scan", "scan[op=copy]"}


def test_one_neighbour_is_no_curve():
    assert curves(measured(rates=(4,))) == []


def step(low_ns, high_ns, count, round_=0, seconds=2.0, case="a"):
    return {
        "case": case,
        "kernel": "scan",
        "size": 1 << 20,
        "pages": "base",
        "params": "",
        "beside": "storm",
        "block": "b",
        "round": round_,
        "low_ns": low_ns,
        "high_ns": high_ns,
        "count": count,
        "threads_s": seconds,
    }


def test_stalls_are_counted_by_the_time_they_were_watched():
    rows = [step(1000, 1100, 9900), step(200_000, 212_000, 100)]
    rows += [step(1000, 1100, 9900, 1), step(200_000, 212_000, 100, 1)]
    (found,) = table(rows)
    assert found.steps == 20_000
    assert found.over_per_s[100e-6] == pytest.approx(200 / 4.0)
    assert found.over_per_s[1e-3] == 0
    assert found.quantiles_s[0.5] == pytest.approx(1.1e-6)
    assert found.quantiles_s[0.999] == pytest.approx(212e-6)


def test_a_quantile_needs_ten_steps_beyond_it():
    (found,) = table([step(1000, 1100, 9_999)])
    assert math.isnan(found.quantiles_s[0.9999])
    (found,) = table([step(1000, 1100, 100_000)])
    assert not math.isnan(found.quantiles_s[0.9999])
