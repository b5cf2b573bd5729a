"""From paths to hosts with their runs, each with the report that the console prints too."""

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from analysis import attribution, corun, proxyread, remedy_report, tryreport
from analysis import report as plain_report
from analysis.files import find, is_journal, journal_lines, read_json, read_toml
from analysis.load import Results, load, rows
from analysis.page.model import Item, Source
from analysis.report import Note, Report
from bench.schema import HOST, PLAN
from bench.units import about


@dataclass(frozen=True)
class Kind:
    """One kind of run."""

    build: Callable[[Path, str, Mapping[str, Any]], object]
    """Report of a folder; the form of commands; ``dead_band`` and the like."""
    of_kernels: bool = True
    """Whether its journal holds samples of kernels, which ``analysis.load`` reads."""


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "remedy": Kind(remedy_report.build),
        "corun": Kind(corun.build),
        "try": Kind(tryreport.build, of_kernels=False),
        "attribute": Kind(lambda folder, _, options: attribution.build(folder, options)),
        "pipeline": Kind(lambda folder, _, options: proxyread.build(folder, options)),
    }
)
"""By the name of the options that its plan has."""

NOT_IN_VALUES = "comparisons, skips and step times"

Built = TypeVar("Built")


@dataclass(frozen=True)
class Options:
    """What a report depends on beside the results."""

    program: str = "python -m bench"
    """The form in which commands are printed."""
    python: str = "python"
    commands: Collection[str] = ()
    """Names of the commands this version has: others are not proposed."""
    rule: Mapping[str, Any] = field(default_factory=dict)
    """``dead_band`` and ``accept_unknown``, in place of those the run was given."""


@dataclass(frozen=True, eq=False)
class Run:
    """One run of one host."""

    name: str
    """Short and different from all others of the page."""
    kind: str
    """Of ``KINDS``; empty for ``run`` and its presets."""
    results: Results
    report: object
    command: str
    """That it was begun with; empty where that is not known."""
    tag: str = ""
    """For captions: its name, where the host has several."""

    @property
    def digest(self) -> str:
        """Of its plan; empty where there is none."""
        return str(self.results.plan.get("digest", ""))

    @property
    def source(self) -> Source:
        """How to make it again."""
        return Source(self.name, self.command, self.digest)


@dataclass(frozen=True, eq=False)
class Host:
    """One host and all runs of it."""

    name: str
    runs: tuple[Run, ...]
    options: Options

    @property
    def facts(self) -> dict[str, Any]:
        """Content of ``host.json`` of the last run that has one."""
        return next((run.results.host for run in reversed(self.runs) if run.results.host), {})

    def of(self, kind: type[Built]) -> list[tuple[Run, Built]]:
        """Runs with a report of one class."""
        return [(run, run.report) for run in self.runs if isinstance(run.report, kind)]

    def item(self, note: Note) -> Item:
        """What was left out; its way out is a command where that can be pasted as it is."""
        program = self.options.program
        if note.remedy.startswith((f"{program} ", self.options.python)):
            return Item(note.what, note.reason, command=note.remedy)
        return Item(note.what, note.reason, note.remedy)

    def open_ended(self, notes: Iterable[Note]) -> list[Note]:
        """Those among a run's notes that no other run of the host has settled."""
        apart = bool(self.of(remedy_report.RemedyReport))
        pages = any(c.question == "pages" for _, r in self.reports for c in r.comparisons)
        return [
            note
            for note in notes
            if not (apart and note.remedy.endswith(" remedy"))
            and not (pages and note.what == "page sizes")
        ]

    @property
    def reports(self) -> list[tuple[Run, Report]]:
        """Runs of ``bench run`` and its presets."""
        return self.of(Report)


def read(paths: Sequence[str | Path], options: Options) -> list[Host]:
    """Read results and sort them by host.

    Raises
    ------
    UsageError
        No results there, or results of something else.
    PagestormError
        A damaged file.
    """
    files = list(dict.fromkeys(file for path in paths for file in find(path)))
    read_in = [_results(file) for file in files]
    # A run without a value does not say where it ran, but its boot may.
    booted = {r.host["boot_id"]: _host_key(r) for r in read_in if r.rows and "boot_id" in r.host}
    found: dict[tuple[str, ...], list[Results]] = {}
    for results in read_in:
        boot = "" if results.rows else results.host.get("boot_id", "")
        found.setdefault(booted.get(boot) or _host_key(results), []).append(results)
    names = [key[0] for key in found]
    hosts = []
    taken: set[str] = set()
    for key, own in found.items():
        own.sort(key=lambda r: min((row["time"] for row in r.rows), default=""))
        name = key[0] if names.count(key[0]) == 1 else f"{key[0]} ({_folder_name(own[0])})"
        hosts.append(Host(name, tuple(_run(r, options, taken, len(own) > 1) for r in own), options))
    return hosts


def _run(results: Results, options: Options, taken: set[str], several: bool) -> Run:
    kind = _kind(results.plan)
    report = (
        KINDS[kind].build(results.folder, options.program, options.rule)
        if kind
        else _plain_report(results, options)
    )
    name = wanted = _folder_name(results)
    if name in taken:
        folder = results.folder.resolve()
        name = wanted = f"{folder.parent.name}/{folder.name}"
    while name in taken:
        name = f"{wanted} {len(taken) + 1}"
    taken.add(name)
    command = f"{options.program} {shlex.join(results.argv)}" if results.argv else ""
    return Run(name, kind, results, report, command, f" ({name})" if several else "")


def _plain_report(results: Results, options: Options) -> Report:
    made = plain_report.build(
        results, options.program, options.rule, python=options.python, commands=options.commands
    )
    if not results.plan and not results.blocks:
        # Without a plan nothing is known of what was compared, or left out.
        made.not_tested = [
            Note(
                NOT_IN_VALUES,
                "the plan in the run's output directory says them, and it is not beside these"
                " values",
            )
        ]
    return made


def _kind(plan: Mapping[str, Any]) -> str:
    given = plan.get("options", {})
    return next((kind for kind in KINDS if kind in given), "")


def _results(file: Path) -> Results:
    if not is_journal(file):
        return _values_only(file)
    plan = read_toml(file.parent / PLAN)
    kind = _kind(plan)
    if kind and not KINDS[kind].of_kernels:
        start = next((x for x in journal_lines(file) if x["kind"] == "start"), {})
        facts = read_json(file.parent / HOST)
        return Results(file.parent, plan=plan, host=facts, argv=list(start.get("argv", ())))
    return load(file)


def _values_only(file: Path) -> Results:
    """Results of a pyperf file: its values."""
    made = Results(file, rows=rows(file), status="done")
    made.rounds = 1 + max((row["round"] for row in made.rows), default=-1)
    return made


def _folder_name(results: Results) -> str:
    return results.folder.resolve().name


def _host_key(results: Results) -> tuple[str, ...]:
    """What tells hosts apart: names alone do not, nor do facts alone."""
    name = next((row["host"] for row in results.rows if row["host"]), "") or _folder_name(results)
    facts = results.host
    if not facts:
        return (name,)
    memory = facts.get("memory", {}).get("total_bytes") or 0
    return (
        name,
        str(facts.get("cpu", {}).get("name")),
        str(facts.get("cpus", {}).get("online")),
        about(round(memory / 1024**3) * 1024**3),
    )
