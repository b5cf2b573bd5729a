"""``bench pipeline check``: simulate a pipeline, run it, and see how far the two are apart."""

import argparse
import math
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.calibration import Calibration
    from analysis.proxy import ProxyReport
    from analysis.rates import Alone

SUMMARY = "simulate a pipeline from its tasks alone, run it, and compare"
EPILOG = """  {prog} pipeline check                   the prover's pipeline, scaled to this host
  {prog} pipeline check my-line.toml --sweep pw=1..8
  {prog} pipeline check my-line.toml --sweep mv.pages=base,thp --remedy mutex:mv -o out
  {prog} pipeline simulate my-line.toml --calibration out"""

SAMPLES = 3
SIMULATED_JOBS = 200
"""Past filling and draining."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand's flags."""
    from bench.commands._pipeline_request import add_run_arguments, add_scenario_arguments

    add_scenario_arguments(parser)
    add_run_arguments(parser, SAMPLES)


def run(args: argparse.Namespace) -> int:
    """Measure tasks alone and the settings, then compare with the simulation."""
    from bench.commands._pipeline_request import measure

    return measure(args, "check", SAMPLES, show, costs=True)


def show(folder: Path, options: dict[str, Any], as_json: bool) -> None:
    """Compare, write ``calibration.json``, and print the table."""
    import json

    from analysis import calibration
    from bench.commands._pipeline_report import build
    from bench.commands._session import dump_json
    from bench.commands._tables import make_console, print_list
    from bench.journal import replace_file
    from bench.schema import CALIBRATION

    report = build(folder, options)
    found = compare(folder, options, report)
    data = calibration.plain(found)
    replace_file(
        folder / CALIBRATION, (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()
    )
    if as_json:
        dump_json(data, sys.stdout)
        return
    _table(found, folder)
    print_list(make_console(sys.stdout), "left out", report.notes)


def compare(folder: Path, options: Mapping[str, Any], report: "ProxyReport") -> "Calibration":
    """Simulate every setting from what its tasks took alone."""
    from analysis.calibration import Calibration, Checked
    from analysis.simulate import simulate
    from bench.commands._remedy_schedule import rows_of
    from bench.errors import UsageError
    from bench.journal import read_state
    from bench.pipelineplain import from_plain

    spec = options["pipeline"]
    rows = rows_of(read_state(folder))
    checked: list[Checked] = []
    first: tuple[dict[str, Alone], float] | None = None
    for row, result in zip(spec["settings"], report.settings, strict=True):
        costs, bandwidth = costs_of(row, rows)
        first = first or (costs, bandwidth)
        pipeline = from_plain(row["pipeline"])
        try:
            predicted = simulate(
                pipeline, costs, jobs=SIMULATED_JOBS, cpus=spec["cpus"], bandwidth=bandwidth
            ).seconds_per_job
        except UsageError:  # a task that could not be measured alone
            predicted = math.nan
        measured = result.throughput
        checked.append(
            Checked(row["name"], predicted, measured.seconds, measured.low, measured.high)
        )
    costs, bandwidth = first or ({}, 0.0)
    return Calibration(spec["name"], tuple(checked), costs, bandwidth)


def costs_of(row: Mapping[str, Any], rows: list[Any]) -> tuple[dict[str, "Alone"], float]:
    """Every kernel task of a setting alone, and the most that memory gave; bytes a second."""
    from analysis.forecast import Forecast, Measured
    from analysis.rates import Alone
    from bench.mix import Mix
    from bench.pipelineplain import from_plain
    from bench.scenario import Scenario

    actors = [t.actor for t in from_plain(row["pipeline"]).tasks if t.actor is not None]
    if not actors:
        return {}, 0.0
    names = tuple(row["kernels"])
    measured = Measured(**row["alone"])
    forecast = Forecast(Scenario(row["name"], Mix(tuple(actors)), names), rows, measured, [], [])
    streamed = [r["bus_min_gbps"] for r in rows if r["mix"] == measured.streamer]
    bandwidth = 1e9 * statistics.median(streamed) if streamed else 0.0
    costs = {
        name: Alone(a.pass_s, a.b1 * 1e9, a.bs * 1e9, a.most * 1e9)
        for name, a in zip(names, forecast.alone or [], strict=False)
    }
    return costs, bandwidth


def _table(found: "Calibration", folder: Path) -> None:
    from bench.cli import program_name
    from bench.commands._tables import make_console, number, percent, print_list, table

    console = make_console(sys.stdout)
    table(
        console,
        "simulated from tasks alone, and run: seconds per job",
        ("<setting", "predicted", "measured", "95 % interval", "error"),
        (
            [
                c.setting,
                number(c.predicted),
                number(c.measured),
                f"[{number(c.low)}, {number(c.high)}]" if math.isfinite(c.low) else "too few",
                percent(c.error) if math.isfinite(c.error) else "-",
            ]
            for c in found.checked
        ),
    )
    if found.errors:
        console.print(
            f"error: median {found.median_error:.1%}, worst {found.worst_error:.1%}"
            f" over {len(found.errors)}",
            markup=False,
        )
    where = f"{program_name()} pipeline simulate SCENARIO --calibration {folder}"
    print_list(console, "next", [where])
