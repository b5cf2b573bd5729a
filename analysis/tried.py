"""Runs of a user's command under remedies: verdicts, and whether a remedy took effect at all.

A run counts by one number, its cost: seconds, or what the program prints, turned so that less is
better. Runs that failed have none, and are a result of their own.
"""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from analysis.files import Line
from analysis.load import closed_rounds
from analysis.remedy_stages import GAP_S, PILOT, VERDICT, Choice, pick
from analysis.stats import (
    DEAD_BAND,
    Decision,
    PairedByState,
    not_tested,
    pair_by_state,
)
from analysis.verdict import decide_remedies
from bench.blocks import BASELINE
from bench.schema import too_many_rejected


@dataclass(frozen=True)
class Spec:
    """What a run of ``bench try`` was set up to do: the options in its plan."""

    shows: Mapping[str, tuple[str, ...]]
    """Remedy -> figures in which it shows; none for one that changes nothing."""
    higher_is_better: bool = False
    budget_s: float = math.inf
    dead_band: float = DEAD_BAND
    planned_band: float = DEAD_BAND
    """Dead band the schedule was made with: what was run does not depend on how it is read."""
    pilot_rounds: int = 6
    most_rounds: int = 60

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Spec":
        """Spec in the options of a plan."""
        given = options["try"]
        return cls(
            {name: tuple(one["shows"]) for name, one in given["remedies"].items()},
            given["higher_is_better"],
            given["budget_s"],
            options.get("dead_band", DEAD_BAND),
            given["dead_band"],
            given["pilot_rounds"],
            given["most_rounds"],
        )


@dataclass(frozen=True)
class Run:
    """One run of the command."""

    cost: float
    """Less is better; NaN where it failed."""
    value: float
    """As it was measured or printed."""
    wall_s: float
    """With the time it takes to start one."""
    failure: str = ""
    """How it failed, and the last it then said."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Of ``FIGURES``, those that are known."""


Runs = Mapping[str, Mapping[int, Run]]
"""Remedy -> round -> run, of one block."""


def samples(lines: Sequence[Line]) -> list[Line]:
    """Lines of a journal that are samples of a closed round."""
    closed = closed_rounds(lines)
    return [
        line
        for line in lines
        if line["kind"] == "sample"
        and closed.get((line["block"], line["round"])) == line["attempt"]
        and "run" in line
    ]


def runs(lines: Sequence[Line], block: str, spec: Spec) -> dict[str, dict[int, Run]]:
    """Runs of one block, of sample lines."""
    found: dict[str, dict[int, Run]] = {}
    for line in lines:
        if line["block"] == block:
            found.setdefault(line["mix"], {})[line["round"]] = make_run(line, spec)
    return found


def make_run(line: Line, spec: Spec) -> Run:
    """Run of one sample line."""
    run = line["run"]
    failure = run.get("failure", "")
    if failure and run.get("said"):
        failure += f" ({run['said'].splitlines()[-1]})"
    value = math.nan if failure else run.get("metric", run["seconds"])
    cost = 1 / value if spec.higher_is_better else value
    return Run(cost, value, line["wall_s"], failure, figures(run))


def pairs(found: Runs, remedy: str) -> PairedByState:
    """Log ratios of remedy over baseline, of the rounds in which neither failed."""
    other = found.get(BASELINE, {})
    both = [
        (run.cost, other[round_].cost)
        for round_, run in sorted(found.get(remedy, {}).items())
        if round_ in other and not run.failure and not other[round_].failure
    ]
    if not both:
        return PairedByState(np.array([]), ())
    top, bottom = zip(*both, strict=True)
    # Where its threads ran is the command's business: all runs are of one stratum.
    return pair_by_state(top, bottom, [""] * len(top), [""] * len(top))


def failing(found: Sequence[Runs], remedy: str) -> str:
    """Say how a remedy fails, where it does so too often for a verdict; empty otherwise."""
    seen = [run.failure for block in found for run in block.get(remedy, {}).values()]
    failures = [failure for failure in seen if failure]
    if not too_many_rejected(len(failures), len(failures) / max(1, len(seen))):
        return ""
    (usual, _), *_ = Counter(failures).most_common(1)
    return f"{usual}, in {len(failures)} of {len(seen)} runs"


def choose(lines: Sequence[Line], spec: Spec) -> Choice:
    """Choose remedies and sample count from the pilot and the time left."""
    found = runs(lines, PILOT, spec)
    ratios, walls = {}, {}
    for name in spec.shows:
        paired = pairs(found, name).log_ratios
        # One that was given up for its time is out for good.
        whole = len(found.get(name, {})) >= spec.pilot_rounds
        if paired.size and whole and not failing([found], name):
            ratios[name] = paired
            walls[name] = _wall_s(found, name)
    spent = sum(line["wall_s"] + GAP_S for line in lines if line["block"] != VERDICT)
    left_s = spec.budget_s - spent
    baseline_s = _wall_s(found, BASELINE)
    return pick(ratios, walls, baseline_s, left_s, spec.planned_band, spec.most_rounds)


def _wall_s(found: Runs, name: str) -> float:
    return statistics.median([run.wall_s for run in found.get(name, {}).values()] or [math.nan])


@dataclass(frozen=True)
class Tried:
    """One remedy against the command as it is. Decisions are on cost: a ratio under 1 is a gain."""

    name: str
    decision: Decision
    pilot_gain: float
    """Median of the pilot's few runs: no result, but why it was tried or not."""
    effect: "Effect"
    median: float
    """Of the value as measured or printed, over all runs that did not fail."""
    failure: str = ""
    """How it fails, where it does too often for a verdict."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Medians over the pilot's runs."""

    @property
    def tested(self) -> bool:
        """Whether fresh runs decided."""
        return self.decision.verdict != "not tested"


def judge(lines: Sequence[Line], spec: Spec) -> list[Tried]:
    """Every remedy, the most helpful first."""
    pilot, fresh = (runs(lines, block, spec) for block in (PILOT, VERDICT))
    itself = failing([pilot, fresh], BASELINE)
    failures = {name: failing([pilot, fresh], name) for name in spec.shows}
    cells: dict[str, PairedByState | Decision] = {}
    for name in spec.shows:
        if itself:
            cells[name] = not_tested(f"the command itself fails: {itself}")
        elif failures[name]:
            cells[name] = not_tested(f"fails under this remedy: {failures[name]}")
        elif not fresh.get(name):
            cells[name] = not_tested("only piloted" if pilot.get(name) else "not run")
        else:
            cells[name] = pairs(fresh, name)
    if not cells:
        return []
    decided = decide_remedies(cells, spec.dead_band).decisions
    found = [
        Tried(
            name,
            decision,
            _pilot_gain(pilot, name),
            effect(pilot, name, spec.shows[name]),
            _median(pilot, fresh, name),
            failures[name],
            usual_figures(pilot, name),
        )
        for name, decision in decided.items()
    ]
    return sorted(found, key=lambda one: one.decision.ratio if one.tested else math.inf)


def _pilot_gain(pilot: Runs, name: str) -> float:
    ratios = pairs(pilot, name).log_ratios
    return math.exp(-statistics.median(ratios.tolist())) - 1 if ratios.size else math.nan


def _median(pilot: Runs, fresh: Runs, name: str) -> float:
    block = fresh if fresh.get(name) else pilot
    values = [run.value for run in block.get(name, {}).values() if not run.failure]
    return statistics.median(values) if values else math.nan


# ---- what a remedy did to the command ------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """A figure of a run by which one sees that a remedy took effect."""

    label: str
    least: float
    """Change of the median that is one: absolute of shares, relative of all else."""
    share: bool = False


FIGURES = {
    "huge": Figure("huge pages", 0.02, share=True),
    "faults": Figure("page faults", 0.10),
    "virtual": Figure("address space", 0.05),
    "threads": Figure("threads", 0.05),
    "cpus": Figure("CPUs seen", 0.05),
    "busy": Figure("CPUs busy", 0.05),
    "nodes": Figure("largest node's share", 0.05, share=True),
    "resident": Figure("resident bytes", 0.05),
}


def figures(run: Mapping[str, Any]) -> dict[str, float]:
    """Figures of the ``run`` of a sample line that are known."""
    looks, usage = run.get("looks") or {}, run.get("usage") or {}
    found: dict[str, float] = {}
    if usage:
        found["faults"] = usage["minor_faults"]
        if run["seconds"] > 0:
            found["busy"] = (usage["user_s"] + usage["system_s"]) / run["seconds"]
    if looks and looks["resident_bytes"]:
        found["huge"] = looks["huge_bytes"] / looks["resident_bytes"]
        found["resident"] = looks["resident_bytes"]
        found["virtual"] = looks["virtual_bytes"]
        found["threads"] = looks["threads"]
        found["cpus"] = len(looks["cpus"])
        pages = (looks.get("nodes") or {}).values()
        if sum(pages):
            found["nodes"] = max(pages) / sum(pages)
    return found


def usual_figures(found: Runs, name: str) -> dict[str, float]:
    """Medians over the runs of a remedy in one block."""
    own = [run.figures for run in found.get(name, {}).values() if not run.failure]
    known = {key for one in own for key in one}
    return {
        key: statistics.median(one[key] for one in own if key in one)
        for key in FIGURES
        if key in known
    }


@dataclass(frozen=True)
class Change:
    """One figure as it is, and under a remedy."""

    figure: str
    before: float
    """Median."""
    after: float
    """Median of the runs that changed, of all where none did."""
    changed: int
    """Runs under the remedy that lie beyond all runs without it, and away from their median."""
    n: int
    """Runs under the remedy."""
    moved: bool
    """Whether the medians differ."""


@dataclass(frozen=True)
class Effect:
    """Whether a remedy did anything to the command, by what was seen of it from outside."""

    took: bool | None
    """None: not seen, or not clear."""
    changes: tuple[Change, ...] = ()
    reason: str = ""


FEWEST_RUNS = 3


def effect(found: Runs, name: str, shows: Sequence[str]) -> Effect:
    """Compare the figures in which a remedy shows, run by run.

    A run changed where it lies beyond all runs without the remedy, by enough to matter. A remedy
    took effect where half of its runs changed; with six of each, chance makes all of them do so
    once in 462. Some programs take a remedy in some of their runs only.
    """
    if not shows:
        return Effect(None, reason="changes nothing")
    changes = []
    for key in shows:
        mine, theirs = (
            [run.figures[key] for run in found.get(one, {}).values() if key in run.figures]
            for one in (name, BASELINE)
        )
        if min(len(mine), len(theirs)) >= FEWEST_RUNS:
            changes.append(_change(key, theirs, mine))
    took = tuple(change for change in changes if 2 * change.changed >= change.n)
    if took:
        return Effect(True, took)
    if 0 < len(found.get(name, {})) < FEWEST_RUNS:
        return Effect(None, tuple(changes), "too few runs to tell")
    if len(changes) < len(shows):
        return Effect(None, tuple(changes), "it ran too short to be looked at")
    unclear = any(change.moved or change.changed for change in changes)
    return Effect(None if unclear else False, tuple(changes))


def _change(key: str, before: Sequence[float], after: Sequence[float]) -> Change:
    middle = statistics.median(before)

    def away(value: float) -> bool:
        scale = 1.0 if FIGURES[key].share else max(abs(middle), abs(value), 1e-12)
        return abs(value - middle) >= FIGURES[key].least * scale

    beyond = [v for v in after if away(v) and not min(before) <= v <= max(before)]
    moved = away(statistics.median(after))
    shown = statistics.median(beyond or after)
    return Change(key, middle, shown, len(beyond), len(after), moved)
