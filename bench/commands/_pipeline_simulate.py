"""``bench pipeline simulate``: what a pipeline would do, before anybody builds it."""

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import UsageError

if TYPE_CHECKING:
    from analysis.simulate import Simulated
    from bench.blocks import Skip
    from bench.commands._pipeline_model import Model
    from bench.pipeline import Pipeline

SUMMARY = "simulate a pipeline: seconds per job, what binds it, and where time goes"
EPILOG = """  {prog} pipeline simulate prover-published --cpus 192
  {prog} pipeline simulate prover-published --cpus 192 --sweep pw=1..16 --sweep gw=1,2
  {prog} pipeline simulate my-line.toml --calibration CHECKED --remedy mutex:mv
  {prog} pipeline simulate my-line.toml --calibration CHECKED -o timeline.log"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand's flags."""
    from bench.commands._pipeline_model import add_model_arguments
    from bench.commands._pipeline_request import add_scenario_arguments

    add_scenario_arguments(parser)
    add_model_arguments(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="TIMELINE lines of the one setting")


def run(args: argparse.Namespace) -> int:
    """Simulate every setting and print what became of it."""
    from bench.commands._pipeline_model import model
    from bench.commands._pipeline_request import variants

    known = model(args)
    found, skips = variants(known.pipeline, args, known.setting)
    if args.output and len(found) != 1:
        raise UsageError("-o is for one setting", "leave out --sweep and --remedy")
    results = [(name, made, known.run(made, bool(args.output))) for name, made in found]
    if args.output:
        _, made, result = results[0]
        _write(Path(args.output), made, result)
    if args.json:
        _dump(results, skips, known)
    else:
        _show(results, skips, known)
    return 0


def _write(path: Path, pipeline: "Pipeline", result: "Simulated") -> None:
    from analysis.simulated_log import timeline_of
    from bench.journal import replace_file

    text = "".join(f"{line}\n" for line in timeline_of(pipeline, result.events))
    replace_file(path, text.encode())


def plain(result: "Simulated") -> dict[str, Any]:
    """Result as JSON data; what is not known is null."""
    from analysis.report import plain as json_of

    data: dict[str, Any] = json_of(result)
    del data["events"]
    return data


def _dump(
    results: "list[tuple[str, Pipeline, Simulated]]", skips: "list[Skip]", known: "Model"
) -> None:
    from bench.commands._session import dump_json

    settings = [
        {"setting": name, **plain(result), "no_claim": known.reach.beyond(made) or None}
        for name, made, result in results
    ]
    left_out = [{"setting": skip.what, "reason": skip.reason} for skip in skips]
    dump_json(known.document(settings=settings, left_out=left_out), sys.stdout)


def _show(
    results: "list[tuple[str, Pipeline, Simulated]]", skips: "list[Skip]", known: "Model"
) -> None:
    from bench.commands._tables import make_console, number, print_list, table
    from bench.units import counted

    console = make_console(sys.stdout)
    totals = (f"{counted(known.jobs, 'job')}, s", "each") if known.jobs_asked else ()
    table(
        console,
        f"{known.pipeline.name}, simulated: seconds per job, filling and draining left out",
        ("<setting", "s/job", "within", "to fill, s", *totals, "<what binds"),
        (
            [
                name,
                number(result.seconds_per_job),
                "no claim"
                if known.reach.beyond(made)
                else within(result.seconds_per_job, known.error),
                number(result.offset_s),
                *((number(result.total_s), number(result.total_s / known.jobs)) if totals else ()),
                result.binding.why,
            ]
            for name, made, result in results
        ),
    )
    if len(results) == 1:
        _details(results[0][2], known.pipeline)
    console.print(f"within: ± {known.error:.0%}, {known.error_from}", markup=False)
    untested = {name: known.reach.beyond(made) for name, made, _ in results}
    print_list(console, "no claim", [f"{name}: {why}" for name, why in untested.items() if why])
    print_list(console, "left out", [f"{skip.what}: {skip.reason}" for skip in skips])


def within(seconds: float, error: float) -> str:
    """Seconds per job with the model's error to either side."""
    from bench.commands._tables import number

    if math.isnan(seconds):
        return "too few jobs"
    return f"[{number(seconds / (1 + error))}, {number(seconds * (1 + error))}]"


def _details(result: "Simulated", pipeline: "Pipeline") -> None:
    from bench.commands._tables import make_console, number, table
    from bench.units import format_duration

    console = make_console(sys.stdout)
    table(
        console,
        "tasks: seconds of work on an item",
        ("<task", "mean", "median", "p95", "items"),
        (
            [name, number(s.mean), number(s.median), number(s.p95), str(s.count)]
            for name, s in ((task.name, result.task_seconds[task.name]) for task in pipeline.order)
            if s.most > 0
        ),
    )
    table(
        console,
        "resources: at work, and pools also held",
        ("<resource", "s/job", "held", "waits", "mean wait"),
        (
            [
                name,
                number(result.demands[name]) if name in result.demands else "-",
                "-" if use is None or math.isnan(use.held) else f"{use.held:.0%}",
                "" if use is None else str(use.waits),
                "" if use is None else format_duration(use.wait_s),
            ]
            for name, use in (
                (name, result.pool_use.get(name))
                for name in dict.fromkeys((*result.demands, *result.pool_use))
            )
        ),
    )
