"""The parts of a page, in order: to add one, write a file with ``section`` and give it a row.

``section(host) -> Section | None`` makes it from the reports of a host's runs; None where these
have nothing for it, and the page then says nothing of it.
"""

from collections.abc import Callable

from analysis.page.model import Section
from analysis.page.sections import (
    beside,
    facts,
    interference,
    limits,
    loaded,
    others,
    pages,
    pipeline,
    pipeline_log,
    remedies,
    reproduce,
    scaling,
    stalls,
    tried,
    values,
    why,
)
from analysis.page.source import Host

SECTIONS: tuple[Callable[[Host], Section | None], ...] = (
    facts.section,
    pages.section,
    values.section,
    scaling.section,
    loaded.section,
    interference.section,
    beside.section,
    why.section,
    stalls.section,
    remedies.section,
    tried.section,
    pipeline.section,
    pipeline_log.section,
    others.section,
    limits.section,
    reproduce.section,
)


def sections(host: Host) -> tuple[Section, ...]:
    """Every section there is data for."""
    found = (make(host) for make in SECTIONS)
    return tuple(section for section in found if section is not None)
