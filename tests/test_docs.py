"""Docs name what there is: tables follow the registries, and links lead somewhere."""

import re
from pathlib import Path

import pytest

from analysis import models
from bench import native, remedies, schema, sweepfile
from bench.peers import peers

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += [*sorted(DOCS.glob("*.md")), *sorted(ROOT.glob("results/**/*.md"))]


def rows(name):
    """Names in the first cells of a page's tables."""
    text = (DOCS / name).read_text(encoding="utf-8")
    cells = re.findall(r"^\|([^|]*)\|", text, re.MULTILINE)
    return {word for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


def test_every_kernel_is_drawn():
    text = (DOCS / "kernels.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert set(sections) == set(native.kernels())
    without_memory = {name for name, kernel in native.kernels().items() if not kernel.arrays}
    drawn = {name for name, body in sections.items() if re.search(r"^    \S", body, re.MULTILINE)}
    assert set(sections) - drawn <= without_memory
    for name, body in sections.items():
        known = {param.name for param in native.kernel(name).params}
        named = set(re.findall(r"`(\w+)=", body))
        assert named <= known, name


def test_page_policies_are_those_of_the_registry():
    named = rows("pages.md")
    for name in native.policies():
        if name.startswith("mthp"):
            assert any(word.startswith("mthp") for word in named)
        else:
            assert name in named, name


def test_models_are_those_of_the_registry():
    assert rows("models.md") == set(models.laws())


def test_remedies_are_those_of_the_registry():
    named = {re.split(r"[:.]", word)[0] for word in rows("scenarios.md")}
    assert set(remedies.REMEDIES) - {"pages"} <= named


def test_peers_are_those_of_the_registry():
    assert set(peers()) <= rows("peers.md")


def test_presets_named_anywhere_exist():
    for page in PAGES:
        named = set(re.findall(r"--preset ([a-z-]+)", page.read_text(encoding="utf-8")))
        assert named <= set(sweepfile.preset_names()), page.name


def test_metadata_keys_named_in_results_exist():
    text = (DOCS / "results.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(ps_\w+)`", text)) - {"ps_schema"}
    assert named <= {key.name for key in schema.KEYS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), target


def test_every_page_can_be_reached_from_the_index():
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", index))
    assert {path.name for path in DOCS.glob("*.md")} - {"README.md"} <= linked
