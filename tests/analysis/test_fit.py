"""A fit says what its data determine, and agrees with an independent implementation."""

import math
import time

import lmfit
import numpy as np
import pytest
from truths import TRUTHS, noisy

from analysis import models
from analysis.fit import TooFewPointsError, fit
from analysis.selection import choose, compare, f_test
from analysis.shootout import published_curves

KNEE, ECM, POWER_MIN = (models.find(n) for n in ("knee", "ecm", "power_min"))
CURVES = {(c.machine, c.kernel): c for c in published_curves()}


def of(model, machine, kernel):
    curve = CURVES[machine, kernel]
    return fit(model, curve.threads, curve.gb_per_s)


@pytest.mark.parametrize("name", ["power_min", "usl"])
def test_lmfit_agrees(name):
    model = models.find(name)
    x, values = TRUTHS[name]
    y = noisy(model, x, values, seed=1)
    ours = fit(model, x, y)
    second = lmfit.Model(model.f, independent_vars=["x"])
    theirs = second.fit(y, x=x, **dict(zip(ours.names, (1.1 * v for v in values), strict=True)))
    for param in ours.names:
        assert ours.params[param] == pytest.approx(theirs.params[param].value, rel=1e-5)
        # Its derivatives are numeric, so its errors are good to about a percent.
        assert ours.stderr[param] == pytest.approx(theirs.params[param].stderr, rel=0.01)
    limits = theirs.conf_interval(sigmas=[0.95])
    for param in ours.names:
        low, high = limits[param][0][1], limits[param][-1][1]
        width = high - low
        assert ours.interval(param) == pytest.approx((low, high), abs=0.02 * width)


def test_what_a_saturated_curve_cannot_show_is_called_not_identifiable():
    """Two threads fill a Zen 2 domain: nothing is left to show the shape of the saturation."""
    assert of(ECM, "Zen2", "copy").not_identifiable == ("q",)
    assert of(POWER_MIN, "Zen2", "copy").not_identifiable == ("p",)
    assert of(ECM, "CLX", "copy").not_identifiable == ()
    assert of(POWER_MIN, "CLX", "copy").not_identifiable == ()
    loose = of(ECM, "Zen2", "copy")
    assert math.isnan(loose.stderr["q"])
    assert "not identifiable" in loose.summary()
    with pytest.raises(ValueError, match="not identifiable"):
        loose.interval("q", method="normal")
    low, high = loose.interval("q")
    assert high - low > 0.5


def test_choice_falls_back_to_the_knee_where_shapes_are_not_identifiable():
    curve = CURVES["Zen2", "copy"]
    choice = choose([ECM, POWER_MIN, KNEE], curve.threads, curve.gb_per_s)
    assert choice.best.model.NAME == "knee"
    # Also where AICc would have had it otherwise: here every curve but the knee is set aside.
    alone = choose([ECM, POWER_MIN], curve.threads, curve.gb_per_s)
    assert "not identifiable" in alone.reason


def test_flat_data_do_not_determine_the_slope():
    n = np.arange(1.0, 9)
    y = 50 + np.array([0.1, -0.1, 0.05, 0, -0.05, 0.1, 0, -0.1])
    found = fit(KNEE, n, y)
    assert found.not_identifiable == ("b1",)
    assert found.interval("b1")[1] == math.inf
    assert found.interval("bs") == pytest.approx(found.interval("bs", method="normal"), rel=1e-3)


def test_unsaturated_data_do_not_determine_the_limit():
    n = np.arange(1.0, 9)
    y = 10 * n * (1 + np.random.default_rng(0).normal(0, 0.01, n.size))
    found = fit(KNEE, n, y)
    assert found.not_identifiable == ("bs",)
    low, high = found.interval("bs")
    assert low > 0.95 * y.max()
    assert high == math.inf


def test_profile_and_normal_intervals_agree_on_a_linear_model():
    x, values = TRUTHS["shootdown_linear"]
    model = models.find("shootdown_linear")
    found = fit(model, x, noisy(model, x, values, seed=2))
    for name in found.names:
        assert found.interval(name) == pytest.approx(
            found.interval(name, method="normal"), rel=1e-4
        )


def test_intervals_nest():
    found = of(ECM, "CLX", "copy")
    for name in found.names:
        wide, narrow = found.interval(name, 0.99), found.interval(name, 0.5)
        assert wide[0] < narrow[0] < found.params[name] < narrow[1] < wide[1]


def sampled(model, x, values, seed, per_point):
    rng = np.random.default_rng(seed)
    truth = model.f(x, *values)
    return [t * (1 + 0.02 * rng.normal(size=per_point)) for t in truth]


@pytest.mark.parametrize("per_point", [6, 10])
def test_bootstrap_over_samples_covers_the_truth(per_point):
    x, values = TRUTHS["power_min"]
    runs, hits = 60, np.zeros(len(values))
    for seed in range(runs):
        found = fit(POWER_MIN, x, sampled(POWER_MIN, x, values, seed, per_point))
        ends = np.quantile(found.bootstrap(300, seed), [0.025, 0.975], axis=0)
        hits += (ends[0] <= values) & (values <= ends[1])
    assert np.all(hits / runs >= 0.88)


def test_bootstrap_is_seeded_and_the_same_as_interval():
    x, values = TRUTHS["ecm"]
    found = fit(ECM, x, sampled(ECM, x, values, 0, 6))
    drawn = found.bootstrap(2000)
    assert drawn.shape == (2000, 3)
    assert np.array_equal(drawn, found.bootstrap(2000))
    low, high = found.interval("b1", method="bootstrap")
    assert (low, high) == pytest.approx(np.quantile(drawn[:, 0], [0.025, 0.975]))
    assert found.y == pytest.approx([np.median(g) for g in found.groups])


def test_resamples_fitted_together_cost_a_fraction_of_one_by_one():
    x, values = TRUTHS["ecm"]
    found = fit(ECM, x, sampled(ECM, x, values, 0, 6))
    start = time.process_time()
    for _ in range(20):
        found.bootstrap(1)
    one_by_one = (time.process_time() - start) / 20
    start = time.process_time()
    found.bootstrap(1000)
    assert time.process_time() - start < 1000 * one_by_one / 4


def test_data_without_noise_have_narrow_intervals():
    for name, (x, values) in TRUTHS.items():
        model = models.find(name)
        found = fit(model, x, model.f(x, *values))
        for param, true in zip(found.names, values, strict=True):
            assert found.interval(param) == pytest.approx((true, true), rel=1e-4)


def test_measured_best_is_the_most_of_a_rate_and_the_least_of_a_time():
    for name, best in (("knee", 5), ("latency_mm1", 1)):
        with pytest.raises(TooFewPointsError) as error:
            fit(models.find(name), np.arange(1.0, 6), np.arange(1.0, 6))
        assert error.value.best_y == best


def test_bootstrap_needs_samples():
    with pytest.raises(ValueError, match="samples at every x"):
        of(ECM, "CLX", "copy").interval("q", method="bootstrap")
    x, values = TRUTHS["ecm"]
    few = fit(ECM, x, sampled(ECM, x, values, 0, 4))
    with pytest.raises(ValueError, match="x=1 has 4 samples"):
        few.bootstrap()


def test_band_covers_the_curve_and_grows_outside_the_data():
    x, values = TRUTHS["usl"]
    model = models.find("usl")
    hits = 0
    for seed in range(60):
        found = fit(model, x, noisy(model, x, values, seed))
        low, high = found.predict_band(x)
        hits += np.mean((low <= model.f(x, *values)) & (model.f(x, *values) <= high))
    assert hits / 60 >= 0.90
    inner, outer = (np.ptp(found.predict_band([at])) for at in (12.0, 60.0))
    assert outer > inner


def test_leave_one_out_by_hand():
    x, values = TRUTHS["shootdown_linear"]
    model = models.find("shootdown_linear")
    y = noisy(model, x, values, seed=4)
    errors = []
    for i in range(x.size):
        slope, start = np.polyfit(np.delete(x, i), np.delete(y, i), 1)
        errors.append(start + slope * x[i] - y[i])
    assert fit(model, x, y).loo == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-6)


def test_aicc_is_refused_where_it_would_mislead():
    x, values = TRUTHS["power_min"]
    y = noisy(POWER_MIN, x, values, 0)
    assert fit(POWER_MIN, x[:6], y[:6]).aicc is None
    seven = fit(POWER_MIN, x[:7], y[:7])
    expected = 7 * np.log(seven.rss / 7) + 8 + 2 * 4 * 5 / 2
    assert seven.aicc == pytest.approx(expected)
    choice = choose([POWER_MIN], x[:6], y[:6])
    assert choice.best is None
    assert "measured best only" in choice.reason


def test_only_fits_of_the_same_data_are_compared():
    first, other = of(KNEE, "CLX", "copy"), of(KNEE, "CLX", "load")
    with pytest.raises(ValueError, match="different data"):
        compare([first, other])
    with pytest.raises(ValueError, match="in logs"):
        compare([first, fit(KNEE, first.x, first.y, scale="log")])
    with pytest.raises(ValueError, match="nothing"):
        compare([])
    with pytest.raises(ValueError, match="not nested"):
        f_test(of(ECM, "CLX", "copy"), first)
    with pytest.raises(ValueError, match="nothing"):
        choose([], [1], [1])


def test_html_and_text_name_every_parameter():
    found = of(ECM, "CLX", "copy")
    for text in (found.summary(), found._repr_html_()):
        assert all(name in text for name in found.names)
    choice = choose([ECM, KNEE], found.x, found.y)
    assert "ecm" in choice._repr_html_()
    for shown in (repr(found), repr(choice)):  # a line, however much data there are
        assert len(shown) < 300
        assert "array" not in shown
    assert all(f"{name}=" in repr(found) for name in found.names)
    assert choice.table["delta_aicc"][0] == 0


def test_plot_draws_on_given_axes():
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    x, values = TRUTHS["ecm"]
    assert fit(ECM, x, sampled(ECM, x, values, 0, 6)).plot(ax) is ax
    assert ax.get_legend() is not None
    plt.close("all")


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [([], [], "empty"), ([1, 2], [1], "equal lengths"),
     ([1, 2, 3, 4, 5, math.nan], [1] * 6, r"x\[5\]"),
     ([1, 2, 3, 4, 5, 6], [1, 2, 3, math.inf, 5, 6], r"y\[3\]"),
     ([1, 2, 3, 4, 5, 6], [[1, 2], [1, 2], [math.nan], [1], [1], [1]], r"y\[2\]\[0\]")],
)  # fmt: skip
def test_bad_data_are_named(x, y, message):
    with pytest.raises(ValueError, match=message):
        fit(KNEE, x, y)


def test_repeated_x_do_not_count_as_points():
    with pytest.raises(TooFewPointsError, match="5, under 6"):
        fit(KNEE, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5], np.arange(10.0))


def test_bad_options_are_named():
    n = np.arange(1.0, 9)
    with pytest.raises(ValueError, match="values over 0"):
        fit(KNEE, n, n - 1, scale="log")
    with pytest.raises(ValueError, match="y holds -1"):
        fit(KNEE, n, [[at, at, -1.0] for at in n], scale="log")
    with pytest.raises(ValueError, match="no parameter speed"):
        fit(KNEE, n, n, bounds={"speed": (0, 1)})
    with pytest.raises(ValueError, match="under its upper"):
        fit(KNEE, n, n, bounds={"b1": (1, 1)})
    with pytest.raises(ValueError, match="has no 'q'"):
        fit(KNEE, n, n).interval("q")
    with pytest.raises(ValueError, match="level"):
        fit(KNEE, n, n).interval("b1", 1.5)
