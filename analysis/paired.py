"""Alternatives against the baseline of their block, by the decision rule.

Pairs are samples of one round of one block that ran in the same placement state; ratios are of time
for the same work, so that a ratio under 1 is a gain.
"""

import math
import shlex
import statistics
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from analysis.load import BlockInfo, Results, Row, beside
from analysis.onward import larger_pages
from analysis.stats import DEAD_BAND, Decision, decide, not_tested, pair_by_state
from bench.mix import Actor, Mix, actor_name, parse_mix
from bench.schema import LEAST_KNOWN, strata, too_many_rejected
from bench.units import format_size


@dataclass(frozen=True)
class Rule:
    """What a verdict depends on beside the samples."""

    dead_band: float = DEAD_BAND
    accept_unknown: bool = False
    least_bytes: Mapping[str, int] = field(default_factory=dict)
    """Page policy -> bytes a thread must walk for a verdict on larger pages than its own."""
    divided: Collection[str] | None = None
    """Kernels whose threads each walk a share of the memory; None: taken for all of them."""
    program: str = "python -m bench"
    """The form in which commands are printed."""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Rule":
        """Rule of a run's options; others among them are passed over."""
        known = {item.name for item in fields(cls)} & options.keys()
        return cls(**{key: options[key] for key in known})

    def least_working_set(self, baseline: Row, treated: Row) -> int:
        """Working set that two page policies need; 0 where this one is enough, or pages are equal.

        Below it the threads reach much of their data without walking page tables under either, and
        "neutral" would say nothing about larger data.
        """
        policies = {baseline["pages"], treated["pages"]}
        if len(policies) < 2 or not policies <= self.least_bytes.keys():
            return 0
        least = min(self.least_bytes[policy] for policy in policies)
        wanted = max(least * self._walkers(row) for row in (baseline, treated))
        return wanted if min(baseline["size"], treated["size"]) < wanted else 0

    def divides(self, row: Row) -> bool:
        """Whether several threads each walk a share of the memory."""
        return row["threads"] > 1 and (self.divided is None or row["kernel"] in self.divided)

    def _walkers(self, row: Row) -> int:
        return int(row["threads"]) if self.divides(row) else 1


def gain(decision: Decision) -> tuple[float, float, float]:
    """Median, low and high of the relative gain in speed, of a decision on time."""
    low = 1 / decision.high - 1 if decision.high else math.nan
    return 1 / decision.ratio - 1, low, 1 / decision.low - 1 if decision.low else math.inf


@dataclass(frozen=True)
class Comparison:
    """An alternative against the baseline of its block."""

    question: str
    block: str
    label: str
    change: str
    """What differs: ``base -> thp``."""
    size: int
    threads: int
    baseline: str
    alternative: str
    decision: Decision
    """On time for the same work: a ratio under 1 is a gain."""
    unequal_states: int
    """Pairs not formed because the two samples ran in different placement states."""
    skipped: bool
    """The host could not give one of the two: nothing was there to compare."""
    seconds_to_decide: float
    """Measuring time at which a "cannot tell" would be decided; NaN where not known."""

    @property
    def gain(self) -> tuple[float, float, float]:
        """Median, low and high of the relative gain in speed: 0.18 is 18 % faster."""
        return gain(self.decision)


def comparisons(
    results: Results,
    block: BlockInfo,
    labels: dict[str, str],
    rule: Rule,
) -> list[Comparison]:
    """Compare every alternative of a block with its baseline, measured actor by measured actor."""
    if len(block.mixes) < 2:
        return []
    rows = [row for row in results.rows if row["block"] == block.id]
    base = parse_mix(block.mixes[0])
    found = []
    for mix in block.mixes[1:]:
        alternative = parse_mix(mix)
        for b, a in zip(base.measured, alternative.measured, strict=False):
            if base.actors[b].kernel != alternative.actors[a].kernel:
                continue
            mine = [r for r in rows if r["mix"] == mix and r["actor"] == a]
            theirs = [r for r in rows if r["mix"] == block.mixes[0] and r["actor"] == b]
            skips = [results.skipped[m] for m in (block.mixes[0], mix) if m in results.skipped]
            if skips:
                decision, unequal = not_tested(skips[0]), 0
            else:
                decision, unequal = _decide(results, theirs, mine, rule)
            actor = alternative.actors[a]
            found.append(
                Comparison(
                    block.question,
                    block.id,
                    labels.get((theirs or mine)[0]["case"], "") if theirs or mine else actor.kernel,
                    change(base, b, alternative, a),
                    actor.size,
                    actor.threads,
                    block.mixes[0],
                    mix,
                    decision,
                    unequal,
                    bool(skips),
                    _seconds_to_decide(rows, decision),
                )
            )
    return found


def _decide(
    results: Results,
    baseline: list[Row],
    treated: list[Row],
    rule: Rule,
) -> tuple[Decision, int]:
    """Apply the rule to one pair of cases; the second value counts pairs of unequal state."""
    for mix in {row["mix"] for row in baseline + treated}:
        rejections = results.rejections.get(mix)
        if rejections and too_many_rejected(rejections.rejected, rejections.share):
            share = f"{rejections.share:.0%} of the samples of {mix} were rejected"
            return not_tested(f"{share}: {rejections.reasons[-1]}"), 0
    if not rule.accept_unknown and any(map(pages_unknown, baseline + treated)):
        command = f"{rule.program} verdict {shlex.quote(str(results.folder))} --accept-unknown"
        return not_tested("the pages behind it could not be told", command), 0
    if baseline and treated and (least := rule.least_working_set(baseline[0], treated[0])):
        threads = baseline[0]["threads"]
        among = f" for {threads} threads, which divide it" if rule.divides(baseline[0]) else ""
        return not_tested(
            f"takes a working set of {format_size(least)} at least{among}",
            larger_pages(rule.program, baseline[0], treated[0], least),
        ), 0
    other = {row["round"]: row for row in baseline}
    pairs = [
        (work_seconds(row), work_seconds(base), *strata(row["state"], base["state"]))
        for row in treated
        if (base := other.get(row["round"])) and row["seconds"] > 0 and base["seconds"] > 0
    ]
    if not pairs:
        return not_tested("no pair of samples"), 0
    top, bottom, *states = zip(*pairs, strict=True)
    paired = pair_by_state(top, bottom, *states)
    if not paired.log_ratios.size:
        return not_tested("no two samples of a round ran in the same placement"), paired.n_unequal
    return decide(paired.log_ratios, rule.dead_band), paired.n_unequal


def pages_unknown(row: Row) -> bool:
    """Whether too few of the bytes behind a value are known for a verdict."""
    return bool(row["evidence_known"] < LEAST_KNOWN)


def work_seconds(row: Row) -> float:
    """Seconds for a fixed amount of work: a useful byte, else an operation, else a pass."""
    return float(row["seconds"] / (row["useful_bytes"] or row["ops"] or 1))


def _seconds_to_decide(rows: list[Row], decision: Decision) -> float:
    if not decision.samples_to_decide:
        return math.nan
    walls = grouped(rows, "mix").values()
    return decision.samples_to_decide * sum(middle(r["wall_s"] for r in group) for group in walls)


def change(base: Mix, i: int, other: Mix, j: int) -> str:
    """Say what differs between a measured actor's mixes: ``base -> thp``, ``1t -> 2t``."""
    before, after = base.actors[i], other.actors[j]
    found = [f"{a} -> {b}" for a, b in zip(_parts(before), _parts(after), strict=True) if a != b]
    rest = [beside(base, i), beside(other, j)]
    if rest[0] != rest[1]:
        found.append(" -> ".join(f"beside {text}" if text else "alone" for text in rest))
    return ", ".join(found) or "nothing"


def _parts(actor: Actor) -> list[str]:
    kernel, *rest = actor_name(actor).split("/")
    size, _, options = rest[-1].partition("{")
    return [kernel, *rest[:-1], size, options.rstrip("}") or "plain"]


def grouped(rows: Iterable[Row], key: str) -> dict[Any, list[Row]]:
    """Rows by the value of one column, in order of appearance."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups


def middle(values: Iterable[float]) -> float:
    """Median of the finite values; NaN where there is none."""
    known = [value for value in values if math.isfinite(value)]
    return statistics.median(known) if known else math.nan
