"""The simulation of a published prover: what it was given, and what it was not."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.prover import (
    PARTITIONS,
    Setting,
    calibrate,
    figures,
    published,
    reproduce,
    rows,
    run,
)
from analysis.prover_predictions import BASE, CHANGES, TESTED_PW, draw, pairs, predict

PAGE = Path(__file__).parents[2] / "docs" / "prover-predictions.md"


@pytest.fixture(scope="module")
def fitted():
    return calibrate(figures())


@pytest.fixture(scope="module")
def reproduced(fitted):
    return reproduce(fitted)


def of(reproduced, sweep):
    return [r for r in reproduced if r.row.sweep == sweep]


def line(found):
    """Offset and slope of totals against the number of proofs."""
    slope, offset = np.polyfit([c for c, _ in found], [total for _, total in found], 1)
    return offset, slope


def test_one_row_is_given_and_comes_out(reproduced):
    given = [r for r in reproduced if r.row.calibration]
    assert len(given) == 1
    assert given[0].error == pytest.approx(0, abs=1e-3)


def test_nothing_but_single_phases_and_that_row_goes_in(fitted):
    """Other rows may change as they like: the calibrated figures stay."""
    text = json.dumps(published())
    try:
        for sweep in published()["sweeps"].values():
            for row in sweep["rows"]:
                if not row.get("calibration"):
                    row["s_per_proof"] *= 2
                    row["prove_s"] = 1.0
        assert calibrate(figures()) == fitted
    finally:
        published().clear()
        published().update(json.loads(text))


def test_ten_evaluations_at_once_take_as_long_as_published(fitted):
    setting = Setting(c=1, j=1, pw=PARTITIONS, gw=2)
    found = run(fitted, setting).task_seconds
    assert found["convert"].mean + found["spmv"].mean == pytest.approx(10, rel=1e-3)


def test_the_phase_9_sweep(reproduced):
    found = of(reproduced, "phase 9")
    assert [r.error for r in found] == pytest.approx([0] * 4, abs=0.06)
    ours = line([(r.row.setting.c, r.s_per_proof * r.row.setting.c) for r in found])
    theirs = line([(r.row.setting.c, r.row.s_per_proof * r.row.setting.c) for r in found])
    assert theirs == pytest.approx((20.5, 36.9), rel=1e-3)
    assert ours[1] == pytest.approx(theirs[1], rel=0.06)
    # Not within 6 %: docs/prover-predictions.md says what is missing, and what is known of it.
    assert ours[0] == pytest.approx(theirs[0], abs=2.5)


def test_the_low_memory_sweep(reproduced):
    found = of(reproduced, "low memory")
    assert {r.row.setting.pw for r in found} == {1, 2, 5, 7, 10, 12}
    assert [r.error for r in found] == pytest.approx([0] * 9, abs=0.10)


def test_phase_8_is_flat_up_to_twenty_workers_because_the_gpu_binds(reproduced):
    found = [r for r in of(reproduced, "phase 8") if r.row.setting.pw <= 20]
    assert [r.error for r in found] == pytest.approx([0] * 5, abs=0.10)
    values = [r.s_per_proof for r in found]
    published_values = [r.row.s_per_proof for r in found]
    assert max(values) / min(values) < 1.06
    assert max(published_values) / min(published_values) < 1.06
    for r in found[1:]:
        assert "gpu" in r.binding


def test_thirty_workers_are_not_reached(reproduced):
    """Were they, the page would have to say so: company alone explains a part of the rise."""
    (found,) = [r for r in of(reproduced, "phase 8") if r.row.setting.pw == 30]
    before = max(r.s_per_proof for r in of(reproduced, "phase 8") if r.row.setting.pw <= 20)
    assert found.s_per_proof > before
    assert found.error < -0.10


def test_a_row_that_contradicts_the_phases_is_not_reached(reproduced):
    """One proof at a time cannot take less than its synthesis alone and its proving."""
    (odd,) = [r for r in reproduced if r.row.setting.j == 1]
    alone = 25 + 3.2
    assert odd.row.prove_s + alone > 1.5 * odd.row.s_per_proof
    assert odd.error > 0.5


def test_changes_are_judged_by_rows_that_differ_in_one_setting():
    for one, other in pairs():
        a, b = one.setting, other.setting
        assert replace(a, pw=b.pw) == b or replace(a, gw=b.gw) == b
    assert len(pairs()) >= 10


def test_a_draw_keeps_to_published_ranges():
    found = draw(np.random.default_rng(5))
    assert 25 <= found.witness <= 27
    assert 3.2 <= found.evaluate <= 4
    assert found.crosstalk >= 0


def test_predictions_claim_nothing_where_nothing_tests_them():
    found = {p.change: p for p in predict(draws=6)}
    assert set(found) == set(CHANGES)
    for name, p in found.items():
        assert p.low <= p.gain <= p.high or p.low < p.high
        if CHANGES[name].pw > TESTED_PW:
            assert p.claim.startswith("no claim")


def test_the_base_is_a_published_row():
    assert any(row.setting == BASE for row in rows())


def table(heading, second=False):
    """Rows of the first or second table behind a heading of the page."""
    text = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    tables = [part for part in text.strip().split("\n\n") if part.startswith("|")]
    lines = tables[second].splitlines()
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in lines[2:]]


def test_the_page_says_what_the_model_gives(reproduced):
    printed = table("What comes out")
    assert len(printed) == len(reproduced)
    for cells, r in zip(printed, reproduced, strict=True):
        s = r.row.setting
        assert cells[0].startswith(r.row.sweep)
        assert [int(n) for n in re.findall(r"\d+", cells[1])] == [s.c, s.j, s.pw, s.gw, s.gt]
        assert float(cells[2]) == pytest.approx(r.row.s_per_proof)
        assert float(cells[3]) == pytest.approx(r.s_per_proof, abs=0.06)


def test_the_page_has_every_prediction():
    assert [cells[0] for cells in table("Predictions")] == list(CHANGES)


def test_the_page_says_what_other_choices_would_have_given(fitted):
    low = [r for r in rows() if r.sweep == "low memory"]
    five = next(r for r in low if r.setting.pw == 5)
    others = [
        fitted,
        calibrate(replace(figures(), linear=True)),
        calibrate(figures(), row=five),
        calibrate(figures(), row=low[-1]),
        calibrate(replace(figures(), jitter=0.01)),
    ]
    printed = table("What goes in", second=True)
    assert len(printed) == len(others)
    for cells, f in zip(printed, others, strict=True):
        found = reproduce(f)
        totals = [(r.row.setting.c, r.s_per_proof * r.row.setting.c) for r in of(found, "phase 9")]
        offset, slope = line(totals)
        worst = max((r.error for r in of(found, "low memory")), key=abs)
        thirty = next(r.error for r in found if r.row.setting.pw == 30)
        says = [float(re.search(r"[-−+][\d.]+", cell)[0].replace("−", "-")) for cell in cells[1:]]
        given = [slope / 36.9 - 1, offset / 20.5 - 1, worst, thirty]
        assert says == pytest.approx([100 * x for x in given], abs=0.6)
