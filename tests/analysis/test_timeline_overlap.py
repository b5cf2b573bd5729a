"""Overlap, gaps, fill and drain, throughput and Little's law: planted figures are found again."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timelines import prover_lines, run_of, spans_of, task_lines

from analysis.timeline.beside import Level, concurrency, overlap
from analysis.timeline.littles_law import check_stated, flows, parse_stated
from analysis.timeline.reading import read_log
from analysis.timeline.spans import Run
from analysis.timeline.steady import batch_mean, steady_state, throughput
from analysis.timeline.summary import summarise
from analysis.timeline.utilisation import busy_within, merged, utilisation
from bench.errors import UsageError


@pytest.fixture
def read(tmp_path):
    def reading(lines):
        path = tmp_path / "x.log"
        path.write_text("".join(line + "\n" for line in lines))
        return read_log(path)

    return reading


def spans(*pairs):
    return spans_of(*np.array(pairs, dtype=float).T)


# ---- overlap -------------------------------------------------------------------------------------


def test_a_planted_overlap_is_found():
    """a: 0-10 and 20-30; b: 5-25; c only touches."""
    phases = {"a": spans((0, 10), (20, 30)), "b": spans((5, 25)), "c": spans((30, 40))}
    found = overlap(phases, (0, 40))
    assert found.busy_s.tolist() == [20, 20, 10]
    assert found.both_s.tolist() == [[0, 10, 0], [10, 0, 0], [0, 0, 0]]
    assert found.share[0].tolist() == [0, 0.5, 0]
    assert found.beside[1].tolist() == [0.5, 0, 0]
    assert found.expected[0, 1] == 0.5
    assert [found.most(name) for name in "abc"] == [1, 1, 1]
    assert found.mean("a") == 0.5


def test_a_phase_overlaps_itself_where_there_are_two():
    found = overlap({"a": spans((0, 10), (5, 10), (5, 6))}, (0, 20))
    assert found.both_s.tolist() == [[5]]
    assert found.levels[0].tolist() == [10, 5, 4, 1]
    assert found.most("a") == 3
    # 16 span seconds: 5 s alone, 4 s with one more, 1 s with two more.
    assert found.beside[0, 0] == pytest.approx((2 * 4 * 1 + 3 * 1 * 2) / 16)


grids = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 8)).map(lambda p: (p[0], p[0] + p[1])),
    min_size=1,
    max_size=12,
)


@settings(max_examples=150)
@given(grids, grids, st.integers(0, 10), st.integers(1, 30))
def test_overlap_is_what_counting_second_by_second_gives(a, b, first, length):
    """Boundaries are whole seconds, so each second has one state."""
    window = (first, first + length)
    found = overlap({"a": spans(*a), "b": spans(*b)}, window)
    n = np.array(
        [[sum(s <= t < e for s, e in one) for one in (a, b)] for t in range(*window)], dtype=float
    )
    assert found.busy_s.tolist() == (n > 0).sum(axis=0).tolist()
    assert found.both_s[0, 1] == ((n[:, 0] > 0) & (n[:, 1] > 0)).sum()
    assert found.both_s[1, 1] == (n[:, 1] > 1).sum()
    assert found.levels[0] @ np.arange(found.levels[0].size) == n[:, 0].sum()
    if n[:, 0].sum():
        assert found.beside[0, 1] == pytest.approx((n[:, 0] * n[:, 1]).sum() / n[:, 0].sum())
    assert found.most("a") == n[:, 0].max()


def test_overlap_does_not_depend_on_how_many_boundaries_are_taken_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    start = np.sort(rng.uniform(0, 100, 300))
    phases = {"a": spans_of(start, start + 3), "b": spans_of(start[::2] + 1, start[::2] + 5)}
    whole = overlap(phases, (2, 90))
    monkeypatch.setattr("analysis.timeline.beside.SLICE", 7)
    parts = overlap(phases, (2, 90))
    np.testing.assert_allclose(parts.both_s, whole.both_s)
    np.testing.assert_allclose(parts.beside, whole.beside)
    for one, other in zip(parts.levels, whole.levels, strict=True):
        np.testing.assert_allclose(one, other)


def test_concurrency_over_time_keeps_the_span_seconds():
    one = spans((0, 10), (3, 4), (8, 20))
    edges, curves = concurrency({"a": one}, (0, 20), 7)
    assert (curves["a"] * np.diff(edges)).sum() == pytest.approx(23)
    assert Level(one).at([0, 3.5, 9, 10, 20]).tolist() == [1, 2, 2, 1, 0]


# ---- workers and gaps ----------------------------------------------------------------------------


def test_spans_of_a_worker_that_overlap_are_merged():
    start, end = merged(spans((0, 10), (2, 5), (10, 12), (15, 20), (19, 30)))
    assert (start.tolist(), end.tolist()) == ([0, 15], [12, 30])
    assert busy_within(spans((0, 10), (5, 20)), (8, 12)) == 4


def test_planted_gaps_are_found_with_what_ran_meanwhile(read):
    lines = task_lines(
        [
            ("gpu", "j", 0, 0, 0, 4),
            ("gpu", "j", 1, 0, 4.01, 8),  # 10 ms later
            ("gpu", "j", 2, 0, 8.2, 12),  # 200 ms
            ("gpu", "j", 3, 0, 19, 23),  # 7 s
            ("gpu", "j", 4, 1, 1, 22),
            ("prep", "j", 5, 0, 12, 15.5),
        ]
    )
    (run,) = summarise(read(lines)).runs
    both, first, second = (u for u in run.utilisation if u.phase == "gpu")
    assert (both.worker, first.worker, second.worker) == ("", "0", "1")
    assert first.classes == (1, 1, 0, 1)
    assert first.idle_s == pytest.approx(7.21)
    assert first.busy_s == pytest.approx(23 - 7.21)
    assert first.share == pytest.approx(1 - 7.21 / 23)
    assert (first.longest[0].start_s, first.longest[0].seconds) == pytest.approx((12, 7))
    assert first.longest[0].beside == pytest.approx({"gpu": 1.0, "prep": 0.5})
    assert (both.gaps, both.idle_s, both.share) == (0, 0, 1)
    assert second.gaps == 0


# ---- fill, steady state, drain -------------------------------------------------------------------


def conveyor(n, every=2.0, stay=(5.0, 1.5), items=1):
    """Items enter at a fixed beat and go through two phases without waiting."""
    enter = every * np.arange(n)
    first = spans_of(enter, enter + stay[0])
    second = spans_of(enter + stay[0], enter + sum(stay))
    for one in (first, second):
        one.job[:] = np.arange(n) // items
    return Run("planted", {"a": first, "b": second})


def test_fill_and_drain_are_told_from_the_steady_state():
    run = conveyor(50)
    steady = steady_state(run)
    assert (steady.source, steady.sink) == ("a", "b")
    assert (steady.fill_s, steady.drain_s) == (6.5, 6.5)
    assert steady.window == (6.5, 98)


def test_the_slope_is_found_without_fill_and_drain():
    run = conveyor(120, items=4)
    found = throughput(run, steady_state(run))
    assert found.jobs == 30
    assert found.items_per_job == 4
    assert found.s_per_item.value == pytest.approx(2)
    assert found.s_per_job.value == pytest.approx(8)
    # total = 2 (n - 1) + 6.5 by items: what does not repeat is 4.5 s.
    assert found.offset_s.value == pytest.approx(4.5)
    assert found.s_per_job.low == pytest.approx(8)


def test_a_log_that_was_never_steady_gives_no_slope():
    run = conveyor(3)
    steady = steady_state(run)
    assert not steady.exists
    found = throughput(run, steady)
    assert math.isnan(found.s_per_item.value)
    assert "never steady" in found.reason


def test_few_items_give_a_slope_without_an_interval():
    run = conveyor(20)
    found = throughput(run, steady_state(run))
    assert found.s_per_item.value == pytest.approx(2)
    assert math.isnan(found.s_per_item.low)
    assert "an interval needs" in found.reason


def test_intervals_of_a_slope_cover_the_truth():
    """Departures that depend on their neighbours, as a queue's do."""
    covered = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        shock = rng.standard_normal(405)
        gaps = 2 * np.exp(0.15 * (shock[:-5] + shock[1:-4] + shock[2:-3]))
        mean = 2 * math.exp(0.15**2 * 3 / 2)
        found = batch_mean(gaps)
        covered += found.low <= mean <= found.high
    assert covered >= 180


def test_runs_of_different_length_give_a_line(tmp_path):
    paths = []
    for jobs in (3, 6, 9, 12):
        path = tmp_path / f"{jobs}.log"
        lines = prover_lines(jobs=jobs, in_flight=jobs, spread=0.0, gpu_s=2.0, synth_s=20.0)
        path.write_text("".join(line + "\n" for line in lines))
        paths.append(path)
    report = summarise(read_log(*paths))
    assert [run.throughput.jobs for run in report.runs] == [3, 6, 9, 12]
    a, b = report.across
    # 10 at once, 20 s a round; the last round's ten wait for two GPUs, 2 s each: 10 s.
    assert (a.value, b.value) == pytest.approx((10, 20), abs=0.05)


# ---- Little's law --------------------------------------------------------------------------------


def test_littles_law_holds_on_a_log():
    run = conveyor(400)
    a, b = flows(run, steady_state(run))
    assert a.per_s == pytest.approx(0.5, rel=0.01)
    assert a.residence_s == pytest.approx(5)
    assert a.mean_at_once == pytest.approx(2.5, rel=0.01)
    assert abs(a.error) < 0.01
    assert a.most_at_once == 3
    assert a.idle_s == pytest.approx(3 / 0.5 - 5, rel=0.05)
    assert b.idle_s == pytest.approx(0.5, rel=0.05)


def test_published_figures_that_cannot_all_be_means_are_named():
    stated = check_stated(parse_stated("synth=54s,pw=10,s_per_proof=37,items=10"))
    (conflict,) = stated.conflicts
    assert conflict.figures == ("synth", "pw", "s_per_proof")
    assert "14.6 at once" in conflict.text
    assert "synth is 37 s at most" in conflict.text
    assert "an item takes 5.4 s at least" in conflict.text


def test_figures_that_fit_together_are_not_called():
    stated = check_stated(parse_stated("synth=36.5s,pw=10,s_per_proof=37.4,items=10"))
    assert not stated.conflicts
    assert len(stated.agreed) == 1


@settings(max_examples=50)
@given(st.floats(0.5, 100), st.floats(1, 50), st.floats(0.1, 20))
def test_a_conflict_is_called_exactly_where_littles_law_is_broken(stay, places, per_item):
    figures = {"x": stay, "x.limit": places, "s_per_item": per_item}
    stated = check_stated(figures)
    assert bool(stated.conflicts) == (stay / per_item > places * 1.02)
    assert len(stated.conflicts) + len(stated.agreed) == 1


def test_a_stated_figure_is_checked_against_the_log(read):
    log = read(prover_lines(jobs=20, spread=0.2))
    (run,) = summarise(log, parse_stated("synth=54s,gpu=3s,pw=5,nothing=1s")).runs
    stated = run.stated
    assert {c.figures for c in stated.conflicts} == {("synth",), ("pw",)}
    assert any("synth=54s is not the mean: the log has" in c.text for c in stated.conflicts)
    assert any("10 synth at once" in c.text for c in stated.conflicts)
    assert any(text.startswith("gpu=3s") for text in stated.agreed)
    assert any("nothing: not in the log" in text for text in stated.unknown)


def test_a_figure_without_its_partners_is_left_open():
    stated = check_stated(parse_stated("synth=54s,s_per_proof=37"))
    assert not stated.conflicts
    assert len(stated.unknown) == 2


@pytest.mark.parametrize("text", ["synth", "=5", "synth=", "synth=x", "pw=1h", "synth=0"])
def test_a_stated_figure_that_is_none_is_refused(text):
    with pytest.raises(UsageError):
        parse_stated(text)


def test_the_log_of_a_planted_pipeline_is_told_right(read):
    """Ten places of 30 s and two workers of 3 s: synthesis binds, workers are idle."""
    (run,) = summarise(read(prover_lines(jobs=40, spread=0.05))).runs
    assert [p.phase for p in run.phases] == ["synth", "send", "queue", "pickup", "gpu"]
    synth, gpu = run.phases[0], run.phases[-1]
    assert synth.mean_s.low <= 30 <= synth.mean_s.high
    assert gpu.mean_s.low <= 3 <= gpu.mean_s.high
    assert (synth.most_at_once, gpu.most_at_once) == (10, 2)
    assert gpu.workers == 2
    assert run.throughput.s_per_job.low <= 30 <= run.throughput.s_per_job.high
    by_phase = {f.phase: f for f in run.flows}
    assert by_phase["synth"].idle_s == pytest.approx(0, abs=0.3)
    assert by_phase["gpu"].idle_s == pytest.approx(3, abs=0.3)
    assert gpu.reported_ratio == pytest.approx(1, abs=0.01)


def test_a_run_of_one_phase_has_no_gaps_to_explain():
    run = run_of(a=([0.0, 1.0], [1.0, 2.0]))
    (found,) = utilisation(run, steady_state(run))
    assert found.gaps == 0
    assert found.in_gaps == {}
