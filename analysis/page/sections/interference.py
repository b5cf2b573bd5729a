"""Who slows whom: the matrix of every kernel beside every other."""

import math

from analysis import wording
from analysis.corun import PUBLISHED_ERROR, CorunReport
from analysis.corun import Cell as Pair
from analysis.corun_matrix import SPIN
from analysis.page.comparing import verdict_cell
from analysis.page.model import (
    Block,
    Cell,
    Matrix,
    MatrixCell,
    Section,
    Text,
    columns,
    table,
)
from analysis.page.source import Host
from analysis.stats import Decision
from analysis.wording import (
    FORECASTS,
    WHAT_FORECASTS_ARE,
    accuracy,
    foretold,
    ratio,
    ratio_interval,
    unresolved,
)

LEAD = (
    "Time of a victim beside an aggressor over its time alone: 2.00 is half the speed. Beside spin,"
    " which uses no memory, what is left is not clock, power or scheduling."
)


def section(host: Host) -> Section | None:
    """Matrices, then every pair with interval and prediction."""
    blocks: list[Block] = []
    sources = []
    for run, report in host.of(CorunReport):
        if not report.cells:
            continue
        sources.append(run.source)
        blocks += _matrices(report, run.tag)
        blocks += _pairs(report, run.tag)
        blocks += _forecasts(report, run.tag)
        blocks += _spaces(report, run.tag)
    if not blocks:
        return None
    return Section("interference", "Who slows whom", LEAD, tuple(blocks), tuple(sources))


def _matrices(report: CorunReport, tag: str) -> list[Matrix]:
    found = []
    for one in report.tables():
        known = {k: pair for k, pair in one.cells.items() if not math.isnan(pair.alone.ratio)}
        victims = [v for v in one.victims if any(k[0] == v for k in known)]
        aggressors = [a for a in report.kernels if any(k[1] == a for k in known)]
        if not victims:
            continue
        found.append(
            Matrix(
                f"{wording.split(one.threads)}, {wording.SPACES[one.space]}{tag}",
                "victim ↓ beside →",
                tuple(victims),
                tuple(aggressors),
                tuple(tuple(_cell(known.get((v, a))) for a in aggressors) for v in victims),
                "time beside / time alone",
                (wording.WHAT_MARKS_ARE,),
            )
        )
    return found


def _cell(pair: Pair | None) -> MatrixCell:
    if pair is None:
        return MatrixCell("-", math.nan)
    text = f"{pair.alone.ratio:.2f}{wording.MARKS.get(pair.alone.verdict, '')}"
    hint = f"{pair.victim} beside {pair.aggressor}: {ratio_interval(pair.alone)}"
    return MatrixCell(text, pair.alone.ratio, hint)


def _pairs(report: CorunReport, tag: str) -> tuple[Block, ...]:
    return table(
        f"Every pair in one address space, {report.rounds} rounds{tag}",
        columns(
            "victim", "beside", "threads", "#of alone", "-95 % interval", "#of spin", "#law",
            "#fit",
        ),
        [
            (
                Cell(pair.victim),
                Cell(pair.aggressor),
                Cell(f"{pair.threads[0]}:{pair.threads[1]}"),
                _ratio(pair.alone),
                Cell(ratio_interval(pair.alone)),
                _ratio(pair.spin),
                Cell(foretold(pair.law), pair.law),
                Cell(foretold(pair.fit), pair.fit),
            )
            for pair in sorted(report.cells, key=_worst_first)
            if pair.space == "shared" and pair.victim != SPIN
        ],
    )  # fmt: skip


def _forecasts(report: CorunReport, tag: str) -> list[Block]:
    """How far forecasts were off; nothing where none says anything."""
    told = [a for a in report.accuracy if a.pairs]
    if not told:
        return []
    found: list[Block] = list(
        table(
            f"Forecasts against measured speeds, pairs of different kernels in one address"
            f" space{tag}",
            columns("forecast", "#pairs", "#median error", "#worst", "of"),
            [(Cell(FORECASTS[a.forecast]), *map(Cell, accuracy(a))) for a in told],
            (WHAT_FORECASTS_ARE.format(published=PUBLISHED_ERROR),),
        )
    )
    if math.isfinite(report.half_width):
        found.append(
            Text(
                f"The measurements themselves are known to ±{report.half_width:.0%} in the median."
            )
        )
    return found


def _worst_first(pair: Pair) -> float:
    return 0.0 if math.isnan(pair.alone.ratio) else -pair.alone.ratio


def _spaces(report: CorunReport, tag: str) -> tuple[Block, ...]:
    return table(
        f"One address space over two, for the same pair{tag}",
        columns("victim", "beside", "threads", "#cost in time", "-95 % interval", "verdict"),
        [
            (
                Cell(s.victim),
                Cell(s.aggressor),
                Cell(f"{s.threads[0]}:{s.threads[1]}"),
                _ratio(s.cost),
                Cell(ratio_interval(s.cost)),
                verdict_cell(s.cost, "not resolved" if unresolved(s.cost) else ""),
            )
            for s in report.spaces
        ],
    )


def _ratio(decision: Decision) -> Cell:
    hint = "" if math.isnan(decision.ratio) else f"{decision.ratio:.4f}, {decision.n} pairs"
    return Cell(ratio(decision), decision.ratio, hint=hint)
