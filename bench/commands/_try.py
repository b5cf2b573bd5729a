"""``bench try`` behind its flags: plan, session, result."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.blocks import Skip
from bench.change import Change, replaced
from bench.cli import program_name
from bench.commands._session import Session, dump_json
from bench.commands._try_schedule import Stages, sample_lines
from bench.errors import PagestormError, UsageError
from bench.journal import Journal, State, read_state
from bench.metric import Metric
from bench.planfile import read_plan
from bench.progress import Reporter
from bench.results import Selection
from bench.stop import Stop
from bench.tryplan import FIRST, PILOT, PILOT_ROUNDS, VERDICT, environment_digest, make_plan
from bench.tryremedies import choose
from bench.tryresults import write_pyperf
from bench.tryrun import Command, CommandRunner
from bench.trysite import read_site


@dataclass
class Request:
    """What was asked for."""

    command: Command
    metric: Metric
    remedies: Sequence[str]
    budget_s: float
    most_rounds: int
    dead_band: float
    seed: int
    reserve: Mapping[int, int] = field(default_factory=dict)
    """Huge pages to add while it runs: {bytes a page: pages}."""


@dataclass
class TrySession(Session):
    """A session whose samples are runs of a command."""

    work: Command = field(default_factory=lambda: Command((), "", ""))
    nodes: bool = False

    def make_runner(self, journal: Journal, reporter: Reporter, stop: Stop) -> CommandRunner:
        """Runner of the command under the plan's remedies."""
        given = self.options["try"]
        changes = {
            name: Change.from_plain(one["change"]) for name, one in given["remedies"].items()
        }
        return CommandRunner(
            journal,
            self.plan.blocks,
            self.plan.seed,
            reporter,
            stop,
            work=self.work,
            changes={"baseline": Change(), **changes},
            metric=Metric(given["metric"], given["higher_is_better"]),
            looked_at=frozenset((FIRST, PILOT)),
            first=FIRST,
            nodes=self.nodes,
            budget_for_first_s=given["budget_s"],
        )

    def _save(self, state: State) -> Selection:
        given = self.options["try"]
        stages = (PILOT, VERDICT)
        write_pyperf(self.folder, state, given["command"], stages, given["higher_is_better"])
        return Selection()


def begin(folder: Path, request: Request, as_json: bool, dry_run: bool) -> int:
    """Plan; run and say what was found, or say what would be run."""
    site = read_site(request.reserve)
    given, skips = choose(request.remedies, site)
    if not given:
        told = "; ".join(f"{skip.what}: {skip.reason}" for skip in skips)
        raise UsageError(f"no remedy applies here: {told}", f"{program_name()} try --help")
    _check_rounds(request.most_rounds, len(given))
    plan = make_plan(given, request.seed, skips)
    command = request.command
    options: dict[str, Any] = {
        "dead_band": request.dead_band,
        "try": {
            "command": list(command.argv),
            "path": command.path,
            "cwd": command.cwd,
            "stdin": command.stdin,
            "timeout_s": command.timeout_s or 0.0,
            "show_output": command.show_output,
            "metric": request.metric.pattern,
            "higher_is_better": request.metric.higher_is_better,
            "environment": environment_digest(os.environ),
            "remedies": {
                name: {
                    "change": change.plain(),
                    "told": str(change),
                    "shows": list(remedy.shows),
                    "replaced": replaced(change, os.environ),
                }
                for name, (remedy, change) in given.items()
            },
            "reserve": {str(size): pages for size, pages in request.reserve.items()},
            "budget_s": request.budget_s,
            "dead_band": request.dead_band,
            "pilot_rounds": PILOT_ROUNDS,
            "most_rounds": request.most_rounds,
        },
    }
    if dry_run:
        words = {name: f"{remedy.summary}: {change}" for name, (remedy, change) in given.items()}
        _preview(command, words, skips, as_json)
        return 0
    session = TrySession(folder, plan, options, as_json=as_json, work=command)
    session.reserve = request.reserve
    return _main(session, len(site.nodes) > 1)


def _check_rounds(rounds: int, remedies: int) -> None:
    """Refuse so few rounds that no interval of all remedies together has its level."""
    from analysis.intervals import LEVEL, pairs_needed

    least = pairs_needed(1 - (1 - LEVEL) / remedies)
    if rounds < least:
        raise UsageError(
            f"{rounds} rounds give no interval for {remedies} at once",
            f"--rounds {least}, or more; or fewer --remedies",
        )


def go_on(folder: Path, as_json: bool) -> int:
    """Resume a run."""
    plan, options = read_plan(folder)
    if "try" not in options:
        raise UsageError(f"{folder} is not a run of try", f"{program_name()} run --resume {folder}")
    given = options["try"]
    if given["environment"] != environment_digest(os.environ):
        raise UsageError(
            f"variables that loaders, malloc or runtimes read differ from when {folder} was begun",
            "set GLIBC_TUNABLES, LD_PRELOAD, PATH, OMP_NUM_THREADS and the like as they were",
        )
    command = Command(
        tuple(given["command"]),
        given["path"],
        given["cwd"],
        given["stdin"],
        given["timeout_s"] or None,
        given["show_output"],
        as_json,
    )
    session = TrySession(folder, plan, options, resumed=True, as_json=as_json, work=command)
    session.reserve = {int(size): pages for size, pages in given["reserve"].items()}
    return _main(session, len(read_site(session.reserve).nodes) > 1)


def _main(session: TrySession, several_nodes: bool) -> int:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    stages = Stages(session.plan, session.options, time.monotonic())
    session.next_block, session.remaining = stages.next_block, stages.pending
    session.tables, session.name = False, "try"
    session.nodes = several_nodes
    session.announcement = "a first run, a pilot, then fresh runs for the verdict"
    code = session.run()
    state = read_state(session.folder)
    _check_first(state, session)
    show(session.folder, session.options, session.as_json)
    return code if session.status == "interrupted" else _exit_code(state)


def _check_first(state: State, session: TrySession) -> None:
    """Say why there is nothing to compare, where the command does not work as it is."""
    runs = [line["run"] for line in sample_lines(state) if line["block"] == FIRST]
    if session.status == "interrupted" or any("failure" not in run for run in runs):
        return
    last = runs[-1]
    said = f"; it said:\n{last['said']}" if last.get("said") else "; it said nothing"
    if "no_metric" in last:
        raise UsageError(
            f"the command ran, but {last['no_metric']} in what it wrote{said}",
            f"its output is in {session.folder / 'output'}",
        )
    if last.get("timed_out"):
        raise PagestormError(
            f"the command as it is {last['failure']}{said}",
            "give it less to do, or more time: --budget (and --timeout); a server that never ends"
            " needs a script that starts it, drives it and ends it",
        )
    raise PagestormError(
        f"the command fails as it is: {last['failure']}, in {len(runs)} of {len(runs)} runs{said}",
        "nothing was tried; run it by itself first",
    )


def _exit_code(state: State) -> int:
    """A remedy that fails is a result; a command that fails by itself in every run is none."""
    runs = [r["run"] for r in sample_lines(state) if r["block"] != FIRST and r["mix"] == "baseline"]
    return 1 if runs and all("failure" in run for run in runs) else 0


def show(folder: Path, options: Mapping[str, Any], as_json: bool) -> None:
    """Print the result of a folder."""
    from analysis import report, tryreport
    from bench.commands import _try_view
    from bench.schema import SCHEMA

    found = tryreport.build(folder, program_name(), options)
    if as_json:
        dump_json({"schema": SCHEMA, **report.plain(found)}, sys.stdout)
    else:
        _try_view.show(found, sys.stdout)


def _preview(
    command: Command, told: Mapping[str, str], skips: Sequence[Skip], as_json: bool
) -> None:
    if as_json:
        refused = {skip.what: skip.reason for skip in skips}
        document = {"command": list(command.argv), "remedies": told, "refused": refused}
        dump_json(document, sys.stdout)
        return
    print(f"{command.path}, in {command.cwd}")
    print("as it is once, to see that it works and how long it takes; then")
    print(f"a pilot of {PILOT_ROUNDS} rounds, and fresh runs of what is promising, of:")
    for name, text in told.items():
        print(f"  {name}: {text}")
    for skip in skips:
        print(f"does not apply: {skip.what}: {skip.reason}")
        if skip.remedy:
            print(f"    -> {skip.remedy}")
