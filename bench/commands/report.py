"""``bench report``: one page about any results, to look at or to send."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

SUMMARY = "make a page of results: verdict, tables and figures in one file"
EPILOG = """  {prog} report DIR -o report.html
  {prog} report my-run my-corun my-remedy -o report.html     several runs of a host
  {prog} report HOSTS -o hosts.html                          a folder of hosts, compared
  {prog} report DIR --format md                              for a pull request, on stdout
  {prog} report DIR --format json -o report.json"""
FORMATS = {".html": "html", ".htm": "html", ".md": "md", ".json": "json"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "results",
        nargs="+",
        metavar="RESULTS",
        help="output directories, journals, pyperf files of ours, or folders of these",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write (stdout)")
    parser.add_argument(
        "--format", choices=("html", "md", "json"), help="default: by the ending of FILE, or html"
    )
    parser.add_argument("--title", default="", help="of the page")
    parser.add_argument("--dead-band", metavar="SHARE", help="smallest effect that matters (2%%)")
    parser.add_argument(
        "--accept-unknown",
        action="store_true",
        help="give verdicts where the pages behind the memory could not be told",
    )


def run(args: argparse.Namespace) -> int:
    """Write the page."""
    from bench.cli import command_names, program_name, python_name
    from bench.commands._session import parse_share, version
    from bench.errors import PagestormError

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from analysis.page.build import build
    from analysis.page.source import Options

    rule: dict[str, Any] = {"accept_unknown": True} if args.accept_unknown else {}
    dead_band = parse_share(args.dead_band)
    if dead_band is not None:
        rule["dead_band"] = dead_band
    options = Options(program_name(), python_name(), command_names(), rule)
    installed = "" if version() == "not installed" else version()
    chosen = args.format or FORMATS.get(Path(args.output or "").suffix.lower(), "html")
    text = _render(build(args.results, options, args.title, installed), chosen)
    if not args.output:
        sys.stdout.write(text)
        return 0
    try:
        Path(args.output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise PagestormError(
            f"cannot write {args.output}: {error.strerror}", "choose another -o"
        ) from error
    print(args.output)
    return 0


def _render(page: Any, chosen: str) -> str:  # noqa: ANN401 - Page: analysis is imported late
    if chosen == "html":
        from analysis.page import html

        return html.render(page)
    if chosen == "md":
        from analysis.page import markdown

        return markdown.render(page)
    import json

    from analysis.page.document import as_document

    return json.dumps(as_document(page), indent=1, allow_nan=False) + "\n"
