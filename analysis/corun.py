"""Who slows whom: the interference matrix of ``bench corun``, with the sharing law beside it."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis import totals
from analysis.displayed import Displayed
from analysis.fluid import saturated_traffic
from analysis.load import Results, Row, load
from analysis.models.sharing import Group, shares
from analysis.report import Note
from analysis.stats import DEAD_BAND, Decision, decide, not_tested

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
    predicted: float
    """Ratio of times by the sharing law, from each kernel alone and beside itself; NaN: none."""

    @property
    def error(self) -> float:
        """Predicted over measured speed, less 1; NaN without either."""
        return self.alone.ratio / self.predicted - 1 if self.predicted else math.nan


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
    median_error: float = math.nan
    """Of the law's speeds, over pairs of different kernels: absolute, relative."""
    worst_error: float = math.nan
    worst_pair: str = ""
    not_measured: list[Note] = field(default_factory=list)
    rejected: list[Note] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    next_commands: list[str] = field(default_factory=list)


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
    for block in results.blocks:
        matrix = _Matrix(results, block.id, merged["corun"]["cases"], dead_band)
        report.cells += matrix.cells()
        report.spaces += matrix.spaces()
    crossed = [c for c in report.cells if c.victim != c.aggressor and math.isfinite(c.error)]
    if crossed:
        worst = max(crossed, key=lambda c: abs(c.error))
        report.median_error = statistics.median(abs(c.error) for c in crossed)
        report.worst_error = worst.error
        report.worst_pair = f"{worst.victim} beside {worst.aggressor}"
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


class _Matrix:
    """One block: one split of the CPUs."""

    def __init__(
        self, results: Results, block: str, cases: Sequence[Mapping[str, Any]], dead_band: float
    ) -> None:
        self.block, self.dead_band = block, dead_band
        self.rows = [row for row in results.rows if row["block"] == block]
        self.samples = totals.samples(self.rows, block)
        self.cases = [c for c in cases if c["mix"] in self.samples]
        alike = [c["mix"] for c in self.cases if c["kind"] == "pair" and c["first"] == c["second"]]
        # What the interface gives: the most that any kernel moved beside itself.
        self.capacity = max((self._traffic(mix) for mix in alike), default=0.0)

    def _mix(self, kind: str, label: str, threads: Sequence[int]) -> str:
        for case in self.cases:
            same = (case["kind"], case["first"]) == (kind, label)
            # Alone there is no second count.
            counts = 2 if kind == "spin" else 1
            if same and case["threads"][:counts] == list(threads[:counts]):
                return str(case["mix"])
        # One thread alone is both baselines.
        return self._mix("alone", label, threads) if kind == "one" else ""

    def cells(self) -> list[Cell]:
        """Every victim beside every aggressor."""
        found = []
        for case in self.cases:
            if case["kind"] != "pair":
                continue
            labels, threads = (case["first"], case["second"]), tuple(case["threads"])
            for position in (0, 1):
                if position == 1 and labels[0] == labels[1] and threads[0] == threads[1]:
                    continue  # the other half of two equal ones
                victim, aggressor = labels[position], labels[1 - position]
                n, m = threads[position], threads[1 - position]
                found.append(
                    Cell(
                        victim,
                        aggressor,
                        (n, m),
                        case["space"],
                        self._against(case["mix"], position, self._mix("alone", victim, (n, m))),
                        self._against(case["mix"], position, self._mix("spin", victim, (n, m))),
                        self._predicted(victim, n, aggressor, m),
                    )
                )
        return found

    def spaces(self) -> list[SpaceCost]:
        """What sharing the address space costs each victim."""
        found = []
        for case in self.cases:
            if case["kind"] != "pair" or case["space"] != "own":
                continue
            same = next(
                (
                    c["mix"]
                    for c in self.cases
                    if c["kind"] == "pair"
                    and c["space"] == "shared"
                    and (c["first"], c["second"], c["threads"])
                    == (case["first"], case["second"], case["threads"])
                ),
                "",
            )
            labels, threads = (case["first"], case["second"]), case["threads"]
            for position in (0, 1):
                if position == 1 and labels[0] == labels[1]:
                    continue
                found.append(
                    SpaceCost(
                        labels[position],
                        labels[1 - position],
                        (threads[position], threads[1 - position]),
                        self._ratio((same, position), (case["mix"], position)),
                    )
                )
        return found

    def _against(self, mix: str, position: int, baseline: str) -> Decision:
        return self._ratio((mix, position), (baseline, 0))

    def _ratio(self, treated: tuple[str, int], baseline: tuple[str, int]) -> Decision:
        if treated[0] not in self.samples or baseline[0] not in self.samples:
            return not_tested("not measured")
        # The two actors may stand at different places of their mixes.
        renamed = {
            "treated": _only(self.samples[treated[0]], treated[1]),
            "baseline": _only(self.samples[baseline[0]], baseline[1]),
        }
        still = totals.stood_still(renamed, "treated", _speed)
        if still:
            return not_tested(f"stood still in {still} samples")
        paired = totals.pairs(renamed, "baseline", "treated", _speed)
        if not paired.log_ratios.size:
            return not_tested("no two samples of a round ran in the same placement")
        return decide(paired.log_ratios, self.dead_band)

    # ---- the sharing law ------------------------------------------------------------------------

    def _predicted(self, victim: str, n: int, aggressor: str, m: int) -> float:
        mine, theirs = self._group(victim, n, n + m), self._group(aggressor, m, n + m)
        if mine is None or theirs is None:
            return math.nan
        alone = float(shares([mine])[0])
        together = float(shares([mine, theirs])[0])
        return alone / together if together > 0 else math.nan

    def _group(self, label: str, threads: int, all_threads: int) -> Group | None:
        """One kernel's part in the law: one thread alone, and as many as both have together."""
        one = self._traffic(self._mix("one", label, (1, 0)))
        own = self._traffic(self._mix("alone", label, (threads, 0)))
        itself = self._beside_itself(label, all_threads)
        if math.isnan(one) or one <= 0 or not itself:
            return None
        bs = saturated_traffic(one, itself, all_threads, self.capacity)
        return Group(threads, one, max(bs, own))

    def _beside_itself(self, label: str, all_threads: int) -> float:
        """Traffic of one kernel on as many threads as a pair has; 0 where it was not measured."""
        for case in self.cases:
            same = case["first"] == case["second"] == label and case["space"] == "shared"
            if case["kind"] == "pair" and same and sum(case["threads"]) == all_threads:
                return self._traffic(case["mix"])
        return 0.0

    def _traffic(self, mix: str) -> float:
        """GB/s of all actors of a mix, between the least and the most the bus may move."""
        by_actor: dict[int, list[float]] = {}
        for row in self.rows:
            if row["mix"] == mix:
                by_actor.setdefault(row["actor"], []).append(_bus(row))
        return sum(statistics.median(v) for v in by_actor.values()) if by_actor else math.nan


def _bus(row: Row) -> float:
    low, high = row["bus_min_gbps"], row["bus_max_gbps"]
    if not math.isfinite(high):
        return 0.0
    return math.sqrt(low * high) if low > 0 else float(high)


def _only(found: Mapping[int, totals.Sample], position: int) -> dict[int, totals.Sample]:
    return {
        round_: totals.Sample({0: s.speeds.get(position, 0.0)}, s.state, s.wall_s, s.known)
        for round_, s in found.items()
    }


def _speed(sample: totals.Sample) -> float:
    return sample.speeds[0]
