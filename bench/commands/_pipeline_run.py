"""``bench pipeline run``: a pipeline executed with the kernels of this suite."""

import argparse
import sys
from pathlib import Path
from typing import Any

SUMMARY = "run a pipeline with real kernels: seconds per job, and where they go"
EPILOG = """  {prog} pipeline run                     the prover's pipeline, scaled to this host
  {prog} pipeline run my-line.toml --set pw=4 --dry-run
  {prog} pipeline run my-line.toml --remedy mutex:mv,prep --remedy thp
  {prog} pipeline run my-line.toml --sweep pw=1..4 --samples 6 -o out
  {prog} pipeline run --resume DIR        after an interrupt or a kill"""

SAMPLES = 6
"""Fewest that give an interval of their own."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand's flags."""
    from bench.commands._pipeline_request import add_run_arguments, add_scenario_arguments

    add_scenario_arguments(parser)
    add_run_arguments(parser, SAMPLES)


def run(args: argparse.Namespace) -> int:
    """Run every setting, then say what it took."""
    from bench.commands._pipeline_request import measure

    return measure(args, "run", SAMPLES, show)


def show(folder: Path, options: dict[str, Any], as_json: bool) -> None:
    """Write the log of one sample of each setting, and print the result of a folder."""
    from analysis import report
    from bench.commands._pipeline_report import build
    from bench.commands._pipeline_view import show as lay_out
    from bench.commands._session import dump_json
    from bench.schema import SCHEMA

    found = build(folder, options)
    if as_json:
        dump_json({"schema": SCHEMA, **report.plain(found)}, sys.stdout)
    else:
        lay_out(found, sys.stdout)
