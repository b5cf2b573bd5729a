"""Results in a notebook, in the style of the page. Scripts do not run there: tables do not sort."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.page import html, markdown
from analysis.page.build import build, host_page
from analysis.page.html import file, verdict
from analysis.page.markup import Html, join, tag
from analysis.page.model import Block, HostPage, Page, Section
from analysis.page.source import Host, Options, Run
from analysis.page.writer import Writer
from bench.errors import UsageError

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.load import Results

_cells = count(1)
_BASE = (
    ".pagestorm { background: var(--paper); color: var(--ink); padding: 4px 12px 12px;"
    " font: 14px/1.5 system-ui, sans-serif; }"
)


@dataclass(frozen=True, eq=False)
class Shown:
    """Results that a notebook displays: the verdict, then every table and figure."""

    paths: tuple[str | Path, ...]

    @cached_property
    def page(self) -> Page:
        """The page they make."""
        return build(self.paths)

    @cached_property
    def frame(self) -> "DataFrame":
        """One row a value; see `analysis.load.frame`."""
        from analysis.load import frame

        return frame(*self.paths)

    @property
    def parts(self) -> list[str]:
        """Names of the parts that can be displayed alone: ``shown["pages"]``."""
        return [section.id for host in self.page.hosts for section in host.sections]

    def __getitem__(self, part: str) -> "Part":
        found = [s for host in self.page.hosts for s in host.sections if s.id == part]
        if not found:
            raise UsageError(f"no part {part!r}", f"there are: {', '.join(self.parts)}")
        return Part(tuple(found))

    def write(self, path: str | Path) -> None:
        """Write the page into a file of its own."""
        Path(path).write_text(html.render(self.page), encoding="utf-8")

    def __str__(self) -> str:
        return markdown.render(self.page)

    def _repr_html_(self) -> str:
        overview = self.page.overview
        return _cell(
            lambda writer: join(
                writer.blocks(overview), *(_host(writer, h) for h in self.page.hosts)
            )
        )


@dataclass(frozen=True)
class Part:
    """One part of a page, of every host."""

    sections: tuple[Section, ...]

    def _repr_html_(self) -> str:
        return _cell(
            lambda writer: join(*(writer.section(s, writer.name()) for s in self.sections))
        )


def blocks_html(blocks: Iterable[Block]) -> str:
    """Lay out blocks."""
    return _cell(lambda writer: writer.blocks(blocks))


def report_html(report: object, results: "Results | None" = None) -> str:
    """Lay out one report as a page about its run would."""
    from analysis.load import Results

    folder = Path(getattr(report, "folder", "."))
    run = Run(folder.name, "", results or Results(folder), report, "")
    page = host_page(Host(folder.name, (run,), Options()))
    return _cell(lambda writer: _host(writer, page))


def _cell(lay_out: Callable[[Writer], Html]) -> str:
    """What a cell displays. Names are made unique, for a notebook has many cells."""
    light, dark = file("light.css"), file("dark.css")
    style = (
        f".pagestorm {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ .pagestorm {{ {dark} }} }}\n"
        f'body[data-jp-theme-light="true"] .pagestorm {{ {light} }}\n'
        f'body[data-jp-theme-light="false"] .pagestorm {{ {dark} }}\n'
        f"{_BASE}\n.pagestorm {{ {file('style.css')} }}"
    )
    writer = Writer(level=3, prefix=f"n{next(_cells)}")
    return str(tag("div", tag("style", Html(style)), lay_out(writer), class_="pagestorm"))


def _host(writer: Writer, host: HostPage) -> Html:
    name = writer.name()
    return join(
        verdict(writer, host, name),
        (writer.section(section, f"{name}-{section.id}") for section in host.sections),
    )
