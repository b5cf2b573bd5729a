"""A page as one HTML file that needs nothing else: style, script and figures are in it."""

from importlib import resources

from analysis.page.markup import Html, join, tag
from analysis.page.model import HostPage, Page
from analysis.page.writer import Writer, answer_card


def render(page: Page) -> str:
    """Lay out a page."""
    several = len(page.hosts) > 1
    writer = Writer(level=3 if several else 2)
    body = join(
        tag("a", "Skip to the results", class_="skip", href="#main"),
        tag(
            "header",
            tag("h1", page.title),
            tag("p", page.hosts[0].summary, class_="summary") if not several else "",
        ),
        _navigation(page, several),
        tag(
            "main",
            tag("section", writer.blocks(page.overview), id="hosts") if several else "",
            (_host(writer, host, i, several) for i, host in enumerate(page.hosts)),
            id="main",
        ),
        tag("footer", tag("p", f"Made with pagestorm {page.made_with}".strip() + ".")),
        tag("div", id="tip", role="status", aria_live="polite"),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", page.title),
        Html('<link rel="icon" href="data:,">'),
        tag("style", Html(_style())),
    )
    script = tag("script", Html(file("script.js")))
    return f"<!doctype html>\n{tag('html', head, tag('body', body, script), lang='en')}\n"


def _style() -> str:
    return (
        f":root {{ color-scheme: light dark; {file('light.css')} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {file('dark.css')} }} }}\n"
        f"{file('style.css')}"
    )


def file(name: str) -> str:
    """Content of a file of this package."""
    return resources.files("analysis.page").joinpath(name).read_text(encoding="utf-8")


def _navigation(page: Page, several: bool) -> Html:
    items = []
    for i, host in enumerate(page.hosts):
        own = [
            tag("li", tag("a", section.title, href=f"#{_id(i, section.id)}"))
            for section in host.sections
        ]
        verdict = tag("li", tag("a", "Verdict", href=f"#{_id(i, 'verdict')}"))
        if several:
            link = tag("a", host.name, href=f"#{_id(i, 'page')}")
            items.append(tag("li", link, tag("ol", verdict, own)))
        else:
            items += [verdict, *own]
    return tag("nav", tag("ol", items), aria_label="Parts of this page")


def _id(host: int, name: str) -> str:
    return f"h{host + 1}-{name}"


def _host(writer: Writer, host: HostPage, i: int, several: bool) -> Html:
    parts = join(
        verdict(writer, host, f"h{i + 1}"),
        (writer.section(section, _id(i, section.id)) for section in host.sections),
    )
    if not several:
        return parts
    title = tag("h2", host.name, id=_id(i, "name"))
    summary = tag("p", host.summary, class_="summary")
    label = _id(i, "name")
    return tag(
        "section", title, summary, parts, id=_id(i, "page"), class_="host", aria_labelledby=label
    )


def verdict(writer: Writer, host: HostPage, name: str) -> Html:
    """The sentence and the four answers; ``name`` begins the ids."""
    label = f"{name}-verdict-title"
    return tag(
        "section",
        tag(writer.heading, "Verdict", id=label),
        tag("p", host.verdict, class_="verdict"),
        tag("div", (answer_card(answer) for answer in host.answers), class_="answers"),
        id=f"{name}-verdict",
        aria_labelledby=label,
    )
