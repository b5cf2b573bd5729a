"""The page in a browser: no errors, nothing asked for, sorts, and is readable in every setting."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import browser as chromium
from pages import EVIL, corun, host, page_of, run, whole

from analysis.page import html

TABLE = "[...document.querySelectorAll('#h1-values table')].find(t => t.tBodies[0].rows.length > 3)"
GBPS = f"{TABLE}.tHead.querySelectorAll('th')[4]"
VALUES = f"[...{TABLE}.tBodies[0].rows].map(r => Number(r.cells[4].dataset.value))"
# Every text against what is behind it, as WCAG 2 defines contrast.
CONTRAST = """(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = rgba(getComputedStyle(at).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255];
  };
  const found = {};
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || element.closest('script, style, #tip, title, desc'))
      continue;
    const style = getComputedStyle(element);
    const svg = element.namespaceURI.endsWith('svg');
    const levels = [light(rgba(svg ? style.fill : style.color)), light(behind(element))];
    const ratio = (Math.max(...levels) + 0.05) / (Math.min(...levels) + 0.05);
    const name = `${element.tagName} ${element.getAttribute('class') || ''}`;
    found[name] = Math.min(found[name] ?? 99, ratio);
  }
  return found;
})()"""


@pytest.fixture(scope="module")
def browser():
    program = chromium.find()
    if program is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    opened = chromium.Browser(program)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "one.html"
    path.write_text(html.render(page_of(whole())))
    return path


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "several.html"
    evil = host(run(EVIL, corun(("scan", EVIL))), name=EVIL)
    path.write_text(html.render(page_of(whole("first"), evil, title=EVIL)))
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", ["one", "several"])
def test_it_loads_without_errors_or_requests_and_fits(browser, request, name, width, scheme):
    browser.load(request.getfixturevalue(name), width, scheme=scheme)
    assert browser.problems == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    dark = browser.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0] < 100"
    )
    assert dark == (scheme == "dark")


def test_every_section_is_shown_and_linked(browser, one):
    browser.load(one)
    shown = browser.evaluate(
        "[...document.querySelectorAll('main > section')].filter(s => s.offsetHeight > 40)"
        ".map(s => s.id)"
    )
    linked = browser.evaluate(
        "[...document.querySelectorAll('nav a')].map(a => a.getAttribute('href').slice(1))"
    )
    assert shown == linked
    assert len(shown) == 15
    titles = browser.evaluate("[...document.querySelectorAll('main h2')].map(h => h.innerText)")
    assert titles[0] == "Verdict"
    assert "Remedies" in titles


def test_a_click_sorts_and_another_turns_it_round(browser, one):
    browser.load(one)
    before = browser.evaluate(VALUES)
    assert before != sorted(before)
    browser.click(f"{GBPS}.querySelector('button')")
    assert browser.evaluate(VALUES) == sorted(before)
    assert browser.evaluate(f"{GBPS}.getAttribute('aria-sort')") == "ascending"
    browser.click(f"{GBPS}.querySelector('button')")
    assert browser.evaluate(VALUES) == sorted(before, reverse=True)
    assert browser.evaluate(f"{GBPS}.getAttribute('aria-sort')") == "descending"
    others = f"[...{TABLE}.tHead.querySelectorAll('[aria-sort]')].map(h => h.ariaSort)"
    assert browser.evaluate(others).count("none") == len(browser.evaluate(others)) - 1


def test_tables_sort_by_keyboard_and_text(browser, one):
    browser.load(one)
    first = f"{TABLE}.tHead.querySelector('th button')"
    browser.evaluate(f"{first}.focus()")
    browser.key("Enter", "\r")
    names = browser.evaluate(f"[...{TABLE}.tBodies[0].rows].map(r => r.cells[0].textContent)")
    assert browser.evaluate(f"{TABLE}.tHead.querySelector('th').ariaSort") == "ascending"
    assert names == sorted(names)
    browser.key("Tab")
    assert browser.evaluate("document.activeElement.textContent") == "size"
    browser.key("Enter", "\r")
    sizes = browser.evaluate(
        f"[...{TABLE}.tBodies[0].rows].map(r => Number(r.cells[1].dataset.value))"
    )
    assert sizes == sorted(sizes)


def test_what_is_not_known_comes_last_both_ways(browser, one):
    browser.load(one)
    head = (
        "[...document.querySelectorAll('#h1-remedies th[data-sort]')]"
        ".find(h => h.innerText.startsWith('predicted'))"
    )
    rows = f"[...{head}.closest('table').tBodies[0].rows]"
    column = f"{rows}.map(r => r.cells[{head}.cellIndex].innerText)"
    for _ in range(2):
        browser.click(f"{head}.querySelector('button')")
        assert browser.evaluate(column) == ["+15%", "-", "-"]


def test_values_of_a_figure_are_told_by_pointer_and_by_arrow_keys(browser, one):
    browser.load(one)
    tip = "[...document.querySelectorAll('#tip.shown')].map(t => t.textContent).join()"
    chart = "document.querySelector('#h1-scaling svg.chart')"
    hints = browser.evaluate(f"[...{chart}.querySelectorAll('.pt')].map(p => p.dataset.tip)")
    assert "GB/s [" in hints[0]
    browser.evaluate(f"{chart}.scrollIntoView()")
    browser.evaluate(f"{chart}.focus()")
    browser.key("ArrowRight")
    assert browser.evaluate(tip) == hints[0]
    browser.key("End")
    assert browser.evaluate(tip) == hints[-1]
    browser.key("Escape")
    assert browser.evaluate(tip) == ""
    box = browser.evaluate(
        f"(b => [b.x + b.width / 2, b.y + b.height / 2])"
        f"({chart}.querySelector('.pt').getBoundingClientRect())"
    )
    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    assert browser.evaluate(tip) == hints[0]


def test_a_command_can_be_copied_or_is_marked(browser, one):
    browser.load(one)
    box = "document.querySelector('.command')"
    command = browser.evaluate(f"{box}.querySelector('code').textContent")
    browser.click(f"{box}.querySelector('button')")
    said = browser.evaluate(
        "new Promise(done => setTimeout(() => done("
        f"{box}.querySelector('button').textContent), 200))"
    )
    assert said in ("Copied", "Marked")
    if said == "Marked":
        assert browser.evaluate("String(getSelection())") == command


@pytest.mark.parametrize(("scheme", "media"), [("light", ""), ("dark", ""), ("dark", "print")])
def test_texts_stand_out_from_what_is_behind_them(browser, one, scheme, media):
    browser.load(one, scheme=scheme, media=media)
    found = browser.evaluate(CONTRAST)
    assert len(found) > 20
    assert {name: ratio for name, ratio in found.items() if ratio < 4.5} == {}


def test_boxes_that_scroll_can_be_reached_by_keyboard(browser, one):
    browser.load(one, 400)
    places = browser.evaluate(
        "[...document.querySelectorAll('.box')].filter(b => b.scrollWidth > b.clientWidth + 1)"
        ".map(b => b.tabIndex)"
    )
    assert places
    assert set(places) == {0}


def test_everything_is_printed(browser, one):
    browser.load(one, 720, scheme="dark", media="print")
    paper = "getComputedStyle(document.body).backgroundColor"
    assert browser.evaluate(paper) == "rgb(255, 255, 255)"
    assert browser.evaluate("document.documentElement.scrollWidth") <= 720
    assert browser.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert browser.evaluate("document.querySelectorAll('details:not([open])').length") == 0
    browser.evaluate("dispatchEvent(new Event('afterprint'))")
    assert browser.evaluate("document.querySelectorAll('details[open]').length") == 0
    pdf = browser.ask("Page.printToPDF", printBackground=True)["data"]
    assert len(pdf) > 20_000
