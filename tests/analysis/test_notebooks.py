"""Every notebook runs from top to bottom, and is stored without output."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "analysis" / "notebooks"
SAMPLE = ROOT / "results" / "epyc-2cpu-vm"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs(name, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(FOLDER / name, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(FOLDER)}}).execute()


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_stored_without_output(name):
    cells = nbformat.read(FOLDER / name, as_version=4).cells
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


def test_three_lines_show_results_of_ones_own(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    lines = ["from analysis import show", f"results = show({str(SAMPLE)!r})", "results"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("\n".join(lines))])
    NotebookClient(notebook, timeout=120).execute()
    (output,) = notebook.cells[0]["outputs"]
    text = output["data"]["text/html"]
    assert "Verdict" in text
    assert "<table>" in text
    assert "<script" not in text
