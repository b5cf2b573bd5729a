"""From an output directory to rows."""

import json
import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from faked import Fake, block, pages_plan, run

from analysis.load import frame, load
from bench.blocks import Plan
from bench.errors import PagestormError, UsageError
from bench.journal import read_state
from bench.planfile import write_plan


@pytest.fixture
def fake(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_WORKER", str(tmp_path / "fake"))
    return Fake(tmp_path / "fake")


def make(folder, plan):
    status, _ = run(folder, plan)
    write_plan(folder, plan, {})
    return status


def test_one_row_a_value_with_its_derived_columns(fake, tmp_path):
    fake.script(scan=["ok:0.5"], chase=["ok:0.5"])
    make(tmp_path, pages_plan(rounds=2))
    results = load(tmp_path)
    assert len(results.rows) == 2 * 4
    assert results.rounds == 2
    assert results.status == "done"
    scan = next(r for r in results.rows if r["kernel"] == "scan" and r["pages"] == "thp")
    assert scan["gbps"] == pytest.approx((1 << 30) / 0.5 / 1e9)
    assert math.isnan(scan["latency_ns"])
    assert (scan["question"], scan["threads"], scan["size"]) == ("pages", 1, 1 << 30)
    chase = next(r for r in results.rows if r["kernel"] == "chase")
    assert chase["latency_ns"] == pytest.approx(0.5 / 1e6 * 1e9)
    assert chase["bus_max_gbps"] == pytest.approx(2 * chase["bus_min_gbps"])


def test_rows_are_the_samples_the_journal_counts(fake, tmp_path):
    """The two readers of the journal, the runner's and this one, must agree."""
    fake.script(scan=["ok", "wrong", "ok", "segv", "ok"], chase=["ok", "unknown", "disturbed"])
    make(tmp_path, pages_plan(rounds=5))
    path = tmp_path / "journal.ndjson"
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(rows[:-4]) + rows[-4][:30])
    counted = {
        (line["block"], line["round"], line["mix"], line["time"])
        for lines in read_state(tmp_path).samples.values()
        for line in lines
    }
    results = load(tmp_path)
    assert {(r["block"], r["round"], r["mix"], r["time"]) for r in results.rows} == counted
    assert sum(r.rejected for r in results.rejections.values()) == 2


def test_skips_are_told_and_have_no_rows(fake, tmp_path):
    fake.script(chase=["skip"])
    plan = Plan("quick", (block("b", "scan/x/base/1t/1MiB", "chase/x/2m/1t/1MiB"),), 2, 1)
    make(tmp_path, plan)
    results = load(tmp_path)
    assert results.skipped == {"chase/x/2m/1t/1MiB": "no page of 2 MiB is free"}
    assert {r["kernel"] for r in results.rows} == {"scan"}


def test_a_starved_actor_has_no_rate_but_a_row(fake, tmp_path):
    fake.script(scan=["starved"])
    make(tmp_path, pages_plan(rounds=1, kernels=("scan",)))
    row = load(tmp_path).rows[0]
    assert row["seconds"] == 0
    assert math.isnan(row["gbps"])


def test_unknown_pages_are_told(fake, tmp_path):
    fake.script(scan=["unknown"])
    make(tmp_path, pages_plan(rounds=1, kernels=("scan",)))
    assert load(tmp_path).rows[0]["evidence_known"] == 0


def test_a_frame_has_the_same_rows(fake, tmp_path):
    pytest.importorskip("pandas")
    make(tmp_path, pages_plan(rounds=2))
    table = frame(tmp_path)
    assert len(table) == 8
    assert {"case", "pages", "threads", "seconds", "gbps", "round"} <= set(table.columns)


def test_damage_is_named(fake, tmp_path):
    with pytest.raises(UsageError, match="no journal"):
        load(tmp_path)
    path = tmp_path / "journal.ndjson"
    path.write_text('{"kind": "start"}\nrubbish\n{"kind": "end", "status": "done"}\n')
    with pytest.raises(PagestormError, match="line 2"):
        load(tmp_path)
    path.write_text(json.dumps({"kind": "start", "schema": 99}) + "\n")
    with pytest.raises(UsageError, match="99"):
        load(tmp_path)
