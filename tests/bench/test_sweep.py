"""Sweep files: every fault at once, presets that hold, flags in place of a file's values."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planning import GIB, MIB, Made, config

from bench import native, sweepfile
from bench.errors import UsageError
from bench.sweep import MIN_ROUNDS, Range, Within, parse_rate, parse_share
from bench.sweepfile import load, override, preset_names, validate

ONE = {"kernels": "stream"}


def faults_of(data):
    with pytest.raises(UsageError) as caught:
        validate(data, "mine.toml", Made())
    first, *rest = str(caught.value).split("\n")
    assert first == f"mine.toml: {len(rest)} fault" + "s" * (len(rest) != 1)
    return dict(line.strip().split(": ", 1) for line in rest)


def test_every_fault_of_a_file_is_told_at_once_with_its_place():
    found = faults_of(
        {
            "rounds": 5,
            "budget": "5 parsecs",
            "sweeps": 1,
            "sweep": [
                {"kernels": ["stream", "steam"], "threads": 0, "widow": "1s"},
                {
                    "kernels": {"name": "stream", "params": {"op": ["read", "reed"], "opp": "x"}},
                    "pages": ["base", "2mb"],
                    "sizes": ["64MiB", "1.5B", {"from": "1GiB", "to": "1MiB"}],
                    "beside": [{}, {"actors": [{"kernel": "walk[loads=0]", "pace": "1MiB/s"}]}],
                    "pin": "near",
                },
            ],
            "exclude": [{}, {"pages": "huge"}],
        }
    )
    assert set(found) == {
        "rounds",
        "budget",
        "sweeps",
        "sweep[0].kernels[1]",
        "sweep[0].threads[0]",
        "sweep[0].widow",
        "sweep[1].kernels[0]",
        "sweep[1].pages",
        "sweep[1].sizes[1]",
        "sweep[1].sizes[2]",
        "sweep[1].beside[1].actors[0].kernel",
        "sweep[1].beside[1].actors[0].pace[0]",
        "sweep[1].pin[0]",
        "exclude[0]",
        "exclude[1].pages",
    }
    assert "did you mean stream" in found["sweep[0].kernels[1]"]
    assert "did you mean window" in found["sweep[0].widow"]
    assert "did you mean sweep" in found["sweeps"]
    # Both wrong parameters of one kernel.
    assert re.search("reed.*did you mean read.*opp.*did you mean op", found["sweep[1].kernels[0]"])


def test_rounds_below_the_least_are_a_fault():
    assert "rounds" in faults_of({"rounds": MIN_ROUNDS - 1, "sweep": [ONE]})
    assert validate({"rounds": MIN_ROUNDS, "sweep": [ONE]}, "x").rounds == MIN_ROUNDS


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"sweep": []},
        {"sweep": [{}]},
        {"sweep": [{**ONE, "threads": True}]},
        {"sweep": [{**ONE, "threads": []}]},
        {"sweep": [{**ONE, "sizes": -1}]},
        {"sweep": [{**ONE, "window": 0}]},
        {"sweep": [{**ONE, "node": 0, "pin": "none"}]},
        {"sweep": [{**ONE, "compare": "colour"}]},
        {"sweep": [{**ONE, "script": "dance"}]},
        {"sweep": [{**ONE, "beside": {"actors": {"kernel": "stream", "pages": "2mb"}}}]},
        {"sweep": [ONE], "dead_band": 2},
        {"sweep": [ONE], "working_set": {"from": "1GiB", "too": "2GiB"}},
    ],
)
def test_wrong_values_are_faults_and_not_crashes(data):
    assert faults_of(data)


def test_a_file_that_is_no_toml_is_refused_with_the_line(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("rounds = 6\nbudget = \n")
    with pytest.raises(UsageError, match=r"mine\.toml is not TOML.*line"):
        load(str(path))


def test_a_missing_file_names_the_presets():
    with pytest.raises(UsageError, match="cannot read") as caught:
        load("./none.toml")
    assert "quick" in caught.value.remedy


def test_an_unknown_preset_names_a_close_one():
    with pytest.raises(UsageError, match="unknown preset") as caught:
        load("quik")
    assert "quick" in caught.value.remedy


@pytest.mark.parametrize("name", preset_names())
def test_presets_hold_against_the_kernels_and_policies_there_are(name):
    found = load(name, native)
    assert found.summary
    assert found.rounds >= MIN_ROUNDS


def test_input_files_are_looked_for_beside_the_sweep(tmp_path):
    (tmp_path / "rows.bin").write_bytes(b"rows")
    path = tmp_path / "mine.toml"
    path.write_text('[[sweep]]\nkernels = { name = "matrix", params = { file = "rows.bin" } }\n')
    found = load(str(path), Made())
    assert found.sweep[0].kernels[0].params["file"] == (str(tmp_path / "rows.bin"),)
    path.write_text(path.read_text().replace("rows", "none"))
    with pytest.raises(UsageError, match=r"sweep\[0\]\.kernels\[0\].*none\.bin"):
        load(str(path), Made())


@given(st.integers(1, 1 << 40), st.integers(1, 1 << 12), st.integers(2, 16))
def test_a_range_rises_by_its_factor_and_stays_inside(first, times, factor):
    last = first * times
    values = Range.model_validate({"from": first, "to": last, "factor": factor}).values()
    assert values[0] == first
    assert values[-1] <= last < values[-1] * factor
    assert all(b == a * factor for a, b in pairwise(values))


def test_rates_are_decimal_and_shares_per_cent():
    assert parse_rate("2GB/s") == 2e9
    assert parse_rate("1.5MB/s") == 1.5e6
    assert parse_share("2.5%") == 0.025
    for text in ("2GiB/s", "2GB", "fast"):
        with pytest.raises(UsageError):
            parse_rate(text)


# ---- flags --------------------------------------------------------------------------------------

TWO = config(
    {"kernels": ["stream[op=copy]", "walk"], "threads": "all", "window": "2s"},
    {"kernels": ["stream[op=read]"], "threads": 1, "pin": "cpus:0"},
    rounds=8,
    budget="1m",
    shortest_window="100ms",
)


def test_without_flags_a_sweep_stays_as_it_is():
    assert override(TWO, {"kernels": None, "rounds": None}) == TWO


def test_axis_flags_hold_for_every_table_and_leave_the_rest():
    found = override(TWO, {"threads": ["1,2", "all"], "sizes": "64MiB,auto", "rounds": 6})
    assert [sweep.threads for sweep in found.sweep] == [(1, 2, "all")] * 2
    assert [sweep.sizes for sweep in found.sweep] == [(64 * MIB, "auto")] * 2
    assert found.sweep[1].pin == ("cpus:0",)
    assert (found.rounds, found.budget) == (6, 60)


def test_a_kernel_flag_keeps_to_the_tables_that_have_it_with_its_parameters():
    found = override(TWO, {"kernels": ["walk"]}, Made())
    assert [[k.name for k in sweep.kernels] for sweep in found.sweep] == [["walk"]]
    assert found.sweep[0].window == 2
    found = override(TWO, {"kernels": ["stream"]}, Made())
    assert [sweep.kernels[0].params for sweep in found.sweep] == [
        {"op": ("copy",)},
        {"op": ("read",)},
    ]


def test_a_kernel_flag_with_parameters_takes_the_place_of_the_tables():
    found = override(TWO, {"kernels": ["stream[op=triad,store=nt]/scalar"]}, Made())
    assert len(found.sweep) == 2
    for sweep in found.sweep:
        (choice,) = sweep.kernels
        assert choice.params == {"op": ("triad",), "store": ("nt",)}
        assert choice.variant == ("scalar",)


def test_a_kernel_no_table_has_becomes_one():
    found = override(TWO, {"kernels": ["chunks,walk"]}, Made())
    assert [[k.name for k in sweep.kernels] for sweep in found.sweep] == [["walk"], ["chunks"]]


def test_a_window_asked_for_is_not_shortened():
    found = override(TWO, {"window": "1s"})
    assert found.shortest_window is None
    assert [sweep.window for sweep in found.sweep] == [1, 1]


def test_a_node_flag_takes_the_place_of_listed_cpus():
    found = override(TWO, {"node": "1"})
    assert [(sweep.node, sweep.pin) for sweep in found.sweep] == [((1,), ("compact",))] * 2


def test_a_working_set_flag_is_exact():
    assert isinstance(TWO.working_set, Within)
    assert override(TWO, {"working_set": "1GiB"}).working_set == GIB


def test_wrong_flags_are_told_at_once_by_the_names_they_are_given():
    with pytest.raises(UsageError) as caught:
        override(
            TWO,
            {"rounds": 2, "sizes": "big", "kernels": ["steam"], "working_set": "0", "pages": "4m"},
            Made(),
        )
    told = str(caught.value)
    for flag in ("--samples", "--size big", "--kernel steam", "--working-set", "--pages"):
        assert f"{flag}: " in told


def test_presets_are_the_files_of_their_folder():
    assert {"quick", "standard", "full"} <= set(sweepfile.preset_names())


def test_pydantic_is_imported_for_files_of_users_only():
    folder = Path(sweepfile.__file__).parent
    users = [
        p.name
        for p in folder.rglob("*.py")
        if re.search("^(from|import) pydantic", p.read_text(), re.M)
    ]
    assert sorted(users) == ["pipelinefile.py", "scenariofile.py", "sweep.py", "sweepfile.py"]


@pytest.mark.parametrize("axis", ["process", "aligned", "pin", "beside"])
def test_one_value_is_no_comparison(axis):
    found = faults_of({"sweep": [{"kernels": ["stream"], "compare": axis}]})
    assert "at least two values" in found["sweep[0]"]


def test_two_kernels_are_no_comparison_of_parameters():
    found = faults_of({"sweep": [{"kernels": ["stream", "walk"], "compare": "kernels"}]})
    assert "one kernel" in found["sweep[0]"]
