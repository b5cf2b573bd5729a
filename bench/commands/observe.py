"""``bench observe``: a running process from outside, and what could matter to it."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import PagestormError, UsageError
from bench.sysfs import exists, is_folder

if TYPE_CHECKING:
    from bench.observe.known import Known
    from bench.observe.target import Target

SUMMARY = "look at a running process, and say which mechanisms could matter to it and which cannot"
EPILOG = """  {prog} observe --pid 4711                   for 30 s, as the user it belongs to
  {prog} observe --pid 4711 --children --for 2m
  {prog} observe --cgroup system.slice/my.service -o scenario.toml
  {prog} observe --pid 4711 --for 5s --json

It reads /proc and control groups, changes nothing, and ends early on ^C with what is known."""

SECONDS, INTERVAL = "30s", "200ms"
SHORTEST_INTERVAL_S = 0.01
"""Of the order of what a look at a program of some hundred threads takes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--pid", type=int, metavar="N", help="process to look at")
    target.add_argument("--cgroup", metavar="PATH", help="control group: all processes in it")
    parser.add_argument("--children", action="store_true", help="with what the process started")
    parser.add_argument(
        "--for", dest="seconds", default=SECONDS, metavar="TIME", help=f"how long ({SECONDS})"
    )
    parser.add_argument(
        "--interval",
        default=INTERVAL,
        metavar="TIME",
        help=f"between looks ({INTERVAL}); longer by itself where a look is costly",
    )
    parser.add_argument(
        "--no-page-walk",
        action="store_true",
        help="do not ask which pages memory is on: for a huge process that maps and unmaps, whose"
        " calls may wait meanwhile",
    )
    parser.add_argument("--json", action="store_true", help="print data instead of tables")
    parser.add_argument("-o", "--output", metavar="FILE", help="write a scenario for `remedy`")


def run(args: argparse.Namespace) -> int:
    """Look, judge, print; 130 where ^C ended it early."""
    from bench.commands import _observe_view
    from bench.commands._session import INTERRUPTED
    from bench.observe.causes import findings
    from bench.observe.figures import summarise
    from bench.observe.sampler import Sampler, Settings
    from bench.observe.skeleton import skeleton
    from bench.observe.unread import unread
    from bench.stop import Stop
    from bench.units import format_duration, parse_duration

    settings = Settings(
        parse_duration(args.seconds), parse_duration(args.interval), not args.no_page_walk
    )
    if settings.seconds <= 0 or settings.interval_s < SHORTEST_INTERVAL_S:
        raise UsageError(
            f"--for {args.seconds} --interval {args.interval} gives no sensible window",
            f"--for 30s, and an interval of {format_duration(SHORTEST_INTERVAL_S)} or more",
        )
    if args.children and args.cgroup:
        raise UsageError("--children goes with --pid", "a control group has all of them anyway")
    if args.cgroup == "":
        raise UsageError("--cgroup names no group", "--cgroup / is the whole hierarchy")
    if args.output:
        _check_output(Path(args.output))
    target = _target(args)
    command = _command_line(target)
    known = _known()
    print(
        f"observing {target.name} for {format_duration(settings.seconds)}; ^C ends it early",
        file=sys.stderr,
    )
    with Stop() as stop:
        recording = Sampler(target, settings).run(stop)
    seen = summarise(recording)
    if not seen.processes:
        raise PagestormError(f"{target.name} ended before it could be looked at")
    judged = findings(seen, known)
    if args.output:
        _write(Path(args.output), skeleton(seen, known))
    missing = unread(seen, settings.walk, target.folder is not None)
    page = _observe_view.Page(seen, judged, missing, known, command, args.output or "")
    if args.json:
        _observe_view.dump(page)
    else:
        _observe_view.show(page)
    return INTERRUPTED if seen.ended == "user" else 0


def _target(args: argparse.Namespace) -> "Target":
    from bench.observe.target import group_target, process_target

    root = Path("/")
    if args.cgroup is not None:
        return group_target(root, args.cgroup)
    return process_target(root, args.pid, args.children)


def _command_line(target: "Target") -> str:
    """How the target was started, as a shell takes it; empty for a group or a long line."""
    import shlex

    from bench.sysfs import read_text

    if target.pid is None:
        return ""
    text = (read_text(target.root / f"proc/{target.pid}/cmdline") or "").rstrip("\0")
    line = shlex.join(text.split("\0")) if text else ""
    return line if len(line) <= LONGEST_LINE and line.isprintable() else ""


LONGEST_LINE = 200
"""Of a command that is repeated in a proposed one."""


def _known() -> "Known":
    """The host with what was measured of it since it booted; nothing is measured now."""
    from bench import probe
    from bench.observe.known import read_known

    measured = probe.read_cache()
    if measured is None:
        return read_known()
    try:
        concluded = probe.known_probe()
    except PagestormError:  # without the extension page sizes are not known
        return read_known()
    cost_ns = measured.shootdown_ns.get("shootdown")
    cost_s = cost_ns * 1e-9 if cost_ns is not None and cost_ns > 0 else None
    return read_known(probe=concluded, shootdown_s=cost_s)


def _check_output(path: Path) -> None:
    """Refuse before the window what could not be written after it."""
    if exists(path):
        raise UsageError(f"{path} exists already", "-o with another name, or remove it")
    if not is_folder(path.parent):
        raise UsageError(f"cannot write {path}: no folder {path.parent}", "-o with another path")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(
            f"cannot write {path}: {path.parent} is not yours to write", "-o with another path"
        )


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", "-o with another path") from None
