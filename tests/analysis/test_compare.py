"""Two results: what is called faster or slower, and what is refused."""

import math

import numpy as np
import pytest
from scipy import stats

from analysis.compare import compare, decide_changes
from analysis.files import PyperfValue
from analysis.rows import make_pyperf_row
from analysis.stats import Decision, decide, not_tested
from bench.errors import UsageError

GIB = 1 << 30


def row(case, seconds, round_=0, **metadata):
    data = {
        "name": case,
        "hostname": "here",
        "ps_useful_bytes": GIB,
        "ps_block": f"{case} {round_}",
        "ps_evidence_known": 1.0,
        "ps_state": "near",
    }
    return {
        "rejected": math.nan,
        "rejections": math.nan,
        **make_pyperf_row(PyperfValue(case, seconds, data | metadata)),
    }


def noisy(case, seconds, n=10, seed=0, spread=0.01, **metadata):
    rng = np.random.default_rng(seed)
    values = seconds * np.exp(rng.normal(0, spread, n))
    return [row(case, float(v), i, **metadata) for i, v in enumerate(values)]


SCAN = "scan/avx2/thp/2t/1GiB"
CHASE = "chase/scalar/base/1t/1GiB"


def test_less_time_is_faster_and_the_bandwidth_is_told():
    found = compare(noisy(SCAN, 0.1), noisy(SCAN, 0.08, seed=1))
    (change,) = found.changes
    assert change.verdict == "faster"
    assert change.unit == "GB/s"
    assert change.after > change.before
    low, high = change.gain[1:]
    assert low < 0.25 < high, "0.8 of the time is a quarter faster"
    assert not change.paired
    assert change.before == pytest.approx(GIB / 0.1 / 1e9, rel=0.01)


def test_latency_is_told_in_nanoseconds():
    ops = {"inner_loops": 1000, "ps_seconds_per_pass": 0.0001}
    found = compare(
        [
            row(CHASE, 1e-7, i, **ops | {"ps_seconds_per_pass": 1e-4 * (1 + i / 1e3)})
            for i in range(6)
        ],
        [
            row(CHASE, 2e-7, i, **ops | {"ps_seconds_per_pass": 2e-4 * (1 + i / 1e3)})
            for i in range(6)
        ],
    )
    (change,) = found.slower
    assert change.unit == "ns"
    assert change.before == pytest.approx(100, rel=0.01)
    assert change.gain[0] == pytest.approx(-0.5, rel=0.01)


def test_samples_of_one_run_and_round_are_paired():
    """Drift that both share must not hide a difference of 5 %."""
    drift = [1.0, 1.3, 0.7, 1.1, 0.9, 1.5, 0.8, 1.2]
    base = [row("scan/2t", 0.1 * d, i, ps_run="r", ps_block=f"b {i}", ps_case=SCAN)
            for i, d in enumerate(drift)]  # fmt: skip
    other = [row("scan/2t", 0.095 * d * (1 + 0.001 * i), i, ps_run="r", ps_block=f"b {i}",
                 ps_case=SCAN.replace("thp", "base")) for i, d in enumerate(drift)]  # fmt: skip
    (change,) = compare(base, other).changes
    assert change.paired
    assert change.verdict == "faster"
    assert change.pages == "thp -> base"
    elsewhere = [r | {"run": "another"} for r in other]
    (change,) = compare(base, elsewhere).changes
    assert not change.paired
    assert change.verdict == "cannot tell"


def test_only_equal_placements_are_compared():
    old = noisy(SCAN, 0.1) + noisy(SCAN, 0.3, ps_state="far", seed=2)
    new = noisy(SCAN, 0.1, seed=3) + noisy(SCAN, 0.3, ps_state="far", seed=4, n=3)
    found = {change.state: change for change in compare(old, new).changes}
    assert found.keys() == {"near", "far"}
    assert found["near"].before == pytest.approx(found["near"].after, rel=0.02)
    found = compare(noisy(SCAN, 0.1), noisy(SCAN, 0.3, ps_state="far", seed=2)).changes
    assert [c.verdict for c in found] == ["not tested"]


def test_unequal_work_is_refused_and_the_field_named():
    both = noisy(CHASE, 0.1)
    old = noisy(SCAN, 0.1) + both
    new = noisy(SCAN, 0.05, ps_useful_bytes=GIB // 2) + both
    found = compare(old, new)
    (refusal,) = found.refused
    assert refusal.cases == (SCAN,)
    assert refusal.differs == (("useful bytes a pass", str(GIB), str(GIB // 2)),)
    assert [c.case for c in found.changes] == [CHASE]


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("scan/avx2/thp/2t/512MiB", "size: 1GiB -> 512MiB"),
        ("scan/avx2/thp/4t/1GiB", "threads: 2 -> 4"),
        ("scan/avx512/thp/2t/1GiB", "variant: avx2 -> avx512"),
        ("scan[op=copy]/avx2/thp/2t/1GiB", "params: none -> op=copy"),
    ],
)
def test_names_of_other_work_are_refused_and_the_field_named(other, told):
    with pytest.raises(UsageError) as error:
        compare(noisy(SCAN, 0.1), noisy(other, 0.1))
    assert told in str(error.value)


def test_a_field_taken_out_of_the_names_is_told_where_it_changes_the_work():
    old = noisy("scan/2t", 0.1, ps_case=SCAN)
    new = noisy("scan/2t", 0.1, ps_case="scan/avx2/thp/2t/2GiB", ps_useful_bytes=2 * GIB)
    with pytest.raises(UsageError, match="size: 1GiB -> 2GiB, useful bytes"):
        compare(old, new)


def test_cases_of_one_side_are_listed():
    found = compare(noisy(SCAN, 0.1) + noisy(CHASE, 1.0), noisy(SCAN, 0.1, seed=1))
    assert found.only_before == [CHASE]
    assert found.only_after == []


def test_hosts_are_told_apart_where_there_are_several():
    old = noisy(SCAN, 0.1) + noisy(SCAN, 0.2, hostname="there", seed=1)
    new = noisy(SCAN, 0.1, seed=2) + noisy(SCAN, 0.4, hostname="there", seed=3)
    found = {change.host: change.verdict for change in compare(old, new).changes}
    assert found == {"here": "same", "there": "slower"}
    (one,) = compare(noisy(SCAN, 0.1), noisy(SCAN, 0.4, hostname="there", seed=3)).changes
    assert one.host == ""


def test_unknown_pages_rejections_and_starvation_give_no_verdict():
    good = noisy(SCAN, 0.1)
    unknown = [r | {"evidence_known": 0.0} for r in good]
    assert compare(good, unknown).changes[0].verdict == "not tested"
    assert compare(good, unknown, accept_unknown=True).changes[0].verdict == "same"
    partly = [r | {"evidence_known": 0.98} for r in good]
    assert compare(good, partly).changes[0].verdict == "not tested"
    rejected = [r | {"rejected": 0.2, "rejections": 2} for r in good]
    assert "rejected" in compare(good, rejected).changes[0].decision.reason
    starved = [r | {"seconds": 0.0, "gbps": math.nan} for r in good]
    assert "progress" in compare(good, starved).changes[0].decision.reason


def test_one_value_a_side_has_no_verdict():
    (change,) = compare(noisy(SCAN, 0.1, n=1), noisy(SCAN, 0.2, n=1)).changes
    assert change.verdict == "not tested"


# ---- many comparisons ----------------------------------------------------------------------------


def test_changes_told_are_those_of_benjamini_and_hochberg():
    """The step-up rule on intervals is the one on p-values of "beyond the dead band"."""
    rng = np.random.default_rng(5)
    band, cases = math.log1p(0.02), 40
    shifts = np.where(np.arange(cases) < 12, rng.uniform(0.03, 0.12, cases), 0.0)
    old = [rng.normal(0, 0.03, 10) for _ in range(cases)]
    new = [rng.normal(shift, 0.03, 10) for shift in shifts]
    rows = [
        [row(f"scan[streams={i + 1}]/x/base/1t/1GiB", math.exp(v), j)
         for i, logs in enumerate(side) for j, v in enumerate(logs)]
        for side in (old, new)
    ]  # fmt: skip
    told = [change.verdict in ("faster", "slower") for change in compare(*rows).changes]
    p = [
        2 * min(
            stats.ttest_ind(b, a + band, equal_var=False, alternative="greater").pvalue,
            stats.ttest_ind(b, a - band, equal_var=False, alternative="less").pvalue,
            0.5,
        )
        for a, b in zip(old, new, strict=True)
    ]  # fmt: skip
    expected = stats.false_discovery_control(p) <= 0.05
    assert told == list(expected)
    assert 0 < sum(told) < sum(np.array(p) <= 0.05), "the control must have had something to do"


def test_among_many_equal_cases_next_to_none_is_called_changed():
    false = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        old, new = (
            [r for i in range(30) for r in noisy(f"scan[streams={i + 1}]/x/base/1t/1GiB", 0.1,
                                                 seed=int(rng.integers(1 << 30)), spread=0.1)]
            for _ in range(2)
        )  # fmt: skip
        false += any(c.verdict in ("faster", "slower") for c in compare(old, new).changes)
    assert false <= 3, "with 5 % a family, 4 of 20 have a probability under 2 %"


def decider(values):
    return lambda level: decide(values, 0.02, level)


def test_what_only_looks_changed_alone_cannot_be_told():
    rng = np.random.default_rng(1)
    family = {i: decider(rng.normal(0, 0.05, 12)) for i in range(30)}
    family["weak"] = decider(np.linspace(0.021, 0.06, 7))
    assert family["weak"](0.95).verdict == "hurts"
    found = decide_changes(family)["weak"]
    assert found.verdict == "cannot tell"
    assert "alone it would be slower" in found.reason
    assert found.level > 0.95


def test_not_tested_counts_for_nothing():
    family = {i: (lambda _: not_tested("no data")) for i in range(50)}
    family["one"] = decider(np.linspace(0.1, 0.2, 6))
    found = decide_changes(family)
    assert found["one"].verdict == "hurts"
    assert found["one"].level == 0.95
    assert isinstance(found[0], Decision)
