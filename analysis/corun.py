"""Who slows whom: the interference matrix of ``bench corun``, with forecasts beside it."""

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.corun_matrix import SPIN, Matrix
from analysis.corun_predict import Predictor
from analysis.displayed import Displayed
from analysis.load import load
from analysis.report import Note
from analysis.stats import DEAD_BAND, Decision

PUBLISHED_ERROR = 0.08
"""Of the sharing law on bare metal, as its authors state it."""


@dataclass(frozen=True)
class Cell:
    """What an aggressor does to a victim. Decisions are on the victim's time for the same work."""

    victim: str
    aggressor: str
    threads: tuple[int, int]
    """Of the victim and of the aggressor."""
    space: str
    """``shared``, or ``own``: the aggressor is another process."""
    alone: Decision
    """Against the victim alone."""
    spin: Decision
    """Against the victim beside ``spin``: what is left is not clock, power or scheduling."""
    law: float = math.nan
    """Ratio of times over alone by the sharing law; NaN where that is not for the pair."""
    fit: float = math.nan
    """By sensitivity and pressure, from all pairs but this."""
    none: float = math.nan
    """As if the aggressor were ``spin``."""

    def error(self, predicted: float) -> float:
        """Speed by a forecast over the measured one, less 1; NaN without either."""
        return self.alone.ratio / predicted - 1 if predicted else math.nan


@dataclass(frozen=True)
class Accuracy:
    """How far a forecast was off, over pairs of different kernels in one address space."""

    forecast: str
    """``law``, ``fit`` or ``none``: the field of ``Cell``."""
    pairs: int
    """That it says something of."""
    of: int
    """That were measured."""
    median: float = math.nan
    """Of the absolute relative errors of speed."""
    worst: float = math.nan
    """The largest, with its sign."""
    worst_pair: str = ""


@dataclass(frozen=True)
class SpaceCost:
    """A victim beside the same aggressor in one address space, over the aggressor in its own."""

    victim: str
    aggressor: str
    threads: tuple[int, int]
    cost: Decision


@dataclass
class CorunReport(Displayed):
    """Everything the closing table says."""

    folder: str
    status: str
    rounds: int
    planned_rounds: int
    kernels: list[str] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    spaces: list[SpaceCost] = field(default_factory=list)
    accuracy: list[Accuracy] = field(default_factory=list)
    half_width: float = math.nan
    """Of the intervals of what was foretold, median, relative: no forecast can be told closer."""
    not_measured: list[Note] = field(default_factory=list)
    rejected: list[Note] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    next_commands: list[str] = field(default_factory=list)

    def tables(self) -> list["CellTable"]:
        """Cells by threads of victim and aggressor, and by address space; empty ones left out."""
        found = []
        for threads in dict.fromkeys(cell.threads for cell in self.cells):
            for space in ("shared", "own"):
                cells = {
                    (c.victim, c.aggressor): c
                    for c in self.cells
                    if (c.threads, c.space) == (threads, space)
                }
                victims = [k for k in (*self.kernels, SPIN) if any(v == k for v, _ in cells)]
                if victims:
                    found.append(CellTable(threads, space, victims, cells))
        return found


@dataclass(frozen=True)
class CellTable:
    """What can be laid out as one matrix."""

    threads: tuple[int, int]
    """Of each victim and of each aggressor."""
    space: str
    victims: list[str]
    cells: Mapping[tuple[str, str], Cell]
    """By victim and aggressor."""


def build(
    folder: str | Path,
    program: str = "python -m bench",
    options: Mapping[str, Any] | None = None,
) -> CorunReport:
    """Build the report of an output directory; ``options`` go before those of its plan."""
    results = load(folder)
    merged = results.plan["options"] | dict(options or {})
    report = CorunReport(
        str(results.folder), results.status, results.rounds, results.plan["rounds"]
    )
    report.kernels = list(merged["corun"]["kernels"])
    dead_band = merged.get("dead_band", DEAD_BAND)
    churn = merged.get("churn", ())
    for block in results.blocks:
        matrix = Matrix(results, block.id, merged["corun"]["cases"], dead_band)
        report.cells += cells(matrix, churn)
        report.spaces += spaces(matrix)
    report.accuracy = [accuracy(report.cells, name) for name in ("law", "fit", "none")]
    widths = [
        math.sqrt(cell.alone.high / cell.alone.low) - 1
        for cell in _crossed(report.cells)
        if cell.alone.low > 0 and math.isfinite(cell.alone.high)
    ]
    report.half_width = statistics.median(widths) if widths else math.nan
    for kind in ("skips", "shed"):
        report.not_measured += [
            Note(t["what"], t["reason"], t.get("remedy", "")) for t in results.plan.get(kind, [])
        ]
    report.not_measured += [Note(mix, reason) for mix, reason in results.skipped.items()]
    report.rejected = [
        Note(mix, f"{r.rejected} of {r.tried} samples invalid: {r.reasons[-1]}")
        for mix, r in results.rejections.items()
    ]
    report.notes = list(results.plan.get("notes", []))
    if report.status == "budget":
        report.notes.append(
            f"the budget was spent after {report.rounds} of {report.planned_rounds} rounds"
        )
    names = ("journal.ndjson", "pyperf.json", "host.json", "plan.toml")
    report.files = [str(results.folder / n) for n in names if (results.folder / n).exists()]
    if report.status not in ("done", "budget"):
        report.next_commands.append(f"{program} corun --resume {results.folder}")
    return report


def accuracy(found: Iterable[Cell], forecast: str) -> Accuracy:
    """Compare one forecast with what was measured."""
    crossed = _crossed(found)
    errors = {cell: cell.error(getattr(cell, forecast)) for cell in crossed}
    known = {cell: error for cell, error in errors.items() if math.isfinite(error)}
    if not known:
        return Accuracy(forecast, 0, len(crossed))
    worst = max(known, key=lambda cell: abs(known[cell]))
    return Accuracy(
        forecast,
        len(known),
        len(crossed),
        statistics.median(map(abs, known.values())),
        known[worst],
        f"{worst.victim} beside {worst.aggressor}",
    )


def _crossed(found: Iterable[Cell]) -> list[Cell]:
    """Measured pairs of different kernels in one address space."""
    return [
        cell
        for cell in found
        if cell.victim not in (cell.aggressor, SPIN)
        and cell.space == "shared"
        and math.isfinite(cell.alone.ratio)
    ]


def cells(matrix: Matrix, churn: Iterable[str] = ()) -> list[Cell]:
    """Every victim beside every aggressor, spinners among the victims.

    ``churn``: kernels that map and release memory.
    """
    predictor = Predictor(matrix, set(churn))
    found = []
    for case, victim, aggressor, position in _sides(matrix):
        threads = (case["threads"][position], case["threads"][1 - position])
        beside = (case["mix"], position)
        forecasts: dict[str, float] = {}
        if victim == SPIN:
            spin = matrix.spin_beside(SPIN, threads)
        else:
            spin = (matrix.mix(SPIN, victim, threads), 0)
            forecasts["law"] = predictor.by_law(victim, aggressor, threads)
            forecasts["none"] = predictor.as_beside_spin(victim, threads)
            if case["space"] == "shared":
                forecasts["fit"] = predictor.by_fit(victim, aggressor, threads)
        found.append(
            Cell(
                victim,
                aggressor,
                threads,
                case["space"],
                matrix.ratio(beside, (matrix.mix("alone", victim, threads), 0)),
                matrix.ratio(beside, spin),
                **forecasts,
            )
        )
    return found


def _sides(matrix: Matrix) -> Iterable[tuple[Mapping[str, Any], str, str, int]]:
    """Case, victim, aggressor and the victim's position, of all that run beside something."""
    for case in matrix.cases:
        if case["kind"] == SPIN and case["first"] != SPIN:
            yield case, SPIN, case["first"], 1
        if case["kind"] != "pair":
            continue
        labels, threads = (case["first"], case["second"]), case["threads"]
        yield case, *labels, 0
        if labels[0] != labels[1] or threads[0] != threads[1]:  # else the half of two equal ones
            yield case, *labels[::-1], 1


def spaces(matrix: Matrix) -> list[SpaceCost]:
    """What sharing the address space costs each victim."""
    found = []
    for case, victim, aggressor, position in _sides(matrix):
        if case["kind"] != "pair" or case["space"] != "own":
            continue
        keys = ("first", "second", "threads")
        same = [c["mix"] for c in matrix.pairs("shared") if all(c[k] == case[k] for k in keys)]
        threads = (case["threads"][position], case["threads"][1 - position])
        shared = (same[0] if same else "", position)
        cost = matrix.ratio(shared, (case["mix"], position))
        found.append(SpaceCost(victim, aggressor, threads, cost))
    return found
