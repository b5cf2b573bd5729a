"""From the folder of a pipeline's run to its report."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.files import find_journal, journal_lines, read_toml
from analysis.load import closed_rounds
from analysis.proxy import ProxyReport, Sampled, SettingResult, alone_seconds, setting_result
from analysis.stats import DEAD_BAND
from analysis.visits import Layout
from bench.pipelineplain import ALONE, PIPELINE
from bench.schema import PLAN

Samples = Mapping[str, list[Sampled]]
"""By mix, in rounds."""


def build(folder: Path, options: Mapping[str, Any] | None = None) -> ProxyReport:
    """Report of an output directory; ``options`` go before those of its plan."""
    return report_of(folder, options)[0]


def report_of(
    folder: Path, options: Mapping[str, Any] | None = None
) -> tuple[ProxyReport, list[tuple[str, Layout, list[Sampled]]]]:
    """Report, and what is behind it: name, layout and samples of every setting."""
    plan = read_toml(folder / PLAN)
    merged = {**plan["options"], **(options or {})}
    spec = merged["pipeline"]
    lines = journal_lines(find_journal(folder))
    samples = _valid(lines, PIPELINE)
    alone = _valid(lines, ALONE)
    results: list[SettingResult] = []
    behind: list[tuple[str, Layout, list[Sampled]]] = []
    for row in spec["settings"]:
        layout = Layout.of(row)
        mine = samples.get(layout.mix_name, [])
        baseline = behind[0][2] if behind else []
        behind.append((row["name"], layout, mine))
        results.append(
            setting_result(
                row["name"],
                mine,
                layout,
                _alone_seconds(alone, row),
                baseline,
                merged.get("dead_band", DEAD_BAND),
            )
        )
    left_out = [*plan.get("skips", []), *plan.get("shed", [])]
    skipped = [f"{one['what']}: {one['reason']}" for one in left_out]
    return ProxyReport(spec["name"], tuple(results), notes=(*skipped, *_notes(lines))), behind


def _valid(lines: list[dict[str, Any]], block: str) -> Samples:
    """Samples of every mix of a block that count."""
    closed = closed_rounds(lines)
    found: dict[str, list[Sampled]] = defaultdict(list)
    for line in lines:
        if line["kind"] != "sample" or line["block"] != block:
            continue
        counts = closed.get((block, line["round"])) == line["attempt"]
        if counts and not line.get("invalid") and not line.get("error"):
            found[line["mix"]].append(Sampled(line["round"], line))
    return {mix: sorted(own, key=lambda s: s.round) for mix, own in found.items()}


def _alone_seconds(samples: Samples, row: Mapping[str, Any]) -> dict[str, float]:
    """Seconds of every task of a setting alone: measured, or the pipeline's own."""
    lines = {mix: [s.line for s in own] for mix, own in samples.items()}
    measured = alone_seconds(lines, dict(zip(row["kernels"], row["alone"]["own"], strict=True)))
    of_kernels = {task: row["passes"][task] * value for task, value in measured.items()}
    return {**row["seconds"], **of_kernels}


def _notes(lines: list[dict[str, Any]]) -> tuple[str, ...]:
    """What was rejected or left out, and why."""
    found = []
    for line in lines:
        if line["kind"] != "sample":
            continue
        error = line.get("error") or {}
        reason = error.get("message", "") if error.get("kind") == "skip" else line.get("invalid")
        if reason:
            found.append(reason)
    if any("deadline" in reason for reason in found):
        found.append("more time: --jobs with fewer, or a longer deadline in the file")
    return tuple(dict.fromkeys(found))
