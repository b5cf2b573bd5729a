"""Files that pyperf can pair."""

import subprocess
import sys

import pyperf
import pytest
from faked import Fake, pages_plan, run

from bench.commands.export import kernels_with, split_name, write_files
from bench.errors import UsageError
from bench.results import write_pyperf

MIX = "chase/scalar/base/1t/1GiB+scan[op=copy]/avx2/thp/2t/1GiB{role=background}@0"


@pytest.mark.parametrize(
    ("name", "by", "value", "rest"),
    [
        ("scan[op=read]/avx2/thp/4t/1GiB", "pages", "thp", "scan[op=read]/avx2/4t/1GiB"),
        ("scan[op=read]/avx2/thp/4t/1GiB", "threads", "4t", "scan[op=read]/avx2/thp/1GiB"),
        ("scan[op=read]/avx2/thp/4t/1GiB", "variant", "avx2", "scan[op=read]/thp/4t/1GiB"),
        ("scan[op=read]/avx2/thp/4t/1GiB", "size", "1GiB", "scan[op=read]/avx2/thp/4t"),
        ("scan[op=read]/avx2/thp/4t/1GiB", "kernel", "scan", "[op=read]/avx2/thp/4t/1GiB"),
        ("scan[op=read]/avx2/thp/4t/1GiB", "op", "read", "scan/avx2/thp/4t/1GiB"),
        ("scan/a/thp/1t/1GiB{aligned=True}", "aligned", "True", "scan/a/thp/1t/1GiB"),
        ("scan/a/thp/1t/1GiB{pin=none}", "pages", "thp", "scan/a/1t/1GiB{pin=none}"),
        (MIX, "pages", "base+thp", MIX.replace("/base/", "/").replace("/thp/", "/")),
        (MIX, "size", "1GiB", MIX.replace("/1GiB", "")),
    ],
)
def test_a_field_is_taken_out_of_a_name(name, by, value, rest):
    assert split_name(name, by) == (value, rest)


def test_a_parameter_left_out_of_a_name_is_at_its_default():
    names = ["scan/a/base/1t/1GiB", "scan[op=copy]/a/base/1t/1GiB", "chase/a/base/1t/1GiB"]
    kernels = kernels_with("op", names)
    assert [split_name(name, "op", kernels)[0] for name in names] == ["default", "copy", None]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_WORKER", str(tmp_path / "fake"))
    Fake(tmp_path / "fake")
    plan = pages_plan(rounds=6)
    _, state = run(tmp_path / "out", plan)
    write_pyperf(tmp_path / "out", state, [plan.blocks])
    return tmp_path / "out"


def test_files_of_two_policies_pair_in_pyperf(folder):
    paths = write_files(folder, "pages")
    assert [path.name for path in paths] == ["base.json", "thp.json"], "the baseline is first"
    names = [set(pyperf.BenchmarkSuite.load(str(path)).get_benchmark_names()) for path in paths]
    assert names == [{"scan/scalar/1t/1GiB", "chase/scalar/1t/1GiB"}] * 2
    done = subprocess.run(
        [sys.executable, "-m", "pyperf", "compare_to", *map(str, paths)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "faster" in done.stdout, "the fake worker's large pages are a fifth faster"
    assert "Ignored" not in done.stdout


def test_an_unknown_field_lists_the_known_ones(folder):
    with pytest.raises(UsageError, match="field 'colour'") as caught:
        write_files(folder, "colour")
    assert "pages" in caught.value.remedy


def test_a_folder_without_results_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match=r"no pyperf\.json"):
        write_files(tmp_path, "pages")
