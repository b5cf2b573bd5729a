"""``bench try``: a command of the user's under remedies that touch nothing but its processes."""

import argparse
import os
import stat
import sys
from pathlib import Path

from bench.errors import UsageError

SUMMARY = "run your own command under remedies, and say which of them pays"
EPILOG = """  {prog} try -- sort -n big.txt -o /dev/null
  {prog} try --remedies thp,cap:4,keep+threads:8 --budget 20m -- ./server-bench
  {prog} try --metric 'SET: ([0-9.]+) requests' --higher-is-better -- ./load.sh
  {prog} try --remedies none -- ./job      how often noise passes for an effect
  {prog} try --dry-run -- ./job            what each remedy would change
  {prog} try --resume DIR"""

BUDGET = "10m"
ROUNDS = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    from bench.commands.run import add_output_arguments

    parser.add_argument("argv", nargs="*", metavar="CMD", help="after --: the command to try")
    parser.add_argument("--remedies", metavar="LIST", help="only these: thp,nothp,cap:4,keep,none")
    parser.add_argument(
        "--metric",
        metavar="REGEX",
        help="judge by a number it prints, the group of the last match on stdout, else stderr;"
        " or cpu, its processor time; or time, exec to exit, which is the default",
    )
    parser.add_argument(
        "--higher-is-better", action="store_true", help="the metric is a rate, not a time"
    )
    parser.add_argument(
        "--rounds", type=int, metavar="N", help=f"most fresh runs of each ({ROUNDS})"
    )
    parser.add_argument("--budget", metavar="TIME", help=f"for everything ({BUDGET})")
    parser.add_argument(
        "--timeout", metavar="TIME", help="of one run (20 times the first, a minute at least)"
    )
    parser.add_argument("--dead-band", metavar="SHARE", help="smallest effect that matters (2%%)")
    parser.add_argument("--stdin", metavar="FILE", help="what every run reads (nothing)")
    parser.add_argument(
        "--show-output",
        action="store_true",
        help="let it write here instead of into files of the output directory",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of the order of runs (1)")
    parser.add_argument(
        "--reserve-hugepages",
        metavar="SIZE",
        help="add so much to the pool of huge pages, and take it out at the end (root)",
    )
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command as it is and under remedies."""
    from bench.commands import _try
    from bench.commands._session import check_resume, default_folder, parse_share
    from bench.metric import Metric
    from bench.tryrun import Command
    from bench.units import parse_duration

    if args.resume:
        check_resume(args)
        return _try.go_on(Path(args.resume), args.json)
    rounds = ROUNDS if args.rounds is None else args.rounds
    metric = Metric.of(args.metric, args.higher_is_better)
    if metric.printed and args.show_output:
        raise UsageError(
            "--show-output leaves nothing to read a metric from", "leave out one of the two"
        )
    command = Command.of(
        args.argv,
        stdin=_standard_input(args.stdin),
        timeout_s=_positive("--timeout", args.timeout),
        show_output=args.show_output,
        show_on_stderr=args.json,
    )
    request = _try.Request(
        command,
        metric,
        _remedies(args.remedies),
        _positive("--budget", args.budget) or parse_duration(BUDGET),
        rounds,
        parse_share(args.dead_band) or 0.02,
        1 if args.seed is None else args.seed,
        _pages(args.reserve_hugepages),
    )
    folder = Path(args.output) if args.output else default_folder()
    return _try.begin(folder, request, args.json, args.dry_run)


def _positive(flag: str, text: str | None) -> float | None:
    """Seconds that a flag gives; None where it was not given."""
    from bench.units import parse_duration

    if text is None:
        return None
    seconds = parse_duration(text)
    if seconds <= 0:
        raise UsageError(f"{flag} {text} leaves no time to run", f"{flag} 5m, or leave it out")
    return seconds


def _remedies(text: str | None) -> list[str]:
    from bench.tryremedies import DEFAULT, parse

    names = list(DEFAULT) if text is None else text.split(",")
    for name in names:  # before anything else is looked at
        parse(name)
    return names


def _pages(text: str | None) -> dict[int, int]:
    from bench.sysfs import keyed_kib, read_text
    from bench.units import parse_size

    if not text:
        return {}
    page = keyed_kib(read_text(Path("/proc/meminfo")), "Hugepagesize")
    if not page:
        raise UsageError("this kernel has no huge pages to reserve", "leave it out")
    return {page: -(-parse_size(text) // page)}


def _standard_input(name: str | None) -> str:
    """File that every run reads from its beginning: what is piped in can be read once only."""
    if name:
        path = Path(name).absolute()
        if not path.is_file():
            raise UsageError(f"--stdin {name}: no such file", "every run reads it anew")
        return str(path)
    try:
        if stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode):
            return str(Path("/proc/self/fd/0").readlink())
        if stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode):
            sys.stderr.write("what is piped in is not read; give a file with --stdin\n")
    except (OSError, ValueError, AttributeError):
        pass
    return os.devnull
