"""``bench fit`` from the outside."""

import json

import pytest

from bench.cli import main

GIB = 1 << 30


def write(path, points):
    """A pyperf file of scan by threads: {threads: GB/s}, six samples each."""
    path.write_text(
        json.dumps(
            {
                "version": "1.0",
                "metadata": {"hostname": "h", "ps_useful_bytes": GIB, "ps_schema": 1},
                "benchmarks": [
                    {
                        "metadata": {"name": f"scan/avx2/thp/{n}t/1GiB"},
                        "runs": [
                            {"values": [GIB / gbps / 1e9 * (1 + 0.001 * k)], "metadata": {}}
                            for k in (-3, -2, -1, 1, 2, 3)
                        ],
                    }
                    for n, gbps in points.items()
                ],
            }
        )
    )
    return str(path)


@pytest.fixture
def saturating(tmp_path):
    return write(tmp_path / "a.json", {n: min(12.0 * n, 55.0) for n in range(1, 11)})


def test_the_best_model_is_printed_with_what_was_measured(saturating, capsys):
    assert main(["fit", saturating]) == 0
    text = capsys.readouterr().out
    assert "h: scan 1GiB thp (10 points)" in text
    assert "by AICc" in text
    assert "saturated bandwidth" in text
    assert "measured best 55.0 GB/s at" in text


def test_json_has_intervals_and_saturation(saturating, capsys):
    assert main(["fit", saturating, "--json"]) == 0
    (curve,) = json.loads(capsys.readouterr().out)["curves"]
    assert curve["model"] in ("knee", "power_min", "ecm")
    found = curve["parameters"]["bs"]
    assert found["value"] == pytest.approx(55, rel=0.001)
    assert found["low"] <= found["value"] <= found["high"]
    assert curve["saturation"]["threads"] == 5
    assert curve["units"] == {"x": "threads", "y": "GB/s"}


def test_too_few_points_are_said(tmp_path, capsys):
    path = write(tmp_path / "a.json", {1: 12.0, 2: 20.0})
    assert main(["fit", path]) == 0
    text = capsys.readouterr().out
    assert "too few points (2, under 6): measured best only" in text
    assert "measured best 20.0 GB/s at 2 threads" in text


def test_one_model_can_be_named(saturating, capsys):
    assert main(["fit", saturating, "--model", "usl"]) == 0
    text = capsys.readouterr().out
    assert "alpha" in text
    assert "peak_n" in text
    assert main(["fit", saturating, "--model", "usi"]) == 2
    assert "did you mean usl" in capsys.readouterr().err
    assert main(["fit", saturating, "--model", "latency_mm1"]) == 2
    assert "nothing to fit" in capsys.readouterr().err


def test_models_are_listed(capsys):
    assert main(["fit", "--models"]) == 0
    assert "tlb_ladder" in capsys.readouterr().out
    assert main(["fit"]) == 2


def test_tables_fit_80_columns(saturating, capsys):
    main(["fit", saturating])
    assert all(len(line) <= 80 for line in capsys.readouterr().out.splitlines())
