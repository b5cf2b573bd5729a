"""The file that pyperf reads."""

import json
import math
import subprocess
import sys
from dataclasses import replace

import pyperf
import pytest
from faked import Fake, block, pages_plan, run

from bench.blocks import Plan
from bench.errors import UsageError
from bench.mix import FileRef, parse
from bench.planfile import read_plan, write_plan
from bench.results import flat, select, unknown_keys, write_pyperf


@pytest.fixture
def fake(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_WORKER", str(tmp_path / "fake"))
    return Fake(tmp_path / "fake")


def suite_of(folder):
    return pyperf.BenchmarkSuite.load(str(folder / "pyperf.json"))


def test_one_benchmark_a_case_and_one_value_a_run(fake, tmp_path):
    plan = pages_plan(rounds=6)
    _, state = run(tmp_path, plan)
    write_pyperf(tmp_path, state, [plan.blocks])
    suite = suite_of(tmp_path)
    assert set(suite.get_benchmark_names()) == {
        f"{kernel}/scalar/{policy}/1t/1GiB"
        for kernel in ("scan", "chase")
        for policy in ("base", "thp")
    }
    for benchmark in suite.get_benchmarks():
        assert benchmark.get_nrun() == 6
        assert all(len(a_run.values) == 1 for a_run in benchmark.get_runs())


def test_seconds_per_pass_or_per_operation(fake, tmp_path):
    fake.script(scan=["ok:0.25"], chase=["ok:0.25"])
    plan = pages_plan(rounds=2)
    _, state = run(tmp_path, plan)
    write_pyperf(tmp_path, state, [plan.blocks])
    suite = suite_of(tmp_path)
    scan = suite.get_benchmark("scan/scalar/base/1t/1GiB")
    assert scan.get_values() == (0.25, 0.25)
    assert scan.get_metadata()["loops"] == 3
    assert "inner_loops" not in scan.get_metadata()
    chase = suite.get_benchmark("chase/scalar/base/1t/1GiB")
    assert chase.get_values() == (0.25 / 1e6,) * 2
    assert chase.get_metadata()["inner_loops"] == 1_000_000
    assert chase.get_metadata()["ps_seconds_per_pass"] == 0.25


def test_metadata_names_are_those_of_the_schema_and_unknown_is_absent(fake, tmp_path):
    fake.script(scan=["unknown"])
    plan = pages_plan(rounds=1, kernels=("scan",))
    _, state = run(tmp_path, plan)
    write_pyperf(tmp_path, state, [plan.blocks])
    (a_run,) = suite_of(tmp_path).get_benchmarks()[0].get_runs()
    metadata = a_run.get_metadata()
    assert unknown_keys(metadata) == []
    assert "ps_evidence" not in metadata
    assert metadata["ps_evidence_known"] == 0
    assert metadata["ps_block"] == "pages/scan 0"
    assert metadata["hostname"] == "fake"


def test_only_complete_rounds_count(fake, tmp_path):
    plan = pages_plan(rounds=3)
    run(tmp_path, plan)
    path = tmp_path / "journal.ndjson"
    rows = path.read_bytes().splitlines(keepends=True)
    # Without the end, the last block's line and one of its samples, round 3 is not complete.
    path.write_bytes(b"".join(rows[:-3]))
    from bench.journal import read_state

    chosen = select(read_state(tmp_path), [plan.blocks])
    assert {len(values) for values in chosen.values.values()} == {2}


def test_a_skipped_case_stays_out_with_its_reason(fake, tmp_path):
    plan = Plan("quick", (block("b", "scan/x/base/1t/1MiB", "chase/x/2m/1t/1MiB"),), 3, 1)
    fake.script(chase=["ok", "skip"])
    _, state = run(tmp_path, plan)
    chosen = select(state, [plan.blocks])
    assert list(chosen.values) == ["scan/x/base/1t/1MiB"]
    assert len(chosen.values["scan/x/base/1t/1MiB"]) == 3
    assert "no page of 2 MiB" in chosen.left_out["chase/x/2m/1t/1MiB"]


def test_a_block_that_lost_rounds_does_not_shorten_the_others(fake, tmp_path):
    # Different mixes are invalid in turn: the round is given up, and none is left out for good.
    fake.script(spin=["wrong"] * 2 + ["ok"] * 9, gather=["wrong"] + ["ok"] * 9)
    plan = Plan(
        "quick",
        (
            block("a", "scan/x/base/1t/1MiB"),
            block("b", "spin/x/base/1t/1MiB", "gather/x/base/1t/1MiB"),
        ),
        rounds=6,
        seed=5,
    )
    _, state = run(tmp_path, plan)
    assert state.dropped == {}
    assert list(state.closed["b"].values()).count("failed") == 1
    chosen = select(state, [plan.blocks])
    assert {n: len(v) for n, v in chosen.values.items()} == {"scan/x/base/1t/1MiB": 6}
    assert "5 of 6 rounds" in chosen.left_out["spin/x/base/1t/1MiB"]


def test_a_starved_case_stays_out(fake, tmp_path):
    fake.script(scan=["ok", "starved"])
    plan = pages_plan(rounds=2, kernels=("scan",))
    _, state = run(tmp_path, plan)
    chosen = select(state, [plan.blocks])
    assert "no progress" in str(chosen.left_out)


def test_a_baseline_of_two_blocks_is_one_benchmark(fake, tmp_path):
    base = "scan/x/base/1t/1MiB"
    plan = Plan("quick", (block("a", base), block("b", base, "scan/x/thp/1t/1MiB")), 3, 1)
    _, state = run(tmp_path, plan)
    chosen = select(state, [plan.blocks])
    assert {len(values) for values in chosen.values.values()} == {3}
    assert {value.line["block"] for value in chosen.values[base]} == {"a"}


def test_of_two_stages_the_last_counts(fake, tmp_path):
    mix = "scan/x/base/1t/1MiB"
    pilot, final = block("pilot", mix), block("final", mix)
    wanted = [pilot] * 2 + [final] * 4
    _, state = run(
        tmp_path,
        Plan("quick", (pilot, final), 2, 1),
        next_block=lambda _: wanted.pop(0) if wanted else None,
    )
    chosen = select(state, [[pilot], [final]])
    assert [value.line["block"] for value in chosen.values[mix]] == ["final"] * 4


def test_both_values_of_a_mix_of_two(fake, tmp_path):
    mix = "scan/x/base/1t/1MiB+chase/x/base/1t/1MiB"
    a_block = block("b")
    from bench.blocks import Entry

    a_block = replace(a_block, entries=(Entry(parse(mix + "@0").mix, ((0,), (1,))),))
    plan = Plan("corun", (a_block,), 2, 1)
    _, state = run(tmp_path, plan)
    write_pyperf(tmp_path, state, [plan.blocks])
    assert suite_of(tmp_path).get_benchmark_names() == [mix + "@0", mix + "@1"]


def test_flat_drops_what_pyperf_refuses():
    given = {"a": None, "b": "", "c": "two\nlines", "d": [1], "e": math.nan, "f": 1, "g": True}
    assert flat(given) == {"c": "two lines", "f": 1, "g": True}


@pytest.mark.slow
def test_pyperf_reads_the_file(fake, tmp_path):
    for folder in ("a", "b"):
        plan = pages_plan(rounds=6)
        _, state = run(tmp_path / folder, plan)
        write_pyperf(tmp_path / folder, state, [plan.blocks])
    files = [str(tmp_path / folder / "pyperf.json") for folder in ("a", "b")]

    def pyperf_command(*args):
        done = subprocess.run(
            [sys.executable, "-m", "pyperf", *args], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "ERROR" not in done.stdout
        return done.stdout

    for command in ("show", "stats", "check", "metadata", "hist", "slowest"):
        assert pyperf_command(command, files[0])
    table = pyperf_command("compare_to", *files, "--table")
    assert "thp" in table or "not significant" in table


def test_a_plan_comes_back_from_its_file(tmp_path):
    plan = pages_plan()
    mix = parse("spmv[matrix=file:abc]/avx2/thp/2t/1GiB").mix
    with_path = replace(mix.actors[0], params=(("matrix", FileRef("abc", "/data/m.bin")),))
    entry = replace(
        plan.blocks[0].entries[0],
        mix=replace(mix, actors=(with_path,)),
        cpus=((0, 1),),
        nodes=((0, 1),),
    )
    blocks = (replace(plan.blocks[0], entries=(entry,)), plan.blocks[1])
    plan = replace(plan, blocks=blocks, notes=("a note",))
    write_plan(tmp_path, plan, {"dead_band": 0.02})
    again, options = read_plan(tmp_path)
    assert again == plan
    assert again.blocks[0].entries[0].mix.actors[0].params[0][1].path == "/data/m.bin"
    assert options == {"dead_band": 0.02}


def test_an_edited_plan_is_refused(tmp_path):
    write_plan(tmp_path, pages_plan(rounds=6), {})
    path = tmp_path / "plan.toml"
    path.write_text(path.read_text().replace("rounds = 6", "rounds = 7"))
    with pytest.raises(UsageError, match="was changed"):
        read_plan(tmp_path)


def test_the_file_is_valid_json_of_finite_numbers(fake, tmp_path):
    plan = pages_plan(rounds=1)
    _, state = run(tmp_path, plan)
    write_pyperf(tmp_path, state, [plan.blocks])

    def refuse(text):
        raise AssertionError(text)

    json.loads((tmp_path / "pyperf.json").read_text(), parse_constant=refuse)
