"""``bench aa``: equal against equal, half against whole; may verdicts be trusted here."""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import PagestormError, UsageError

if TYPE_CHECKING:
    from bench.blocks import Block, Plan
    from bench.commands._session import Session
    from bench.mix import Actor

SUMMARY = "compare equal cases many times: how often does noise pass for a difference?"
EPILOG = """  {prog} aa                          200 comparisons of a scan with itself
  {prog} aa --case chase/scalar/thp/2t/64MiB --comparisons 50
  {prog} aa --scenario prover        20 comparisons of a whole scenario, as remedies are judged
  {prog} aa --resume DIR"""

EQUAL, HALF = "equal", "half"
HALF_BLOCKS = 4
WINDOW, COMPARISONS, SCENARIOS, SAMPLES = "20ms", 200, 20, 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    from bench.commands.run import add_output_arguments

    parser.add_argument("--case", metavar="NAME", help="a benchmark's name; a scan of 32 MiB")
    parser.add_argument("--scenario", metavar="SCENARIO", help="a TOML file, or a name (prover)")
    parser.add_argument("--window", metavar="TIME", help=f"{WINDOW}, or the scenario's")
    parser.add_argument(
        "--comparisons", type=int, metavar="N", help=f"{COMPARISONS}; {SCENARIOS} of a scenario"
    )
    parser.add_argument("--samples", type=int, metavar="N", help=f"pairs in each ({SAMPLES})")
    parser.add_argument("--seed", type=int, metavar="N", help="of the order of blocks")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, then count verdicts."""
    from bench.commands._session import resumed

    session = resumed(args, "aa", ()) if args.resume else _new_session(args)
    session.tables, session.name = False, "aa"
    if args.dry_run and args.json:
        return session.preview()
    if args.dry_run:
        from bench.units import counted, format_duration

        told = counted(len(session.plan.blocks), "block")
        print(f"{told}, about {format_duration(session.plan.estimate_s)}")
        return 0
    code = session.run()
    return code or show(session.folder, session.options, args.json)


def _new_session(args: argparse.Namespace) -> "Session":
    from bench import native
    from bench.mix import Actor, parse
    from bench.units import MIB, parse_duration

    samples = SAMPLES if args.samples is None else args.samples
    n = (
        (SCENARIOS if args.scenario else COMPARISONS)
        if args.comparisons is None
        else args.comparisons
    )
    if samples < SAMPLES or n < 1:
        raise UsageError("needs at least one comparison of 6 samples")
    options: dict[str, Any] = {}
    if args.scenario and args.case:
        raise UsageError("--scenario and --case are two cases", "give one of them")
    if args.scenario:
        plan, options["aa"] = _scenario_plan(args, n, samples)
        return _session(args, plan, options)
    if args.case:
        mix = parse(args.case).mix
        if len(mix.actors) > 1:
            raise UsageError("only a case of one actor is compared with itself", "leave out the +")
        actor = native.canonical(mix.actors[0])
    else:
        actor = Actor("scan", native.kernel("scan").best_variant, "base", 1, 32 * MIB)
    window_s = parse_duration(args.window or WINDOW)
    # A plan that is only looked at needs no pilot: any rate has as many samples.
    half_rate = 1e9 if args.dry_run else _pilot_rate(actor, window_s) / 2
    plan = make_plan(actor, n, samples, window_s, args.seed or 1, half_rate)
    return _session(args, plan, options)


def _session(args: argparse.Namespace, plan: "Plan", options: dict[str, Any]) -> "Session":
    from bench.commands._session import Session, default_folder

    folder = Path(args.output) if args.output else default_folder()
    return Session(folder, plan, options, as_json=args.json)


def _scenario_plan(args: argparse.Namespace, n: int, rounds: int) -> "tuple[Plan, dict[str, Any]]":
    """Blocks of a scenario's mix twice, and what judging them takes."""
    from bench.blocks import Plan
    from bench.commands._remedy_request import Request
    from bench.mix import Mix
    from bench.scenario import to_plain

    request = Request.of(args)
    planner, _ = request.planner()
    mix = request.scenario.mix
    weights = iter(range(1, 2 * n + 1))
    blocks = []
    for i in range(n):
        # The weight is in the name alone: who is worth what stands in the options.
        twins = [
            Mix((replace(mix.actors[0], weight=float(next(weights))), *mix.actors[1:]), mix.pools)
            for _ in range(2)
        ]
        block, skips = planner.block(f"aa-{i:03d}", EQUAL, twins, request.settings)
        if block is None:
            raise UsageError(f"the scenario cannot be run here: {skips[0].reason}", skips[0].remedy)
        blocks.append(block)
    plan = Plan("aa", tuple(blocks), rounds, request.seed, (), (), planner.memory_bytes(blocks[:1]))
    return plan, {"scenario": to_plain(request.scenario), "dead_band": request.dead_band}


def make_plan(
    actor: "Actor", n: int, rounds: int, window_s: float, seed: int, half_rate: float
) -> "Plan":
    """Blocks of one case twice; then a few of it against itself held to half its speed.

    ``half_rate``: useful bytes a second of all threads at half speed.
    """
    from bench import native
    from bench.blocks import Block, Plan, Settings
    from bench.mix import Mix

    settings = Settings(window_s, 0.002, 3, 10.0)
    weights = iter(range(1, 2 * n + 2 * HALF_BLOCKS + 1))

    placed = _entry(actor, window_s)  # neither weight nor pace moves a thread

    def pair(name: str, question: str, second: "Actor") -> "Block":
        entries = tuple(
            replace(placed, mix=Mix((replace(one, weight=float(next(weights))),)))
            for one in (actor, second)
        )
        return Block(name, question, entries, settings)

    blocks = [pair(f"aa-{i:03d}", EQUAL, actor) for i in range(n)]
    if native.kernel(actor.kernel).sharing == "sliced":
        blocks += [
            pair(f"half-{i}", HALF, replace(actor, pace=float(round(half_rate / actor.threads))))
            for i in range(HALF_BLOCKS)
        ]
    return Plan("aa", tuple(blocks), rounds, seed)


def _entry(actor: "Actor", window_s: float) -> Any:  # noqa: ANN401 - Entry, imported late
    from bench.blocks import Entry
    from bench.mix import Mix
    from bench.place import place
    from bench.resources import read_resources

    mix = Mix((actor,))
    resources = read_resources()
    placed = place(mix, resources.topology, resources.allowed)
    return Entry(mix, placed.cpus, placed.nodes, 0.15 + 2 * window_s)


def _pilot_rate(actor: "Actor", window_s: float) -> float:
    """Useful bytes a second, measured once: what half of it means is not known before."""
    from bench.blocks import Settings
    from bench.runner import make_request
    from bench.spawn import run_worker

    entry = _entry(actor, window_s)
    outcome = run_worker(make_request(entry, Settings(window_s, 0.002), 1), 60.0)
    if outcome is None:
        raise KeyboardInterrupt
    if "error" in outcome.response:
        raise PagestormError(f"the first sample failed: {outcome.response['error']['message']}")
    measured = outcome.response["actors"][0]
    return float(measured["useful_bytes"] / measured["seconds"])


def show(folder: Path, options: dict[str, Any], as_json: bool) -> int:
    """Print the counts of a folder; returns 1 where the rule was wrong more often than it says."""
    from analysis import aa
    from analysis.load import load
    from analysis.paired import Rule
    from bench.scenario import from_plain

    results = load(folder)
    scenario = options.get("aa")
    if scenario:
        rule = Rule(scenario["dead_band"])
        whole = from_plain(scenario["scenario"])
        equal = aa.outcome(aa.judge_totals(results, rule, EQUAL, whole))
        halves, n, pyperf_different = [], 0, 0
    else:
        equal = aa.outcome(aa.judge(results, Rule(), EQUAL))
        halves = aa.judge(results, Rule(), HALF)
        first, second, n = aa.write_pyperf_pair(results, EQUAL, folder)
        pyperf_different = n - not_significant(first, second)
    half = [decision.verdict for decision in halves]
    found = {
        "comparisons": equal.n,
        "different": equal.different,
        "intervals_without_no_change": equal.beyond_zero,
        "at_most": equal.most,
        "pyperf_at_most": aa.most_different(n),
        "verdicts": dict(equal.verdicts),
        "pyperf_comparisons": n,
        "pyperf_different": pyperf_different,
        "half_speed": half,
        "half_speed_ratio": [decision.ratio for decision in halves],
        "folder": str(folder),
    }
    holds = equal.holds and aa.half_is_seen(halves) and pyperf_different <= aa.most_different(n)
    if as_json:
        json.dump(found, sys.stdout, indent=1)
        print()
    else:
        for key, value in found.items():
            print(f"{key.replace('_', ' '):<30}{value}")
        print("the rule keeps its word" if holds else "the rule does NOT keep its word here")
    return 0 if holds else 1


def not_significant(first: Path, second: Path) -> int:
    """How many benchmarks ``pyperf compare_to`` hides because they do not differ."""
    command: Sequence[str] = (sys.executable, "-m", "pyperf", "compare_to", str(first), str(second))
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    match = re.search(r"hidden because not significant \((\d+)\)", said)
    return int(match[1]) if match else 0
