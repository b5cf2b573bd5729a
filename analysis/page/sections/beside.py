"""What kernels lose beside each other, of plain runs."""

import math

from analysis.interference import Slowdown, comparable, slowdowns
from analysis.page.comparing import comparison_table
from analysis.page.model import Block, Matrix, MatrixCell, Section
from analysis.page.source import Host
from analysis.wording import number
from bench.units import format_size, natural

LEAD = "The same kernel alone and beside a neighbour, in pairs of the same few seconds."


def section(host: Host) -> Section | None:
    """Matrix of slow-downs, and the comparisons behind it."""
    blocks: list[Block] = []
    sources = []
    for run, report in host.reports:
        found = comparable(slowdowns(run.results.rows))
        if found:
            blocks.append(_matrix(found, run.tag))
        # Neighbours at a set rate are points of a curve, in a section of their own.
        paced = {c.block for c in report.comparisons if " GB/s" in c.change and report.loaded}
        tested = [
            c
            for c in report.comparisons
            if c.question == "beside" and c.decision.n and c.block not in paced
        ]
        blocks += comparison_table(
            f"Beside a neighbour against alone{run.tag}",
            tested,
            head="beside",
            without="alone -> beside ",
        )
        if found or tested:
            sources.append(run.source)
    if not blocks:
        return None
    return Section("beside", "Beside a neighbour", LEAD, tuple(blocks), tuple(sources))


def _matrix(found: list[Slowdown], tag: str) -> Matrix:
    victims = sorted({_victim(s) for s in found})
    neighbours = sorted({s.beside for s in found}, key=natural)
    cells = {(_victim(s), s.beside): s for s in found}
    return Matrix(
        f"Time beside a neighbour over time alone{tag}",
        "kernel ↓ beside →",
        tuple(victims),
        tuple(neighbours),
        tuple(tuple(_cell(cells.get((v, n))) for n in neighbours) for v in victims),
        "time beside / time alone",
        ("? the 95 % interval includes 1: no change is possible",),
    )


def _victim(s: Slowdown) -> str:
    return " ".join(filter(None, (s.victim, format_size(s.size) if s.size else "", s.pages)))


def _cell(s: Slowdown | None) -> MatrixCell:
    if s is None:
        return MatrixCell("-", math.nan)
    told = f"n={s.n}" if math.isnan(s.low) else f"[{number(s.low)}, {number(s.high)}], n={s.n}"
    return MatrixCell(f"{s.ratio:.2f}{'' if s.resolved else '?'}", s.ratio, told)
