"""``bench corun``: who slows whom, every kernel beside every other."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import UsageError

if TYPE_CHECKING:
    from bench.blocks import Skip
    from bench.commands._session import Session
    from bench.corunplan import Matrix, Subject
    from bench.mixplan import MixPlanner
    from bench.resources import Resources
    from bench.sizes import Probe

SUMMARY = "run kernels side by side, and say who slows whom and by how much"
EPILOG = """  {prog} corun                                     the usual kernels, under five minutes
  {prog} corun --kernels "scan[op=read],storm[chunk=4096]" --twins all
  {prog} corun --split 1:1,half --budget 20m
  {prog} corun --resume DIR"""

KERNELS = (
    "scan[op=copy,store=nt]",
    "chase[loads=65536]",
    "storm[chunk=4096]",
    "spmv",
    "gather",
    "msm[points=1024]",
)
"""Most telling first: a budget sheds from the end."""
BUDGET = "4m30s"
ROUNDS, LEAST_ROUNDS = 10, 6
PLANNED = 0.7
"""Of the budget that the fewest rounds may take by the estimate: busy hosts take longer."""
LEAST_SIZE, THREAD_SIZE, MOST_SIZE = 64 << 20, 32 << 20, 256 << 20
"""Of an arena by default, at most: so much a thread, but not under the first nor over the last.
Larger ones take longer to fill than to measure."""
CHURN_SIZE = 4 << 20
"""Memory that is released again needs no more than a few chunks."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    from bench.commands.run import add_output_arguments

    parser.add_argument("--kernels", metavar="LIST", help="e.g. scan[op=read],chase,storm or all")
    parser.add_argument(
        "--split", metavar="LIST", help="threads, victim:aggressor: half (default), 1:1, 2:6"
    )
    parser.add_argument(
        "--twins",
        choices=("churn", "all", "none"),
        default=None,
        help="pairs also measured in two processes: those that release memory (default), all, none",
    )
    parser.add_argument("--pages", default=None, metavar="POLICY", help="page policy (base)")
    parser.add_argument(
        "--size", metavar="SIZE", help="arena of each actor (beyond the caches, 256MiB at most)"
    )
    parser.add_argument("--samples", type=int, metavar="N", help=f"rounds ({ROUNDS})")
    parser.add_argument("--window", metavar="TIME", help="length of one sample's window (120ms)")
    parser.add_argument("--budget", metavar="TIME", help=f"for everything ({BUDGET})")
    parser.add_argument("--max-memory", metavar="SIZE", help="live memory of a sample (a quarter)")
    parser.add_argument("--dead-band", metavar="SHARE", help="smallest effect that matters (2%%)")
    parser.add_argument("--seed", type=int, metavar="N", help="of data and of order")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Measure the matrix, then print it."""
    from bench.commands._session import resumed

    session = resumed(args, "corun") if args.resume else _new_session(args)
    session.tables, session.name = False, "corun"
    if args.dry_run:
        return session.preview()
    code = session.run()
    show(session.folder, session.options, args.json)
    return code


def _new_session(args: argparse.Namespace) -> "Session":
    from bench.commands._session import Session, default_folder, parse_share
    from bench.units import parse_duration

    budget_s = parse_duration(args.budget or BUDGET)
    made = plan(args, budget_s)
    chosen = options(made, parse_share(args.dead_band) or 0.02)
    folder = Path(args.output) if args.output else default_folder()
    return Session(folder, made.plan, chosen, as_json=args.json, budget_s=budget_s * 0.95)


def options(made: "Matrix", dead_band: float) -> dict[str, Any]:
    """What the report must know of a plan: kernels, and what each mix is for."""
    pairs = [case for case in made.cases if case.kind == "pair"]
    return {
        "dead_band": dead_band,
        "corun": {
            "kernels": list(dict.fromkeys(case.first for case in pairs)),
            "cases": [case.plain() for case in made.cases],
        },
    }


def plan(args: argparse.Namespace, budget_s: float) -> "Matrix":
    """Plan the matrix that the flags ask for."""
    from bench import native
    from bench.blocks import Settings
    from bench.commands.run import _probe
    from bench.corunplan import make, parse_split
    from bench.mixplan import MixPlanner
    from bench.resources import read_resources
    from bench.units import parse_duration, parse_size

    rounds = ROUNDS if args.samples is None else args.samples
    if rounds < LEAST_ROUNDS:
        raise UsageError(f"{rounds} samples give no interval", f"--samples {LEAST_ROUNDS}, or more")
    resources = read_resources()
    probe = _probe(argparse.Namespace(topology="", dry_run=args.dry_run))
    planner = MixPlanner(
        native,
        resources,
        probe,
        parse_size(args.max_memory) if args.max_memory else None,
    )
    if resources.threads < 2:
        raise UsageError("a matrix needs two CPUs, and this process may use one")
    size, notes = _size(args, resources, probe)
    subjects, skips = _subjects(args, planner, size)
    splits = [
        parse_split(text.strip(), resources.threads) for text in (args.split or "half").split(",")
    ]
    made = make(
        subjects,
        list(dict.fromkeys(splits)),
        args.twins or "churn",
        planner,
        Settings(parse_duration(args.window) if args.window else 0.12, 0.02),
        rounds,
        LEAST_ROUNDS,
        budget_s * PLANNED,
        args.seed or 1,
        skips,
    )
    made.plan = replace(made.plan, notes=notes)
    return made


def _size(
    args: argparse.Namespace, resources: "Resources", probe: "Probe"
) -> tuple[int, tuple[str, ...]]:
    """Arena of kernels that keep their memory, and what must be said about it."""
    from bench.sizes import bandwidth_size, last_level, power_of_two
    from bench.units import format_size, parse_size

    if args.size:
        return parse_size(args.size), ()
    llc = last_level(resources.topology, resources.allowed, probe)
    size = bandwidth_size(llc, resources.page_bytes, probe)
    most = min(MOST_SIZE, max(LEAST_SIZE, power_of_two(THREAD_SIZE * (resources.threads // 2))))
    if size <= most:
        return size, ()
    return most, (
        f"arenas of {format_size(most)} are partly held by last-level caches of"
        f" {format_size(llc.bytes)}; --size {format_size(size)} is beyond them",
    )


def _subjects(
    args: argparse.Namespace, planner: "MixPlanner", size: int
) -> tuple[list["Subject"], list["Skip"]]:
    """Kernels of the matrix; of the default ones those that this build has."""
    from bench.blocks import Skip
    from bench.corunplan import Subject
    from bench.mix import Actor
    from bench.registry import BASE, BEST, param_value
    from bench.spinners import KERNEL as SPIN
    from bench.sweepfile import kernel_choices

    registry = planner.registry
    known = registry.kernels()
    words = list(KERNELS)
    skips = []
    if args.kernels == "all":
        words = [name for name in known if name not in (SPIN, "sleep")]
    elif args.kernels:
        words = [args.kernels]
    else:
        gone = [w for w in words if w.partition("[")[0] not in known]
        skips = [Skip(w, "this build has no such kernel") for w in gone]
        words = [w for w in words if w not in gone]
    found: dict[str, Subject] = {}
    for choice in kernel_choices(words, registry):
        kernel = known[choice.name]
        if choice.name == SPIN:
            raise UsageError("spin stands beside every kernel in any case", "leave it out")
        for variant in choice.variant:
            params = tuple(
                (key, param_value(kernel, key, values[0])) for key, values in choice.params.items()
            )
            own = CHURN_SIZE if kernel.memory == "churn" and not args.size else size
            actor = registry.canonical(
                Actor(
                    choice.name,
                    kernel.best_variant if variant == BEST else variant,
                    args.pages or BASE,
                    1,
                    own if kernel.arrays else 0,
                    params,
                )
            )
            told = ",".join(f"{key}={value}" for key, value in actor.params)
            label = f"{actor.kernel}[{told}]" if told else actor.kernel
            found[label] = Subject(label, actor)
    if not found:
        raise UsageError("no kernel is left", "name some with --kernels")
    return list(found.values()), skips


def show(folder: Path, options: dict[str, Any], as_json: bool) -> None:
    """Print the result of a folder."""
    from analysis import corun, report
    from bench.cli import program_name
    from bench.commands._session import dump_json
    from bench.schema import SCHEMA

    found = corun.build(folder, program_name(), options)
    if as_json:
        dump_json({"schema": SCHEMA, **report.plain(found)}, sys.stdout)
        return
    from bench.commands._corun_view import show as lay_out

    lay_out(found, sys.stdout)
