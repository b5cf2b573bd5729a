"""One self-contained page of a report: tables and pictures, nothing loaded from elsewhere."""

import base64
import importlib.util
import tempfile
from html import escape
from pathlib import Path

from analysis.timeline.summary import RunSummary, TimelineReport
from analysis.timeline.tables import report_html
from bench.errors import UsageError

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto;
  padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { padding: .15rem .6rem; border-bottom: 1px solid #8884; white-space: nowrap; }
img { max-width: 100%; background: white; }
p { margin: .3rem 0; }
"""


def page(report: TimelineReport) -> str:
    """HTML document; pictures are left out, and that is said, where matplotlib is missing."""
    title = f"Timeline of {', '.join(report.log.sources) or 'stated figures'}"
    if importlib.util.find_spec("matplotlib") is None:
        pictures = "<p>no pictures: they need matplotlib</p>"
    else:
        pictures = "".join(map(_picture, report.runs))
    return (
        "<!DOCTYPE html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f"{pictures}{report_html(report)}</body></html>\n"
    )


def needs_matplotlib() -> None:
    """Raise UsageError where matplotlib is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("plots need matplotlib", "pip install 'pagestorm[analysis]'")


def _picture(run: RunSummary) -> str:
    from analysis.timeline.plot import write_plots

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plots.png"
        write_plots(run, path)
        data = base64.b64encode(path.read_bytes()).decode()
    told = f"spans by phase, concurrency, overlap and effects of the run from {run.name}"
    return f'<img alt="{escape(told)}" src="data:image/png;base64,{data}">'
