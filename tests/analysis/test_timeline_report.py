"""The report object in notebooks: tables, pictures, data frames."""

import json
import math
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from analysis.timeline import plot
from analysis.timeline.reading import read_log
from analysis.timeline.summary import summarise

plt.switch_backend("agg")
SAMPLE = Path(__file__).parents[1] / "data" / "timelines" / "prover.log.gz"


@pytest.fixture(scope="module")
def report():
    return summarise(read_log(SAMPLE))


@pytest.fixture
def run(report):
    return report.runs[0]


@pytest.fixture
def ax():
    figure, axes = plt.subplots()
    yield axes
    figure.canvas.draw()
    plt.close(figure)


def test_a_report_shows_itself_in_a_notebook(report, run):
    for html in (report._repr_html_(), run._repr_html_()):
        assert html.count("<table>") == html.count("</table>") > 4
        assert "hurts" in html


def test_the_document_is_strict_json(report):
    data = json.loads(report.json())
    assert data["runs"][0]["overlap"]["phases"][0] == "synth"
    assert data == json.loads(json.dumps(report.to_json(), allow_nan=False))


@pytest.mark.parametrize(
    ("what", "rows", "column"),
    [
        ("phases", 5, "p50_s"),
        ("overlap", 25, "share"),
        ("effects", 4, "per_one"),
        ("utilisation", 2, "steady_share"),
        ("gaps", 3, "beside_synth"),
        ("flows", 5, "idle_s"),
        ("concurrency", 5 * 120, "at_once"),
        ("spans", 1000, "duration_s"),
    ],
)
def test_tables_are_tidy_data_frames(run, what, rows, column):
    frame = run.frame(what)
    assert len(frame) == rows
    assert column in frame


def test_a_table_that_there_is_not_is_named(run):
    with pytest.raises(ValueError, match="no table 'x': there are phases"):
        run.frame("x")


def test_spans_carry_their_names(run):
    frame = run.frame("spans")
    gpu = frame[frame.phase == "gpu"]
    assert set(gpu.worker) == {"0"}
    assert set(gpu.item) == set("01234")
    assert gpu.job.nunique() == 40
    assert set(frame[frame.phase == "synth"].worker) == {""}


def test_quantiles_need_enough_spans(run):
    assert math.isfinite(run.phases[0].p90_s)
    assert math.isnan(run.phases[0].p99_s)


def test_a_gantt_chart_has_a_bar_a_span_and_no_two_in_one_place(run, ax):
    plot.plot_gantt(run.run, ax)
    bars = [(b.get_y(), b.get_x(), b.get_x() + b.get_width()) for b in ax.patches]
    assert len(bars) == 400
    bars.sort()
    for (lane, _, end), (other, start, _) in pairwise(bars):
        assert lane != other or start >= end - 1e-9


def test_a_long_log_shows_its_beginning_and_says_so(run, ax, monkeypatch):
    monkeypatch.setattr(plot, "MOST_BARS", 50)
    plot.plot_gantt(run.run, ax)
    assert len(ax.patches) <= 75
    assert "the first" in ax.get_title(loc="left")


def test_concurrency_overlap_and_effects_draw_what_was_found(run, ax):
    plot.plot_concurrency(run, ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["synth", "gpu"]
    ax.clear()
    plot.plot_overlap(run, ax)
    shown = np.array(ax.images[0].get_array())
    kept = [run.overlap.phases.index(name) for name in ("synth", "queue", "gpu")]
    np.testing.assert_allclose(shown, run.overlap.share[np.ix_(kept, kept)])
    ax.clear()
    plot.plot_effects(run, ax)
    assert [t.get_text() for t in ax.get_yticklabels()] == [
        f"{e.phase} beside {e.beside}" for e in run.effects if e.told
    ]
