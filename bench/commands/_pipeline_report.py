"""The report of a pipeline's run, with TIMELINE files beside it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.journal import replace_file

if TYPE_CHECKING:
    from analysis.proxy import ProxyReport, Sampled
    from analysis.visits import Layout

TIMELINE = "timeline.log"


def build(folder: Path, options: Mapping[str, Any]) -> "ProxyReport":
    """Report of a folder; writes its TIMELINE files."""
    from analysis.proxyread import report_of

    report, settings = report_of(folder, options)
    timelines: dict[str, str] = {}
    for name, layout, samples in settings:
        file = TIMELINE if len(settings) == 1 else f"timeline-{_slug(name)}.log"
        if samples and write_timeline(folder / file, samples[0], layout, name):
            timelines[name] = str(folder / file)
    return replace(report, timelines=timelines)


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


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9=.]+", "-", text.lower()).strip("-")
