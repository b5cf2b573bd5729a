"""``bench compare``: two results, case by case."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analysis.compare import Change, Changes

SUMMARY = "compare two results: files or directories, before and after"
EPILOG = """  {prog} compare OLD NEW                         output directories, or folders of them
  {prog} compare old.json.gz new.json.gz         pyperf files
  {prog} compare OLD NEW --fail-if-slower 5%     exit code 1 where a case is, beyond chance
  {prog} compare DIR/by-pages/base.json DIR/by-pages/thp.json
                                                 of one run (export --by pages): paired by block"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("before", metavar="BEFORE", help="result to compare with")
    parser.add_argument("after", metavar="AFTER", help="result that is judged")
    parser.add_argument(
        "--fail-if-slower",
        metavar="SHARE",
        help="exit code 1 where a case is slower by more than this (5%%), beyond chance",
    )
    parser.add_argument("--dead-band", metavar="SHARE", help="smallest effect that matters (2%%)")
    parser.add_argument(
        "--accept-unknown",
        action="store_true",
        help="decide cases whose pages could not be told",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Compare, print, and return 1 where the threshold was crossed."""
    from analysis.compare import compare
    from analysis.load import rows
    from analysis.stats import DEAD_BAND
    from bench.commands._session import dump_json, parse_share
    from bench.errors import UsageError

    if args.fail_if_slower and args.dead_band:
        raise UsageError(
            "--fail-if-slower sets the dead band too", "give one of --fail-if-slower, --dead-band"
        )
    threshold = parse_share(args.fail_if_slower)
    dead_band = threshold or parse_share(args.dead_band) or DEAD_BAND
    found = compare(
        rows(args.before), rows(args.after), dead_band, accept_unknown=args.accept_unknown
    )
    if args.json:
        dump_json(_document(args.before, args.after, found, threshold), sys.stdout)
    else:
        _show(args.before, args.after, found, threshold)
    return 1 if threshold and found.slower else 0


def _document(before: str, after: str, found: "Changes", threshold: float | None) -> dict[str, Any]:
    from analysis.report import plain
    from bench.schema import SCHEMA

    data: dict[str, Any] = plain(found)
    for change, item in zip(found.changes, data["changes"], strict=True):
        item["verdict"] = change.verdict
        item["gain"] = plain(dict(zip(("value", "low", "high"), change.gain, strict=True)))
    return {
        "schema": SCHEMA,
        "before": before,
        "after": after,
        "fail_if_slower": threshold,
        "slower": [change.case for change in found.slower],
        **data,
    }


MOST_LINES = 12
"""Of a list of cases that are on one side only."""


def _show(before: str, after: str, found: "Changes", threshold: float | None) -> None:
    from bench.commands._tables import make_console, percent, print_list, table

    console = make_console(sys.stdout)
    called = _settings(before, after)
    console.print(f"before: {before}", markup=False, soft_wrap=True)
    console.print(f"after:  {after}", markup=False, soft_wrap=True)
    table(
        console,
        "change in speed, 95 % interval",
        ("<case", "before -> after", "change", "", "|verdict"),
        (_cells(change, called) for change in found.changes if change.decision.n),
    )
    print_list(
        console,
        "no verdict",
        [f"{_name(c, called)}: {c.decision.reason}" for c in found.changes if not c.decision.n],
    )
    unclear = [c for c in found.changes if c.verdict == "cannot tell"]
    print_list(
        console, "cannot tell", [f"{_name(c, called)}: {c.decision.reason}" for c in unclear]
    )
    print_list(console, "not the same work", [str(refusal) for refusal in found.refused])
    print_list(console, "only before", _shortened(found.only_before, called))
    print_list(console, "only after", _shortened(found.only_after, called))
    print_list(console, "notes", found.notes)
    if threshold:
        n = len(found.slower)
        told = f"{n} of {len(found.changes)} cases" if n else "no case"
        verb = "are" if n > 1 else "is"
        console.print(f"{told} {verb} slower by more than {percent(threshold)[1:]}", markup=False)


def _settings(*paths: str) -> dict[str, str]:
    """Settings of pipelines, by their mixes: names of those run to kilobytes."""
    from bench.planfile import read_plan
    from bench.schema import PLAN

    found: dict[str, str] = {}
    for path in map(Path, paths):
        if (path / PLAN).is_file():
            _, options = read_plan(path)
            spec = options.get("pipeline", {})
            for row in spec.get("settings", ()):
                found.setdefault(row["mix"], f"{spec['name']}, {row['name']}")
    return found


def _called(case: str, called: "Mapping[str, str]") -> str:
    return next((told for mix, told in called.items() if case.startswith(mix)), "")


def _name(change: "Change", called: "Mapping[str, str]") -> str:
    return _called(change.case, called) or change.name


def _shortened(cases: list[str], called: "Mapping[str, str]") -> list[str]:
    cases = [_called(case, called) or case for case in cases]
    rest = len(cases) - MOST_LINES
    return cases if rest <= 0 else [*cases[:MOST_LINES], f"and {rest} more"]


def _cells(change: "Change", called: "Mapping[str, str]") -> list[str]:
    from bench.commands._tables import number, percent, percent_interval

    return [
        _name(change, called),
        f"{number(change.before)} -> {number(change.after)} {change.unit}",
        percent(change.gain[0]),
        percent_interval(change.decision.low, change.gain),
        change.verdict,
    ]
