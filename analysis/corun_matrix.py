"""Samples of one block of ``bench corun``: ratios and traffic by what a mix is for."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from analysis import totals
from analysis.load import Results, Row
from analysis.stats import Decision, decide, not_tested

SPIN = "spin"
"""Label of CPUs that leave memory alone."""
Place = tuple[str, int]
"""Name of a mix, and position of an actor in it."""


class Matrix:
    """One block: one split of the CPUs."""

    def __init__(
        self, results: Results, block: str, cases: Sequence[Mapping[str, Any]], dead_band: float
    ) -> None:
        self.dead_band = dead_band
        self.rows = [row for row in results.rows if row["block"] == block]
        self.samples = totals.samples(self.rows, block)
        self.cases = [case for case in cases if case["mix"] in self.samples]

    @property
    def labels(self) -> list[str]:
        """Kernels, in the plan's order."""
        return list(dict.fromkeys(c["first"] for c in self.cases if c["first"] != SPIN))

    def mix(self, kind: str, label: str, threads: Sequence[int]) -> str:
        """Name of the mix of a kind (``one``, ``alone``, ``spin``); "" where not measured."""
        for case in self.cases:
            same = (case["kind"], case["first"]) == (kind, label)
            # Alone there is no second count.
            counts = 2 if kind == "spin" else 1
            if same and case["threads"][:counts] == list(threads[:counts]):
                return str(case["mix"])
        # One thread alone is both baselines.
        return self.mix("alone", label, threads) if kind == "one" else ""

    def pairs(self, space: str = "") -> list[Mapping[str, Any]]:
        """Cases of two kernels, of one address space or of both."""
        return [c for c in self.cases if c["kind"] == "pair" and space in ("", c["space"])]

    def beside_itself(self, label: str, threads: int) -> str:
        """Mix of a kernel on so many threads altogether; "" where not measured."""
        for case in self.pairs("shared"):
            if case["first"] == case["second"] == label and sum(case["threads"]) == threads:
                return str(case["mix"])
        return ""

    def ratio(self, treated: Place, baseline: Place) -> Decision:
        """Time of one actor over another's, for the same work."""
        if treated[0] not in self.samples or baseline[0] not in self.samples:
            return not_tested("not measured")
        renamed = self._renamed(treated, baseline)
        still = totals.stood_still(renamed, "treated", _speed)
        if still:
            return not_tested(f"stood still in {still} samples")
        logs = totals.pairs(renamed, "baseline", "treated", _speed).log_ratios
        if not logs.size:
            return not_tested("no two samples of a round ran in the same placement")
        return decide(logs, self.dead_band)

    def log_ratio(self, treated: Place, baseline: Place) -> float:
        """Median log of the same; NaN without samples to pair."""
        if treated[0] not in self.samples or baseline[0] not in self.samples:
            return math.nan
        renamed = self._renamed(treated, baseline)
        logs = totals.pairs(renamed, "baseline", "treated", _speed).log_ratios
        return statistics.median(map(float, logs)) if logs.size else math.nan

    def _renamed(self, treated: Place, baseline: Place) -> totals.Samples:
        # The two actors may stand at different places of their mixes.
        return {
            "treated": _only(self.samples[treated[0]], treated[1]),
            "baseline": _only(self.samples[baseline[0]], baseline[1]),
        }

    def spin_beside(self, label: str, threads: tuple[int, int]) -> Place:
        """Spinners, as many as the first count, beside as many of a kernel as the second."""
        return self.mix(SPIN, label, threads[::-1]), 1

    def traffic(self, mix: str) -> float:
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
