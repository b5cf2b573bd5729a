"""What ``run`` and its presets share: an output directory, a run into it, and the closing table."""

import argparse
import contextlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from bench.blocks import Plan
from bench.cli import command_names, program_name, python_name
from bench.commands._facts import plan_facts
from bench.errors import NoSpaceError, UsageError
from bench.journal import Journal, State, replace_file
from bench.planfile import read_plan, write_plan
from bench.progress import Remaining, Reporter
from bench.results import Selection, Stages, write_pyperf
from bench.rounds import with_extra_rounds
from bench.runner import NextBlock, Runner, check_blocks, now
from bench.schema import HOST, JOURNAL, PLAN, SCHEMA
from bench.spawn import WORKER
from bench.stop import Stop
from bench.sysfs import exists
from bench.units import counted, format_duration, parse_duration

INTERRUPTED = 130


@dataclass
class Session:
    """One sitting of a run: new, or resumed."""

    folder: Path
    plan: Plan
    options: dict[str, Any] = field(default_factory=dict)
    """What verdicts depend on and no block holds; kept in ``plan.toml``."""
    resumed: bool = False
    as_json: bool = False
    budget_s: float | None = None
    reserve: Mapping[int, int] = field(default_factory=dict)
    """Huge pages to add while it runs: {bytes a page: pages}."""
    next_block: NextBlock | None = None
    """Schedule; none given: every block once a round."""
    stages: Stages | Callable[[State], Stages] | None = None
    """For ``bench.results``; none given: all blocks run equally many rounds."""
    name: str = "run"
    """Command that resumes it."""
    announcement: str = ""
    """In place of the number of samples, where a schedule decides that later."""
    remaining: Remaining | None = None
    """For the time left; none given: as the usual schedule."""
    tables: bool = True
    """Print the usual tables; a command with tables of its own prints those instead."""
    command: Sequence[str] = WORKER
    status: str = ""

    def run(self) -> int:
        """Measure, save, print what is known; returns the exit code."""
        check_blocks(self.plan.blocks)
        facts = _host_facts()
        if not self.resumed and exists(self.folder / JOURNAL):
            raise UsageError(
                f"{self.folder} holds a run already",
                f"continue it with {self.resume_command}, or choose another -o",
            )
        try:
            return self._run(facts)
        except NoSpaceError as error:
            if not (self.folder / PLAN).exists():
                raise
            raise NoSpaceError(
                str(error), f"{error.remedy}, then continue with {self.resume_command}"
            ) from error

    def preview(self) -> int:
        """Print the plan, for ``--dry-run``."""
        from bench.commands import _planview

        _planview.show(self.plan, sys.stdout, self.as_json)
        return 0

    @property
    def resume_command(self) -> str:
        """How to go on with it."""
        flag = " --reserve-hugepages" if self.options.get("reserve_hugepages") else ""
        return f"{program_name()} {self.name} --resume {shlex.quote(str(self.folder))}{flag}"

    def _run(self, facts: Any) -> int:  # noqa: ANN401 - HostFacts, imported late
        # Pages first: where they cannot be had, no folder is left behind.
        with Stop() as stop, _reserved(self.reserve), Journal(self.folder) as journal:
            if self.resumed:
                check_same_host(journal.state, self.folder, self.plan, facts)
            else:
                self.options = {**plan_facts(self.plan), **self.options}
                replace_file(self.folder / HOST, _json_bytes(facts.to_dict()))
                write_plan(self.folder, self.plan, self.options)
            journal.append(
                {
                    "kind": "start",
                    "schema": SCHEMA,
                    "time": now(),
                    "boot_id": facts.boot_id,
                    "host_digest": facts.digest(),
                    "plan_digest": self.plan.digest(),
                    "version": version(),
                    "argv": sys.argv[1:],
                    "resumed": self.resumed,
                }
            )
            self._measure(journal, stop)
            return self._close(journal.state)

    def _measure(self, journal: Journal, stop: Stop) -> None:
        blocks = self.plan.blocks
        reporter = Reporter(sys.stderr, blocks, self.plan.rounds, self._after_round, self.remaining)
        schedule = self.next_block or with_extra_rounds(blocks, self.plan.rounds, self.plan.seed)
        # A schedule of the command's own may not be asked twice.
        if not self.next_block and schedule(journal.state) is None:
            reporter.message(f"nothing is left to measure in {self.folder}")
        else:
            samples = self.plan.rounds * sum(len(block.entries) for block in blocks)
            announcement = self.announcement or (
                f"{samples} samples in {self.plan.rounds} rounds of"
                f" {counted(len(blocks), 'block')}, about"
                f" {format_duration(self.plan.estimate_s)}"
            )
            reporter.message(f"{announcement}; results go to {self.folder}")
        runner = self.make_runner(journal, reporter, stop)
        if self.budget_s is not None:
            runner.budget_s = self.budget_s
        runner.planned_rounds = None if self.next_block else self.plan.rounds
        reporter.start()
        try:
            self.status = runner.run(schedule)
        finally:
            reporter.close()

    def make_runner(self, journal: Journal, reporter: Reporter, stop: Stop) -> Runner:
        """Runner of the plan's samples."""
        return Runner(journal, self.plan.blocks, self.plan.seed, reporter, stop, self.command)

    def _save(self, state: State) -> Selection:
        stages = self.stages(state) if callable(self.stages) else self.stages
        return write_pyperf(self.folder, state, stages or [self.plan.blocks])

    def _after_round(self, state: State, rounds: int) -> None:
        self._save(state)
        if self.tables and rounds == 1 and self.plan.rounds > 1:
            sys.stderr.write("after the first round, not yet a result:\n")
            show_report(self.folder, self.options, sys.stderr, brief=True)

    def _close(self, state: State) -> int:
        chosen = self._save(state)
        if self.status == "interrupted":
            told = (
                "; what is known so far:" if self.tables else f": go on with {self.resume_command}"
            )
            sys.stderr.write(f"interrupted{told}\n")
        if not self.tables:
            pass
        elif self.as_json:
            document = report_data(self.folder, self.options)
            document["left_out"] = chosen.left_out
            dump_json(document, sys.stdout)
        else:
            show_report(self.folder, self.options, sys.stdout)
        if self.status == "interrupted":
            return INTERRUPTED
        failed = any(not drop.skip for drop in state.dropped.values())
        return 1 if failed or not state.samples else 0


def check_resume(args: argparse.Namespace, also: Collection[str] = ()) -> None:
    """Refuse flags that a resumed run cannot follow; ``also``: those of the command that it can.

    Flags of such commands default to nothing (None, False, empty), so that one that was given can
    be told.
    """
    free = {"command", "run", "resume", "json", "dry_run", *also}
    given = [k for k, v in vars(args).items() if v or (v == 0 and v is not False)]
    other = [f"--{key.replace('_', '-')}" for key in given if key not in free]
    if other:
        raise UsageError(
            f"{', '.join(other)}: a resumed run keeps to its plan",
            "leave it out, or start a new run",
        )


def resumed(args: argparse.Namespace, name: str, also: Collection[str] = ("budget",)) -> Session:
    """Session of a command's ``--resume``, in a folder that this command began."""
    check_resume(args, also)
    budget = getattr(args, "budget", None)
    session = open_session(args.resume, args.json, parse_duration(budget) if budget else None)
    begun = session.plan.preset if session.plan.preset in command_names() else "run"
    if begun != name:
        raise UsageError(
            f"{args.resume} is a run of {begun}, not of {name}",
            f"{program_name()} {begun} --resume {shlex.quote(str(args.resume))}",
        )
    session.name = name
    return session


def open_session(args_resume: str, as_json: bool, budget_s: float | None = None) -> Session:
    """Session that goes on where a run stopped."""
    folder = Path(args_resume)
    plan, options = read_plan(folder)
    return Session(folder, plan, options, resumed=True, as_json=as_json, budget_s=budget_s)


def check_same_host(state: State, folder: Path, plan: Plan, facts: Any) -> None:  # noqa: ANN401 - HostFacts, imported late
    """Refuse to add to results of another boot, host or plan."""
    way_out = "start a new run with another -o, and compare the two"
    for start in state.starts[-1:]:
        if start["plan_digest"] != plan.digest():
            raise UsageError(f"the plan of {folder} is not the one its journal began with", way_out)
        if start["boot_id"] != facts.boot_id:
            raise UsageError(
                f"{folder} was measured before this host's last boot: memory is laid out anew"
                " since, and the samples do not belong together",
                way_out,
            )
        if start["host_digest"] != facts.digest():
            raise UsageError(
                f"this host is not as it was when {folder} was begun:"
                + _what_changed(folder, facts),
                f"put it back, or {way_out}",
            )


def _what_changed(folder: Path, facts: Any) -> str:  # noqa: ANN401 - HostFacts, imported late
    from bench.host import differences

    try:
        before = json.loads((folder / HOST).read_text())
    except (OSError, ValueError):
        return " (host.json cannot be read)"
    return "".join(f"\n  {line}" for line in differences(before, facts.to_dict()))


def default_folder() -> Path:
    """``pagestorm-out/HOST-UTC`` below the current folder."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return Path("pagestorm-out") / f"{os.uname().nodename}-{stamp}"


def version() -> str:
    """Of the installed distribution; a checkout that is not installed has none."""
    from importlib import metadata

    try:
        return metadata.version("pagestorm")
    except metadata.PackageNotFoundError:
        return "not installed"


def parse_share(text: str | None) -> float | None:
    """0.02 of ``2%`` or ``0.02``; None of None."""
    if text is None:
        return None
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise UsageError(f"not a share: {text!r}", "write 2% or 0.02")
    return share


def show_report(
    folder: Path, options: Mapping[str, Any], stream: TextIO, brief: bool = False
) -> None:
    """Print a folder's tables."""
    from bench.commands._tables import show

    show(make_report(folder, options), stream, brief)


def report_data(folder: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """Report as JSON data."""
    made = make_report(folder, options)
    from analysis import report

    data: dict[str, Any] = report.plain(made)
    return {"schema": SCHEMA, **data}


def make_report(folder: Path, options: Mapping[str, Any]) -> Any:  # noqa: ANN401 - analysis is imported late
    """Build a folder's report."""
    # Workers are forked from this process, which must not grow numpy's pool of threads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from analysis import load, report

    return report.build(
        load.load(folder),
        program_name(),
        options,
        python=python_name(),
        commands=command_names(),
    )


def dump_json(document: object, stream: TextIO) -> None:
    """Write one JSON document."""
    json.dump(document, stream, indent=1, allow_nan=False)
    stream.write("\n")


def _json_bytes(data: object) -> bytes:
    return (json.dumps(data, indent=1) + "\n").encode()


def _host_facts() -> Any:  # noqa: ANN401 - HostFacts, imported late
    from bench import host

    return host.facts()


@contextlib.contextmanager
def _reserved(wanted: Mapping[int, int]) -> Any:  # noqa: ANN401 - a generator's context manager
    """Huge pages of ``--reserve-hugepages`` while the run lasts; the host is left as it was."""
    if not wanted:
        yield
        return
    from bench.reservation import reserve

    with reserve(wanted) as reservation:
        yield
    for problem in reservation.problems:
        sys.stderr.write(f"warning: {problem}\n")
