"""A page as Markdown, for a pull request: figures are left to the HTML page."""

from collections.abc import Iterable, Sequence

from analysis.page.model import (
    Block,
    Charts,
    Commands,
    Facts,
    HostPage,
    Item,
    Items,
    Listing,
    Matrix,
    Page,
    Section,
    Table,
    Text,
)

_SPECIAL = str.maketrans(
    # A name must not call anybody, nor be read as an entity.
    {c: f"\\{c}" for c in "\\`*_[]|#~"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
)


def render(page: Page) -> str:
    """Lay out a page."""
    several = len(page.hosts) > 1
    lines = [f"# {_text(page.title)}", ""]
    for block in page.overview:
        lines += _block(block)
    for host in page.hosts:
        lines += _host(host, several)
    return "\n".join(lines).rstrip() + "\n"


def _host(host: HostPage, several: bool) -> list[str]:
    marks = "###" if several else "##"
    lines = [f"## {_text(host.name)}", ""] if several else []
    lines += [f"**{_text(host.verdict)}**", ""]
    if host.summary:
        lines += [_text(host.summary), ""]
    for answer in host.answers:
        lines.append(f"- **{_text(answer.question)}** {_text(answer.short)}. {_text(answer.text)}")
        if answer.command:
            lines.append(f"  {_code(answer.command)}")
    lines.append("")
    for section in host.sections:
        lines += _section(section, marks)
    return lines


def _section(section: Section, marks: str) -> list[str]:
    lines = [f"{marks} {_text(section.title)}", "", _text(section.lead), ""]
    for block in section.blocks:
        lines += _block(block)
    for source in section.sources:
        digest = f", plan {source.digest}" if source.digest else ""
        command = f": {_code(source.command)}" if source.command else ""
        lines.append(f"From {_text(source.name)}{digest}{command}  ")
    return [*lines, ""] if section.sources else lines


def _block(block: Block) -> list[str]:
    match block:
        case Text():
            return [_text(block.text), ""]
        case Table():
            return _table(block)
        case Matrix():
            heads = [block.corner, *block.columns]
            rows = [
                [name, *(cell.text for cell in row)]
                for name, row in zip(block.rows, block.cells, strict=True)
            ]
            aligns = ["---", *("---:" for _ in block.columns)]
            return _grid(block.caption, heads, aligns, rows, block.notes)
        case Facts():
            return [*(f"- {_text(name)}: {_text(value)}" for name, value in block.facts), ""]
        case Listing():
            return _folded(
                block.title, len(block.items), [f"- {_text(item)}" for item in block.items]
            )
        case Items():
            return _folded(
                block.title,
                len(block.items),
                [line for item in block.items for line in _item(item)],
            )
        case Commands():
            lines = [f"- {_text(what)}: {_code(command)}" for command, what in block.commands]
            return _folded(block.title, len(lines), lines)
        case Charts():
            return []


def _item(item: Item) -> list[str]:
    lines = [f"- **{_text(item.what)}**: {_text(item.reason)}"]
    if item.way_out:
        lines.append(f"  → {_text(item.way_out)}")
    return [*lines, f"  {_code(item.command)}"] if item.command else lines


def _folded(title: str, n: int, lines: Sequence[str]) -> list[str]:
    return ["<details>", f"<summary>{_text(title)}: {n}</summary>", "", *lines, "",
            "</details>", ""]  # fmt: skip


def _table(table: Table) -> list[str]:
    shown = [i for i, column in enumerate(table.columns) if column.align != "bar"]
    heads = [table.columns[i].name for i in shown]
    aligns = ["---:" if table.columns[i].align == "number" else "---" for i in shown]
    rows = [[row[i].text for i in shown] for row in table.rows]
    return _grid(table.caption, heads, aligns, rows, table.notes)


def _grid(
    caption: str,
    heads: Iterable[str],
    aligns: Iterable[str],
    rows: Iterable[Sequence[str]],
    notes: Iterable[str],
) -> list[str]:
    lines = [f"**{_text(caption)}**", "", _row(map(_text, heads)), _row(aligns)]
    lines += (_row(map(_text, row)) for row in rows)
    return [*lines, "", *(line for note in notes for line in (_text(note), ""))]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(text: str) -> str:
    """Text as it is: whatever would be markup is escaped, and lines are joined."""
    return " ".join(text.split()).translate(_SPECIAL)


def _code(command: str) -> str:
    """A command in backticks, in more of them where it has some itself."""
    most = max((len(run) for run in _backticks(command)), default=0)
    fence = "`" * (most + 1)
    room = " " if most else ""
    return f"{fence}{room}{' '.join(command.split())}{room}{fence}"


def _backticks(text: str) -> list[str]:
    return [run for run in "".join(c if c == "`" else " " for c in text).split() if run]
