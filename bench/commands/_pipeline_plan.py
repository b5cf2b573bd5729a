"""``bench pipeline plan``: which limit or interlock would raise a pipeline's throughput."""

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.errors import UsageError

if TYPE_CHECKING:
    from analysis.ranking import Ranked
    from analysis.simulate import Simulated
    from bench.commands._pipeline_model import Model
    from bench.pipeline import Pipeline

SUMMARY = "rank limits and interlocks of a pipeline by what the simulation says they gain"
EPILOG = """  {prog} pipeline plan prover-published --cpus 192
  {prog} pipeline plan my-line.toml --calibration CHECKED
  {prog} pipeline plan my-line.toml --calibration CHECKED --sweep pw=2,4 --remedy mutex:mv,prep"""

INTERLOCKS = ("mutex", "sem:2", "yield", "pause", "pool")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand's flags."""
    from bench.commands._pipeline_model import add_model_arguments
    from bench.commands._pipeline_request import add_scenario_arguments

    add_scenario_arguments(parser)
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Simulate one change after the other and rank them."""
    from analysis.ranking import rank
    from bench.commands._pipeline_model import JOBS, model
    from bench.commands._pipeline_request import variants

    known = model(args)
    base = known.run(known.pipeline)
    if math.isnan(base.seconds_per_job):
        raise UsageError(
            f"{known.jobs} jobs are too few to rank changes by seconds per job",
            f"--jobs {max(JOBS, 20 * known.pipeline.in_flight)}, or leave it out",
        )
    results: list[tuple[str, Simulated]] = []
    left_out: list[str] = []
    asked, skips = variants(known.pipeline, args, known.setting)
    left_out += [f"{skip.what}: {skip.reason}" for skip in skips]
    mine = asked if args.sweep or args.remedy else []
    seen = {known.pipeline}
    here = known.reach.beyond(known.pipeline)
    untested: dict[str, str] = {}
    for name, made in [*mine, *limits(known), *interlocks(known, left_out)]:
        if made in seen:
            continue
        seen.add(made)
        try:
            results.append((name, known.run(made)))
            untested[name] = known.reach.beyond(made)
        except UsageError as error:  # it was not measured that way, or it stands still
            left_out.append(f"{name}: {error}")
    ranked = [
        replace(r, claim=f"no claim: {why}") if (why := here or untested[r.name]) else r
        for r in rank(base, results, known.error)
    ]
    if args.json:
        _dump(base, ranked, left_out, known)
    else:
        _show(base, ranked, left_out, known)
    return 0


# ---- what to try ---------------------------------------------------------------------------------


def limits(known: "Model") -> "Iterator[tuple[str, Pipeline]]":
    """One limit changed: a token or a worker more, one less, twice as many, half."""
    from bench.pipelinevalues import with_value

    line = known.pipeline
    now = {"in_flight": line.in_flight}
    # Pools that begin empty hand things on: they are no limit.
    now |= {pool.name: pool.tokens for pool in line.pools if pool.tokens}
    now |= {f"{task.name}.workers": task.workers for task in line.tasks if task.workers}
    now |= {f"{t.name}.threads": t.actor.threads for t in line.tasks if t.actor is not None}
    for name, value in now.items():
        most = known.cpus if name.endswith(".threads") and known.cpus else 2 * value
        steps = (value + 1, value - 1, 2 * value, value // 2)
        for other in dict.fromkeys(n for n in steps if 1 <= n <= most and n != value):
            yield f"{name}={other}", with_value(line, name, str(other))


def interlocks(known: "Model", left_out: list[str]) -> "Iterator[tuple[str, Pipeline]]":
    """Locks among tasks that move memory, courtesy, keeping memory, and other page policies."""
    from bench.pipelineremedies import treat

    line = known.pipeline
    specs = list(INTERLOCKS)
    moving = [task.name for task in line.tasks if task.actor is not None or task.traffic]
    specs += [f"mutex:{name}" for name in moving if line.at_once(name) > 1]
    pages = [f"{policy}:{name}" for name, policy in known.known.policies(line)]
    if not pages and any(task.actor is not None for task in line.tasks):
        left_out.append("other page policies: none was measured; pipeline check --remedy thp")
    specs += pages
    for spec in specs:
        made = treat(line, spec, known.setting)
        if made.pipeline is None:
            left_out.append(f"{spec}: {made.reason.removeprefix(f'{spec}: ')}")
        else:
            yield spec, made.pipeline


# ---- output --------------------------------------------------------------------------------------


def _dump(base: "Simulated", ranked: "list[Ranked]", left_out: list[str], known: "Model") -> None:
    from analysis.report import plain
    from bench.commands._session import dump_json

    document = known.document(
        seconds_per_job=base.seconds_per_job,
        binding=plain(base.binding),
        ranked=plain(ranked),
        left_out=left_out,
    )
    dump_json(document, sys.stdout)


def _show(base: "Simulated", ranked: "list[Ranked]", left_out: list[str], known: "Model") -> None:
    from bench.commands._pipeline_simulate import within
    from bench.commands._tables import make_console, number, percent, print_list, table

    console = make_console(sys.stdout)
    console.print(
        f"{known.pipeline.name}, simulated: {number(base.seconds_per_job)} s per job"
        f" {within(base.seconds_per_job, known.error)}; {base.binding.why}",
        markup=False,
    )
    table(
        console,
        "one change at a time, the largest gain in throughput first",
        ("<change", "s/job", "gain", "<worth", "<then binds"),
        (
            [
                r.name,
                number(r.seconds_per_job),
                percent(r.gain),
                r.claim,
                f"{r.binding.name} {r.binding.use:.0%}",
            ]
            for r in ranked
        ),
    )
    console.print(f"model's error: {known.error:.0%}, {known.error_from}", markup=False)
    print_list(console, "left out", list(dict.fromkeys(left_out)))
