"""Why a victim is slow beside an aggressor, by contrasts of measured mixes.

Each contrast is the ratio of a victim's times in two mixes that differ in one thing, with the two
named; an interval that includes "no cost" is not resolved. What the parts leave of the whole is
printed as the residual.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from analysis import totals
from analysis.displayed import Displayed
from analysis.intervals import Floats, interval, pairs_needed
from analysis.load import load
from analysis.report import Note
from analysis.verdict import Contrast, residual

WHOLE = "all of it"
PARTS = ("clock and scheduling", "bandwidth", "cache", "shootdown")
"""Which make up the whole as far as they are known."""

# Name, the mix that pays, the mix that does not.
CONTRASTS = (
    (WHOLE, "beside it", "alone"),
    ("clock and scheduling", "beside spin", "alone"),
    ("one address space", "beside it", "beside it, another process"),
    ("memory and caches", "beside it, another process", "beside spin"),
    ("bandwidth", "beside a streamer past the caches", "beside spin"),
    ("cache", "beside a reader that fills the cache", "beside spin"),
    ("shootdown", "warm reader beside it", "warm reader beside it, another process"),
    ("TLB reach", "alone", "alone on large pages"),
)
LOCK = ("lock", "first touch beside it", "first touch beside it, another process")
"""Less the shootdown contrast: a first touch pays for that, too."""


@dataclass
class AttributionReport(Displayed):
    """Everything the table says."""

    folder: str
    status: str
    victim: str
    aggressor: str
    rounds: int
    contrasts: list[Contrast] = field(default_factory=list)
    residual: float = math.nan
    """Ratio that clock, bandwidth, cache and shootdown leave of the whole; 1 is nothing."""
    missing: list[Note] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def build(folder: str | Path, options: Mapping[str, Any] | None = None) -> AttributionReport:
    """Build the report of an output directory of ``bench attribute``."""
    results = load(folder)
    given = (results.plan["options"] | dict(options or {}))["attribute"]
    names: dict[str, str] = given["mixes"]
    block = results.blocks[0].id
    found = totals.samples(results.rows, block)
    report = AttributionReport(
        str(results.folder),
        results.status,
        given["victim"],
        given["aggressor"],
        results.rounds,
    )

    def ratios(pays: str, free: str) -> dict[int, float]:
        return _by_round(found, names.get(pays, ""), names.get(free, ""))

    shootdown: dict[int, float] = {}
    for name, pays, free in (*CONTRASTS, LOCK):
        logs = ratios(pays, free)
        if name == "shootdown":
            shootdown = logs
        if name == "lock":
            logs = {r: value - shootdown[r] for r, value in logs.items() if r in shootdown}
        made = _contrast(name, pays, free, np.array(list(logs.values())))
        if made is None:
            reason = results.skipped.get(names.get(pays, ""), "too few samples of both mixes")
            report.missing.append(Note(name, reason))
        else:
            report.contrasts.append(made)
    by_name = {contrast.name: contrast for contrast in report.contrasts}
    if WHOLE in by_name:
        parts = [by_name[name] for name in PARTS if name in by_name]
        report.residual = residual(by_name[WHOLE], parts)
    report.missing += [Note(t["what"], t["reason"]) for t in results.plan.get("skips", [])]
    report.notes = [
        "the streamer and the cache reader do as much as they can: a milder aggressor costs less,"
        " and the residual is then below 1",
        *results.plan.get("notes", []),
    ]
    files = ("journal.ndjson", "pyperf.json", "host.json", "plan.toml")
    report.files = [str(results.folder / n) for n in files if (results.folder / n).exists()]
    return report


def _by_round(found: totals.Samples, pays: str, free: str) -> dict[int, float]:
    """Log ratio of the victim's times by round, where both ran in the same placement."""
    logs = {}
    for round_, sample in found.get(pays, {}).items():
        if round_ not in found.get(free, {}):
            continue
        one = totals.pairs(
            {"pays": {0: sample}, "free": {0: found[free][round_]}}, "free", "pays", _victim
        )
        if one.log_ratios.size:
            logs[round_] = float(one.log_ratios[0])
    return logs


def _victim(sample: totals.Sample) -> float:
    return sample.speeds.get(0, 0.0)


def _contrast(name: str, pays: str, free: str, logs: Floats) -> Contrast | None:
    if logs.size < pairs_needed():
        return None
    bounds = interval(logs)
    centre = math.exp(float(np.median(logs)))
    return Contrast(name, pays, free, centre, math.exp(bounds.low), math.exp(bounds.high))


def in_words(contrasts: Sequence[Contrast], left: float) -> list[str]:
    """What is resolved, the largest first, and what is not explained."""
    known = [c for c in contrasts if c.name in (*PARTS, "lock", "TLB reach")]
    resolved = sorted((c for c in known if c.resolved), key=lambda c: -abs(math.log(c.ratio)))
    lines = [f"{c.name}: {c.ratio - 1:+.0%} time" for c in resolved]
    if not resolved:
        lines.append("no single cause is resolved")
    if math.isfinite(left):
        over = " (together they cost more than the aggressor does)" if left < 1 else ""
        lines.append(
            f"residual: {left - 1:+.0%} time beyond clock, bandwidth, cache, shootdown{over}"
        )
    return lines
