"""The number a command prints."""

import pytest

from bench.errors import UsageError
from bench.metric import Metric, parse_number, tail


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("123", 123, ""),
        ("1.5e-3", 0.0015, ""),
        (".5", 0.5, ""),
        ("1,234,567.8", 1234567.8, ""),
        ("-3", -3, ""),
        ("980ms", 0.98, "second"),
        ("1.02 s", 1.02, "second"),
        ("1.5GiB/s", 1.5 * 2**30, "byte/s"),
        ("250 MB", 250e6, "byte"),
        ("350k", 350e3, ""),
        ("12 op/s", 12, "op/s"),
    ],
)
def test_numbers_as_programs_print_them(text, value, kind):
    found = parse_number(text)
    assert found is not None
    assert found[0] == pytest.approx(value)
    assert found[1] == kind


@pytest.mark.parametrize("text", ["", "fast", "1.2.3", "1,23", "nan", "--", "1e999", "1e308h"])
def test_what_is_no_number_is_none(text):
    assert parse_number(text) is None


def read(tmp_path, pattern, out="", err=""):
    (tmp_path / "out").write_text(out)
    (tmp_path / "err").write_text(err)
    return Metric.of(pattern).read(tmp_path / "out", tmp_path / "err")


def test_the_last_match_counts_and_stdout_goes_first(tmp_path):
    assert read(tmp_path, r"^t=(\S+)$", "t=1\nt=2\n", "t=3\n") == (2.0, "")
    assert read(tmp_path, r"t=(\S+)", "nothing\n", "t=3ms\n") == (0.003, "second")


def test_a_group_that_takes_no_part_or_holds_no_number_is_said(tmp_path):
    assert "nothing matches" in read(tmp_path, r"t=(\d+)", "hello")
    assert read(tmp_path, r"t=(\w+)", "t=fast") == "'fast' is not a number"
    assert "nothing matches" in read(tmp_path, r"hello(\d+)?", "hello")


@pytest.mark.parametrize("pattern", ["abc", "(a)(b)", "(", "(?:a)"])
def test_an_expression_needs_one_group(pattern):
    with pytest.raises(UsageError):
        Metric.of(pattern)


def test_more_time_is_not_better():
    with pytest.raises(UsageError, match="not better"):
        Metric.of("time", higher_is_better=True)


def test_the_tail_of_a_file(tmp_path):
    path = tmp_path / "out"
    path.write_text("\n".join(map(str, range(1000))) + "\n")
    assert tail(path, 2) == "998\n999"
    assert tail(tmp_path / "none") == ""
