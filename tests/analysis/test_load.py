"""From result files to rows."""

import gzip
import json
import math
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from faked import SETTINGS, Fake, block, entry, pages_plan, run

from analysis.load import frame, load, rows, steps
from bench import schema
from bench.blocks import Block, Plan
from bench.commands.export import write_files
from bench.errors import PagestormError, UsageError
from bench.journal import read_lines, read_state
from bench.planfile import write_plan
from bench.results import write_pyperf

STORED = Path(__file__).parents[1] / "data" / "results"


@pytest.fixture
def fake(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_WORKER", str(tmp_path / "fake"))
    return Fake(tmp_path / "fake")


def make(folder, plan):
    folder.mkdir(exist_ok=True)
    status, state = run(folder, plan)
    write_plan(folder, plan, {})
    write_pyperf(folder, state, [plan.blocks])
    return status


def packed(path):
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


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


@pytest.mark.parametrize("deed", ["unknown", "unknown-node"])
def test_unknown_pages_and_nodes_are_told(fake, tmp_path, deed):
    fake.script(scan=[deed])
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


def test_every_source_of_a_run_has_the_same_columns_and_figures(fake, tmp_path):
    pytest.importorskip("pandas")
    folder = tmp_path / "run"
    make(folder, pages_plan(rounds=2))
    journal, pyperf = frame(folder), frame(folder / "pyperf.json")
    assert set(journal.columns) == set(pyperf.columns)
    both = journal.merge(pyperf, on=["case", "block", "round"], suffixes=("", "_pyperf"))
    assert len(both) == 8
    for column in ("seconds", "gbps", "latency_ns", "bus_max_gbps", "passes", "evidence", "time"):
        assert both[column].equals(both[f"{column}_pyperf"]), column


def test_packed_files_directories_and_several_of_them(fake, tmp_path):
    all_ = tmp_path / "all"
    all_.mkdir()
    for name in ("a", "b"):
        make(all_ / name, pages_plan(rounds=2))
    one = rows(all_ / "a")
    packed(all_ / "a" / "journal.ndjson")
    packed(all_ / "b" / "pyperf.json")
    (all_ / "b" / "journal.ndjson").unlink()
    assert [r["seconds"] for r in rows(all_ / "a")] == [r["seconds"] for r in one]
    assert len(rows(all_)) == 16, "a folder of output directories"
    assert len(rows(all_ / "a", all_ / "b" / "pyperf.json.gz")) == 16
    assert {Path(r["source"]).parent.name for r in rows(all_)} == {"a", "b"}


def test_the_fields_of_a_name_are_columns(fake, tmp_path):
    beside = "scan[op=copy]/avx2/thp/2t/1GiB{pace=4000000000;role=background}"
    mix = "chase[chains=4]/scalar/thp/1t/1GiB{pin=scatter}+" + beside
    one = Block("b", "beside", (entry(mix, ((0,), (1, 2))),), SETTINGS)
    fake.script(chase=["ok:0.5"])
    make(tmp_path, Plan("q", (one,), 1, 1))
    (row,) = rows(tmp_path)
    expected = {
        "kernel": "chase", "params": "chains=4", "param_chains": 4, "variant": "scalar",
        "pages": "thp", "threads": 1, "size": 1 << 30, "pin": "scatter", "pace": 0.0,
        "beside": "scan[op=copy] 2t thp 1GiB at 4 GB/s", "pools": "", "host": "fake",
    }  # fmt: skip
    assert {key: row[key] for key in expected} == expected
    assert row["beside_gbps"] == pytest.approx((1 << 30) / 0.5 / 1e9)
    assert row["overlap"] == 1.0


def test_an_exported_file_keeps_the_fields_that_its_names_lost(fake, tmp_path):
    make(tmp_path, pages_plan(rounds=2))
    base, _ = write_files(tmp_path, "pages")
    assert {(r["case"], r["pages"]) for r in rows(base)} == {
        ("scan/scalar/1t/1GiB", "base"),
        ("chase/scalar/1t/1GiB", "base"),
    }


def test_version_1_is_read():
    """A stored file: what it says must stay readable, whatever later versions write."""
    (scan,) = [r for r in rows(STORED / "v1.ndjson") if r["case"] == "scan/avx512/thp/2t/256MiB"]
    assert scan["seconds"] == 0.004286019542367206
    assert scan["gbps"] == pytest.approx(62.505, rel=1e-4)
    assert (scan["host"], scan["state"], scan["evidence"]) == ("vm", "far", 1.0)
    paced = [r for r in rows(STORED / "v1.ndjson") if r["beside"]]
    assert len(paced) == 6
    assert max(r["beside_gbps"] for r in paced) == pytest.approx(6.788, rel=1e-3)
    (run,) = {r["run"] for r in paced}
    assert run == "2026-11-30T18:42:35.796Z 00000000"
    chase = [r for r in rows(STORED / "v1.json") if r["kernel"] == "chase"]
    assert [r["latency_ns"] for r in chase] == pytest.approx([171.314, 290.457], rel=1e-5)


def test_each_older_version_is_brought_up_step_by_step(tmp_path, monkeypatch):
    def rename(old, new):
        return lambda data: data.update({new: data.pop(old)}) if old in data else None

    monkeypatch.setattr(schema, "SCHEMA", 3)
    monkeypatch.setattr("analysis.files.SCHEMA", 3)
    monkeypatch.setattr("bench.journal.SCHEMA", 3)
    monkeypatch.setattr(
        schema,
        "UPGRADES",
        {
            1: schema.Upgrade(rename("mixture", "blend"), rename("ps_old", "ps_newer")),
            2: schema.Upgrade(rename("blend", "mix"), rename("ps_newer", "ps_state")),
        },
    )
    path = tmp_path / "journal.ndjson"
    path.write_text((STORED / "v1.ndjson").read_text().replace('"mix":', '"mixture":'))
    assert {r["kernel"] for r in rows(path)} == {"scan", "chase"}
    assert all("mix" in line for line in read_lines(path)[0] if line["kind"] == "sample")
    old = (STORED / "v1.json").read_text().replace("ps_state", "ps_old")
    (tmp_path / "old.json").write_text(old)
    assert {r["state"] for r in rows(tmp_path / "old.json")} == {"far", "one"}


def test_a_format_that_never_was_is_refused(tmp_path):
    path = tmp_path / "journal.ndjson"
    path.write_text(json.dumps({"kind": "start", "schema": 0}) + "\n")
    with pytest.raises(UsageError, match="format 0"):
        rows(path)


def test_there_is_an_upgrade_for_every_older_version():
    assert sorted(schema.UPGRADES) == list(range(1, schema.SCHEMA))


def test_bins_of_steps_are_those_of_the_engine():
    native = pytest.importorskip("bench.native")
    try:
        edges = native.bin_edges_ns()
    except PagestormError:
        pytest.skip("the extension is not built")
    assert list(edges) == [schema.step_bin_ns(i) for i in range(len(edges))]


def test_steps_count_every_step_of_the_samples():
    found = steps(STORED / "v1.ndjson")
    scan = [r for r in found if r["case"] == "scan/avx512/thp/2t/256MiB"]
    lines = read_lines(STORED / "v1.ndjson")[0]
    (line,) = [x for x in lines if x.get("mix") == "scan/avx512/thp/2t/256MiB"]
    assert sum(r["count"] for r in scan) == sum(line["actors"][0]["step_bins"].values())
    assert all(r["low_ns"] < r["high_ns"] for r in scan)
    assert scan[0]["threads_s"] == pytest.approx(2 * line["window_s"])


def test_every_damaged_file_is_named(fake, tmp_path):
    make(tmp_path / "good", pages_plan(rounds=1))
    for name, text in {
        "a.json": "{}",
        "b.json": '{"version": "1.0", "benchmarks": [{"runs": [{"values": [1]}]}]}',
        "c.ndjson.gz": "not an archive",
        "d.ndjson": '{"kind": "sample"}\nrubbish\n{"kind": "end"}\n',
    }.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(PagestormError) as error:
        rows(tmp_path)
    for name in ("a.json", "b.json", "c.ndjson.gz", "d.ndjson, line 2"):
        assert name in str(error.value)
    shutil.rmtree(tmp_path / "good")
    whole = gzip.compress((STORED / "v1.ndjson").read_bytes())
    (tmp_path / "e.ndjson.gz").write_bytes(whole[:-100])
    with pytest.raises(PagestormError, match=r"e\.ndjson\.gz"):
        rows(tmp_path / "e.ndjson.gz")


def test_a_line_that_lacks_a_field_is_named(tmp_path):
    path = tmp_path / "journal.ndjson"
    path.write_text((STORED / "v1.ndjson").read_text().replace('"window_s"', '"windows"'))
    with pytest.raises(PagestormError, match=r"line 2.*window_s"):
        rows(path)


def test_what_is_no_result_is_refused(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        rows(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="no results"):
        rows(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(UsageError, match="no results"):
        rows(tmp_path / "notes.txt")
    other = (STORED / "v1.json").read_text().replace("scan/avx512/thp/2t/256MiB", "json_dumps")
    (tmp_path / "other.json").write_text(other)
    with pytest.raises(UsageError, match=r"other\.json.*json_dumps"):
        rows(tmp_path)
    newer = (STORED / "v1.json").read_text().replace('"ps_schema": 1', '"ps_schema": 99')
    (tmp_path / "other.json").write_text(newer)
    with pytest.raises(UsageError, match="99"):
        rows(tmp_path)
