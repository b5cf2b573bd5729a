"""Two sets of results, case by case: what became faster, what slower, what cannot be told.

Samples of one round of one block of one run are paired. Others are compared by Welch's test on
logarithms, and then the difference holds whatever the host did between the two measurements. Many
cases are compared at once, so changes are told with the false discovery rate under control.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from analysis.intervals import LEVEL, Floats
from analysis.matching import Key, Refusal, match
from analysis.paired import gain, grouped, middle, pages_unknown
from analysis.rows import Row
from analysis.significance import welch
from analysis.stats import DEAD_BAND, Decision, decide, not_tested, pair_by_state, verdict_of
from bench.errors import UsageError
from bench.schema import MOST_REJECTED, strata, too_many_rejected
from bench.units import format_size

CHANGED = ("helps", "hurts")
WORDS = {"helps": "faster", "hurts": "slower", "neutral": "same"}
Decider = Callable[[float], Decision]
"""Level -> decision at that level."""
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Change:
    """One case, before and after."""

    case: str
    host: str
    """Empty where each side has one host only."""
    label: str
    """Kernel with its parameters, and what ran beside it."""
    size: str
    pages: str
    """``base -> thp`` where an export took the policy out of the names; others likewise."""
    threads: str
    state: str
    """Placement of the CPUs, where pairs do not take care of it: ``near``, ``far``."""
    unit: str
    """Of ``before`` and ``after``: GB/s, ns an operation, or s a pass."""
    before: float
    """Median where paired, else geometric mean, as is the ratio of the decision."""
    after: float
    n_before: int
    n_after: int
    paired: bool
    decision: Decision
    """On time for the same work: a ratio under 1 is a gain."""

    @property
    def name(self) -> str:
        """What is compared, in short."""
        where = f" ({', '.join(filter(None, (self.host, self.state)))})"
        text = f"{self.label} {self.size} {self.pages} {self.threads}"
        return text if where == " ()" else text + where

    @property
    def verdict(self) -> str:
        """``faster``, ``slower``, ``same``, ``cannot tell`` or ``not tested``."""
        return WORDS.get(self.decision.verdict, self.decision.verdict)

    @property
    def gain(self) -> tuple[float, float, float]:
        """Median, low and high of the relative change in speed: 0.18 is 18 % faster."""
        return gain(self.decision)


@dataclass
class Changes:
    """Everything a comparison found."""

    dead_band: float
    changes: list[Change] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    only_before: list[str] = field(default_factory=list)
    only_after: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def slower(self) -> list[Change]:
        """Changes for the worse that are beyond the dead band and beyond chance."""
        return [change for change in self.changes if change.verdict == "slower"]


def compare(
    before: Sequence[Row],
    after: Sequence[Row],
    dead_band: float = DEAD_BAND,
    level: float = LEVEL,
    *,
    accept_unknown: bool = False,
) -> Changes:
    """Compare all cases that two sets of rows have in common.

    Parameters
    ----------
    before, after : sequence of rows
        From `analysis.load.rows`.
    dead_band : float
        Relative change that is of no interest; 0.02 is 2 %.
    level : float
        1 less the share of false ones among the changes told.
    accept_unknown : bool
        Decide cases whose pages could not be told.

    Raises
    ------
    UsageError
        Nothing in common, with the fields that differ.
    """
    result = Changes(dead_band)
    matched = match(before, after)
    result.refused = matched.refused
    result.only_before, result.only_after = matched.only_before, matched.only_after
    pairs = [
        one
        for key, (old, new) in matched.equal.items()
        for one in _comparisons(key, old, new, dead_band, accept_unknown)
    ]
    if not pairs:
        raise UsageError(
            "\n  ".join(["the two have no case in common", *_why_nothing(result)]),
            "compare runs of the same sweep; export --by FIELD takes a field out of the names",
        )
    decided = decide_changes(dict(enumerate(decider for _, decider in pairs)), level)
    result.changes = [Change(**facts, decision=decided[i]) for i, (facts, _) in enumerate(pairs)]
    result.notes = _notes(before, after, result)
    return result


def decide_changes(family: Mapping[K, Decider], level: float = LEVEL) -> dict[K, Decision]:
    """Decide many comparisons so that 1 - ``level`` of the changes told are false, on average.

    A change is told where the interval at 1 - (1 - level) k/m lies beyond the dead band, for the
    largest k of m at which k or more do: the step-up rule of Benjamini and Hochberg on intervals.
    What would look changed alone, and does not pass, "cannot be told". Whether an interval lies
    inside the band is judged at ``level`` itself.

    References
    ----------
    Y. Benjamini, D. Yekutieli, JASA 100 (2005) 71-81.
    """
    alone = {key: decider(level) for key, decider in family.items()}
    looks = [key for key, found in alone.items() if found.verdict in CHANGED]
    tested = sum(found.verdict != "not tested" for found in alone.values())
    decisions = dict(alone)
    k = tested
    while looks:
        adjusted = 1 - (1 - level) * k / tested
        tried = {key: family[key](adjusted) for key in looks}
        passed = [key for key in looks if tried[key].verdict in CHANGED]
        # Only cases that pass at a lower level can pass at a higher one.
        if len(passed) >= k or k == 1:
            decisions |= {key: _unclear(tried[key], alone[key], tested) for key in looks}
            decisions |= {key: tried[key] for key in passed}
            break
        k = max(1, len(passed))
    return decisions


def _unclear(tried: Decision, alone: Decision, tested: int) -> Decision:
    word = WORDS[alone.verdict]
    reason = f"alone it would be {word}; among {tested} comparisons chance makes some look so"
    return Decision(
        "cannot tell", tried.ratio, tried.low, tried.high, tried.n, tried.level, tried.coverage,
        tried.method, tried.dead_band, tried.smallest_effect, tried.samples_to_decide, reason,
    )  # fmt: skip


# ---- which samples go together -------------------------------------------------------------------

_Facts = dict[str, Any]
"""A ``Change`` but for its decision."""


def _why_nothing(result: Changes) -> list[str]:
    lines = [str(refusal) for refusal in result.refused]
    for side, cases in (("first", result.only_before), ("second", result.only_after)):
        if cases:
            more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
            lines.append(f"only in the {side}: {cases[0]}{more}")
    return lines


def _comparisons(
    key: Key, old: list[Row], new: list[Row], dead_band: float, accept_unknown: bool
) -> list[tuple[_Facts, Decider]]:
    """Comparisons of one case: paired, or one a placement state."""
    both = old + new
    reason = ""
    if not accept_unknown and any(map(pages_unknown, both)):
        reason = "the pages behind it could not be told; --accept-unknown decides nevertheless"
    elif any(too_many_rejected(row["rejections"], row["rejected"]) for row in both):
        reason = f"over {MOST_REJECTED:.0%} of its samples were rejected"
    elif not all(any(row["seconds"] > 0 for row in side) for side in (old, new)):
        reason = "no progress was made"
    if reason:
        return [(_facts(key, "", old, new, paired=False), lambda _: not_tested(reason))]
    old, new = ([row for row in side if row["seconds"] > 0] for side in (old, new))
    ratios = _paired_ratios(old, new)
    if ratios is not None:
        return [
            (_facts(key, "", old, new, paired=True), lambda level: decide(ratios, dead_band, level))
        ]
    by_state = grouped(old, "state"), grouped(new, "state")
    states = [state for state in by_state[0] if state in by_state[1]]
    if not states:
        reason = "no two samples ran in the same placement"
        return [(_facts(key, "", old, new, paired=False), lambda _: not_tested(reason))]
    several = len(by_state[0].keys() | by_state[1].keys()) > 1
    found: list[tuple[_Facts, Decider]] = []
    for state in states:
        rows = by_state[0][state], by_state[1][state]
        decider = _welch_decider(_seconds(rows[0]), _seconds(rows[1]), dead_band)
        found.append((_facts(key, state if several else "", *rows, paired=False), decider))
    return found


def _paired_ratios(old: list[Row], new: list[Row]) -> Floats | None:
    """Log ratios after over before of samples of one round; None where no two share one."""
    partner = {(row["run"], row["block"], row["round"]): row for row in old if row["run"]}
    pairs = [
        (row, partner[where])
        for row in new
        if (where := (row["run"], row["block"], row["round"])) in partner
    ]
    if not pairs:
        return None
    states = [strata(mine["state"], theirs["state"]) for mine, theirs in pairs]
    found = pair_by_state(
        _seconds(mine for mine, _ in pairs),
        _seconds(theirs for _, theirs in pairs),
        [state for state, _ in states],
        [state for _, state in states],
    )
    return found.log_ratios if found.log_ratios.size else None


def _welch_decider(before: list[float], after: list[float], dead_band: float) -> Decider:
    def at(level: float) -> Decision:
        n = min(len(after), len(before))
        if n < 2:
            return not_tested("one sample on a side: a spread needs two")
        try:
            found = welch(after, before, level)
        except ValueError as error:
            return not_tested(str(error))
        verdict = verdict_of(found.low, found.high, dead_band)
        half_width = (math.log(found.high) - math.log(found.low)) / 2
        smallest = math.expm1(half_width + math.log1p(dead_band))
        reason = f"these could have shown {smallest:.1%}" if verdict == "cannot tell" else ""
        return Decision(
            verdict, found.ratio, found.low, found.high, n, level, level, "Welch on logs",
            dead_band, smallest, None, reason,
        )  # fmt: skip

    return at


def _facts(key: Key, state: str, old: list[Row], new: list[Row], *, paired: bool) -> _Facts:
    column, unit = "seconds", "s"
    if any(math.isfinite(row["latency_ns"]) for row in old):
        column, unit = "latency_ns", "ns"
    elif any(row["gbps"] > 0 for row in old):
        column, unit = "gbps", "GB/s"
    centre = middle if paired else _geometric_mean
    before, after = (centre([row[column] for row in rows]) for rows in (old, new))
    told = [
        (_label(row), format_size(row["size"]), row["pages"], f"{row['threads']}t")
        for row in (old[0], new[0])
    ]
    label, size, pages, threads = (
        a if a == b else f"{a} -> {b}" for a, b in zip(*told, strict=True)
    )
    return {
        "case": key[0], "host": key[1], "label": label, "size": size, "pages": pages,
        "threads": threads, "state": state, "unit": unit, "before": before, "after": after,
        "n_before": len(old), "n_after": len(new), "paired": paired,
    }  # fmt: skip


def _label(row: Row) -> str:
    label = f"{row['kernel']}[{row['params']}]" if row["params"] else row["kernel"]
    return f"{label} beside {row['beside']}" if row["beside"] else str(label)


def _geometric_mean(values: Iterable[float]) -> float:
    """Of the values over 0; NaN where there is none."""
    logs = [math.log(value) for value in values if value > 0]
    return math.exp(math.fsum(logs) / len(logs)) if logs else math.nan


def _seconds(rows: Iterable[Row]) -> list[float]:
    return [row["seconds"] for row in rows]


def _notes(before: Sequence[Row], after: Sequence[Row], result: Changes) -> list[str]:
    notes = []
    hosts = [sorted({row["host"] for row in rows}) for rows in (before, after)]
    if hosts[0] != hosts[1]:
        notes.append(f"other hosts: {', '.join(hosts[0])} -> {', '.join(hosts[1])}")
    unpaired = sum(not change.paired for change in result.changes if change.decision.n)
    if unpaired:
        notes.append(
            f"{unpaired} not measured side by side: what the host did in between is part of the"
            " difference"
        )
    for name, rows in (("first", before), ("second", after)):
        disturbed = Counter(what for r in rows for what in r["disturbed"].split(",") if what)
        if disturbed:
            told = ", ".join(f"{what} in {n}" for what, n in disturbed.most_common(4))
            notes.append(f"disturbed, of {len(rows)} samples of the {name}: {told}")
    return notes
