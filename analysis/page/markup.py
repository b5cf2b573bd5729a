"""HTML and SVG as text that is escaped unless it was made here: names come from users' files."""

from collections.abc import Iterable
from html import escape

VOID = frozenset(("br", "col", "hr", "meta", "wbr"))


class Html(str):
    """Markup that may be put into a page as it is."""

    __slots__ = ()


def tag(
    name: str, /, *children: str | Iterable[str], **attributes: str | float | bool | None
) -> Html:
    """Make an element. A child that is no ``Html`` is text and gets escaped.

    Attributes: ``class_`` is ``class``, ``aria_label`` is ``aria-label``; None and False are left
    out, True is the bare name.
    """
    given = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        word = key.rstrip("_").replace("_", "-")
        given.append(f" {word}" if value is True else f' {word}="{escape(str(value))}"')
    opening = f"<{name}{''.join(given)}>"
    return Html(opening if name in VOID else f"{opening}{join(*children)}</{name}>")


def join(*children: str | Iterable[str]) -> Html:
    """Put pieces one after the other."""
    return Html("".join(_one(child) for child in children))


def _one(child: str | Iterable[str]) -> str:
    if isinstance(child, Html):
        return child
    if isinstance(child, str):
        # Control characters other than white space are no HTML at all.
        return escape("".join(c for c in child if c >= " " or c in "\t\n"), quote=False)
    return "".join(map(_one, child))
