"""``bench run``: measure what this host's memory does, and say what pays."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import UsageError

if TYPE_CHECKING:
    from bench.blocks import Plan
    from bench.commands._session import Session
    from bench.sizes import Probe
    from bench.sweep import Config

SUMMARY = "measure bandwidth and latency by kernel, page policy and thread count"
EPILOG = """  {prog} run                                       the quick sweep, about a minute
  {prog} run --preset standard --budget 20m
  {prog} run --kernel scan[op=copy] --pages base,thp --threads 1,2,all
  {prog} run --matrix mine.mtx.gz    with a matrix of your own
  {prog} run --sweep my-sweep.toml --dry-run       what it would do, and how long it takes
  {prog} run --reserve-hugepages                   with the huge pages it needs (root)
  {prog} run --resume DIR                          after an interrupt, a kill, a full disk"""

PRESET = "quick"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    what = parser.add_argument_group("what to measure")
    what.add_argument(
        "--preset", metavar="NAME", help=f"quick, standard, full or another ({PRESET})"
    )
    what.add_argument("--sweep", metavar="FILE", help="a sweep of your own, in TOML")
    what.add_argument(
        "--kernel",
        action="append",
        metavar="NAME[p=v,...]",
        help="only this kernel, with these parameters; may be repeated",
    )
    what.add_argument(
        "--matrix",
        metavar="FILE",
        help="a Matrix Market file (.mtx, .mtx.gz) for the kernels that read one; without --kernel,"
        " only those",
    )
    what.add_argument("--pages", metavar="LIST", help="page policies: base,thp,2m,1g or all")
    what.add_argument("--threads", metavar="LIST", help="counts, or all, cores, quick, ladder")
    what.add_argument("--size", metavar="LIST", help="arenas: 64MiB,1GiB or auto")
    what.add_argument("--working-set", metavar="SIZE", help="size page policies are judged at")
    what.add_argument("--pin", metavar="HOW", help="compact, scatter, none or cpus:0-3,8")
    what.add_argument("--node", metavar="N", help="keep CPUs and memory on this memory node")
    how = parser.add_argument_group("how")
    how.add_argument("--samples", type=int, metavar="N", help="rounds: samples a case, 6 at least")
    how.add_argument("--window", metavar="TIME", help="length of one sample's window: 500ms")
    how.add_argument("--budget", metavar="TIME", help="for everything; sheds cases, not rounds")
    how.add_argument("--max-memory", metavar="SIZE", help="live memory of a sample (a quarter)")
    how.add_argument("--seed", type=int, metavar="N", help="of data and of the order of blocks")
    how.add_argument(
        "--reserve-hugepages",
        action="store_true",
        help="add the huge pages the plan needs, and take them out at the end (root)",
    )
    how.add_argument("--dead-band", metavar="SHARE", help="smallest effect that matters (2%%)")
    how.add_argument(
        "--accept-unknown",
        action="store_true",
        help="give verdicts where the pages behind the memory could not be told",
    )
    add_output_arguments(parser)
    parser.add_argument(
        "--topology", metavar="DIR", help="with --dry-run: plan for a stored copy of /sys and /proc"
    )


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that every command which runs a plan has."""
    out = parser.add_argument_group("output")
    out.add_argument("-o", "--output", metavar="DIR", help="default: pagestorm-out/HOST-UTC")
    out.add_argument("--resume", metavar="DIR", help="go on with the run in DIR")
    out.add_argument("--dry-run", action="store_true", help="print the plan and stop")
    out.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Plan, then measure; or go on with what was begun."""
    if args.resume:
        return _resumed(args).run()
    if args.topology and not args.dry_run:
        raise UsageError("--topology plans for another host", "add --dry-run")
    session = _new_session(args)
    return session.preview() if args.dry_run else session.run()


def _resumed(args: argparse.Namespace) -> "Session":
    from bench.commands._session import resumed

    session = resumed(args, "run", ("budget", "reserve_hugepages"))
    if args.reserve_hugepages or session.options.get("reserve_hugepages"):
        session.reserve = _shortfall(session.plan)
    if session.reserve and not args.reserve_hugepages:
        raise UsageError(
            f"the plan of {args.resume} counts on huge pages that are not in the pools now",
            "add --reserve-hugepages, as when it was begun",
        )
    return session


def _new_session(args: argparse.Namespace) -> "Session":
    from bench import native, sweepfile
    from bench.commands._session import Session, default_folder
    from bench.plan import make_plan
    from bench.resources import read_resources

    if args.sweep and args.preset:
        raise UsageError("--sweep and --preset are two plans", "give one of them")
    preset = args.sweep or args.preset or PRESET
    kernels = args.kernel
    if args.matrix:
        kernels = sweepfile.with_file(args.kernel or [], "--matrix", args.matrix, native)
    config = sweepfile.override(
        sweepfile.load(preset, native),
        {
            "kernels": kernels,
            "pages": args.pages,
            "threads": args.threads,
            "sizes": args.size,
            "working_set": args.working_set,
            "pin": args.pin,
            "node": args.node,
            "rounds": args.samples,
            "window": args.window,
            "budget": args.budget,
            "max_memory": args.max_memory,
            "seed": args.seed,
            "dead_band": args.dead_band,
        },
        native,
    )
    resources = read_resources(Path(args.topology or "/"))
    probe = _probe(args)
    plan = make_plan(
        config,
        resources,
        native,
        preset=preset,
        probe=probe,
        assume_pools=args.reserve_hugepages,
    )
    options: dict[str, Any] = {
        "dead_band": config.dead_band,
        "accept_unknown": args.accept_unknown,
        "reserve_hugepages": args.reserve_hugepages,
    }
    return Session(
        Path(args.output) if args.output else default_folder(),
        plan,
        options,
        as_json=args.json,
        budget_s=_allowance(config, plan),
        reserve=_shortfall(plan) if args.reserve_hugepages and not args.dry_run else {},
    )


def _probe(args: argparse.Namespace) -> "Probe":
    """Caches and TLB as measured, once a boot; a plan for another host knows nothing of them."""
    from bench.errors import PagestormError
    from bench.probe import known_probe, probe_once
    from bench.sizes import Probe

    if args.topology:
        return Probe()
    if args.dry_run:
        return known_probe()
    try:
        return probe_once(lambda: print("probing caches and TLB, once a boot", file=sys.stderr))
    except PagestormError as error:
        print(f"caches and TLB could not be measured: {error}", file=sys.stderr)
        return Probe()


def _allowance(config: "Config", plan: "Plan") -> float | None:
    """Budget of the run: the stretch where the plan was made for that."""
    if config.budget is None or plan.estimate_s <= config.budget:
        return config.budget
    return max(config.budget, config.stretch or 0.0)


def _shortfall(plan: "Plan") -> dict[int, int]:
    """Huge pages that a plan needs beyond those the pools have."""
    from bench import native
    from bench.hugepages import shortfall
    from bench.plan import pool_need
    from bench.resources import read_resources

    return shortfall(pool_need(plan, read_resources(), native))
