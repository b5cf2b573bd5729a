"""Reports as HTML and Markdown; a page is self-contained, with nothing loaded from elsewhere."""

import base64
import importlib.util
import tempfile
from html import escape
from pathlib import Path

from analysis.timeline.summary import RunSummary, TimelineReport
from analysis.timeline.tables import Section, report_sections, run_sections
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


def report_html(report: TimelineReport) -> str:
    """Body of a page, or of a notebook cell."""
    return "".join(map(_html, report_sections(report)))


def run_html(run: RunSummary) -> str:
    """The same for one run."""
    return "".join(map(_html, run_sections(run)))


def report_markdown(report: TimelineReport) -> str:
    """Markdown, for a pull request or a note."""
    return "\n".join(map(_markdown, report_sections(report)))


def _html(section: Section) -> str:
    head = "".join(f"<th>{escape(name.lstrip('|<'))}</th>" for name in section.columns)
    sides = ["left" if name.startswith(("|", "<")) else "right" for name in section.columns]
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{side}">{escape(cell)}</td>'
            for side, cell in zip(sides, row, strict=True)
        )
        + "</tr>"
        for row in section.rows
    )
    table = f"<table><tr>{head}</tr>{body}</table>" if section.rows else ""
    lines = "".join(f"<p>{escape(line)}</p>" for line in section.lines)
    return f"<h3>{escape(section.title)}</h3>{table}{lines}"


def _markdown(section: Section) -> str:
    made = [f"### {_cell(section.title)}", ""]
    if section.rows:
        sides = ("---" if name.startswith(("|", "<")) else "--:" for name in section.columns)
        made.append("| " + " | ".join(_cell(name.lstrip("|<")) for name in section.columns) + " |")
        made.append("|" + "|".join(sides) + "|")
        made += ["| " + " | ".join(map(_cell, row)) + " |" for row in section.rows]
        made.append("")
    made += [f"- {_cell(line)}" for line in section.lines]
    return "\n".join(made) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


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
