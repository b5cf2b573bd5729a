"""What is written can be read back."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.errors import UsageError
from bench.units import format_duration, format_size, natural, parse_duration, parse_size


@given(st.integers(0, 1 << 62))
@example(9_007_199_254_740_993)
def test_sizes_are_read_back_exactly(n_bytes):
    assert parse_size(format_size(n_bytes)) == n_bytes


@given(st.integers(1, 1023), st.sampled_from("kmgt"), st.sampled_from(["", "i", "ib", "b", "B"]))
def test_sizes_are_binary_whatever_the_spelling(n, unit, ending):
    exponent = "kmgt".index(unit) + 1
    assert parse_size(f"{n}{unit}{ending}") == n * 1024**exponent
    assert parse_size(f"{n}{unit.upper()}{ending}") == n * 1024**exponent


@given(st.floats(1e-6, 3e5))
def test_durations_are_read_back_to_what_is_shown(seconds):
    shown = 1e-6 if seconds < 1e-3 else 1e-3 if seconds < 1 else 0.5 if seconds < 60 else 1.0
    shown = 60.0 if seconds >= 3600 else shown
    assert abs(parse_duration(format_duration(seconds)) - seconds) <= shown


@pytest.mark.parametrize("text", ["", " ", "MiB", "-1", "1.5B", "64Mibb", "0x10", "1 2", "1KB/s"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(UsageError, match="not a"):
        parse_size(text)


@pytest.mark.parametrize("text", ["", " ", "s", "-1s", "5x", "1m2h", "1.5m3s", "5 s s"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(UsageError, match="not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1h05m", 3900), ("3m20s", 200), ("2min", 120), ("1.5h", 5400), ("250us", 25e-5)],
)
def test_durations_as_people_write_them(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


def test_numbers_in_names_are_sorted_by_value():
    names = ["spin 10t", "spin 2t", "", "spin", "2t", "spin 2t apart"]
    expected = ["", "2t", "spin", "spin 2t", "spin 2t apart", "spin 10t"]
    assert sorted(names, key=natural) == expected
