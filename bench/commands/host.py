"""``bench host``: what this host is, what it lacks for a complete run, and how to add it."""

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

SUMMARY = "show what this host is, what it lacks for a complete run, and the commands that add it"
EPILOG = """  {prog} host                 read-only, as any user
  {prog} host --probe         also measure caches, TLB reach, clock and interrupts (seconds)
  {prog} host --json          facts, advice and leftovers as data
  {prog} host --undo          take out huge pages that a killed run left reserved (root)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("--json", action="store_true", help="print data instead of a page")
    parser.add_argument("--probe", action="store_true", help="measure what sysfs only claims")
    parser.add_argument(
        "--undo", action="store_true", help="take out huge pages that killed runs left (root)"
    )


def run(args: argparse.Namespace) -> int:
    """Print the page or the data; 1 where something could not be put back."""
    from bench.cli import program_name
    from bench.reservation import leftovers

    if args.undo:
        return _undo(args.json)
    from bench.advice import advice
    from bench.commands import _hostpage
    from bench.host import facts

    found, left = facts(), leftovers()
    probed = _probe() if args.probe else None
    if args.json:
        data = {
            "facts": found.to_dict(),
            "digest": found.digest(),
            "advice": [asdict(one) for one in advice(found)],
            "leftovers": [{**asdict(one), "state_file": str(one.state_file)} for one in left],
        }
        if probed is not None:
            data["probe"] = probed
        json.dump(data, sys.stdout, indent=1)
        print()
        return 0
    sections = _hostpage.sections(found)
    if probed is not None:
        sections += _hostpage.probe_sections(probed)
    _hostpage.show(sections)
    _hostpage.show_leftovers(left, program_name())
    _hostpage.show_advice(advice(found))
    return 0


def _undo(as_json: bool) -> int:
    from bench.reservation import leftovers, undo
    from bench.units import format_size

    before = leftovers()
    problems = undo()
    if as_json:
        json.dump({"pages": sum(one.pages for one in before), "problems": problems}, sys.stdout)
        print()
        return 1 if problems else 0
    if not before:
        print("nothing was left by earlier runs")
    for one in before:
        where = "" if one.node is None else f" on node {one.node}"
        print(
            f"left by process {one.pid}: {one.pages} pages of {format_size(one.size_bytes)}{where}"
        )
    for problem in problems:
        print(f"not taken out: {problem}")
    if before and not problems:
        print("taken out: the pools are as they were")
    return 1 if problems else 0


def _probe() -> dict[str, Any]:
    import importlib

    # By name, so that a plain look at the host needs neither the module nor the native extension.
    result: dict[str, Any] = importlib.import_module("bench.probe").run_probe()
    return result
