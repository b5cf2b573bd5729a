"""Which samples make up a curve, and what is said of it."""

import math
from pathlib import Path

import numpy as np
import pytest

from analysis import models
from analysis.files import PyperfValue
from analysis.load import rows
from analysis.measured import fit_curve, measured_curves, saturation, subjects_of, why_unfitted
from analysis.rows import make_pyperf_row
from bench.errors import UsageError

STORED = Path(__file__).parents[1] / "data" / "results" / "v1.ndjson"
GIB = 1 << 30


def row(case, gbps=1.0, **columns):
    value = PyperfValue(case, GIB / gbps / 1e9, {"ps_useful_bytes": GIB, "hostname": "h"})
    return make_pyperf_row(value) | columns


def scan(threads, gbps, pages="thp", **columns):
    return row(f"scan/avx2/{pages}/{threads}t/1GiB", gbps, **columns)


def ladder(counts=tuple(range(1, 13)), b1=10.0, bs=60.0, samples=6, pages="thp"):
    """A knee with 1 % of noise."""
    rng = np.random.default_rng(1)
    return [
        scan(n, min(n * b1, bs) * (1 + rng.normal(0, 0.01)), pages)
        for n in counts
        for _ in range(samples)
    ]


def test_threads_make_a_bandwidth_curve_a_policy():
    curves = measured_curves(ladder() + ladder(range(1, 4), pages="base"), "bandwidth")
    assert [(c.pages, len(c.x), len(c.samples[0])) for c in curves] == [
        ("thp", 12, 6),
        ("base", 3, 6),
    ]
    assert curves[0].name == "scan 1GiB thp"
    assert curves[0].units == ("threads", "GB/s")


def test_the_plateau_is_found_with_an_interval_and_from_where():
    (curve,) = measured_curves(ladder(), "bandwidth")
    choice = fit_curve(curve)
    found = saturation(choice)
    assert found.low <= 60 <= found.high
    assert found.gbps == pytest.approx(60, rel=0.02)
    assert found.threads == 6
    assert why_unfitted(curve, choice) == ""


def test_what_is_not_saturated_has_no_saturation():
    (curve,) = measured_curves(ladder(range(1, 9), bs=1e9), "bandwidth")
    assert saturation(fit_curve(curve)) is None


def test_under_six_points_there_is_only_the_measured_best():
    (curve,) = measured_curves(ladder(range(1, 6)), "bandwidth")
    choice = fit_curve(curve)
    assert choice.best is None
    assert why_unfitted(curve, choice) == "too few points (5, under 6): measured best only"
    assert curve.best[0] == 5
    assert saturation(choice) is None


def test_only_the_cpus_of_one_memory_node_make_a_curve():
    beyond = [r | {"nodes": 2.0 if r["threads"] > 8 else 1.0} for r in ladder()]
    crowded = [r | {"oversubscribed": r["threads"] == 8} for r in beyond]
    (curve,) = measured_curves(crowded, "bandwidth")
    assert curve.x == (1, 2, 3, 4, 5, 6, 7)
    assert (
        curve.left_out
        == "8 threads: more than CPUs; 9, 10, 11, 12 threads: on several memory nodes"
    )
    assert curve.best[0] >= 6


def test_kernels_beside_others_are_no_part_of_it():
    beside = [r | {"beside": "spin 1t base"} for r in ladder(range(1, 7))]
    assert measured_curves(beside, "bandwidth") == []
    starved = [r | {"seconds": 0.0, "gbps": math.nan} for r in ladder(range(1, 7))]
    assert measured_curves(starved) == []


def test_sizes_make_a_ladder_of_caches_or_of_the_tlb():
    sizes = [64 << 10 << k for k in range(12)]
    found = measured_curves(
        [
            row(f"chase{params}/scalar/base/1t/{size // 1024}KiB", latency_ns=float(i + 1))
            for params in ("", "[stride=4160]", "[stride=128]")
            for i, size in enumerate(sizes)
        ]
    )
    assert [c.subject for c in found] == ["caches", "tlb", "caches"]
    assert found[1].x == tuple(map(float, sizes))
    assert found[1].name == "chase[stride=4160] base"


def test_tlb_ladders_of_several_heights_compete():
    x = [64.0 * 1024 * 2**k for k in range(14)]
    truth = models.find("tlb_ladder").f(np.array(x), 2.0, 512e3, 8.0, 16e6, 40.0)
    rng = np.random.default_rng(2)
    found = measured_curves(
        [
            row(f"chase[stride=4160]/scalar/base/1t/{int(at) // 1024}KiB",
                latency_ns=float(y * math.exp(rng.normal(0, 0.01))))
            for at, y in zip(x, truth, strict=True)
            for _ in range(6)
        ]
    )  # fmt: skip
    best = fit_curve(found[0]).best
    assert best.model.NAME == "tlb_ladder[levels=2]"
    assert best.params["reach2"] == pytest.approx(16e6, rel=0.1)


def test_paced_traffic_makes_a_loaded_latency_curve():
    (curve,) = measured_curves(rows(STORED), "loaded latency")
    assert curve.name == "chase beside scan 1t thp 256MiB 128MiB thp"
    assert len(curve.x) == 7
    assert curve.x[0] == 0.0, "the chase alone, of the same block"
    assert curve.x[-1] == pytest.approx(6.788, rel=1e-3)
    assert curve.y[0] == pytest.approx(147.2, rel=1e-3)


def test_time_of_a_release_makes_a_shootdown_curve():
    truth = [1000 + 200 * (n - 1) for n in range(1, 9)]
    made = [
        row(f"storm/scalar/base/{n}t/1MiB", ops=100, passes=5.0, latency_ns=1e4,
            phase_release_s=ns * 1e-9 * 100 * 5 * n * (1 + 0.001 * k))
        for n, ns in enumerate(truth, start=1)
        for k in range(-3, 4)
    ]  # fmt: skip
    (curve,) = measured_curves(made)
    assert curve.subject == "shootdown"
    assert curve.y == pytest.approx(truth)
    best = fit_curve(curve).best
    assert best.model.NAME == "shootdown_linear"
    assert best.params["b"] == pytest.approx(200, rel=0.01)


def released(spinners, ns, process=""):
    beside = f"+spin/scalar/base/{spinners}t/0B" if spinners else ""
    option = f"{{role=background{';process=' + process if process else ''}}}" if spinners else ""
    case = f"storm[chunk=4096]/scalar/base/1t/1MiB{beside}{option}" + "@0" * bool(spinners)
    return row(
        case, ops=100, passes=5.0, phase_release_s=ns * 1e-9 * 500, block="b", oversubscribed=False
    )


def test_spinners_in_the_address_space_make_a_shootdown_curve():
    made = [released(n, 1000 + 300 * n + k) for n in range(9) for k in range(-3, 4)]
    made += [released(8, 500, process="own") for _ in range(7)]
    (curve,) = measured_curves(made, "shootdown")
    assert curve.x == tuple(range(1, 10))
    assert curve.name == "storm[chunk=4096] beside spin 1MiB base"
    best = fit_curve(curve).best
    assert best.model.NAME == "shootdown_linear"
    assert best.params["b"] == pytest.approx(300, rel=0.01)


def test_two_cpus_give_no_cost_of_a_further_one():
    (curve,) = measured_curves([released(n, 1000 + n) for n in (0, 1)], "shootdown")
    assert why_unfitted(curve, fit_curve(curve)).startswith("too few CPUs (2, under 6)")


def test_a_pipeline_makes_a_throughput_curve():
    made = [scan(n, n, pools="pool(m,1,1)", script="take(m,1).pass(1).put(m,1)") for n in (1, 2, 3)]
    (curve,) = measured_curves(made)
    assert (curve.subject, curve.units[1]) == ("throughput", "passes/s")
    assert curve.y == pytest.approx([n * 1e9 / GIB for n in (1, 2, 3)])


def test_a_model_is_fitted_to_what_it_is_for():
    (curve,) = measured_curves(ladder(), "bandwidth")
    assert fit_curve(curve, models.find("usl")).best.model.NAME == "usl"
    with pytest.raises(UsageError, match="describes loaded latency, not bandwidth"):
        fit_curve(curve, models.find("latency_mm1"))
    assert subjects_of(models.find("tlb_ladder")) == ("tlb", "caches")
    (caches,) = measured_curves([
        row(f"chase/scalar/base/1t/{1 << k}KiB", latency_ns=1.0) for k in range(4, 12)
    ])  # fmt: skip
    with pytest.raises(UsageError, match="no model describes caches"):
        fit_curve(caches)
