"""The closing table's content: what is decided, what is not, and why."""

import io
import json
import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from faked import Fake, block, pages_plan, run

from analysis.load import load
from analysis.paired import change
from analysis.report import build, estimate, plain
from bench.blocks import Plan, Skip
from bench.commands._tables import show
from bench.mix import parse_mix
from bench.planfile import write_plan
from bench.results import write_pyperf
from bench.schema import strata


@pytest.fixture
def fake(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_WORKER", str(tmp_path / "fake"))
    return Fake(tmp_path / "fake")


def report_of(folder, plan, options=None, given=None):
    _, state = run(folder, plan)
    write_plan(folder, plan, given or {})
    write_pyperf(folder, state, [plan.blocks])
    return build(load(folder), "pagestorm", options or {})


def text_of(report):
    stream = io.StringIO()
    show(report, stream)
    return stream.getvalue()


def one_verdict(report, kernel="scan"):
    (found,) = [c for c in report.comparisons if c.label.startswith(kernel)]
    return found


def test_a_clear_gain_helps(fake, tmp_path):
    comparison = one_verdict(report_of(tmp_path, pages_plan(rounds=6)))
    assert comparison.decision.verdict == "helps"
    middle, low, high = comparison.gain
    assert low <= middle <= high
    assert middle == pytest.approx(0.25, abs=0.03), "0.8 of the time is a quarter faster"
    assert comparison.change == "base -> thp"


def test_under_six_pairs_cannot_tell(fake, tmp_path):
    comparison = one_verdict(report_of(tmp_path, pages_plan(rounds=5)))
    assert comparison.decision.verdict == "cannot tell"


def test_pairs_are_formed_in_equal_placement_only(fake, tmp_path):
    # base and thp of one round see near and far in turn, in whatever order they are run.
    fake.script(scan=["near", "far"] * 3 + ["near"] * 12)
    plan = Plan("q", (block("b", "scan/x/base/2t/1GiB", "scan/x/thp/2t/1GiB"),), 9, 1)
    report = report_of(tmp_path, plan)
    (comparison,) = report.comparisons
    assert comparison.unequal_states == 3
    assert comparison.decision.n == 6
    assert any("near" in note and "far" in note for note in report.notes)
    assert "near" in text_of(report)


def test_a_sample_on_one_cpu_is_paired_with_any_placement():
    assert strata("one", "far") == ("far", "far")
    assert strata("near", "one") == ("near", "near")
    assert strata("near", "far") == ("near", "far")


@pytest.mark.parametrize("deed", ["unknown", "unknown-node"])
def test_unknown_pages_and_nodes_give_no_verdict_unless_accepted(fake, tmp_path, deed):
    fake.script(scan=[deed])
    report = report_of(tmp_path, pages_plan(kernels=("scan",)))
    assert one_verdict(report).decision.verdict == "not tested"
    assert "--accept-unknown" in one_verdict(report).decision.command
    assert "could not be told" in text_of(report)
    accepted = build(load(tmp_path), "pagestorm", {"accept_unknown": True})
    assert one_verdict(accepted).decision.verdict == "helps"


def test_a_hundredth_of_known_pages_is_flagged_and_gives_no_verdict(fake, tmp_path):
    fake.script(scan=["partly"])
    report = report_of(tmp_path, pages_plan(kernels=("scan",)))
    assert one_verdict(report).decision.verdict == "not tested"
    assert all("1% could be told" in case.flags[0] for case in report.cases)
    accepted = build(load(tmp_path), "pagestorm", {"accept_unknown": True})
    assert one_verdict(accepted).decision.verdict == "helps"


def test_one_repeated_sample_of_six_rounds_does_not_cost_the_verdict(fake, tmp_path):
    fake.script(scan=["ok", "wrong"] + ["ok"] * 20)
    report = report_of(tmp_path, pages_plan(rounds=6, kernels=("scan",)))
    assert one_verdict(report).decision.verdict == "helps"
    assert len(report.rejected) == 1, "and is shown"


def test_over_ten_percent_rejected_gives_no_verdict(fake, tmp_path):
    # The first samples of three rounds: of two mixes, one has lost two.
    fake.script(scan=["wrong", "ok", "ok"] * 3 + ["ok"] * 20)
    report = report_of(tmp_path, pages_plan(rounds=6, kernels=("scan",)))
    assert one_verdict(report).decision.verdict == "not tested"
    assert "rejected" in one_verdict(report).decision.reason


def test_under_ten_percent_rejected_is_shown_and_decided(fake, tmp_path):
    fake.script(scan=["ok", "wrong"] + ["ok"] * 40)
    report = report_of(tmp_path, pages_plan(rounds=12, kernels=("scan",)))
    assert one_verdict(report).decision.verdict == "helps"
    assert "rejected" in text_of(report)


def test_page_sizes_are_not_judged_within_the_reach_of_the_tlb(fake, tmp_path):
    report = report_of(
        tmp_path, pages_plan(kernels=("scan",)), given={"least_bytes": {"base": 2 << 30, "thp": 1}}
    )
    assert one_verdict(report).decision.verdict == "helps", "the smaller page's reach counts"
    report = build(load(tmp_path), "x", {"least_bytes": {"base": 2 << 30, "thp": 3 << 30}})
    assert one_verdict(report).decision.verdict == "not tested"
    assert "2GiB" in one_verdict(report).decision.reason
    assert one_verdict(report).decision.command == (
        "x run --kernel scan/scalar --pages base,thp --threads 1 --size 2GiB"
    )


def test_threads_that_divide_the_data_each_need_enough_of_it(fake, tmp_path):
    """192 threads over 2 GiB walk 11 MiB each: whatever comes out says nothing of larger data."""
    fake.script(chase=["ok:0.1"])
    pair = [f"chase/scalar/{pages}/192t/2GiB" for pages in ("base", "thp")]
    plan = Plan("quick", (block("b", *pair),), 6, 1)
    given = {"least_bytes": {"base": 32 << 20, "thp": 16 << 30}, "divided": ["chase"]}
    (found,) = report_of(tmp_path, plan, given=given).comparisons
    assert found.decision.verdict == "not tested"
    assert "6GiB at least for 192 threads" in found.decision.reason
    assert "--threads 192 --size 6GiB" in found.decision.command
    (shared,) = build(load(tmp_path), "x", {"divided": []}).comparisons
    assert shared.decision.verdict == "neutral", "each of the threads goes over all of it"


def test_what_was_not_tested_comes_with_its_command(fake, tmp_path):
    report = report_of(tmp_path, pages_plan())
    told = {note.what: note.remedy for note in report.not_tested}
    assert any("above a working set of 1GiB" in what for what in told)
    assert "pagestorm remedy" not in told.values(), "proposed where this version has it"
    assert any("not in this version" in note.reason for note in report.not_tested)
    later = build(load(tmp_path), "pagestorm", commands=["remedy"])
    assert "pagestorm remedy" in {note.remedy for note in later.not_tested}
    assert f"pagestorm export {tmp_path} --by pages" in report.next_commands


def test_skips_of_plan_and_worker_are_told(fake, tmp_path):
    fake.script(chase=["skip"])
    plan = Plan(
        "quick",
        (block("b", "scan/x/base/1t/1MiB", "chase/x/2m/1t/1MiB"),),
        6,
        1,
        skips=(Skip("1g", "no pool", "as root: echo 1 > /x"),),
        shed=(Skip("spmv", "does not fit into 5m"),),
    )
    text = text_of(report_of(tmp_path, plan))
    for told in ("1g: no pool", "-> as root: echo 1 > /x", "spmv: left out for time", "no page of"):
        assert told in text


def test_best_concurrency(fake, tmp_path):
    fake.script(scan=["ok:0.1"])
    names = [f"scan/x/base/{n}t/1GiB" for n in (1, 2, 4)]
    report = report_of(tmp_path, Plan("q", (block("t", *names, question="threads"),), 6, 1))
    (best,) = report.best
    assert best.tried == (1, 2, 4)
    assert best.enough == 1, "all are equally fast"
    assert best.saturation is None
    assert "too few points (3, under 6): measured best only" in text_of(report)


def test_saturation_is_fitted_where_there_are_points_enough(fake, tmp_path):
    # One block a count, in the order of the script: a plateau from 4 threads on.
    counts = range(1, 9)
    fake.script(scan=[f"ok:{0.4 / min(n, 4) * (1 + 0.01 * (n % 3))}" for n in counts])
    blocks = tuple(block(f"t{n}", f"scan/x/base/{n}t/1GiB", question="threads") for n in counts)
    wanted = list(blocks)[::-1]
    plan = Plan("q", blocks, 1, 1)
    run(tmp_path, plan, next_block=lambda _: wanted.pop() if wanted else None)
    write_plan(tmp_path, plan, {})
    report = build(load(tmp_path), "pagestorm")
    (best,) = report.best
    plateau = (1 << 30) / 0.1 / 1e9
    assert best.saturation.low <= plateau <= best.saturation.high * 1.02
    assert best.saturation.threads in (3, 4)
    assert best.saturation.model in " ".join(text_of(report).split())
    assert json.dumps(plain(report), allow_nan=False)


def test_what_runs_beside_is_no_concurrency(fake, tmp_path):
    names = [
        f"scan/x/base/1t/1GiB+spin/x/base/1t/1MiB{{role=background{pace}}}"
        for pace in ("", ";pace=1000000000")
    ]
    plan = Plan("q", (block("b", "scan/x/base/1t/1GiB", *names, question="beside"),), 6, 1)
    assert report_of(tmp_path, plan).best == []


def test_an_interrupted_run_says_how_to_go_on(fake, tmp_path):
    plan = pages_plan()
    wanted = [plan.blocks[0]] * 2
    run(tmp_path, plan, next_block=lambda _: wanted.pop() if wanted else None)
    write_plan(tmp_path, plan, {})
    path = tmp_path / "journal.ndjson"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    report = build(load(tmp_path), "pagestorm")
    assert f"pagestorm run --resume {tmp_path}" in report.next_commands
    assert report.rounds == 2


def test_nothing_measured_is_said(fake, tmp_path):
    fake.script(scan=["skip"], chase=["skip"])
    assert "nothing was measured" in text_of(report_of(tmp_path, pages_plan()))


def test_tables_fit_80_columns_and_commands_are_not_broken(fake, tmp_path):
    long = "chase/scalar/base/1t/1GiB+scan[op=copy,streams=8]/avx512/thp/64t/16GiB{role=background}"
    plan = Plan("q", (block("corun", "chase/scalar/base/1t/1GiB", long, question="corun"),), 6, 1)
    report = report_of(tmp_path, plan)
    text = text_of(report)
    commands = [*report.next_commands, *report.files, *(n.remedy for n in report.not_tested)]
    for line in text.splitlines():
        assert len(line.rstrip()) <= 80 or any(c and c in line for c in commands), line
    for command in report.next_commands:
        assert command in text
    assert "\x1b" not in text


def test_a_report_is_json(fake, tmp_path):
    report = report_of(tmp_path, pages_plan(rounds=2))
    data = json.loads(json.dumps(plain(report), allow_nan=False))
    assert data["cases"][0]["gbps"]["low"] is None, "two samples have no interval"
    assert data["comparisons"][0]["decision"]["verdict"] == "cannot tell"


def test_verdicts_are_a_table(fake, tmp_path):
    pytest.importorskip("pandas")
    table = report_of(tmp_path, pages_plan()).verdicts()
    assert list(table["verdict"]) == ["helps", "helps"]
    assert table["gain"].between(0.2, 0.3).all()
    assert set(table["change"]) == {"base -> thp"}


def test_an_estimate_without_values_is_not_a_number():
    assert math.isnan(estimate([]).value)
    assert estimate([3.0, 1.0, 2.0]).value == 2.0
    assert math.isnan(estimate([1.0] * 5).low)
    assert estimate([1, 2, 3, 4, 5, 6]).low == 1


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("scan/a/base/1t/1GiB", "scan/a/thp/1t/1GiB", "base -> thp"),
        ("scan/a/base/1t/1GiB", "scan/a/base/2t/1GiB", "1t -> 2t"),
        ("scan/a/base/1t/1GiB", "scan[op=copy]/a/base/1t/1GiB", "scan -> scan[op=copy]"),
        ("scan/a/base/1t/1GiB", "scan/a/base/1t/1GiB{aligned=True}", "plain -> aligned=True"),
        (
            "scan/a/base/1t/1GiB",
            "scan/a/base/1t/1GiB+spin/a/base/2t/1MiB{role=background}",
            "alone -> beside spin 2t base 1MiB",
        ),
    ],
)
def test_a_change_is_named(before, after, told):
    assert change(parse_mix(before), 0, parse_mix(after), 0) == told


def test_pages_stand_from_small_to_large_in_the_order_of_the_registry(fake, tmp_path):
    order = ["base", "mthp64k", "thp", "2m", "1g"]
    plan = Plan("q", (block("b", *(f"scan/x/{p}/1t/1GiB" for p in sorted(order))),), 6, 1)
    report = report_of(tmp_path, plan, given={"page_order": order})
    assert [case.pages for case in report.cases] == order


def test_too_few_pairs_are_counted_where_the_interval_would_stand(fake, tmp_path):
    text = text_of(report_of(tmp_path, pages_plan(rounds=1, kernels=("scan",))))
    assert "1 pair; an interval" in text
    line = next(line for line in text.splitlines() if "base -> thp" in line)
    assert "n=1" in line
