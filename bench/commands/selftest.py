"""``bench selftest``: whether every kernel computes what it should on this CPU."""

import argparse
import dataclasses
import json

SUMMARY = "check every kernel, variant and choice on tiny arrays (about two seconds)"
EPILOG = """  {prog} selftest
  {prog} selftest scan chase"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="these only (default: all)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--refused", action="store_true", help="list what kernels refuse, and why")


def run(args: argparse.Namespace) -> int:
    """Test, print one line a kernel; 1 where anything differs."""
    from bench import selftest

    reports = []
    for report in selftest.reports(args.kernels):
        reports.append(report)
        if args.json:
            continue
        verdict = "ok" if report.ok else "FAILED"
        print(
            f"{report.kernel:8} {verdict:6} {report.cases:4} cases, {len(report.refused):3} refused"
            f"  {report.seconds:5.2f} s  {' '.join(report.variants)}",
            flush=True,
        )
        for line in report.failures:
            print(f"  {line}")
        for line in report.refused if args.refused else ():
            print(f"  refused: {line}")
    if args.json:
        rows = [{**dataclasses.asdict(report), "ok": report.ok} for report in reports]
        print(json.dumps(rows, indent=1))
    return 0 if all(report.ok for report in reports) else 1
