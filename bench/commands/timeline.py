"""``bench timeline``: what the log of a pipeline says about overlap."""

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.timeline.summary import TimelineReport
    from analysis.timeline.tables import Section

SUMMARY = "overlap, gaps and throughput of a pipeline, from its log"
EPILOG = """  {prog} timeline prover.log                   tables
  {prog} timeline prover.log -o report.html    a page with pictures; or .md, .png, .json
  docker logs prover 2>&1 | {prog} timeline -
  {prog} timeline one.log.gz two.log.gz --json
  {prog} timeline prover.log --stated synth=54s,pw=10,s_per_proof=37
                                               can these figures all be means?
  {prog} timeline --stated synth=54s,pw=10,s_per_proof=37,items=10
                                               without a log

records: TIMELINE,<ms>,<EVENT>,<job>,<key=value,...> anywhere in a line, between other lines.
Events: SYNTH_START/END, CHAN_SEND or GPU_QUEUE, GPU_PICKUP, GPU_START/END with partition= and
worker=; TASK_START/END with task=, worker= and item=. How to read it: docs/timeline.md"""
ROOM = 16
"""Columns for text that may be broken."""
FORMATS = (".html", ".md", ".json", ".png")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "logs", nargs="*", metavar="LOG", help="log files, plain or gzip; - is standard input"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        default=[],
        metavar="FILE",
        help=f"also write a report: {', '.join(FORMATS)}; may be given several times",
    )
    parser.add_argument(
        "--stated",
        metavar="FIGURES",
        help="means to check: PHASE=54s, PHASE.limit=10 (pw, gw), items=10, s_per_job=37",
    )
    parser.add_argument(
        "--waits",
        metavar="PHASES",
        help="phases in which nothing is done, besides send, queue and pickup",
    )
    parser.add_argument(
        "--dead-band",
        type=float,
        default=0.02,
        metavar="X",
        help="change of a duration that is of no interest (0.02)",
    )


def run(args: argparse.Namespace) -> int:
    """Read logs, print what they say, write reports; 2 for a log without a single span."""
    from analysis.timeline.events import WAITS
    from analysis.timeline.littles_law import parse_stated
    from analysis.timeline.reading import read_log
    from analysis.timeline.summary import summarise
    from bench.errors import UsageError

    stated = parse_stated(args.stated) if args.stated else None
    if not args.logs and not stated:
        raise UsageError("no log given", "name log files, or - for stdin, or --stated FIGURES")
    for name in args.output:
        if Path(name).suffix not in FORMATS:
            raise UsageError(f"cannot write {name}", f"name it {', '.join(FORMATS)}")
        # Before a long log is read, not after it.
        if not Path(name).parent.is_dir():
            raise UsageError(f"cannot write {name}: there is no such folder", "choose another -o")
    if not 0 <= args.dead_band < math.inf:
        raise UsageError("--dead-band must be 0 or more")
    waits = WAITS | set(filter(None, (args.waits or "").split(",")))
    log = read_log(*args.logs, waits=waits)
    report = summarise(log, stated, args.dead_band)
    if args.logs and not report.runs and not report.timings:
        raise UsageError(
            f"nothing to read in {', '.join(args.logs)}: {log.lines} lines, {log.records} records",
            "records are TIMELINE,<ms>,<EVENT>,<job>,<key=value,...>; see --help for the events",
        )
    if args.json:
        sys.stdout.write(report.json())
    else:
        _show(report)
    for name in args.output:
        _write(report, Path(name))
    return 0


def _show(report: "TimelineReport") -> None:
    from analysis.timeline.tables import report_sections
    from bench.commands._tables import make_console, print_list, table

    console = make_console(sys.stdout)
    for section in report_sections(report):
        if section.rows:
            # A table that does not fit is printed wide: a number must not lose its digits.
            width = console.width
            console.width = max(width, _least_width(section))
            table(console, section.title, section.columns, section.rows)
            console.width = width
            for line in section.lines:
                console.print(f"  {line}", markup=False)
        elif section.lines:
            print_list(console, section.title, section.lines)
        else:
            console.print(section.title, style="bold", markup=False, soft_wrap=True)


def _least_width(section: "Section") -> int:
    """Columns it takes; text that may be broken is given some room."""
    widths = []
    for name, *cells in zip(section.columns, *section.rows, strict=True):
        longest = max(map(len, (name.lstrip("<|"), *cells)))
        widths.append(min(longest, ROOM) if name.startswith("<") else longest)
    return sum(widths) + 2 * len(widths) + 2


def _write(report: "TimelineReport", path: Path) -> None:
    from bench.errors import PagestormError

    try:
        if path.suffix == ".png":
            _write_plots(report, path)
        else:
            path.write_text(_text(report, path.suffix), encoding="utf-8")
    except OSError as error:
        raise PagestormError(
            f"cannot write {path}: {error.strerror}", "choose another -o"
        ) from error


def _text(report: "TimelineReport", suffix: str) -> str:
    from analysis.timeline.page import page, report_markdown

    if suffix == ".json":
        return report.json()
    return report_markdown(report) if suffix == ".md" else page(report)


def _write_plots(report: "TimelineReport", path: Path) -> None:
    """One picture a run; from the second on with its number in the name."""
    from analysis.timeline.page import needs_matplotlib
    from analysis.timeline.plot import write_plots

    needs_matplotlib()
    for number, one in enumerate(report.runs, 1):
        write_plots(one, path if number == 1 else path.with_stem(f"{path.stem}-{number}"))
