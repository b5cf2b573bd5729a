"""``bench attribute``: why a victim is slow beside an aggressor, without hardware counters."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import UsageError

if TYPE_CHECKING:
    from bench.commands._session import Session

SUMMARY = "tell bandwidth, cache, interrupts, locks and TLB apart as causes of a slowdown"
EPILOG = """  {prog} attribute                          a reader beside a storm of unmapping
  {prog} attribute chase "scan[op=copy,store=nt]"
  {prog} attribute gather spmv --threads 8 --budget 5m
  {prog} attribute --resume DIR"""

VICTIM, AGGRESSOR = "scan[op=read]", "storm[chunk=4096]"
ROUNDS = 12
BUDGET = "3m"
VICTIM_BYTES, CHURN_BYTES = 64 << 20, 1 << 20
CACHE_SHARE = 0.75
"""Of the last-level cache: filled, without traffic of its own."""
LEAST_CACHE = 4 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    from bench.commands.run import add_output_arguments

    parser.add_argument("victim", nargs="?", metavar="VICTIM", help=f"a kernel ({VICTIM})")
    parser.add_argument("aggressor", nargs="?", metavar="AGGRESSOR", help=f"({AGGRESSOR})")
    parser.add_argument("--threads", type=int, metavar="N", help="of the aggressor (1)")
    parser.add_argument("--size", metavar="SIZE", help="memory of the victim (64MiB)")
    parser.add_argument("--samples", type=int, metavar="N", help=f"rounds ({ROUNDS})")
    parser.add_argument("--window", metavar="TIME", help="length of one sample's window (150ms)")
    parser.add_argument("--budget", metavar="TIME", help=f"for everything ({BUDGET})")
    parser.add_argument("--seed", type=int, metavar="N", help="of data and of order")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Measure every mix of the contrasts, then print them."""
    from bench.commands._session import resumed

    session = resumed(args, "attribute") if args.resume else _new_session(args)
    session.tables, session.name = False, "attribute"
    if args.dry_run:
        return session.preview()
    code = session.run()
    show(session.folder, session.options, args.json)
    return code


def _new_session(args: argparse.Namespace) -> "Session":
    from bench import native
    from bench.attribution import mixes
    from bench.blocks import Plan, Settings
    from bench.commands._session import Session, default_folder
    from bench.commands.run import _probe
    from bench.mix import mix_name
    from bench.mixplan import MixPlanner
    from bench.resources import read_resources
    from bench.sizes import last_level
    from bench.units import parse_duration, parse_size

    rounds = ROUNDS if args.samples is None else args.samples
    if rounds < 6:
        raise UsageError(f"{rounds} samples give no interval", "--samples 6, or more")
    resources = read_resources()
    threads = 1 if args.threads is None else args.threads
    if threads < 1:
        raise UsageError("an aggressor has at least one thread", "--threads 1")
    if threads + 1 > resources.threads:
        raise UsageError(
            f"{threads} threads and the victim need {threads + 1} CPUs, {resources.threads} are"
            " usable",
            f"--threads {max(1, resources.threads - 1)}",
        )
    probe = _probe(argparse.Namespace(topology="", dry_run=args.dry_run))
    planner = MixPlanner(native, resources, probe)
    size = parse_size(args.size) if args.size else VICTIM_BYTES
    victim = _actor(args.victim or VICTIM, size, 1, planner)
    aggressor = _actor(args.aggressor or AGGRESSOR, VICTIM_BYTES * threads, threads, planner)
    llc = last_level(resources.topology, resources.allowed, probe)
    cache = max(LEAST_CACHE, int(CACHE_SHARE * llc.bytes) >> 20 << 20)
    named = mixes(victim, aggressor, cache, planner)
    settings = Settings(parse_duration(args.window) if args.window else 0.15, 0.02)
    block, skips = planner.block("attribute", "attribute", [n.mix for n in named], settings)
    if block is None:
        raise UsageError(f"the victim cannot be run here: {skips[0].reason}", skips[0].remedy)
    plan = Plan(
        "attribute",
        (block,),
        rounds,
        args.seed or 1,
        tuple(skips),
        (),
        planner.memory_bytes([block]),
    )
    options = {
        "attribute": {
            "victim": args.victim or VICTIM,
            "aggressor": args.aggressor or AGGRESSOR,
            "mixes": {n.name: mix_name(n.mix) for n in named},
        }
    }
    folder = Path(args.output) if args.output else default_folder()
    budget_s = parse_duration(args.budget or BUDGET)
    return Session(folder, plan, options, as_json=args.json, budget_s=budget_s)


def _actor(word: str, size: int, threads: int, planner: Any) -> Any:  # noqa: ANN401 - both imported late
    from bench.mix import Actor
    from bench.registry import BASE, BEST, param_value
    from bench.sweepfile import kernel_choices

    (choice,) = kernel_choices([word], planner.registry)
    kernel = planner.registry.kernels()[choice.name]
    params = tuple((k, param_value(kernel, k, v[0])) for k, v in choice.params.items())
    variant = kernel.best_variant if choice.variant[0] == BEST else choice.variant[0]
    if kernel.memory == "churn":
        size = CHURN_BYTES * threads
    made = Actor(choice.name, variant, BASE, threads, size if kernel.arrays else 0, params)
    return planner.registry.canonical(made)


def show(folder: Path, options: dict[str, Any], as_json: bool) -> None:
    """Print the result of a folder."""
    from analysis import attribution, report
    from bench.commands._session import dump_json
    from bench.commands._tables import make_console, print_list, print_notes, table
    from bench.schema import SCHEMA

    found = attribution.build(folder, options)
    if as_json:
        dump_json({"schema": SCHEMA, **report.plain(found)}, sys.stdout)
        return
    console = make_console(sys.stdout)
    table(
        console,
        f"time of {found.victim} beside {found.aggressor}, {found.rounds} rounds",
        ("<cause", "ratio", "", "<with", "<without"),
        (
            [
                c.name,
                f"{c.ratio:.2f}" if c.resolved else "not resolved",
                f"[{c.low:.2f}, {c.high:.2f}]",
                c.with_it,
                c.without_it,
            ]
            for c in found.contrasts
        ),
    )
    print_list(console, "so", attribution.in_words(found.contrasts, found.residual))
    print_notes(console, "not measured", found.missing)
    print_list(console, "notes", found.notes)
    print_list(console, "files", found.files)
