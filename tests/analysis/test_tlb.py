"""TLB arithmetic as stated; knees come from the fit and tables only label them (R24)."""

import numpy as np
import pytest
from truths import noisy

from analysis import models
from analysis.fit import fit
from analysis.tlb import hit_fraction, labels, levels, reach_bytes
from bench.units import parse_size


def test_reach(cases):
    for case in cases["R24_tlb_reach"]["cases"]:
        found = reach_bytes(case["entries"], parse_size(case["page"]))
        assert found == case["reach_MiB"] * 2**20


def test_hit_fraction():
    """Four entries over 24 pages, as published for 1 GiB pages, serve one access in six."""
    assert hit_fraction([24.0, 4.0, 1.0], 4.0) == pytest.approx([4 / 24, 1, 1])
    with pytest.raises(ValueError, match="over 0"):
        hit_fraction([0.0], 4.0)


def test_knees_are_measured_and_labelled():
    page = 4096
    model = models.find("tlb_ladder")
    x = page * 2.0 ** np.arange(3, 17, 0.5)
    truth = (5.0, 96.0 * page, 6.0, 2048.0 * page, 20.0)
    found = levels(fit(model, x, noisy(model, x, truth, seed=0)), page)
    assert [level.entries for level in found] == pytest.approx([96, 2048], rel=0.05)
    assert [level.cost for level in found] == pytest.approx([6, 20], rel=0.1)
    assert "Golden Cove L1 (96)" in found[0].labels
    assert "Golden Cove L2 (2048)" in found[1].labels


def test_unknown_sizes_get_no_label():
    assert labels(300) == ()


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="1 or more"):
        reach_bytes(0, 4096)
    n = np.arange(1.0, 9)
    with pytest.raises(ValueError, match="no TLB ladder"):
        levels(fit(models.find("knee"), n, n), 4096)
