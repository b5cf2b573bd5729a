"""The models recommended for bandwidth are the ones that do best on published curves."""

import pytest

from analysis.shootout import CONTENDERS, published_curves, shoot_out


def test_shipped_curves_are_the_published_ones(cases):
    curves = {(c.machine, c.kernel): list(c.gb_per_s) for c in published_curves()}
    assert len(curves) == 25
    for kernel in ("copy", "load", "daxpy", "triad", "update"):
        assert curves["CLX", kernel] == cases["R08_clx_domain"][kernel]
    assert curves["SKX", "load"] == cases["R09_skx_load"]["B"]


def test_shoot_out():
    table = shoot_out()
    assert len(table) == 25 * len(CONTENDERS)
    winners = table[table["winner"]]["model"].value_counts().to_dict()
    assert winners == {"ecm": 12, "power_min": 8, "knee": 4, "usl": 1}
    # The knee wins only on the eight-point curves, where AICc punishes three parameters hardest.
    assert set(table[table["winner"] & (table["model"] == "knee")]["n_points"]) == {8}
    error = table.groupby("model")["rms_percent"]
    median, worst = error.median(), error.max()
    expected = {
        "ecm": (0.76, 2.09), "power_min": (0.91, 2.09), "usl": (1.68, 3.80),
        "knee": (3.09, 5.14), "hyperbola": (4.90, 7.16),
    }  # fmt: skip
    for model, pair in expected.items():
        assert (median[model], worst[model]) == pytest.approx(pair, abs=0.006)
