"""``bench timeline``: tables, documents, pages, pictures, and what it refuses."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from timelines import sample_lines, task_lines

from bench.cli import main

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "tests" / "data" / "timelines" / "prover.log.gz"


@pytest.fixture
def told(capsys):
    def telling(*argv):
        code = main(["timeline", *map(str, argv)])
        return code, capsys.readouterr()

    return telling


def test_the_sample_is_what_its_generator_writes():
    assert gzip.decompress(SAMPLE.read_bytes()).decode() == "\n".join(sample_lines())


def test_the_sample_is_told_right(told):
    """What is planted: 12 places, 1 worker, 40 jobs of 5 items, 8 % a part, four faults."""
    code, (out, err) = told(SAMPLE, "--json")
    data = json.loads(out)
    assert (code, err) == (0, "")
    faults = {f["kind"]: f["count"] for f in data["log"]["faults"]}
    assert faults.pop("out of order") >= 1
    assert faults == {"truncated": 1, "unknown event": 1, "duplicate": 1}
    (run,) = data["runs"]
    assert run["jobs"] == 40
    phases = {p["phase"]: p for p in run["phases"]}
    assert {name: p["spans"] for name, p in phases.items()} == dict.fromkeys(phases, 200)
    assert phases["synth"]["most_at_once"] == 12
    assert phases["gpu"]["most_at_once"] == 1
    (effect,) = (e for e in run["effects"] if (e["phase"], e["beside"]) == ("gpu", "synth"))
    assert effect["verdict"] == "hurts"
    assert effect["per_one_low"] < 1.083 < effect["per_one_high"]
    (own,) = (e for e in run["effects"] if (e["phase"], e["beside"]) == ("gpu", "gpu"))
    assert (own["verdict"], own["ratio"]) == ("cannot tell", None)
    assert {t["key"] for t in data["timings"]} >= {"prep_msm_ms", "ntt_msm_h_ms", "gpu_total_ms"}


def test_tables_fit_eighty_columns(told):
    code, (out, _) = told(SAMPLE, "--stated", "gpu=2s,pw=12")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out
    for title in ("phases", "overlap", "workers busy", "longest gaps", "throughput", "Little"):
        assert f"\n{title}" in out
    assert "conflict: gpu=2s is not the mean" in out


def test_a_log_comes_in_through_a_pipe():
    lines = gzip.decompress(SAMPLE.read_bytes())
    found = subprocess.run(
        [sys.executable, "-m", "bench", "timeline", "-", "--json"],
        input=lines, capture_output=True, cwd=ROOT, check=True,
    )  # fmt: skip
    assert json.loads(found.stdout)["log"]["sources"] == ["-"]


def test_reports_are_written(told, tmp_path):
    paths = [tmp_path / f"report{suffix}" for suffix in (".html", ".md", ".json", ".png")]
    code, _ = told(SAMPLE, *(part for path in paths for part in ("-o", path)))
    assert code == 0
    html, markdown, document, picture = paths
    text = html.read_text()
    assert text.count("<table>") == text.count("</table>") >= 6
    assert "data:image/png;base64," in text
    assert "http" not in text
    assert markdown.read_text().startswith("### log ")
    assert json.loads(document.read_text())["schema"] == 1
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_names_of_a_log_are_no_markup(told, tmp_path):
    log = tmp_path / "x.log"
    lines = task_lines([("<b>[red]|x", "j", 0, 0, i, i + 0.5) for i in range(3)])
    log.write_text("\n".join(lines) + "\n")
    code, (out, _) = told(log, "-o", tmp_path / "x.html", "-o", tmp_path / "x.md")
    assert code == 0
    assert "<b>[red]|x" in out
    assert "<b>" not in (tmp_path / "x.html").read_text()
    assert "&lt;b>[red]\\|x" in (tmp_path / "x.md").read_text()


def test_several_runs_are_told_one_by_one(told, tmp_path):
    for name, n in (("a", 3), ("b", 5)):
        lines = task_lines([("t", "j", i, 0, 2 * i, 2 * i + 1.0) for i in range(n)])
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    code, (out, _) = told(tmp_path / "a", tmp_path / "b", "-o", tmp_path / "x.png")
    assert code == 0
    assert f"run from {tmp_path / 'b'}:1" in " ".join(out.split())
    assert (tmp_path / "x-2.png").exists()


def test_figures_can_be_checked_without_a_log(told):
    code, (out, _) = told("--stated", "synth=54s,pw=10,s_per_proof=37,items=10")
    assert code == 0
    assert "they cannot all be means" in " ".join(out.split())


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "no log given"),
        (["none.log"], "none.log does not exist"),
        ([SAMPLE, "-o", "report.pdf"], "cannot write report.pdf"),
        ([SAMPLE, "-o", "none/report.md"], "cannot write none/report.md"),
        ([SAMPLE, "--stated", "x"], "not a stated figure"),
        ([SAMPLE, "--dead-band", "-1"], "--dead-band must be 0 or more"),
        ([SAMPLE, "--dead-band", "nan"], "--dead-band must be 0 or more"),
        ([ROOT / "README.md"], "nothing to read"),
    ],
)
def test_what_cannot_be_done_is_said(told, argv, words):
    code, (_, err) = told(*argv)
    assert code in (1, 2)
    assert words in err
    assert "\n  -> " in err or "dead-band" in err


def test_no_table_of_many_phases_loses_a_digit_or_a_name(told, tmp_path):
    """Twelve tasks of six workers, each span of its own odd length."""
    names = [f"task_number_{k}" for k in range(12)]
    spans = [
        (name, f"job{j}", 0, j % 6, 1000 * j + 70 * k, 1000 * j + 70 * k + 100.37 + k)
        for j in range(60)
        for k, name in enumerate(names)
    ]
    log = tmp_path / "x.log"
    log.write_text("\n".join(task_lines(spans)) + "\n")
    code, (out, _) = told(log)
    assert code == 0
    assert "…" not in out
    for k, name in enumerate(names):
        (row,) = (line for line in out.splitlines() if line.split()[:2] == [name, "60"])
        assert row.split()[2] == f"{100.37 + k:.0f}"
    assert out.count("most of 6") == 12
