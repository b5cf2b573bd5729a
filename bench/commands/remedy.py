"""``bench remedy``: the same workload under every remedy, and which of them pays."""

import argparse
import sys
from pathlib import Path

from bench.errors import UsageError

SUMMARY = "try page policies and interlocks on a workload, and say which remedy pays"
EPILOG = """  {prog} remedy                          the prover's mix, under ten minutes
  {prog} remedy my-workload.toml --budget 20m
  {prog} remedy --remedies thp,mutex,pause,thp+mutex
  {prog} remedy --dry-run                what it would do, and how long it takes
  {prog} remedy --resume DIR             after an interrupt or a kill"""

BUDGET = "9m"
"""Ends under ten minutes with start, planning and the last table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    from bench.commands.run import add_output_arguments

    parser.add_argument(
        "scenario", nargs="?", metavar="SCENARIO", help="a TOML file, or a name (prover)"
    )
    parser.add_argument(
        "--remedies",
        metavar="LIST",
        help="only these: thp,cap:2,mutex,pause,thp+mutex",
    )
    parser.add_argument("--pages", metavar="LIST", help="page policies to try, or all")
    parser.add_argument("--budget", metavar="TIME", help=f"for everything ({BUDGET})")
    parser.add_argument(
        "--samples", type=int, metavar="N", help="most samples of the verdict stage (60)"
    )
    parser.add_argument("--window", metavar="TIME", help="length of one sample's window")
    parser.add_argument("--max-memory", metavar="SIZE", help="live memory of a sample (a quarter)")
    parser.add_argument("--dead-band", metavar="SHARE", help="smallest effect that matters (2%%)")
    parser.add_argument("--seed", type=int, metavar="N", help="of data and of order")
    parser.add_argument(
        "--accept-unknown",
        action="store_true",
        help="give verdicts where the pages behind the memory could not be told",
    )
    parser.add_argument(
        "--reserve-hugepages",
        action="store_true",
        help="add the huge pages the plan needs, and take them out at the end (root)",
    )
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Measure every actor alone, then the mix under its remedies."""
    from bench.commands import _remedy
    from bench.commands._remedy_request import Request
    from bench.commands._session import check_resume

    if args.resume:
        check_resume(args)
        return _remedy.go_on(Path(args.resume), args.json)
    if args.samples is not None and args.samples < 6:
        raise UsageError(f"{args.samples} samples give no interval", "--samples 6, or more")
    request = Request.of(args, args.budget or BUDGET)
    if args.dry_run:
        _remedy.preview(request, sys.stdout, args.json)
        return 0
    from bench.commands._session import default_folder

    folder = Path(args.output) if args.output else default_folder()
    return _remedy.begin(folder, request, args.json)
