"""Results -> page."""

from collections.abc import Sequence
from pathlib import Path

from analysis.page import host_facts
from analysis.page.answers import answers, sentence
from analysis.page.model import HostPage, Page
from analysis.page.overview import overview
from analysis.page.sections import sections
from analysis.page.source import Host, Options, read
from bench.units import counted


def build(
    paths: Sequence[str | Path], options: Options | None = None, title: str = "", version: str = ""
) -> Page:
    """Build the page of any results.

    Parameters
    ----------
    paths : sequence of paths
        Output directories, journals, pyperf files of this suite, or folders full of these.
    options : Options, optional
        How commands are printed, and what verdicts depend on.
    title, version : str
        Of the page; of this package.

    Raises
    ------
    UsageError
        No results there, or results of something else.
    PagestormError
        A damaged file.
    """
    hosts = read(paths, options or Options())
    pages = [(host, host_page(host)) for host in hosts]
    if not title:
        names = hosts[0].name if len(hosts) == 1 else counted(len(hosts), "host")
        title = f"Memory of {names}"
    several = overview(pages) if len(pages) > 1 else ()
    return Page(title, version, tuple(page for _, page in pages), several)


def host_page(host: Host) -> HostPage:
    """Everything about one host."""
    found = answers(host)
    return HostPage(
        host.name, host_facts.summary(host.facts), sentence(found), found, sections(host)
    )
