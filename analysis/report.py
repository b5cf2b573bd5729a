"""What a run found, as data: the closing table, before anybody lays it out.

Verdicts come from ``analysis.paired``; nothing here formats or prints.
"""

import math
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from analysis.concurrency import Concurrency, best_concurrency
from analysis.displayed import Displayed
from analysis.intervals import median_interval, pairs_needed
from analysis.load import Results, Row, steps
from analysis.loaded import LoadedCurve, curves
from analysis.onward import again, more_samples, resume
from analysis.paired import Comparison, Rule, comparisons, grouped, middle, pages_unknown
from analysis.phases import Phases, phases
from analysis.rows import row_label, working_bytes
from analysis.stalls import Stalls
from analysis.stalls import table as step_table
from bench.schema import PYPERF, too_many_rejected
from bench.units import about, format_size, natural

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_SAMPLES = 200
"""A longer run is not proposed: effects that small drown in what the host does meanwhile."""


@dataclass(frozen=True)
class Estimate:
    """Median of ``n`` samples with its 95 % interval; NaN where there are too few samples."""

    value: float
    low: float
    high: float
    n: int


def estimate(values: Sequence[float]) -> Estimate:
    """Median and order-statistic interval; without an interval under 6 values."""
    known = [value for value in values if math.isfinite(value)]
    if len(known) < pairs_needed():
        return Estimate(middle(known), math.nan, math.nan, len(known))
    found = median_interval(known)
    return Estimate(middle(known), found.low, found.high, len(known))


@dataclass(frozen=True)
class CaseResult:
    """One case measured."""

    case: str
    label: str
    """Kernel with its parameters and options, and what ran beside it."""
    size: int
    used_bytes: int
    """Of it, what is used: less where data end before the arena does."""
    op: str
    """What ``latency_ns`` is of: ``load``; empty where the plan does not tell."""
    pages: str
    threads: int
    gbps: Estimate
    """Useful bytes, 1e9 B/s, all threads."""
    bus_min_gbps: float
    bus_max_gbps: float
    latency_ns: Estimate
    """Per operation of one thread; ``n`` is 0 where the kernel counts none."""
    by_state: dict[str, Estimate]
    """GB/s by placement state of the CPUs used: ``one``, ``near``, ``far``, ``moved``."""
    disturbed: dict[str, int]
    """Samples by what disturbed them."""
    oversubscribed: bool
    flags: tuple[str, ...]
    """Why the value must be read with care."""


@dataclass(frozen=True)
class Note:
    """What was skipped, shed or not tested, why, and the command that changes it."""

    what: str
    reason: str
    remedy: str = ""


@dataclass
class Report(Displayed):
    """Everything the closing table says."""

    folder: str
    status: str
    rounds: int
    planned_rounds: int
    cases: list[CaseResult] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    best: list[Concurrency] = field(default_factory=list)
    loaded: list[LoadedCurve] = field(default_factory=list)
    phases: list[Phases] = field(default_factory=list)
    """Where the time of kernels with phases went."""
    stalls: list[Stalls] = field(default_factory=list)
    """Of measured actors that ran beside others, and of the same ones alone."""
    skipped: list[Note] = field(default_factory=list)
    not_tested: list[Note] = field(default_factory=list)
    rejected: list[Note] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    next_commands: list[str] = field(default_factory=list)

    def verdicts(self) -> "DataFrame":
        """Tabulate the comparisons, one a row.

        Returns
        -------
        DataFrame
            question, label, size, threads, change, ``gain`` in speed with the ends of its interval
            (0.18 is 18 % faster), verdict, n pairs, and the reason where there is no verdict.
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "question": c.question,
                    "label": c.label,
                    "size": format_size(c.size),
                    "threads": c.threads,
                    "change": c.change,
                    **dict(zip(("gain", "low", "high"), c.gain, strict=True)),
                    "verdict": c.decision.verdict,
                    "n": c.decision.n,
                    "reason": c.decision.reason,
                }
                for c in self.comparisons
            ]
        )


def build(
    results: Results,
    program: str = "python -m bench",
    options: Mapping[str, Any] = MappingProxyType({}),
    *,
    python: str = "python",
    commands: Collection[str] = (),
) -> Report:
    """Build the report of an output directory.

    Parameters
    ----------
    results : Results
    program, python : str
        The forms in which commands of this package and of others are printed.
    options : mapping
        In place of those the run was given: ``dead_band`` (relative change of no interest, 0.02 is
        2 %), ``accept_unknown`` (verdicts where the pages could not be told), ``least_bytes``
        (page policy -> bytes a thread must walk for a verdict on larger pages than its own),
        ``divided`` (kernels whose threads each walk a share of the memory).
    commands : collection of str
        Names of the commands this version has: others are not proposed.
    """
    rule = Rule.of(results.plan.get("options", {}) | dict(options) | {"program": program})
    plan = results.plan
    planned = plan.get("rounds", results.rounds)
    report = Report(str(results.folder), results.status, min(results.rounds, planned), planned)
    by_case = grouped(results.rows, "case")
    variants = Counter((r["kernel"], r["params"], r["variant"]) for r in results.rows)
    several = Counter((kernel, params) for kernel, params, _ in variants)
    for rows in by_case.values():
        report.cases.append(_case_result(results, rows, several))
    order = {name: i for i, name in enumerate(plan.get("options", {}).get("page_order", []))}
    report.cases.sort(
        key=lambda c: (natural(c.label), c.size, c.threads, order.get(c.pages, len(order)), c.pages)
    )
    labels = {case.case: case.label for case in report.cases}
    for block in results.blocks:
        report.comparisons += comparisons(results, block, labels, rule)
    report.best = best_concurrency(results.rows)
    report.phases = phases(results.rows, plan.get("options", {}).get("ops", {}))
    beside = [row for row in results.rows if row["question"] == "beside"]
    report.loaded = curves(beside)
    report.stalls = _stalls(results, beside)
    for kind in ("skips", "shed"):
        for table in plan.get(kind, []):
            reason = table["reason"] if kind == "skips" else f"left out for time: {table['reason']}"
            report.skipped.append(Note(table["what"], reason, table.get("remedy", "")))
    report.skipped += [Note(mix, reason) for mix, reason in results.skipped.items()]
    report.rejected = [
        Note(mix, f"{r.rejected} of {r.tried} samples invalid: {r.reasons[-1]}")
        for mix, r in results.rejections.items()
    ]
    report.not_tested = _not_tested(results, program, commands)
    # The plan's own line on this is in report.not_tested, with what was really measured.
    before = [note for note in plan.get("notes", []) if "are not tested above" not in note]
    report.notes = [*before, *_notes(report, results)]
    names = ("journal.ndjson", "pyperf.json", "host.json", "plan.toml")
    report.files = [str(results.folder / n) for n in names if (results.folder / n).exists()]
    report.next_commands = _next_commands(results, report, program, python)
    return report


def plain(value: Any) -> Any:  # noqa: ANN401 - JSON data
    """Dataclasses as JSON data; what is not a number becomes null."""
    if isinstance(value, Comparison):
        keys = ("value", "low", "high")
        return plain(asdict(value) | {"gain": dict(zip(keys, value.gain, strict=True))})
    if is_dataclass(value) and not isinstance(value, type):
        return {key: plain(getattr(value, key)) for key in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ---- cases ---------------------------------------------------------------------------------------


def _case_result(
    results: Results, rows: list[Row], several: Counter[tuple[str, str]]
) -> CaseResult:
    row = rows[0]
    label = row_label(row, several[row["kernel"], row["params"]] > 1)
    rejections = results.rejections.get(row["mix"])
    flags = []
    if any(r["seconds"] <= 0 for r in rows):
        flags.append("starved: no progress in at least one window")
    if any(map(pages_unknown, rows)):
        least = min(r["evidence_known"] for r in rows if pages_unknown(r))
        flags.append(f"of the pages behind it {least:.0%} could be told")
    if rejections and too_many_rejected(rejections.rejected, rejections.share):
        flags.append(f"{rejections.share:.0%} of its samples were rejected")
    return CaseResult(
        row["case"],
        label,
        row["size"],
        working_bytes(row),
        results.plan.get("options", {}).get("ops", {}).get(row["kernel"], ""),
        row["pages"],
        row["threads"],
        estimate([r["gbps"] for r in rows]),
        middle(r["bus_min_gbps"] for r in rows),
        middle(r["bus_max_gbps"] for r in rows),
        estimate([r["latency_ns"] for r in rows]),
        {s: estimate([r["gbps"] for r in g]) for s, g in grouped(rows, "state").items()},
        dict(Counter(name for r in rows for name in r["disturbed"].split(",") if name)),
        any(r["oversubscribed"] for r in rows),
        tuple(flags),
    )


def _stalls(results: Results, beside: Sequence[Row]) -> list[Stalls]:
    """Step times where neighbours are compared; curves against a rate say it better themselves."""
    paced = {row["block"] for row in beside if " GB/s" in row["beside"]}
    wanted = {row["case"] for row in beside if row["block"] not in paced}
    if not wanted:
        return []
    return [found for found in step_table(steps(results.folder)) if found.case in wanted]


# ---- what is left --------------------------------------------------------------------------------


def _not_tested(results: Results, program: str, commands: Collection[str]) -> list[Note]:
    notes = []
    questions = {block.question for block in results.blocks}
    if results.rows and "pages" not in questions:
        notes.append(Note("page sizes", "no block compares them", f"{program} run"))
    elif results.rows:
        paged = {
            mix for block in results.blocks if block.question == "pages" for mix in block.mixes
        }
        churn = _churn(results)
        rows = [r for r in results.rows if r["mix"] in paged and r["kernel"] not in churn]
        largest = max(map(working_bytes, rows), default=0)
        size = max((r["size"] for r in rows), default=0)
        if largest:
            notes.append(
                Note(
                    f"page sizes above a working set of {about(largest)}",
                    "what larger pages bring grows with it",
                    again(results, program, {"--working-set": format_size(2 * size)}),
                )
            )
    if not questions & {"remedy", "remedies"}:
        known = "remedy" in commands
        notes.append(
            Note(
                "keeping memory-heavy phases apart (locks, caps, pauses)",
                "one kernel at a time cannot show it" + ("" if known else "; not in this version"),
                f"{program} remedy" if known else "",
            )
        )
    return notes


def _churn(results: Results) -> Collection[str]:
    """Kernels whose memory is new all the time, which is no working set."""
    return set(results.plan.get("options", {}).get("churn", ()))


def _notes(report: Report, results: Results) -> list[str]:
    notes = []
    extra = {row["block"] for row in results.rows if row["round"] >= report.planned_rounds}
    if extra:
        notes.append(
            f"extra rounds were run of {len(extra)} of {len(results.blocks)} blocks, for want of"
            " pairs in equal placement"
        )
    if report.status == "budget":
        notes.append(
            f"the budget was spent after {report.rounds} of {report.planned_rounds} rounds"
        )
    samples = sum(c.gbps.n for c in report.cases)
    total: Counter[str] = Counter()
    for case in report.cases:
        total.update(case.disturbed)
    if total:
        told = ", ".join(f"{name} in {n}" for name, n in total.most_common())
        notes.append(f"disturbed, of {samples} samples: {told}")
    states: Counter[str] = Counter()
    for case in report.cases:
        states.update({s: found.n for s, found in case.by_state.items() if s not in ("one", "")})
    if len(states) > 1:
        told = ", ".join(f"{n} {name}" for name, n in states.most_common())
        notes.append(f"the CPUs of multi-thread samples were {told}: compared within each only")
    if any(case.oversubscribed for case in report.cases):
        notes.append("marked *: more threads than CPUs")
    return notes


def _next_commands(results: Results, report: Report, program: str, python: str) -> list[str]:
    folder = shlex.quote(str(results.folder))
    commands = []
    if results.status != "done":
        commands.append(resume(results, program))
    if (results.folder / "pyperf.json").exists():
        pages = {case.pages for case in report.cases}
        if len(pages) > 1:
            commands.append(f"{program} export {folder} --by pages")
        commands.append(f"{python} -m pyperf stats {shlex.quote(str(results.folder / PYPERF))}")
    wanted = [n for n in map(_rounds_to_decide, report.comparisons) if 0 < n <= MOST_SAMPLES]
    if wanted and results.status == "done":
        rounds = max(*wanted, report.planned_rounds + 1)
        commands.append(more_samples(results, program, rounds))
    return [*commands, *(n.remedy for n in report.not_tested if n.remedy.endswith("remedy"))]


def _rounds_to_decide(comparison: Comparison) -> int:
    """Rounds that would decide it; 0 where none would, or none are needed."""
    decision = comparison.decision
    if not decision.samples_to_decide or not decision.n:
        return 0
    # Rounds whose two samples ran in different placements make no pair.
    rounds_a_pair = (decision.n + comparison.unequal_states) / decision.n
    return math.ceil(decision.samples_to_decide * rounds_a_pair)
