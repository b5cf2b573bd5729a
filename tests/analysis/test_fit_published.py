"""Fits agree with published and independently computed results (cases R01-R05, R07-R12, R19)."""

import math

import numpy as np
import pytest

from analysis import models
from analysis.fit import TooFewPointsError, fit
from analysis.latency import latency_limits
from analysis.mlc import parse_loaded_latency
from analysis.models import usl
from analysis.selection import choose, compare, f_test
from analysis.traffic import write_allocate_factor

USL, AMDAHL = models.find("usl"), models.find("amdahl")


def coefficients(found):
    return [found.params[name] for name in ("alpha", "beta", "gamma")]


def expected(case):
    return [case["alpha"], case["beta"], case["gamma"]]


def test_usl_of_specsdm91(cases):
    case = cases["R01_usl_specsdm91"]
    found = fit(USL, case["N"], case["X"])
    alpha, beta, gamma = coefficients(found)
    assert [alpha, gamma] == pytest.approx([case["alpha"], case["gamma"]], rel=5e-4)
    assert beta == pytest.approx(case["beta"], rel=5e-4)
    assert list(found.stderr.values()) == pytest.approx(case["se"], rel=3e-3)
    t = [p / s for p, s in zip(coefficients(found), found.stderr.values(), strict=True)]
    assert t == pytest.approx(case["t"], rel=3e-3)
    assert found.residual_error == pytest.approx(case["rse"], rel=5e-4)
    derived = found.derived
    assert derived["peak_n"] == pytest.approx(case["Nmax"], rel=5e-4)
    assert derived["peak_x"] == pytest.approx(case["Xmax"], rel=5e-4)
    assert derived["limit"] == pytest.approx(case["limit"], rel=5e-4)
    assert derived["optimum_n"] == pytest.approx(case["Nopt"], rel=5e-4)
    assert found.predict([derived["optimum_n"]])[0] == pytest.approx(case["Xopt"], rel=5e-4)
    assert found.predict(case["N"]) == pytest.approx(np.array(case["pred"]), abs=0.51)
    assert found.residuals == pytest.approx(np.array(case["resid"]), abs=0.06)
    efficiency = usl.efficiency(found.x, found.y, gamma)
    assert efficiency == pytest.approx(np.array(case["eff"]), abs=6e-5)


def test_bounded_usl_reports_the_bound_and_gives_no_normal_interval(cases):
    case = cases["R02_usl_raytracer_bounded"]
    found = fit(USL, case["N"], case["X"])
    assert found.at_bound == {"beta": 0.0}
    assert coefficients(found) == pytest.approx(expected(case), rel=1e-4)
    assert found.rss == pytest.approx(case["sse"], rel=1e-4)
    assert found.residual_error == pytest.approx(case["rse"], rel=1e-4)
    assert found.derived["limit"] == pytest.approx(case["limit"], rel=1e-4)
    assert found.derived["optimum_n"] == pytest.approx(case["Nopt"], rel=1e-4)
    assert math.isinf(found.derived["peak_n"])
    assert found.predict([96, 128]) == pytest.approx(list(case["pred"].values()), rel=1e-4)
    assert math.isnan(found.stderr["beta"])
    with pytest.raises(ValueError, match="at its bound"):
        found.interval("beta", method="normal")
    low, high = found.interval("beta")
    assert low == 0.0
    assert 0 < high < 0.01
    assert "at its bound 0" in found.summary()


def test_unbounded_usl_can_be_asked_for(cases):
    case = cases["R02_usl_raytracer_bounded"]
    found = fit(USL, case["N"], case["X"], bounds={"beta": (-math.inf, math.inf)})
    assert found.at_bound == {}
    assert coefficients(found) == pytest.approx(expected(case["unconstrained"]), rel=1e-4)
    assert found.rss == pytest.approx(case["unconstrained"]["sse"], rel=1e-4)


def test_usl_intervals_use_the_proper_degrees_of_freedom(cases):
    case = cases["R03_usl_raytracer6"]
    found = fit(USL, case["N"], case["X"])
    assert coefficients(found) == pytest.approx(expected(case), rel=2e-3)
    for name, published in case["t975_n_minus_3"].items():
        assert found.interval(name, method="normal") == pytest.approx(
            published, rel=6e-3, abs=6e-3 * (published[1] - published[0])
        )
    # The R package prints narrower ones: t of 90 % with n - 1 degrees of freedom.
    for name, printed in case["R_printed_confint"].items():
        half = 2.015048 * found.stderr[name]
        ends = (found.params[name] - half, found.params[name] + half)
        assert ends == pytest.approx(printed, rel=2e-3, abs=1e-5)


def test_five_points_give_the_measured_best_only(cases):
    case = cases["R03_usl_raytracer6"]
    with pytest.raises(TooFewPointsError, match=r"too few points \(5, under 6\).*measured best"):
        fit(USL, case["N"][:5], case["X"][:5])
    choice = choose([USL, AMDAHL], case["N"][:5], case["X"][:5])
    assert choice.best is None
    assert (choice.best_x, choice.best_y) == (16, 190)
    assert "measured best" in str(choice)


def test_usl_of_cisco_and_its_inverses(cases):
    case = cases["R04_usl_cisco"]
    n = np.arange(1, len(case["X"]) + 1)
    found = fit(USL, n, case["X"])
    rtol = case["rtol"]
    alpha, beta, gamma = coefficients(found)
    assert [alpha, beta, gamma] == pytest.approx(expected(case), rel=rtol)
    # The source rounds the peak down to whole workers.
    assert math.floor(found.derived["peak_n"]) == case["Nmax"]
    for workers, throughput in case["X_at"].items():
        assert found.predict([float(workers)])[0] == pytest.approx(throughput, rel=rtol)
    for workers, seconds in case["latency_at"].items():
        assert usl.latency(float(workers), alpha, beta, gamma) == pytest.approx(seconds, rel=rtol)
        if workers != "1":  # whose printed latency is rounded below 1/gamma
            again = usl.concurrency_at_latency(seconds, alpha, beta, gamma)
            assert again == pytest.approx(float(workers), rel=10 * rtol)


def test_first_ten_of_cisco_inverted_at_given_latencies(cases):
    """Printed by the usl4j library for its fit to ten points."""
    found = fit(USL, np.arange(1, 11), cases["R04_usl_cisco"]["X"][:10])
    assert coefficients(found) == pytest.approx([0.0170028, 4.46539e-4, 938.3793], rel=2e-4)
    for seconds, workers in ((0.0012, 7.2306), (0.0016, 20.2511), (0.0020, 29.8889)):
        inverse = usl.concurrency_at_latency(seconds, *coefficients(found))
        assert inverse == pytest.approx(workers, rel=5e-4)


def test_inverse_of_throughput_does_not_ignore_coherence(cases):
    """Several libraries print 15.35 workers for 11,048 a second, where the curve gives 9,843."""
    case = cases["R04_usl_cisco"]
    p = expected(case)
    workers = usl.concurrency_at_throughput(11048, *p)
    assert workers == pytest.approx(20, rel=5e-3)
    assert usl.f(workers, *p) == pytest.approx(11048)
    assert usl.f(15.3504, *p) == pytest.approx(9842.6, rel=1e-4)
    with pytest.raises(ValueError, match="never reached"):
        usl.concurrency_at_throughput(1.001 * case["Xmax"], *p)


def test_usl_recovers_its_synthetic_curve(cases):
    case = cases["R05_usl_synthetic"]
    found = fit(USL, case["N"], case["X"])
    assert coefficients(found) == pytest.approx(expected(case), rel=1e-3)


def test_usl_what_if(cases):
    case = cases["R06_usl_what_if"]
    derived = usl.derived(case["alpha"], case["beta"], case["gamma"])
    assert derived["peak_n"] == pytest.approx(case["Nmax"], rel=1e-5)
    assert derived["limit"] == pytest.approx(case["limit"], rel=1e-5)
    assert derived["optimum_n"] == pytest.approx(case["Nopt"], rel=1e-5)


def test_aicc_alone_would_miss_the_coherence_of_specsdm91(cases):
    """Seven points: AICc prefers Amdahl, the F-test and the left-out points do not."""
    case = cases["R01_usl_specsdm91"]
    large, small = fit(USL, case["N"], case["X"]), fit(AMDAHL, case["N"], case["X"])
    assert large.aicc == pytest.approx(85.92, abs=0.01)
    assert small.aicc == pytest.approx(82.87, abs=0.01)
    assert list(compare([large, small])["model"]) == ["amdahl", "usl"]
    test = f_test(small, large)
    assert test.f == pytest.approx((131265.4 - 27453.72) / (27453.72 / 4), rel=1e-4)
    assert test.p < 0.05
    choice = choose([USL, AMDAHL], case["N"], case["X"])
    assert choice.best.model.NAME == "amdahl"
    assert large.loo < small.loo
    assert "usl predicts left-out points better" in choice.reason


def test_misra1d_to_certified_digits(cases):
    """NIST certifies b2 = 1/h; analytic derivatives are what gets its standard error right."""
    case = cases["R19_misra1d"]
    found = fit(models.find("hyperbola"), case["x"], case["y"])
    bmax, h = found.params["bmax"], found.params["h"]
    assert [bmax, 1 / h] == pytest.approx(case["b"], rel=1e-6)
    sd = [found.stderr["bmax"], found.stderr["h"] / h**2]
    assert sd == pytest.approx(case["sd"], rel=1e-5)
    assert found.rss == pytest.approx(case["rss"], rel=1e-6)
    assert found.residual_error == pytest.approx(case["rsd"], rel=1e-6)
    as_amdahl = fit(AMDAHL, case["x"], case["y"])
    assert as_amdahl.params["alpha"] == pytest.approx(case["as_usl"]["alpha"], rel=1e-5)
    assert as_amdahl.params["gamma"] == pytest.approx(case["as_usl"]["gamma"], rel=1e-5)


def test_ecm_recursion_gives_the_published_predictions(cases):
    case = cases["R07_ecm_recursion_skx"]
    ecm = models.find("ecm")
    n = np.array(case["n"], dtype=float)
    f, limit, q = case["f"], case["Psat"], case["p0_over_Tmem"]
    assert ecm.f(n, f * limit, limit, q) == pytest.approx(
        np.array(case["P_published"]), rel=case["rtol"]
    )
    found = fit(ecm, n, case["P_measured"])
    assert found.rms_percent <= case["fit_to_measured"]["rms_pct_max"]
    b1, bs, q = found.values
    measured = case["fit_to_measured"]
    assert [b1 / bs, bs, q] == pytest.approx(
        [measured["f"], measured["Psat"], measured["p0_over_Tmem"]], rel=1e-3
    )


NAMES = {"min": "knee", "hyper": "hyperbola", "ecm": "ecm", "usl": "usl", "powmin": "power_min"}


@pytest.mark.parametrize("kernel", ["copy", "load", "daxpy", "triad", "update"])
def test_clx_domain(cases, kernel):
    case = cases["R08_clx_domain"]
    fits = {name: fit(models.find(name), case["n"], case[kernel]) for name in NAMES.values()}
    ecm = fits["ecm"]
    assert [*ecm.values, ecm.rms_percent] == pytest.approx(case["ecm"][kernel], rel=0.03)
    for label, value in case["AICc"].get(kernel, {}).items():
        assert fits[NAMES[label]].aicc == pytest.approx(value, abs=0.06)
    first = {"copy": "ecm", "daxpy": "ecm", "load": "power_min"}
    if kernel in first:
        assert compare(fits.values())["model"][0] == first[kernel]


def test_skx_load(cases):
    case = cases["R09_skx_load"]
    n = np.arange(1, len(case["B"]) + 1)
    fits = {label: fit(models.find(name), n, case["B"]) for label, name in NAMES.items()}
    ecm = fits["ecm"]
    assert [*ecm.values, ecm.rms_percent] == pytest.approx(case["ecm"], rel=0.03)
    assert fits["min"].rms_percent == pytest.approx(3.1, rel=0.03)
    for label, value in case["AICc"].items():
        assert fits[label].aicc == pytest.approx(value, abs=0.06)


def test_write_allocation_makes_kernels_agree(cases):
    case, clx = cases["R10_write_allocate"], cases["R08_clx_domain"]
    per_element = {  # read, written, updated; the triad here reads three streams
        "copy": (1, 1, 0), "daxpy": (1, 0, 1), "load": (1, 0, 0), "triad": (3, 1, 0),
        "update": (0, 0, 1),
    }  # fmt: skip
    bus = []
    for kernel, published in zip(case["order"], case["CLX"], strict=True):
        factor = write_allocate_factor(*per_element[kernel])
        assert factor == case["factor"][kernel]
        bus.append(factor * max(clx[kernel]))
        assert bus[-1] == pytest.approx(published, rel=2e-3)
    worst = max(abs(b / np.mean(bus) - 1) for b in bus)
    assert np.mean(bus) == pytest.approx(case["CLX_mean"], rel=2e-3)
    assert 100 * worst == pytest.approx(case["CLX_maxdev_pct"], abs=0.1)


def mlc_text(case):
    """The published rows in the tool's layout."""
    rows = zip(case["delay"], case["lat_ns"], case["MBps"], strict=True)
    table = "".join(f" {d:05d}\t{lat:.2f}\t {mb:.1f}\n" for d, lat, mb in rows)
    return (
        "Measuring Loaded Latencies for the system\nUsing Read-only traffic type\n"
        f"Inject\tLatency\tBandwidth\nDelay\t(ns)\tMB/sec\n{'=' * 26}\n{table}\n"
        "Measuring cache-to-cache transfer latency (in ns)...\n"
    )


def test_loaded_latency_of_clx(cases):
    case = cases["R11_mlc_clx"]
    parsed = parse_loaded_latency(mlc_text(case))
    assert parsed.delay.size == 19
    assert not parsed.truncated
    plain = fit(models.find("latency_mm1"), parsed.gb_per_s, parsed.latency_ns)
    general = fit(models.find("latency_general"), parsed.gb_per_s, parsed.latency_ns)
    for found, name in ((plain, "mm1_log"), (general, "gen_log")):
        published = case[name]
        assert found.params["l0"] == pytest.approx(published["L0"], rel=0.03)
        assert found.params["c"] == pytest.approx(published["c"], rel=0.03)
        assert found.params["bmax"] == pytest.approx(published["Bmax_GBps"], rel=0.03)
        assert found.rms_percent == pytest.approx(published["rms_log_pct"], abs=0.05)
    assert general.params["p"] == pytest.approx(case["gen_log"]["p"], rel=0.03)
    assert [plain.aicc, general.aicc] == pytest.approx([-152.6, -177], abs=0.1)
    assert compare([plain, general])["model"][0] == "latency_general"
    # The fitted limit lies above the theoretical peak of 12 channels of DDR4-2933.
    assert plain.params["bmax"] > 281.6 > latency_limits(
        parsed.gb_per_s, parsed.latency_ns
    ).most_gb_per_s  # fmt: skip


def test_truncated_table_never_gives_a_wrong_row(cases):
    """Wherever the text is cut, the rows read are whole rows of the true table, in order."""
    text = mlc_text(cases["R11_mlc_clx"])
    whole = parse_loaded_latency(text)
    first_row_ends = text.index("226844.0\n") + len("226844.0\n")
    last_row_ends = text.index("2190.1\n") + len("2190.1\n")
    for cut in range(len(text)):
        if cut < first_row_ends:
            with pytest.raises(ValueError, match="table"):
                parse_loaded_latency(text[:cut])
            continue
        part = parse_loaded_latency(text[:cut])
        n = part.delay.size
        assert part.truncated == (cut < last_row_ends)
        for name in ("delay", "latency_ns", "gb_per_s"):
            assert np.array_equal(getattr(part, name), getattr(whole, name)[-n:])


def test_limits_of_mess_clx(cases):
    case = cases["R12_mess_clx"]
    bandwidth, latency = np.array(case["GBps_ns"]).T
    assert np.all(np.diff(latency) > 0)
    limits = latency_limits(bandwidth, latency)
    assert limits.most_gb_per_s / case["peak_theoretical_GBps"] == pytest.approx(0.754, rel=0.01)
    assert list(limits.gb_per_s_at.values()) == pytest.approx([25.0, 56.7, 90.3], rel=0.01)
    found = fit(models.find("latency_mm1"), bandwidth, latency)
    assert found.params["l0"] == pytest.approx(90.86, rel=0.01)
    assert found.params["bmax"] > case["peak_theoretical_GBps"]


def test_latency_never_reached_is_not_invented():
    limits = latency_limits([1, 2, 3], [100.0, 105.0, 120.0])
    assert limits.gb_per_s_at[1.1] == pytest.approx(2 + 5 / 15)
    assert math.isnan(limits.gb_per_s_at[1.5])
    with pytest.raises(ValueError, match="over 1"):
        latency_limits([1, 2], [1, 2], factors=[1.0])
    with pytest.raises(ValueError, match="two or more"):
        latency_limits([1], [1])


def test_two_queueing_models_cannot_be_told_apart():
    """A curve of M/D/1 is a curve of M/M/1 with half the c: the fit is exact either way."""
    load = np.linspace(0.05, 0.9, 12)
    service, idle, limit = 30.0, 90.0, 200.0
    m_d_1 = idle + service * load / (2 * (1 - load))
    found = fit(models.find("latency_mm1"), load * limit, m_d_1)
    assert found.params["c"] == pytest.approx(service / 2, rel=1e-6)
    assert found.rms_percent < 1e-6
