"""A run of ``bench remedy``: two plans in one folder, and the schedule between pilot and verdict.

``DIR/alone`` holds every actor alone; it must be over before the plan of ``DIR`` can be made,
because spinners take as long as the passes measured there, and because predictions belong into a
plan before anything it holds is measured.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any, TextIO

from bench.blocks import Plan, Settings, Skip
from bench.cli import program_name
from bench.commands._remedy_request import Request
from bench.commands._remedy_schedule import Stages, rows_of
from bench.commands._session import Session, dump_json, open_session
from bench.errors import HostError, UsageError
from bench.journal import State, read_state
from bench.mix import Mix, mix_name
from bench.mixplan import MixPlanner
from bench.planfile import read_plan
from bench.remarks import folded
from bench.remedyplan import PILOT, PILOT_ROUNDS, SOLO, SPIN, Trial, solo, trial
from bench.scenario import to_plain
from bench.spawn import WORKER
from bench.units import format_duration

ALONE = "alone"
"""Folder of the first plan."""
NOMINAL_RATE = 1e9
"""Iterations a second of a spinner, as the kernel's own estimate has it: for plans only."""
MARGIN = 0.93
"""Of the budget that is planned for: workers start and files are saved in the rest."""


# ---- the two plans -------------------------------------------------------------------------------


def begin(folder: Path, request: Request, as_json: bool, command: Sequence[str] = WORKER) -> int:
    """Start a run: every actor alone, then the rest."""
    planner, setting = request.planner()
    singles = request.singles(setting)
    first = solo(
        request.scenario,
        {name: outcome for name, (_, outcome) in singles.items()},
        planner,
        request.settings,
        request.budget_s,
        request.seed,
    )
    session = Session(
        folder / ALONE,
        first.plan,
        {"request": request.plain(), "measured": first.plain(), "spin": first.spin},
        tables=False,
        name="remedy",
        command=command,
        announcement=f"every actor alone, about {format_duration(first.plan.estimate_s)}",
        reserve=_missing_pages(first.plan, planner) if request.reserve else {},
    )
    if (folder / "plan.toml").exists() or (folder / ALONE / "plan.toml").exists():
        raise UsageError(
            f"{folder} holds a run already",
            f"continue it with {program_name()} remedy --resume {folder}, or choose another -o",
        )
    return _after_solo(folder, session, as_json)


def go_on(folder: Path, as_json: bool, command: Sequence[str] = WORKER) -> int:
    """Resume a run, in whichever plan it stopped."""
    if (folder / "plan.toml").exists():
        session = open_session(str(folder), as_json)
        if "remedy" not in session.options:
            raise UsageError(
                f"{folder} is not a run of remedy", f"{program_name()} run --resume {folder}"
            )
        session.command = command
        if session.options["remedy"]["reserve"]:
            planner, _ = _request_of(folder).planner()
            session.reserve = _missing_pages(session.plan, planner)
        return _main(session)
    session = open_session(str(folder / ALONE), as_json)
    request = Request.from_plain(session.options["request"], session.plan.blocks[0].entries[0].mix)
    if request.reserve:
        session.reserve = _missing_pages(session.plan, request.planner()[0])
    session.tables, session.name, session.command = False, "remedy", command
    return _after_solo(folder, session, as_json)


def _after_solo(folder: Path, session: Session, as_json: bool) -> int:
    code = session.run()
    if session.status == "interrupted":
        sys.stderr.write(f"go on: {program_name()} remedy --resume {folder}\n")
        return code
    second = main_session(folder, as_json)
    second.command = session.command
    return _main(second)


def main_session(folder: Path, as_json: bool) -> Session:
    """Plan the trial of a folder whose actors were all measured alone."""
    _, options = read_plan(folder / ALONE)
    state = read_state(folder / ALONE)
    request = _request_of(folder)
    planner, setting = request.planner()
    rows = rows_of(state)
    walls = [wall for walls in state.walls.values() for wall in walls]
    pass_s = _busy_s(state, request.scenario.mix, options["measured"]["own"])
    baseline = mix_name(request.scenario.mix)
    own_walls = state.walls.get((SOLO, baseline))
    if not own_walls:
        drop = state.dropped.get(baseline)
        raise HostError(
            f"the scenario could not be measured: {drop.reason if drop else 'no sample of it'}"
        )
    budget_s = request.budget_s * MARGIN - sum(walls) - 0.1 * len(walls)
    made = trial(
        request.scenario,
        request.singles(setting),
        pass_s,
        median(own_walls),
        _spin_rate(rows, options["spin"]),
        planner,
        setting,
        request.settings,
        budget_s,
        request.seed,
    )
    spec = _spec(request, made, budget_s, rows, options["measured"], planner)
    return Session(
        folder,
        made.plan,
        spec,
        as_json=as_json,
        tables=False,
        name="remedy",
        reserve=_missing_pages(made.plan, planner) if request.reserve else {},
    )


def _request_of(folder: Path) -> Request:
    """Request of a folder that was begun."""
    plan, options = read_plan(folder / ALONE)
    return Request.from_plain(options["request"], plan.blocks[0].entries[0].mix)


def _missing_pages(plan: Plan, planner: MixPlanner) -> dict[int, int]:
    """Huge pages that a plan needs beyond those the pools have."""
    from bench.hugepages import shortfall
    from bench.plan import pool_need
    from bench.resources import read_resources

    return shortfall(pool_need(plan, read_resources(), planner.registry))


def _spec(
    request: Request,
    made: Trial,
    budget_s: float,
    rows: list[Any],
    measured: dict[str, Any],
    planner: MixPlanner,
) -> dict[str, Any]:
    """Options of the main plan: what ``analysis.remedy_stages.Spec`` reads, and predictions."""
    from analysis.forecast import Forecast, Measured
    from analysis.report import plain

    changed = {
        name: {int(i): mix for i, mix in by.items()} for name, by in measured["changed"].items()
    }
    kernels = planner.registry.kernels()
    mix = request.scenario.mix
    forecast = Forecast(
        request.scenario,
        rows,
        Measured(**(measured | {"changed": changed})),
        planner.estimator.placement(mix).cpus,
        [kernels[actor.kernel].sharing == "team" for actor in mix.actors],
    )
    predictions = {}
    for name, treated in made.mixes.items():
        parts = made.parts[name]
        own = [changed.get(part, {}) for part in parts]
        if len(parts) > 1 and not set.intersection(*map(set, own)):
            # A pair changes every actor as one of its parts does.
            changed[name] = {i: mix for part in own for i, mix in part.items()}
        found = forecast.predict(name, treated, planner.estimator.placement(treated).cpus)
        kept = {k: v for k, v in plain(found).items() if v not in (None, "", {})}
        predictions[name] = kept
    usual = {
        row["actor"]: 1 / _work_s(row)
        for row in rows
        if row["mix"] == mix_name(mix) and row["seconds"] > 0
    }
    return {
        "dead_band": request.dead_band,
        "accept_unknown": request.accept_unknown,
        "remedy": {
            "scenario": to_plain(request.scenario),
            "source": request.source,
            "mixes": {name: mix_name(treated) for name, treated in made.mixes.items()},
            "parts": {name: list(parts) for name, parts in made.parts.items()},
            "spin": made.spin,
            "notes": {name: list(notes) for name, notes in made.notes.items()},
            "refused": _told(folded(made.refused)),
            "shed": _told(made.shed),
            "predictions": predictions,
            "before": forecast.before(),
            "alone": forecast.speed_in_mix(usual),
            "budget_s": budget_s,
            "dead_band": request.dead_band,
            "pilot_rounds": PILOT_ROUNDS,
            "most_rounds": request.samples or 60,
            "most_pairs": made.most_pairs,
            "reserve": request.reserve,
        },
    }


def _work_s(row: Any) -> float:  # noqa: ANN401 - a row of analysis.load
    from analysis.paired import work_seconds

    return work_seconds(row)


def _spin_rate(rows: list[Any], mix: str) -> float:
    """Iterations a second of a spinner; 0 where it was not measured."""
    rates = [row["ops"] / row["seconds"] for row in rows if row["mix"] == mix and row["seconds"]]
    return median(rates) if rates else 0.0


def _told(skips: Sequence[Skip]) -> list[dict[str, str]]:
    return [asdict(skip) for skip in skips]


def _busy_s(state: State, mix: Mix, own: Sequence[str]) -> list[float]:
    """Median seconds each actor of a mix is busy in a pass: rests and waits left out.

    Where it shares its CPUs the time it waits for them is not its own: then the time it takes
    alone, of the mixes ``own``.
    """
    lines: dict[str, list[Any]] = {}
    for samples in state.samples.values():
        for line in samples:
            lines.setdefault(line["mix"], []).append(line)
    busy = []
    for i, alone in enumerate(own):
        in_mix = [line["actors"][i] for line in lines.get(mix_name(mix), [])]
        if any(actor["oversubscribed"] for actor in in_mix) and alone in lines:
            in_mix = [line["actors"][0] for line in lines[alone]]
        values = sorted(actor["active_s"] for actor in in_mix)
        busy.append(values[len(values) // 2] if values else 0.0)
    return busy


def _main(session: Session) -> int:
    """Run the main plan, then say what it found."""
    stages = Stages(session.plan, session.options, time.monotonic())
    session.next_block = stages.next_block
    session.stages = stages.stages
    session.remaining = stages.pending
    session.tables, session.name = False, "remedy"
    session.announcement = "pilot, then fresh samples for the verdict"
    code = session.run()
    show(session.folder, session.options, sys.stdout, session.as_json)
    if session.status == "interrupted":
        return code
    baseline = mix_name(stages.blocks[PILOT].entries[0].mix)
    state = read_state(session.folder)
    # A remedy that starves somebody is a result; without the baseline there is none.
    return 1 if baseline in state.dropped or not state.samples else 0


# ---- output --------------------------------------------------------------------------------------


def show(folder: Path, options: dict[str, Any], stream: TextIO, as_json: bool) -> None:
    """Print the result of a folder."""
    from analysis import remedy_report, report
    from bench.schema import SCHEMA

    found = remedy_report.build(folder, program_name(), options)
    if as_json:
        dump_json({"schema": SCHEMA, **report.plain(found)}, stream)
        return
    from bench.commands._remedy_view import show as lay_out

    lay_out(found, stream)


def preview(request: Request, stream: TextIO, as_json: bool) -> None:
    """Print what a run would do: times of spinners are estimates here."""
    from bench.commands import _planview

    planner, setting = request.planner()
    singles = request.singles(setting)
    outcomes = {name: outcome for name, (_, outcome) in singles.items()}
    first = solo(
        request.scenario, outcomes, planner, request.settings, request.budget_s, request.seed
    )
    estimator = planner.estimator
    mix = request.scenario.mix
    pass_s = [
        estimator.window_s(Mix((replace(a, role="measured", script=()),)), Settings(0, 0, 1))
        for a in mix.actors
    ]
    made = trial(
        request.scenario,
        singles,
        pass_s,
        estimator.sample_s(mix, request.settings),
        NOMINAL_RATE,
        planner,
        setting,
        request.settings,
        request.budget_s * MARGIN - first.plan.estimate_s,
        request.seed,
    )
    blocks = (*first.plan.blocks, *(b for b in made.plan.blocks if b.id in (PILOT, SPIN)))
    pilot_s = PILOT_ROUNDS * sum(b.estimate_s for b in made.plan.blocks if b.id == PILOT)
    notes = (
        f"every actor alone takes about {format_duration(first.plan.estimate_s)}, the pilot of"
        f" {PILOT_ROUNDS} rounds about {format_duration(pilot_s)}; then pairs of remedies that do"
        f" not hurt, at most {made.most_pairs}; then fresh samples of the promising ones, as many"
        f" as the pilot's spread asks for, until {format_duration(MARGIN * request.budget_s)} at"
        " the latest",
        "spinners run for remedies that help only",
    )
    plan = Plan(
        "remedy",
        blocks,
        0,
        request.seed,
        tuple(folded(made.refused)),
        tuple(made.shed),
        planner.memory_bytes(blocks),
        notes,
    )
    _planview.show(plan, stream, as_json)
