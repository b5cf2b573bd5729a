"""Equal against equal: how often noise passes for a difference.

A comparison of a case with itself should come out different no more often than the level of the
decision rule allows. Each block holds one case twice, told apart by a weight that changes no work.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import binom

from analysis import totals
from analysis.intervals import LEVEL, pairs_needed
from analysis.load import Results
from analysis.paired import Rule, comparisons, grouped, middle, work_seconds
from analysis.stats import Decision, decide, not_tested
from bench.scenario import Scenario

DIFFERENT = ("helps", "hurts")


@dataclass(frozen=True)
class Outcome:
    """What the comparisons of equal cases said."""

    verdicts: Mapping[str, int]
    """Count by verdict."""
    n: int
    """Comparisons that said anything at all."""
    most: int
    """Differences that a rule which keeps its level exceeds once in a hundred runs of these n."""
    beyond_zero: int
    """Intervals that leave out "no change", whatever the dead band says: about 1 - level of n."""

    @property
    def different(self) -> int:
        """How many were called different."""
        return sum(self.verdicts.get(verdict, 0) for verdict in DIFFERENT)

    @property
    def holds(self) -> bool:
        """Whether the rule kept its word."""
        return self.n > 0 and self.different <= self.most and self.beyond_zero <= self.most


def most_different(n: int, level: float = LEVEL) -> int:
    """Count of false differences among n that is exceeded with probability 0.01 at most.

    18 of 200 at 95 %: a rule that is wrong in 9 % is told from one that is wrong in 5 %.
    """
    return int(binom.ppf(0.99, n, 1 - level)) if n else 0


def half_is_seen(decisions: Iterable[Decision]) -> bool:
    """Whether no case held to half its speed passed for as fast, or was left open.

    Of a comparison with too few pairs in equal placement nothing was promised.
    """
    return all(d.verdict == "hurts" for d in decisions if d.n >= pairs_needed())


def outcome(decisions: Iterable[Decision]) -> Outcome:
    """Count what decisions on equal cases said."""
    said = [decision for decision in decisions if decision.verdict != "not tested"]
    verdicts: Counter[str] = Counter(decision.verdict for decision in said)
    beyond = sum(
        not decision.low <= 1 <= decision.high for decision in said if not math.isnan(decision.low)
    )
    return Outcome(dict(verdicts), len(said), most_different(len(said)), beyond)


def judge(results: Results, rule: Rule, question: str) -> list[Decision]:
    """Decisions of the blocks that ask this question, in the plan's order."""
    return [
        comparison.decision
        for block in results.blocks
        if block.question == question
        for comparison in comparisons(results, block, {}, rule)
    ]


def judge_totals(results: Results, rule: Rule, question: str, scenario: Scenario) -> list[Decision]:
    """Decisions on the total work of a scenario, as remedies are judged by it.

    Everybody's usual speed is that of the first mixes of all blocks, as a pilot's would be.
    """
    weights = {scenario.position(name): weight for name, weight in scenario.weights.items()}
    blocks = [block for block in results.blocks if block.question == question]
    firsts = {block.mixes[0] for block in blocks}
    rows = [row for row in results.rows if row["mix"] in firsts]
    usual = {
        position: middle(1 / work_seconds(row) for row in same if row["seconds"] > 0)
        for position, same in grouped(rows, "actor").items()
    }

    def speed(sample: totals.Sample) -> float:
        return totals.total(sample, usual, weights)

    found = []
    for block in blocks:
        first, second = block.mixes
        samples = totals.samples(results.rows, block.id)
        logs = totals.pairs(samples, first, second, speed).log_ratios
        found.append(decide(logs, rule.dead_band) if logs.size else not_tested("no pair"))
    return found


def write_pyperf_pair(results: Results, question: str, folder: Path) -> tuple[Path, Path, int]:
    """Write first and second cases of the blocks as two pyperf files with equal names.

    Returns
    -------
    tuple
        Both paths, for ``pyperf compare_to``, and the number of benchmarks in each.
    """
    import pyperf  # type: ignore[import-untyped]  # it ships no types

    suites: tuple[list[pyperf.Benchmark], list[pyperf.Benchmark]] = ([], [])
    for block in results.blocks:
        if block.question != question:
            continue
        values = [
            [row["seconds"] for row in results.rows if row["mix"] == mix] for mix in block.mixes
        ]
        n = min(len(one) for one in values)
        if n < 2:
            continue
        for suite, one in zip(suites, values, strict=True):
            runs = [
                pyperf.Run(
                    [seconds],
                    metadata={"name": block.id, "unit": "second"},
                    collect_metadata=False,
                )
                for seconds in one[:n]
            ]
            suite.append(pyperf.Benchmark(runs))
    paths = folder / "aa-first.json", folder / "aa-second.json"
    for path, suite in zip(paths, suites, strict=True):
        pyperf.BenchmarkSuite(suite).dump(str(path), replace=True)
    return paths[0], paths[1], len(suites[0])
