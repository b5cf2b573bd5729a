"""Loading must stay close to what parsing JSON costs, and parse each name once."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from loading import least_time, parse, write_journal

import bench.mix
from analysis import rows as rows_module
from analysis.load import rows


def test_each_name_is_parsed_once(tmp_path, monkeypatch):
    path = tmp_path / "journal.ndjson"
    write_journal(path, 500)
    rows_module._measured.cache_clear()
    seen = []

    def counted(text):
        seen.append(text)
        return bench.mix.parse_mix(text)

    monkeypatch.setattr(rows_module, "parse_mix", counted)
    names = {row["mix"] for row in rows(path)}
    assert len(rows(path)) >= 500
    assert sorted(seen) == sorted(names)


@pytest.mark.slow
def test_rows_cost_little_beside_the_json_they_are_read_from(tmp_path):
    """A ratio inside one run: 1.4 to 1.8 was seen; 4 leaves room for a busy host."""
    path = tmp_path / "journal.ndjson"
    write_journal(path, 5_000)
    assert least_time(lambda: rows(path)) < 4 * least_time(lambda: parse(path))
