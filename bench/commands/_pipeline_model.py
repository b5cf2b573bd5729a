"""What ``pipeline simulate`` and ``plan`` know of a pipeline and of this host."""

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.commands._pipeline_reach import Reach
from bench.errors import UsageError
from bench.mix import Actor
from bench.pipeline import Pipeline, Task

if TYPE_CHECKING:
    from analysis.calibration import Calibration
    from analysis.rates import Alone
    from analysis.simulate import Simulated
    from bench.remedies import Setting

JOBS = 200
"""At least, so that filling and draining are few of them."""
ERROR = 0.10
"""Of a prediction that nobody checked: twice what the model was off, at root mean square, where
published tables say what a change of a prover did (docs/prover-predictions.md)."""


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of what is assumed."""
    parser.add_argument("--jobs", type=int, metavar="N", help=f"let through (at least {JOBS})")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the jitter")
    parser.add_argument(
        "--cpus", type=int, metavar="N", help="in place of this host's; 0: as many as are wanted"
    )
    parser.add_argument(
        "--calibration", metavar="DIR", help="of pipeline check: times of kernels, and the error"
    )
    parser.add_argument(
        "--interrupts",
        action="append",
        metavar="TASK=SHARE",
        help="of everybody else's time that each item at a task takes, as releases of memory do;"
        " or the output directory of `attribute` with such an aggressor",
    )
    parser.add_argument(
        "--crosstalk",
        type=float,
        default=0.0,
        metavar="X",
        help="k memory phases at once go at 1/(1+X k(k-1)) of their speed",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


@dataclass(frozen=True)
class Known:
    """Passes of kernels alone, from the runs of a check."""

    found: Mapping[tuple[str, Actor], "tuple[Alone, int]"] = field(default_factory=dict)
    """Task and what it works on -> costs, and the threads they are of."""

    def of(self, pipeline: Pipeline) -> "dict[str, Alone]":
        """Costs of a pipeline's kernel tasks, for the threads they have now.

        Raises
        ------
        UsageError
            Naming the task that was not measured that way.
        """
        from analysis.fluid import at_threads

        costs = {}
        for task in pipeline.tasks:
            if task.actor is None:
                continue
            known = self.found.get((task.name, _work(task.actor)))
            if not self.found:
                raise UsageError(
                    f"{task.name} runs a kernel, and nothing says what that takes on this host",
                    "measure it: pipeline check SCENARIO -o DIR, then --calibration DIR",
                )
            if known is None:
                raise UsageError(
                    f"{task.name} was not measured with {_told(task.actor)}: nothing says what it"
                    " takes",
                    f"pipeline check --sweep {task.name}.KEY=VALUES, then --calibration DIR",
                )
            cost, threads = known
            costs[task.name] = at_threads(cost, threads, task.actor.threads)
        return costs

    def policies(self, pipeline: Pipeline) -> list[tuple[str, str]]:
        """Tasks, and page policies they were measured with but do not have."""
        return [
            (task.name, actor.policy)
            for task in pipeline.tasks
            for name, actor in self.found
            if task.actor is not None
            and name == task.name
            and actor.policy != task.actor.policy
            and actor == replace(_work(task.actor), policy=actor.policy)
        ]


def _work(actor: Actor) -> Actor:
    """What an actor does to memory, without who does it and when."""
    return Actor(actor.kernel, actor.variant, actor.policy, 1, actor.size, actor.params)


def _told(actor: Actor) -> str:
    from bench.units import format_size

    return f"pages {actor.policy}, {format_size(actor.size)}"


@dataclass(frozen=True)
class Model:
    """A pipeline, and all that its simulation needs."""

    pipeline: Pipeline
    jobs: int
    cpus: int
    seed: int
    known: Known
    bandwidth: float
    interrupts: Mapping[str, float]
    crosstalk: float
    error: float
    """Of seconds per job, relative."""
    error_from: str
    setting: "Setting"
    reach: Reach = field(default_factory=Reach)
    jobs_asked: bool = False

    def run(self, pipeline: Pipeline, events: bool = False) -> "Simulated":
        """Simulate one variant."""
        from analysis.simulate import simulate

        return simulate(
            pipeline,
            self.known.of(pipeline),
            jobs=self.jobs,
            cpus=self.cpus,
            seed=self.seed,
            bandwidth=self.bandwidth,
            crowding=self._crowding if self.crosstalk else None,
            interrupts=self.interrupts,
            events=events,
        )

    def document(self, **more: object) -> dict[str, Any]:
        """One JSON document on this model."""
        from bench.schema import SCHEMA

        return {
            "schema": SCHEMA,
            "pipeline": self.pipeline.name,
            "jobs": self.jobs,
            "cpus": self.cpus,
            "error": self.error,
            "error_from": self.error_from,
            **more,
        }

    def _crowding(self, k: int) -> float:
        return 1 / (1 + self.crosstalk * k * (k - 1))


def model(args: argparse.Namespace) -> Model:
    """Model of the flags."""
    from bench import native
    from bench.commands._pipeline_request import read_pipeline
    from bench.probe import known_probe
    from bench.remedies import Setting
    from bench.resources import read_resources

    for name in ("jobs", "cpus", "crosstalk"):
        value = getattr(args, name) or 0
        if not 0 <= value < math.inf:
            raise UsageError(f"--{name} is a number from 0 on, not {value}")
    resources = read_resources()
    if args.cpus:  # shares of the CPUs in the file are of these, too
        resources = replace(resources, threads=args.cpus)
    read, pipeline = read_pipeline(args, resources, known_probe())
    checked, known, reach = _checked(args.calibration)
    error, error_from = error_of(checked)
    return Model(
        pipeline,
        args.jobs or max(JOBS, 20 * pipeline.in_flight),
        resources.threads if args.cpus is None else args.cpus,
        args.seed,
        known,
        checked.bandwidth if checked else 0.0,
        _interrupts(args.interrupts or [], pipeline),
        args.crosstalk,
        error,
        error_from,
        Setting(native, resources, tuple(native.policies())),
        reach or Reach.of_file(read.tested, pipeline),
        args.jobs is not None,
    )


def error_of(checked: "Calibration | None") -> tuple[float, str]:
    """Error of a prediction, and where that is from."""
    if checked is not None and checked.errors:
        n = len(checked.errors)
        return checked.median_error, f"median of {n} checked (worst {checked.worst_error:.0%})"
    return ERROR, "not checked here: twice the error on published changes of a prover"


def _checked(folder: str | None) -> "tuple[Calibration | None, Known, Reach | None]":
    """Calibration of a check, its costs by what was measured, and how far it reaches."""
    if folder is None:
        return None, Known(), None
    from analysis.calibration import read
    from bench.commands._pipeline_check import costs_of
    from bench.commands._remedy_schedule import rows_of
    from bench.journal import read_state
    from bench.pipelineplain import from_plain
    from bench.planfile import read_plan

    path = Path(folder)
    checked = read(path)
    _, options = read_plan(path)
    rows = rows_of(read_state(path))
    found: dict[tuple[str, Actor], Any] = {}
    ran = []
    for row in options["pipeline"]["settings"]:
        costs, _ = costs_of(row, rows)
        pipeline = from_plain(row["pipeline"])
        ran.append(pipeline)
        for name, cost in costs.items():
            actor = pipeline.task(name).actor
            if actor is not None:
                found.setdefault((name, _work(actor)), (cost, actor.threads))
    return checked, Known(found), Reach.of_check(ran)


def _interrupts(texts: list[str], pipeline: Pipeline) -> dict[str, float]:
    from bench.pipelinevalues import parse_setting
    from bench.sweep import parse_share

    found = {}
    for text in texts:
        name, value = parse_setting(text)
        task = pipeline.task(name)
        share = _lost(value, task) if Path(value).is_dir() else parse_share(value)
        if share >= 1:
            raise UsageError(f"--interrupts {text}: nothing would be left of everybody's time")
        found[task.name] = share
    return found


def _lost(folder: str, task: Task) -> float:
    """Share of a warm reader's time that an aggressor's interrupts took; 0: not resolved."""
    from analysis.attribution import build

    report = build(folder)
    if task.actor is not None and not report.aggressor.startswith(task.actor.kernel):
        raise UsageError(
            f"{folder} is about {report.aggressor}; {task.name} runs {task.actor.kernel}",
            f"attribute VICTIM {task.actor.kernel} -o DIR",
        )
    for contrast in report.contrasts:
        if contrast.name == "shootdown":
            return max(0.0, 1 - 1 / contrast.ratio) if contrast.resolved else 0.0
    raise UsageError(f"{folder} has no shootdown contrast", "let it finish with --resume")
