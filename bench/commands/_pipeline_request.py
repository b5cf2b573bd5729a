"""What ``bench pipeline run`` and ``check`` are asked for, and the plan that it comes to."""

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import UsageError
from bench.units import counted

if TYPE_CHECKING:
    from bench.blocks import Skip
    from bench.commands._session import Session
    from bench.mixplan import MixPlanner
    from bench.pipeline import Pipeline
    from bench.pipelinefile import PipelineFile
    from bench.pipelinemix import Compiler
    from bench.pipelineplan import Made, Trial
    from bench.remedies import Setting
    from bench.resources import Resources
    from bench.sizes import Probe

AS_IT_IS = "as it is"
# What a resumed run may be told; all else is in its plan.
_WITH_RESUME = {"command", "action", "act", "run", "resume", "json", "budget", "seed"}


def add_scenario_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say which pipeline, and how it is changed."""
    parser.add_argument(
        "scenario", nargs="?", metavar="SCENARIO", help="a TOML file, or a name (prover-pipeline)"
    )
    parser.add_argument(
        "--set",
        action="append",
        metavar="NAME=VALUE",
        help="a pool's tokens, items, in_flight or TASK.KEY in place of the file's; repeatable",
    )
    parser.add_argument(
        "--sweep",
        action="append",
        metavar="NAME=VALUES",
        help="one setting for each: pw=1..8, gw=1,2; several are crossed",
    )
    parser.add_argument(
        "--remedy",
        action="append",
        metavar="SPEC",
        help="beside the pipeline as it is: mutex:mv,prep, sem:2, thp, cap:4:mv, yield, pool,"
        " thp+mutex; may be repeated",
    )


def add_run_arguments(parser: argparse.ArgumentParser, samples: int) -> None:
    """Add the flags of how it is measured."""
    from bench.commands.run import add_output_arguments

    parser.add_argument("--samples", type=int, metavar="N", help=f"of each setting ({samples})")
    parser.add_argument("--jobs", type=int, metavar="N", help="of one sample, after the filling")
    parser.add_argument(
        "--budget",
        metavar="TIME",
        help="for everything; sheds settings from the end, then tasks alone",
    )
    parser.add_argument("--max-memory", metavar="SIZE", help="live memory of a sample (a quarter)")
    parser.add_argument("--dead-band", metavar="SHARE", help="smallest effect that matters (2%%)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of data and of order")
    add_output_arguments(parser)


def measure(
    args: argparse.Namespace,
    name: str,
    samples: int,
    show: Callable[[Path, dict[str, Any], bool], None],
    costs: bool = False,
) -> int:
    """Run what the flags ask for and show it; ``costs``: tasks alone with all CPUs, too."""
    from bench.commands import _planview

    sitting = session(args, name, samples, costs)
    if args.dry_run:
        _planview.show(sitting.plan, sys.stdout, args.json, called(sitting.options))
        return 0
    if not args.resume:
        left_out = [f"left out: {skip.what}: {skip.reason}" for skip in sitting.plan.shed]
        notes = [f"note: {note}" for note in sitting.plan.notes]
        sys.stderr.writelines(f"{line}\n" for line in (*left_out, *notes))
    code = sitting.run()
    show(sitting.folder, sitting.options, args.json)
    return code


def called(options: dict[str, Any]) -> dict[str, str]:
    """Setting of every mix: names of mixes with that many actors are not for people."""
    return {
        row["mix"]: f"{row['name']}: {counted(len(row['tasks']) - 1, 'actor')} for its"
        f" {counted(len(set(row['tasks'])) - 1, 'task')}"
        for row in options["pipeline"]["settings"]
    }


def session(args: argparse.Namespace, name: str, samples: int, costs: bool) -> "Session":
    """Session of the flags: new, or the one that goes on in ``--resume``."""
    from bench.cli import program_name
    from bench.commands._session import Session, check_resume, default_folder, open_session
    from bench.units import parse_duration

    budget_s = parse_duration(args.budget) if args.budget else None
    if args.resume:
        check_resume(args, _WITH_RESUME)
        found = open_session(args.resume, args.json, budget_s)
        begun = found.options.get("pipeline", {}).get("command")
        if begun != name:
            way_out = f"{program_name()} pipeline {begun} --resume {args.resume}" if begun else ""
            raise UsageError(f"{args.resume} is not a pipeline {name}", way_out)
    else:
        made, options = plan(args, samples, costs, budget_s)
        options["pipeline"]["command"] = name
        folder = Path(args.output) if args.output else default_folder()
        found = Session(folder, made.plan, options, as_json=args.json, budget_s=budget_s)
    found.tables, found.name = False, f"pipeline {name}"
    return found


def plan(
    args: argparse.Namespace, samples: int, costs: bool, budget_s: float | None
) -> "tuple[Made, dict[str, Any]]":
    """Plan of the flags, and its options."""
    from bench import native
    from bench.commands._session import parse_share
    from bench.commands.run import _probe
    from bench.mixplan import MixPlanner
    from bench.pipelinefile import DEFAULT, MOST_JOBS
    from bench.pipelinemix import Compiler
    from bench.pipelineplan import jobs_of, make
    from bench.resources import read_resources
    from bench.runner import Runner
    from bench.units import parse_size

    if args.samples is not None and args.samples < 1:
        raise UsageError("at least one sample is needed", f"--samples {samples}")
    if args.jobs is not None and not 1 <= args.jobs <= MOST_JOBS:
        raise UsageError(f"--jobs is 1 to {MOST_JOBS}, not {args.jobs}")
    resources = read_resources()
    probe = _probe(argparse.Namespace(topology="", dry_run=args.dry_run))
    read, pipeline = read_pipeline(args, resources, probe)
    compiler = Compiler(native, resources, probe)
    planner = MixPlanner(
        native, resources, probe, parse_size(args.max_memory) if args.max_memory else None
    )
    trials, skips = settings(pipeline, args, compiler, planner)
    jobs = jobs_of(trials, args.jobs or read.jobs)
    made = make(
        trials,
        compiler,
        planner,
        jobs=jobs,
        deadline_s=read.deadline,
        rounds=args.samples or samples,
        seed=args.seed,
        costs=costs,
        skips=skips,
        least_rounds=Runner.least_rounds,
        budget_s=math.inf if budget_s is None else budget_s,
    )
    options = {
        "dead_band": parse_share(args.dead_band) or read.dead_band,
        "pipeline": {
            "name": pipeline.name,
            "source": args.scenario or DEFAULT,
            "set": args.set or [],
            "cpus": resources.threads,
            **made.options,
        },
    }
    return made, options


def read_pipeline(
    args: argparse.Namespace, resources: "Resources", probe: "Probe"
) -> "tuple[PipelineFile, Pipeline]":
    """Pipeline of the flags for one host, and the file it is from."""
    from bench import native
    from bench.pipelinefile import DEFAULT, load, resolve
    from bench.pipelinevalues import with_values

    name = args.scenario or DEFAULT
    read = load(name, native)
    return read, with_values(resolve(read, name, native, resources, probe), args.set or [])


def settings(
    pipeline: "Pipeline", args: argparse.Namespace, compiler: "Compiler", planner: "MixPlanner"
) -> "tuple[list[Trial], list[Skip]]":
    """Every setting of the sweeps, as it is and under each remedy; what cannot be is left out."""
    from bench.pipelineplan import Trial
    from bench.remedies import Setting

    setting = Setting(
        planner.registry, planner.resources, tuple(planner.registry.policies()), planner.unavailable
    )
    found, skips = variants(pipeline, args, setting)
    return [Trial.of(name, made, compiler, args.seed) for name, made in found], skips


def variants(
    pipeline: "Pipeline", args: argparse.Namespace, setting: "Setting"
) -> "tuple[list[tuple[str, Pipeline]], list[Skip]]":
    """Pipelines of the sweeps and remedies, by name."""
    from bench.blocks import Skip
    from bench.pipelineremedies import treat
    from bench.pipelinevalues import combinations, with_values

    found: list[tuple[str, Pipeline]] = []
    skips: list[Skip] = []
    for combination in combinations(args.sweep or []):
        base = with_values(pipeline, combination)
        told = ",".join(combination)
        found.append((told or AS_IT_IS, base))
        for spec in args.remedy or []:
            label = f"{told} {spec}".strip()
            made = treat(base, spec, setting)
            if made.pipeline is None:
                skips.append(Skip(label, made.reason))
            else:
                found.append((label, made.pipeline))
    return found, skips
