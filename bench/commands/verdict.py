"""Print the closing table of any result again."""

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

SUMMARY = "print the tables and verdicts of an output directory again"
EPILOG = """  {prog} verdict pagestorm-out/HOST-20261130T120000Z
  {prog} verdict --dead-band 5% DIR
  {prog} verdict --json DIR > result.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("directory", metavar="DIR", help="output directory of a run")
    parser.add_argument("--dead-band", metavar="SHARE", help="smallest effect that matters (2%%)")
    parser.add_argument(
        "--accept-unknown",
        action="store_true",
        help="give verdicts where the pages behind the memory could not be told",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def plan_kind(folder: Path) -> str:
    """Command that wrote an output directory; empty where there is no plan."""
    from bench.planfile import read_plan
    from bench.schema import PLAN

    if not (folder / PLAN).exists():
        return ""
    plan, options = read_plan(folder)
    kinds = ("remedy", "corun", "attribute", "try", "pipeline")
    return next((kind for kind in kinds if kind in options), plan.preset)


def run(args: argparse.Namespace) -> int:
    """Print the report."""
    from bench.commands._session import dump_json, parse_share, report_data, show_report

    options: dict[str, Any] = {}
    dead_band = parse_share(args.dead_band)
    if dead_band is not None:
        options["dead_band"] = dead_band
    if args.accept_unknown:
        options["accept_unknown"] = True
    folder = Path(args.directory)
    kind = plan_kind(folder)
    if kind == "remedy":
        from bench.commands import _remedy

        _remedy.show(folder, options, sys.stdout, args.json)
        return 0
    if kind == "try":
        from bench.commands import _try

        _try.show(folder, options, args.json)
        return 0
    if kind in ("corun", "attribute"):
        importlib.import_module(f"bench.commands.{kind}").show(folder, options, args.json)
        return 0
    if kind == "aa":
        from bench.commands import aa
        from bench.planfile import read_plan

        return aa.show(folder, read_plan(folder)[1] | options, args.json)
    if kind == "pipeline":
        from bench.planfile import read_plan

        options = read_plan(folder)[1] | options
        command = options["pipeline"].get("command", "run")
        importlib.import_module(f"bench.commands._pipeline_{command}").show(
            folder, options, args.json
        )
        return 0
    if args.json:
        dump_json(report_data(folder, options), sys.stdout)
    else:
        show_report(folder, options, sys.stdout)
    return 0
