"""``bench crosscheck``: whether our speeds agree with those of tools that people trust already."""

import argparse
import dataclasses
import json
import math
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.crosscheck import Comparison, Settings
    from bench.peer import Peer

SUMMARY = "compare our kernels with other tools on this host: likwid-bench, stress-ng, STREAM …"
EPILOG = """  {prog} crosscheck                       every tool that is here
  {prog} crosscheck --list                which tools there are, and how to get them
  {prog} crosscheck likwid mbw:memcpy --threads 1 --rounds 20
  {prog} crosscheck stream --tool stream=./stream_c.exe
  {prog} crosscheck scipy mkl --threads 1,2 --json

`apt install likwid stress-ng sysbench mbw` gives a host four peers. A ratio is the median of ours
over theirs in speed, pair by pair, with a 95 % interval; above 1 we are faster. A pair takes 2 to 8
seconds; what all of them take is said before the first."""

DEAD_BAND = 0.03
VERDICTS = {
    "helps": "ours faster",
    "hurts": "ours slower",
    "neutral": "agree",
    "cannot tell": "cannot tell",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "names", nargs="*", metavar="PEER[:TEST]", help="tools, or tests of them (default: all)"
    )
    parser.add_argument("--list", action="store_true", help="which tools there are, and what here")
    parser.add_argument(
        "--tool", action="append", default=[], metavar="PEER=PATH", help="a tool not on PATH"
    )
    parser.add_argument("--threads", default="1,2", help="counts, comma-separated (default 1,2)")
    parser.add_argument("--rounds", type=int, default=12, help="pairs of each (default 12)")
    parser.add_argument(
        "--size", default="244MiB", help="all arrays of a test together (default 244MiB)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the order (default 1)")
    parser.add_argument("--json", action="store_true", help="print every pair as JSON")


def run(args: argparse.Namespace) -> int:
    """Compare, then print a table or JSON; 1 where a peer failed on the way."""
    from bench import crosscheck

    settings = _settings(args)
    wanted = crosscheck.chosen(args.names)
    if args.list:
        print_list(list({peer.name: peer for peer, _ in wanted}.values()), settings, args.json)
        return 0
    results: list[Comparison] = []
    try:
        crosscheck.compare(wanted, settings, results, lambda text: print(text, file=sys.stderr))
    except BaseException:
        # Also what an interrupt or a failure of ours leaves is worth having.
        if any(result.pairs for result in results):
            show(results, settings, args.json)
        raise
    show(results, settings, args.json)
    return 1 if any(result.failed for result in results) else 0


def _settings(args: argparse.Namespace) -> "Settings":
    from bench.crosscheck import Settings
    from bench.errors import UsageError, unknown_name
    from bench.peers import peers
    from bench.units import parse_size

    counts = args.threads.split(",")
    if not all(count.isdigit() and int(count) > 0 for count in counts):
        raise UsageError(f"not thread counts: {args.threads!r}", "write --threads 1,2")
    if args.rounds < 1:
        raise UsageError(f"--rounds is at least 1, not {args.rounds}")
    tools = {}
    for word in args.tool:
        name, equals, path = word.partition("=")
        if not equals or not path:
            raise UsageError(f"not a tool and its path: {word!r}", "write --tool stream=./stream")
        if name not in peers():
            raise unknown_name("peer", name, list(peers()))
        tools[name] = path
    return Settings(
        rounds=args.rounds,
        threads=tuple(int(count) for count in counts),
        n_bytes=parse_size(args.size),
        seed=args.seed,
        tools=tools,
    )


def print_list(found: "Sequence[Peer]", settings: "Settings", as_json: bool) -> None:
    """Every peer: whether it is here, its tests, and what its figures mean."""
    import tempfile
    from pathlib import Path

    from bench import peerrun
    from bench.commands._tables import make_console, print_list
    from bench.errors import PagestormError

    rows = []
    for peer in found:
        row: dict[str, Any] = {"peer": peer.name, "summary": peer.summary}
        try:
            with tempfile.TemporaryDirectory(prefix="pagestorm-peers-") as folder:
                ready = peerrun.ready(peer, Path(folder), settings.tools.get(peer.name, ""))
            row.update(here=True, version=ready.version, program=ready.program)
        except PagestormError as error:
            row.update(here=False, why=str(error), way_out=error.remedy)
        row.update(
            tests=[test.name for test in peer.tests],
            counts=peer.counts,
            placement=peer.placement,
            notes=list(peer.notes),
        )
        rows.append(row)
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    console = make_console(sys.stdout)
    for row in rows:
        here = f"here, version {row['version']}" if row["here"] else f"not here: {row['why']}"
        lines = [here] if row["here"] else [here, f"-> {row['way_out']}"]
        lines += [f"tests: {', '.join(row['tests'])}", f"counts: {row['counts']}"]
        lines += [f"where: {row['placement']}", *row["notes"]]
        print_list(console, f"{row['peer']}: {row['summary']}", lines)


def show(results: "list[Comparison]", settings: "Settings", as_json: bool) -> None:
    """Print what is known."""
    rows = [summary(result) for result in results]
    if as_json:
        report = {"settings": dataclasses.asdict(settings), "comparisons": rows}
        print(json.dumps(report, indent=1))
    else:
        print_table(rows)


def summary(result: "Comparison") -> dict[str, Any]:
    """A comparison with what its pairs come to."""
    from collections import Counter
    from statistics import median

    from analysis.stats import decide, paired_log_ratio

    row = {"name": result.name, **dataclasses.asdict(result)}
    if not result.pairs:
        return row
    ours = [pair.ours for pair in result.pairs]
    theirs = [pair.theirs for pair in result.pairs]
    found = decide(paired_log_ratio(ours, theirs), DEAD_BAND, lower_is_better=False)
    row["ratio"], row["finding"] = found.ratio, VERDICTS[found.verdict]
    if math.isfinite(found.high):
        row["low"], row["high"], row["coverage"] = found.low, found.high, found.coverage
    row["median_ours"], row["median_theirs"] = median(ours), median(theirs)
    row["states"] = dict(Counter(pair.state for pair in result.pairs))
    return row


def print_table(rows: list[dict[str, Any]]) -> None:
    """One line a comparison, then what explains it, then what was skipped."""
    from bench.commands._tables import make_console, print_list, print_notes, table

    console = make_console(sys.stdout)
    measured = [row for row in rows if row["pairs"]]
    for name in dict.fromkeys(row["peer"] for row in measured):
        for unit, words in (("byte", "GB/s"), ("load", "ns a load")):
            table(
                console,
                f"{name}, {words}",
                ("|test", "|where", "ours", "theirs", "ours/theirs in speed", "|finding"),
                (
                    [
                        row["test"],
                        f"{row['threads']}t {row['pages']}",
                        *(_speed(unit, row[key]) for key in ("median_ours", "median_theirs")),
                        _ratio(row),
                        row["finding"],
                    ]
                    for row in measured
                    if (row["peer"], row["unit"]) == (name, unit)
                ),
            )
    if measured:
        console.print(f"agree: the whole interval lies within {DEAD_BAND:.0%} of 1\n")
    print_list(console, "known differences", _differences(measured))
    print_list(console, "what they count, and where they run", _meanings(measured))
    failures = [
        f"{row['name']} {row['threads']}t: {row['failed']}" for row in rows if row["failed"]
    ]
    print_list(console, "failed on the way", failures)
    print_notes(console, "skipped", _skips(rows))


def _differences(measured: list[dict[str, Any]]) -> list[str]:
    """What is known of the tests that do not simply agree."""
    from bench.peers import peers

    lines = []
    for row in measured:
        test = peers()[row["peer"]].test(row["test"])
        if test is not None and test.differs and row["finding"] != VERDICTS["neutral"]:
            lines.append(f"{row['name']}: {test.differs}")
        if row["other_pages"]:
            lines.append(
                f"{row['name']}: {row['other_pages']} pairs left out: theirs got other pages"
            )
    return list(dict.fromkeys(lines))


def _meanings(measured: list[dict[str, Any]]) -> list[str]:
    from bench.peers import peers

    lines = []
    for name in dict.fromkeys(row["peer"] for row in measured):
        peer = peers()[name]
        version = next(row["version"] for row in measured if row["peer"] == name)
        known = "" if version in ("unknown", "ours") else f" {version}"
        lines.append("; ".join((f"{name}{known}: {peer.counts}", peer.placement, *peer.notes)))
    return lines


def _skips(rows: list[dict[str, Any]]) -> list[Any]:
    """One note a peer and reason, however many of its tests it took away."""
    from analysis.report import Note

    told: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row["skipped"]:
            key = (row["peer"], row["skipped"], row["way_out"])
            told.setdefault(key, []).append(f"{row['test']} {row['threads']}t")
    every = {name: sum(row["peer"] == name for row in rows) for name in {r["peer"] for r in rows}}
    return [
        Note(peer if len(tests) == every[peer] else f"{peer}:{', '.join(tests)}", reason, way_out)
        for (peer, reason, way_out), tests in told.items()
    ]


def _speed(unit: str, rate: float) -> str:
    return f"{rate / 1e9:.1f}" if unit == "byte" else f"{1e9 / rate:.0f}"


def _ratio(row: dict[str, Any]) -> str:
    low, high = (f"{row[key]:.3f}" if key in row else "?" for key in ("low", "high"))
    return f"{row['ratio']:.3f} [{low}, {high}]"
