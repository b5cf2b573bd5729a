"""Every file in the models folder keeps the contract the fits rely on."""

from pathlib import Path

import numpy as np
import pytest
from truths import TRUTHS, noisy

import analysis.models as registry
from analysis import models
from analysis.fit import fit
from analysis.model import names
from analysis.models import usl
from analysis.models.tlb_ladder import Ladder
from bench.errors import UsageError

CURVES = models.curves()
each_curve = pytest.mark.parametrize("name", sorted(CURVES))


def test_the_folder_is_the_registry():
    files = {p.stem for p in Path(registry.__file__).parent.glob("*.py")} - {"__init__"}
    assert set(models.laws()) == files
    assert set(CURVES) == set(TRUTHS)
    for model in models.laws().values():
        assert all(
            isinstance(getattr(model, key), str) and getattr(model, key)
            for key in ("NAME", "SUMMARY", "WHEN", "SUBJECT", "SOURCE")
        )
        assert f"`{model.NAME}`" in registry.__doc__


def test_unknown_model_lists_the_close_ones():
    with pytest.raises(UsageError) as error:
        models.find("emc")
    assert "ecm" in error.value.remedy
    assert set(models.curves("bandwidth")) == {"ecm", "hyperbola", "knee", "power_min"}


@each_curve
def test_jacobian_is_the_derivative(name):
    model = CURVES[name]
    x, values = TRUTHS[name]
    slopes = model.jacobian(x, *values)
    assert slopes.shape == (x.size, len(values))
    for j, value in enumerate(values):
        up, down = list(values), list(values)
        up[j], down[j] = value * (1 + 1e-6), value * (1 - 1e-6)
        numeric = (model.f(x, *up) - model.f(x, *down)) / (2e-6 * value)
        assert slopes[:, j] == pytest.approx(numeric, rel=1e-5, abs=1e-6 * np.abs(numeric).max())


@each_curve
def test_many_parameter_sets_at_once_equal_one_by_one(name):
    model = CURVES[name]
    x, values = TRUTHS[name]
    sets = np.array(values) * np.array([[1.0], [1.1], [0.9]])
    columns = [sets[:, [j]] for j in range(sets.shape[1])]
    together = np.broadcast_to(model.f(x, *columns), (3, x.size))
    slopes = np.broadcast_to(model.jacobian(x, *columns), (3, x.size, len(values)))
    for i, one in enumerate(sets):
        np.testing.assert_allclose(together[i], model.f(x, *one))
        np.testing.assert_allclose(slopes[i], model.jacobian(x, *one))


@each_curve
def test_parameters_are_described_and_guessed_inside_their_bounds(name):
    model = CURVES[name]
    x, values = TRUTHS[name]
    assert len(set(names(model))) == len(values)
    for param, value in zip(model.PARAMS, values, strict=True):
        assert param.help
        assert param.low < value < param.high
    for start in model.guess(x, model.f(x, *values)):
        assert len(start) == len(values)
        assert np.all(np.isfinite(start))


@each_curve
def test_exact_data_give_back_the_parameters(name):
    model = CURVES[name]
    x, values = TRUTHS[name]
    found = fit(model, x, model.f(x, *values))
    assert list(found.values) == pytest.approx(values, rel=1e-5)


HEAVY = {"ecm", "latency_general", "tlb_ladder"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n in HEAVY else n for n in sorted(CURVES)],
)
def test_intervals_cover_the_truth_as_often_as_they_say(name):
    model = CURVES[name]
    x, values = TRUTHS[name]
    seeds = 200
    hits = np.zeros(len(values))
    for seed in range(seeds):
        found = fit(model, x, noisy(model, x, values, seed))
        for j, (param, true) in enumerate(zip(found.names, values, strict=True)):
            low, high = found.interval(param)
            hits[j] += low <= true <= high
    assert np.all(hits / seeds >= 0.90)
    assert np.all(hits / seeds <= 0.98)


def test_unsaturated_and_saturated_ends_of_the_bandwidth_models():
    one, many = np.array([1.0]), np.array([1000.0])
    for name in ("ecm", "knee", "power_min"):
        _, values = TRUTHS[name]
        assert CURVES[name].f(one, *values)[0] == pytest.approx(values[0], rel=1e-2)
        assert CURVES[name].f(many, *values)[0] == pytest.approx(values[1], rel=1e-2)


def test_power_min_lies_between_the_hyperbola_and_the_knee():
    n = np.arange(1.0, 21)
    power_min, knee, hyperbola = (CURVES[k] for k in ("power_min", "knee", "hyperbola"))
    assert power_min.f(n, 13.0, 60.0, 1.0) == pytest.approx(hyperbola.f(n, 60.0, 60 / 13))
    assert power_min.f(n, 13.0, 60.0, 200.0) == pytest.approx(knee.f(n, 13.0, 60.0), rel=4e-3)


def test_ecm_is_drawn_straight_between_whole_threads():
    values = TRUTHS["ecm"][1]
    whole = CURVES["ecm"].f(np.array([3.0, 4.0]), *values)
    assert CURVES["ecm"].f(np.array([3.5]), *values)[0] == pytest.approx(whole.mean())


def test_usl_inverses_without_contention():
    assert usl.concurrency_at_throughput(40.0, 0.0, 0.0, 10.0) == pytest.approx(4)
    assert usl.concurrency_at_latency(0.2, 0.5, 0.0, 10.0) == pytest.approx(3)
    with pytest.raises(ValueError, match="never grows"):
        usl.concurrency_at_latency(0.2, 0.0, 0.0, 10.0)
    with pytest.raises(ValueError, match="alone"):
        usl.concurrency_at_latency(0.05, 0.1, 0.0, 10.0)
    with pytest.raises(ValueError, match="never reached"):
        usl.concurrency_at_throughput(200.0, 0.1, 0.0, 10.0)


@pytest.mark.parametrize("levels", [1, 3])
def test_ladders_of_other_heights(levels):
    model = Ladder(levels)
    x = 2.0 ** np.arange(14, 36)
    values = (4.0, *(v for k in range(levels) for v in (0.3 * 2 ** (19 + 5 * k), 5.0 + 4 * k)))
    found = fit(model, x, model.f(x, *values))
    assert list(found.values) == pytest.approx(values, rel=1e-5)
