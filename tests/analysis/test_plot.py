"""Plots: what they draw, in which looks, and what they leave alone."""

import math
from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from test_measured import ladder, row

from analysis import plot
from analysis.drawing import STYLES, VERDICTS, policy_style
from analysis.gallery import gallery
from analysis.interference import Slowdown, slowdowns
from analysis.load import frame, load, rows, steps
from analysis.paired import Comparison
from analysis.plot_forecasts import Foretold, plot_forecasts
from analysis.report import build
from analysis.stalls import tails
from analysis.stats import decide, not_tested
from bench.cli import main
from bench.errors import UsageError

plt.switch_backend("agg")
STORED = Path(__file__).parents[1] / "data" / "results" / "v1.ndjson"


@pytest.fixture
def ax():
    figure, axes = plt.subplots()
    before = dict(plt.rcParams)
    yield axes
    figure.canvas.draw()
    assert dict(plt.rcParams) == before, "no global style"
    assert len(plt.get_fignums()) == 1, "no figure but the one that was given"
    plt.close(figure)


def comparison(logs, label="scan", change="base -> thp", dead_band=0.02):
    decision = decide(logs, dead_band) if len(logs) else not_tested("no data")
    return Comparison(
        "pages", "b", label, change, 1 << 30, 2, "x", "y", decision, 0, False, math.nan
    )


def chases(policies=("base", "thp")):
    return [
        row(f"chase/scalar/{pages}/1t/{1 << k}KiB", latency_ns=(k - 3.0) * (1 + 0.01 * i))
        for pages in policies
        for k in range(5, 18)
        for i in range(6)
    ]


def beside(round_, neighbour="", ratio=1.0, kernel="scan", **columns):
    case = f"{kernel}/x/thp/1t/1GiB"
    mix = f"{case}+{neighbour}/x/thp/1t/1GiB{{role=background}}@0" if neighbour else case
    made = row(mix, **columns)
    return made | {
        "seconds": 0.1 * ratio * (1 + 0.01 * (round_ % 3)),
        "round": round_, "block": f"b {kernel}", "run": "r",
    }  # fmt: skip


def texts(labels):
    return [label.get_text() for label in labels]


# ---- looks ---------------------------------------------------------------------------------------


def test_page_policies_differ_in_more_than_colour():
    looks = [policy_style(p) for p in ("base", "thp", "2m", "1g")]
    for one, other in combinations(looks, 2):
        assert one.marker != other.marker
        assert one.linestyle != other.linestyle


@pytest.mark.parametrize("styles", [STYLES[:4], tuple(VERDICTS.values())])
def test_looks_can_be_told_apart_in_gray_or_by_marker(styles):
    for one, other in combinations(styles, 2):
        gray = [np.dot(to_rgb(s.color), (0.299, 0.587, 0.114)) for s in (one, other)]
        assert abs(gray[0] - gray[1]) > 0.1 or one.marker != other.marker


# ---- each plot -----------------------------------------------------------------------------------


def test_bandwidth_has_points_a_fit_and_its_band(ax):
    assert plot.plot_bandwidth(ladder() + ladder(bs=40, pages="base"), ax) is ax
    assert texts(ax.get_legend().get_texts()) == ["base", "thp"]
    assert len(ax.containers) == 2, "points with intervals, one a policy"
    curves = [line for line in ax.lines if len(line.get_xdata()) == 200]
    assert len(curves) == 2
    assert max(curves[1].get_ydata()) == pytest.approx(60, rel=0.03)
    assert ax.get_ylim()[0] == 0


def test_few_points_are_joined_not_fitted(ax):
    plot.plot_bandwidth(ladder(range(1, 4)), ax)
    assert not [line for line in ax.lines if len(line.get_xdata()) == 200]
    assert ax.containers[0][0].get_linestyle() != "None"


def test_points_outside_a_node_are_hollow(ax):
    plot.plot_bandwidth([r | {"nodes": 2.0 if r["threads"] > 8 else 1.0} for r in ladder()], ax)
    hollow = [line for line in ax.lines if line.get_fillstyle() == "none" and len(line.get_xdata())]
    assert [line.get_xdata()[0] for line in hollow] == [9, 10, 11, 12]


def test_latency_has_sizes_in_binary_units_and_marks_inside(ax):
    plot.plot_latency(chases(), ax, marks={"L2": 1 << 20, "far away": 1 << 40})
    assert {"64KiB", "1MiB", "64MiB"} <= set(texts(ax.get_xticklabels()))
    assert "L2" in texts(ax.texts)
    assert "far away" not in texts(ax.texts)
    assert ax.get_xscale() == "log"


def test_loaded_latency_is_drawn_against_what_was_reached(ax):
    plot.plot_loaded_latency(rows(STORED), ax, fits=False)
    (container,) = ax.containers
    assert len(container[0].get_xdata()) == 7
    assert "beside scan" in ax.get_title(loc="left")


def test_gains_show_verdicts_dead_band_and_clipped_intervals(ax):
    tested = [
        comparison(np.log([0.8, 0.81, 0.82, 0.83, 0.84, 0.85]), "scan"),
        comparison(np.log([0.99, 1.0, 1.0, 1.0, 1.005, 1.01]), "chase"),
        comparison(np.log([0.02, 0.9, 1.0, 1.1, 1.2, 30.0]), "gather"),
        comparison([], "spmv"),
    ]
    plot.plot_gains(tested, ax)
    assert texts(ax.get_yticklabels()) == ["gather 1GiB 2t", "chase 1GiB 2t", "scan 1GiB 2t"]
    assert set(texts(ax.get_legend().get_texts())) == {"helps", "neutral", "cannot tell"}
    arrows = [line.get_marker() for line in ax.lines if line.get_marker() in "<>"]
    assert sorted(arrows) == ["<", ">"]
    assert ax.get_title(loc="left") == "base -> thp"
    assert "0" in texts(ax.get_xticklabels())


def test_gains_of_named_decisions(ax):
    decisions = {
        "mutex": decide(np.log([1.1, 1.12, 1.13, 1.11, 1.1, 1.12])),
        "thp": decide(np.log([0.8, 0.81, 0.82, 0.83, 0.84, 0.85])),
    }
    plot.plot_gains(decisions, ax)
    assert texts(ax.get_yticklabels()) == ["thp", "mutex"], "the first on top"
    assert set(texts(ax.get_legend().get_texts())) == {"helps", "hurts"}


def test_interference_is_time_beside_over_time_alone(ax):
    made = [
        beside(i, neighbour, ratio, kernel)
        for kernel, ratios in {"scan": (1, 1.5, 1.0), "copy": (1, 3.0, 1.2)}.items()
        for neighbour, ratio in zip(("", "scan", "spin"), ratios, strict=True)
        for i in range(6)
    ]
    found = {(s.victim, s.beside.split()[0]): s for s in slowdowns(made)}
    assert found["copy", "scan"].ratio == pytest.approx(3.0)
    assert found["copy", "scan"].resolved
    assert not found["scan", "spin"].resolved
    plot.plot_interference(made, ax)
    assert set(texts(ax.texts)) == {"1.50", "1.00?", "3.00", "1.20"}


def test_a_matrix_is_drawn_without_sizes_and_with_labels_that_break(ax):
    made = [
        Slowdown(victim, 0, "", beside, 1.5, 1.2, 1.8, 8)
        for victim in ("chase[loads=9]", "spmv")
        for beside in ("scan[op=copy,store=nt]", "chase[loads=9]")
    ]
    plot.plot_interference(made, ax)
    assert texts(ax.get_yticklabels()) == ["chase[loads=9]", "spmv"]
    assert texts(ax.get_xticklabels()) == ["chase\n[loads=9]", "scan\n[op=copy,\nstore=nt]"]


@pytest.mark.parametrize(("most", "scale"), [(1.4, "linear"), (9.0, "log")])
def test_forecasts_stand_against_measurements_and_the_worst_are_named(ax, most, scale):
    good = [Foretold(f"pair {i}", most - i / 10, most - i / 10, 1.0, 2.0) for i in range(4)]
    bad = [Foretold("odd one", 1.0, most), Foretold("untold", np.nan, 1.0)]
    plot_forecasts({"law": good, "fit": bad}, ax, most_names=1)
    assert texts(ax.texts) == ["odd one"]
    assert (ax.get_xscale(), ax.get_xlim()) == (scale, ax.get_ylim())
    assert texts(ax.get_legend().texts) == ["law", "fit"]
    with pytest.raises(UsageError, match="no forecast"):
        plot_forecasts({"fit": bad[1:]})


def test_stalls_are_steps_longer_than_x_a_second(ax):
    found = [r for r in steps(STORED) if r["kernel"] == "scan"]
    one = next(s for s in tails(found) if s.pages == "thp")
    counts = [r for r in found if r["pages"] == "thp"]
    assert one.steps[0] == sum(r["count"] for r in counts)
    assert one.per_s[0] == pytest.approx(one.steps[0] / counts[0]["threads_s"])
    assert np.all(np.diff(one.per_s) <= 0)
    plot.plot_stalls(found, ax)
    assert ax.get_yscale() == "log"


def test_a_frame_and_its_rows_give_the_same_plot(ax):
    pytest.importorskip("pandas")
    plot.plot_loaded_latency(frame(STORED), ax, fits=False)
    assert len(ax.containers[0][0].get_xdata()) == 7


def test_fresh_axes_are_made_where_none_are_given():
    assert plot.plot_bandwidth(ladder(range(1, 3))) is plt.gcf().axes[0]
    plt.close("all")


def test_nothing_to_draw_is_said():
    for draw in (plot.plot_bandwidth, plot.plot_latency, plot.plot_loaded_latency):
        with pytest.raises(UsageError, match="nothing to draw"):
            draw([])
    with pytest.raises(UsageError, match="no comparison"):
        plot.plot_gains([])
    with pytest.raises(UsageError, match="beside"):
        plot.plot_interference([])
    with pytest.raises(UsageError, match="journals only"):
        plot.plot_stalls([])
    with pytest.raises(UsageError, match="no bandwidth curve of 'copy'") as error:
        plot.plot_bandwidth(ladder(), label="copy")
    assert error.value.remedy == "there are: scan"


# ---- files ---------------------------------------------------------------------------------------


def test_a_run_gives_the_pictures_that_its_samples_suffice_for(tmp_path, capsys):
    results = load(STORED)
    assert [p.name for p in gallery(results, build(results))] == ["latency-chase", "loaded-latency"]
    assert main(["plot", str(STORED), "-o", str(tmp_path)]) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert [path.stem for path in written] == ["latency-chase", "loaded-latency"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)
    assert plt.get_fignums() == []


def test_a_run_without_pictures_says_so(tmp_path, capsys):
    (tmp_path / "journal.ndjson").write_text('{"kind": "start"}\n')
    assert main(["plot", str(tmp_path)]) == 2
    assert "nothing to draw" in capsys.readouterr().err
