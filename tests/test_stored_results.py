"""Results in the repository: small, told about, readable, and without traces of who made them."""

import gzip
from pathlib import Path

import pytest

from analysis.load import rows

FOLDER = Path(__file__).parents[1] / "results"
HOSTS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


@pytest.mark.parametrize("host", HOSTS)
def test_a_stored_result_is_told_about_and_can_be_read(host):
    readme = (FOLDER / host / "README.md").read_text()
    assert "python -m bench " in readme, "how to do it again"
    found = rows(FOLDER / host)
    assert found
    assert all(row["evidence"] > 0.99 for row in found if row["evidence_known"] > 0)


@pytest.mark.parametrize("host", HOSTS)
def test_a_stored_result_is_small_and_names_no_paths(host):
    for path in (FOLDER / host).iterdir():
        assert path.stat().st_size < 300_000, path
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
        for start in ("/home/", "/root/", "/work/", "/tmp/"):
            assert start not in text, f"{path}: {start}"


def test_the_two_files_of_a_run_hold_the_same_values():
    for host in HOSTS:
        journal, pyperf = FOLDER / host / "journal.ndjson.gz", FOLDER / host / "pyperf.json.gz"
        kept = {(r["case"], r["block"], r["round"]): r["seconds"] for r in rows(journal)}
        for row in rows(pyperf):
            assert row["seconds"] == pytest.approx(kept[row["case"], row["block"], row["round"]])
