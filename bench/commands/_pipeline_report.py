"""From the folder of a pipeline's run to its report, and to TIMELINE files beside it."""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.journal import State, read_state, replace_file
from bench.pipelineplan import ALONE, PIPELINE
from bench.planfile import read_plan

if TYPE_CHECKING:
    from analysis.proxy import ProxyReport, Sampled
    from analysis.visits import Layout

TIMELINE = "timeline.log"


def build(folder: Path, options: Mapping[str, Any], *, logs: bool = True) -> "ProxyReport":
    """Report of a folder; writes its TIMELINE files, unless ``logs`` is False."""
    from analysis.proxy import ProxyReport, SettingResult, setting_result
    from analysis.visits import Layout

    state = read_state(folder)
    spec = options["pipeline"]
    samples = samples_of(state)
    seconds = alone_seconds(state, spec)
    results: list[SettingResult] = []
    timelines: dict[str, str] = {}
    baseline: list[Sampled] = []
    for i, row in enumerate(spec["settings"]):
        layout = Layout.of(row)
        mine = samples.get(layout.mix_name, [])
        results.append(
            setting_result(
                row["name"], mine, layout, seconds[row["name"]], baseline, options["dead_band"]
            )
        )
        if i == 0:
            baseline = mine
        if mine and logs:
            name = TIMELINE if len(spec["settings"]) == 1 else f"timeline-{_slug(row['name'])}.log"
            path = folder / name
            if write_timeline(path, mine[0], layout, row["name"]):
                timelines[row["name"]] = str(path)
    plan, _ = read_plan(folder)
    skipped = tuple(f"{skip.what}: {skip.reason}" for skip in (*plan.skips, *plan.shed))
    return ProxyReport(spec["name"], tuple(results), timelines, (*skipped, *notes(state)))


def samples_of(state: State) -> "dict[str, list[Sampled]]":
    """Samples of every mix of the pipeline's block, in rounds."""
    from analysis.proxy import Sampled

    found: dict[str, list[Sampled]] = defaultdict(list)
    for (block, round_), lines in sorted(state.samples.items()):
        for line in lines if block == PIPELINE else []:
            found[line["mix"]].append(Sampled(round_, line))
    return found


def alone_seconds(state: State, spec: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Seconds of every task alone, by setting: measured, or the pipeline's own."""
    from analysis.proxy import alone_seconds

    lines: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for (block, _), found in state.samples.items():
        for line in found if block == ALONE else []:
            lines[line["mix"]].append(line)
    seconds = {}
    for row in spec["settings"]:
        mixes = dict(zip(row["kernels"], row["alone"]["own"], strict=True))
        measured = alone_seconds(lines, mixes)
        of_kernels = {task: row["passes"][task] * value for task, value in measured.items()}
        seconds[row["name"]] = {**row["seconds"], **of_kernels}
    return seconds


def write_timeline(path: Path, sample: "Sampled", layout: "Layout", setting: str) -> bool:
    """Write a sample's log as TIMELINE lines; false where it lost events."""
    from analysis.timelog import timeline
    from analysis.visits import LostEventsError, events_of, visits

    try:
        seen = visits(events_of(sample.line), layout)
    except LostEventsError:
        return False
    lines = timeline(seen, layout, f"{sample.line['time']} {setting}")
    replace_file(path, ("\n".join(lines) + "\n").encode())
    return True


def notes(state: State) -> tuple[str, ...]:
    """What was rejected or left out, and why."""
    found = [drop.reason for drop in state.dropped.values()]
    # A case that was dropped for a reason has told it.
    found += [
        reason
        for tally in state.tallies.values()
        for reason in tally.reasons
        if not any(reason in told for told in found)
    ]
    if any("deadline" in reason for reason in found):
        found.append("more time: --jobs with fewer, or a longer deadline in the file")
    return tuple(dict.fromkeys(found))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9=.]+", "-", text.lower()).strip("-")
