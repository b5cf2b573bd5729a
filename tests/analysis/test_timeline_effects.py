"""What runs beside a phase and its duration: planted effects come back, none is made up.

Rates are over seeds that are fixed, so a test gives the same answer every time; their bounds leave
room for the chance of a rate of the stated size (binomial, below 1 in 1000).
"""

import math

import numpy as np
import pytest
from timelines import autoregressive, prover_lines, run_of, slowed, spans_of

from analysis.timeline.beside import Level
from analysis.timeline.company import company
from analysis.timeline.effects import effects
from analysis.timeline.reading import read_log

SEEDS = range(60)
# Binomial bounds for 60 trials: at least so many hits at 95 %, at most so many false ones at 5 %.
LEAST_COVERED = 51
MOST_FALSE = 9


def independent(seed, slope=0.0, n=400, drift=False):
    """Phase p beside a phase q that comes as it likes."""
    rng = np.random.default_rng(seed)
    q = np.sort(rng.uniform(0, n, n // 2))
    q_end = q + 3 * np.exp(0.3 * rng.standard_normal(q.size))
    p = np.sort(rng.uniform(0, n, n))
    work = 2 * np.exp(0.3 * rng.standard_normal(n))
    slow = autoregressive(rng, 2 * n, memory=20, spread=0.15) if drift else None
    return run_of(p=(p, slowed(p, work, (q, q_end), slope, slow)), q=(q, q_end))


def burst_at_the_start(seed):
    """q begins whenever p begins and is short: the shorter p, the larger its share of q."""
    rng = np.random.default_rng(seed)
    p = np.cumsum(rng.uniform(1, 4, 400))
    return run_of(
        p=(p, p + 2 * np.exp(0.4 * rng.standard_normal(400))),
        q=(p, p + rng.uniform(0.2, 1.2, 400)),
    )


def effect(found, phase="p", beside="q"):
    return next(e for e in found if (e.phase, e.beside) == (phase, beside))


def rates(make, slope):
    """Over seeds: intervals that hold the truth, p below 5 %, verdicts, mean slope."""
    covered = false = 0
    verdicts, slopes = [], []
    for seed in SEEDS:
        e = effect(effects(make(seed)))
        assert e.told, e.reason
        covered += e.per_one_low <= math.exp(slope) <= e.per_one_high
        false += e.p < 0.05
        verdicts.append(e.verdict)
        slopes.append(math.log(e.per_one))
    return covered, false, verdicts, np.mean(slopes)


@pytest.mark.parametrize("drift", [False, True])
@pytest.mark.parametrize(("slope", "verdict"), [(0.15, "hurts"), (-0.15, "helps")])
def test_a_planted_effect_is_inside_its_interval(slope, verdict, drift):
    covered, _, verdicts, mean = rates(lambda seed: independent(seed, slope, drift=drift), slope)
    assert covered >= LEAST_COVERED
    assert mean == pytest.approx(slope, abs=0.01)
    assert verdicts.count(verdict) >= 55
    assert set(verdicts) <= {verdict, "cannot tell"}


@pytest.mark.parametrize("drift", [False, True])
def test_no_effect_is_found_where_there_is_none(drift):
    covered, false, verdicts, _ = rates(lambda seed: independent(seed, drift=drift), 0.0)
    assert covered >= LEAST_COVERED
    assert false <= MOST_FALSE
    assert verdicts.count("hurts") + verdicts.count("helps") <= 3


def test_among_all_effects_of_a_log_a_false_one_is_rare():
    """The family's level, over whole logs of four phases that know nothing of each other."""
    false = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        phases = {}
        for name in "abcd":
            start = np.sort(rng.uniform(0, 300, 200))
            phases[name] = (start, start + 2 * np.exp(0.3 * rng.standard_normal(200)))
        found = effects(run_of(**phases))
        assert len(found) == 16
        false += any(e.verdict in ("helps", "hurts") or e.p_adjusted < 0.05 for e in found)
    assert false <= MOST_FALSE


def test_length_does_not_pass_for_company():
    """Without counting by age the share of q would be anything but independent of p's length."""
    run = burst_at_the_start(0)
    p, q = run.phases["p"], run.phases["q"]
    mean, beyond = company(p, q, Level(q), same=False)
    logs = np.log(p.duration)
    assert np.corrcoef(logs, mean)[0, 1] < -0.3
    assert abs(np.corrcoef(logs, beyond)[0, 1]) < 0.1
    called = 0
    for seed in SEEDS:
        e = effect(effects(burst_at_the_start(seed)))
        called += e.verdict in ("helps", "hurts")
    assert called <= 3


@pytest.mark.parametrize(
    "settings",
    [
        {"items": 6, "places": 8, "in_flight": 2, "workers": 2, "synth_s": 10.0, "gpu_s": 3.0},
        {"items": 5, "places": 12, "in_flight": 3, "workers": 1, "synth_s": 20.0, "gpu_s": 1.5},
    ],
)
@pytest.mark.parametrize("slope", [0.0, 0.08])
def test_in_a_pipeline_that_feeds_back_the_effect_is_found(tmp_path, settings, slope):
    """Here the phases wait for each other: what is slow changes what runs beside it."""
    path = tmp_path / "x.log"
    covered = called = 0
    for seed in range(12):
        lines = prover_lines(jobs=80, slope=slope, spread=0.3, seed=seed, **settings)
        path.write_text("".join(line + "\n" for line in lines))
        (run,) = read_log(path).runs
        e = effect(effects(run), "gpu", "synth")
        covered += e.per_one_low <= math.exp(slope) <= e.per_one_high
        called += e.verdict == "hurts"
    assert covered >= 9
    assert called >= 11 if slope else called <= 2


# ---- what a log cannot tell ----------------------------------------------------------------------


def test_a_log_without_variation_gives_no_number():
    """The same beat all the time: each span has the same company."""
    start = 2.0 * np.arange(400)
    rng = np.random.default_rng(0)
    for spread in (0.0, 1e-4):
        length = 3 * np.exp(spread * rng.standard_normal(400))
        run = run_of(p=(start, start + length), q=(start + 0.5, start + 1.2))
        for e in effects(run):
            assert e.verdict == "cannot tell"
            assert math.isnan(e.ratio)
            assert math.isnan(e.per_one)
            assert any(told in e.reason for told in ("as many", "varied by", "stretches"))


def test_phases_that_come_and_go_together_are_not_told_apart():
    rng = np.random.default_rng(1)
    q = np.sort(rng.uniform(0, 400, 200))
    q_end = q + 3
    p = np.sort(rng.uniform(0, 400, 400))
    work = 2 * np.exp(0.2 * rng.standard_normal(400))
    both = run_of(p=(p, slowed(p, work, (q, q_end), 0.2)), q=(q, q_end), r=(q + 0.05, q_end + 0.05))
    found = effects(both)
    for name, other in ("qr", "rq"):
        e = effect(found, "p", name)
        assert not e.told
        assert f"most with {other} (r = 1.00)" in e.reason


def test_one_stretch_of_company_is_no_evidence():
    """q ran once, for a twentieth of the time: whatever else happened then looks the same."""
    rng = np.random.default_rng(2)
    p = np.sort(rng.uniform(0, 1000, 500))
    work = np.exp(0.2 * rng.standard_normal(500))
    q = ([500.0], [550.0])
    e = effect(effects(run_of(p=(p, slowed(p, work, q, 0.5)), q=q)))
    assert not e.told
    assert "stretches of time" in e.reason


def test_too_few_spans_and_too_short_a_log_are_said():
    start = np.arange(20.0)
    few = effect(effects(run_of(p=(start, start + 0.5), q=(start, start + 0.2))))
    assert few.reason == "20 spans; it takes 40"
    start = np.linspace(0, 30, 60)
    short = effect(effects(run_of(p=(start, start + 10), q=(start, start + 0.2))))
    assert "covers 3 times its longest phase" in short.reason


def test_durations_equal_to_the_digit_give_an_interval_of_the_clock():
    rng = np.random.default_rng(3)
    q = np.sort(rng.uniform(0, 400, 200))
    p = np.sort(rng.uniform(0, 400, 400))
    e = effect(effects(run_of(p=(p, p + 0.010), q=(q, q + 3))))
    assert e.per_one_low < 1 < e.per_one_high
    assert e.verdict == "neutral"


def test_parts_of_the_same_item_do_not_count_as_company():
    one = spans_of([0.0, 10.0], [4.0, 14.0])
    other = spans_of([1.0, 11.0], [3.0, 13.0])
    mean, _ = company(one, other, Level(other), same=False)
    assert mean.tolist() == [0, 0]
    other.job[:] = [7, 8]
    mean, _ = company(one, other, Level(other), same=False)
    assert mean.tolist() == [0.5, 0.5]


def test_phases_of_waiting_are_not_company(tmp_path):
    path = tmp_path / "x.log"
    path.write_text("".join(line + "\n" for line in prover_lines(jobs=5)))
    (run,) = read_log(path).runs
    assert {e.beside for e in effects(run)} == {"synth", "gpu"}
    (run,) = read_log(path, waits=["synth", "send", "queue", "pickup"]).runs
    assert {e.phase for e in effects(run)} == {"gpu"}


def test_where_tasks_tell_of_the_same_work_they_are_the_company(tmp_path):
    """Otherwise each phase and its tasks would come and go together."""
    lines = prover_lines(jobs=10, spread=0.2)
    tasks = [
        line.replace(f"SYNTH_{edge}", f"TASK_{edge}") + ",task=build,worker=0"
        for line in lines
        for edge in ("START", "END")
        if f"SYNTH_{edge}" in line
    ]
    path = tmp_path / "x.log"
    both = sorted(lines + tasks, key=lambda line: int(line.split(",")[1]))
    path.write_text("".join(line + "\n" for line in both))
    (run,) = read_log(path).runs
    assert set(run.phases) == {"build", "synth", "send", "queue", "pickup", "gpu"}
    assert run.compound == {"synth", "gpu"}
    assert {(e.phase, e.beside) for e in effects(run)} == {("build", "build")}


def test_the_same_log_gives_the_same_numbers():
    assert effects(independent(5, 0.1, n=300)) == effects(independent(5, 0.1, n=300))
