"""``bench crosscheck``: whether our speeds agree with those of other tools."""

import argparse
import dataclasses
import json
import math
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.crosscheck import Comparison

SUMMARY = "Compare scan and chase with likwid-bench and an independent pointer chase."
EPILOG = """  {prog} crosscheck
  {prog} crosscheck load_avx chase --threads 1 --rounds 20
  {prog} crosscheck --json > crosscheck.json

A ratio is the median of ours over theirs, pair by pair, with a 95 % interval; above 1 we are
faster. It takes about 2 s a pair: 5 minutes as it stands."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "names", nargs="*", metavar="TEST", help="likwid-bench tests, or chase (default: all)"
    )
    parser.add_argument("--threads", default="1,2", help="counts, comma-separated (default 1,2)")
    parser.add_argument("--rounds", type=int, default=12, help="pairs of each (default 12)")
    parser.add_argument(
        "--size", default="244MiB", help="all arrays of a test together (default 244MiB)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the order (default 1)")
    parser.add_argument("--json", action="store_true", help="print every pair as JSON")


def run(args: argparse.Namespace) -> int:
    """Compare, then print a table or JSON."""
    from bench import crosscheck
    from bench.errors import UsageError
    from bench.units import parse_size

    counts = args.threads.split(",")
    if not all(count.isdigit() and int(count) > 0 for count in counts):
        raise UsageError(f"not thread counts: {args.threads!r}", "write --threads 1,2")
    if args.rounds < 1:
        raise UsageError(f"--rounds is at least 1, not {args.rounds}")
    settings = crosscheck.Settings(
        rounds=args.rounds,
        threads=tuple(int(count) for count in counts),
        n_bytes=parse_size(args.size),
        seed=args.seed,
    )
    results = crosscheck.compare(
        crosscheck.chosen(args.names), settings, lambda text: print(text, file=sys.stderr)
    )
    rows = [summary(result) for result in results]
    if args.json:
        report = {"settings": dataclasses.asdict(settings), "comparisons": rows}
        print(json.dumps(report, indent=1))
    else:
        print_table(rows)
    return 0


def summary(result: "Comparison") -> dict[str, Any]:
    """A comparison with what its pairs come to."""
    from collections import Counter
    from statistics import median

    from analysis.intervals import median_interval, pairs_needed
    from analysis.stats import paired_log_ratio

    row = dataclasses.asdict(result)
    if not result.pairs:
        return row
    ours = [pair.ours for pair in result.pairs]
    theirs = [pair.theirs for pair in result.pairs]
    ratios = paired_log_ratio(ours, theirs)
    row["ratio"] = math.exp(median(ratios))
    if len(ratios) >= pairs_needed():
        interval = median_interval(ratios)
        row["low"], row["high"] = math.exp(interval.low), math.exp(interval.high)
        row["coverage"] = interval.coverage
    row["median_ours"], row["median_theirs"] = median(ours), median(theirs)
    row["states"] = dict(Counter(pair.state for pair in result.pairs))
    return row


def print_table(rows: list[dict[str, Any]]) -> None:
    """One line a comparison: bandwidths in GB/s, chases in ns a load."""
    print(f"{'theirs':18} {'thr':>3} {'pages':5} {'ours':>9} {'theirs':>9}  ratio   95 % interval")
    for row in rows:
        start = f"{row['name']:18} {row['threads']:3}"
        if row["skipped"]:
            print(f"{start} skipped: {row['skipped']}")
            continue
        ours, theirs = (_speed(row["unit"], row[key]) for key in ("median_ours", "median_theirs"))
        interval = f"{row['low']:.3f} to {row['high']:.3f}" if "low" in row else "under 6 pairs"
        states = " ".join(f"{count} {state}" for state, count in row["states"].items())
        print(
            f"{start} {row['pages']:5} {ours:>9} {theirs:>9}  {row['ratio']:.3f}"
            f"   {interval}   {states}"
        )


def _speed(unit: str, rate: float) -> str:
    return f"{rate / 1e9:.1f} GB/s" if unit == "byte" else f"{1e9 / rate:.1f} ns"
