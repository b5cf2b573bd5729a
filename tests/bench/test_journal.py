"""The journal keeps what was closed, whatever happens to the process or the disk."""

import errno
import json
import os

import pytest

from bench.errors import NoSpaceError, PagestormError, UsageError
from bench.journal import Journal, State, read_lines, read_state, replace_file

MIX = "scan/scalar/base/1t/1GiB"


def sample(round_=0, attempt=0, mix=MIX, block="b", **more):
    line = {"kind": "sample", "block": block, "round": round_, "attempt": attempt, "mix": mix}
    return {**line, "wall_s": 1.0, **more}


def closed(round_=0, attempt=0, status="ok", block="b"):
    return {
        "kind": "block",
        "block": block,
        "round": round_,
        "attempt": attempt,
        "status": status,
        "reason": "",
    }


def state_of(*lines):
    state = State()
    for line in lines:
        state.apply(line)
    return state


def test_lines_come_back_as_written(tmp_path):
    with Journal(tmp_path / "new" / "folder") as journal:
        journal.append({"kind": "start", "schema": 1, "text": "µs"})
        journal.append(sample())
    assert read_lines(journal.path)[0] == [{"kind": "start", "schema": 1, "text": "µs"}, sample()]


@pytest.mark.parametrize("keep", [1, 10, 40, -1])
def test_a_torn_last_line_is_cut_off_on_opening(tmp_path, keep):
    with Journal(tmp_path) as journal:
        journal.append(sample(0))
        whole = journal.path.read_bytes()
        journal.append(sample(1))
    torn = journal.path.read_bytes()[len(whole) :][:keep]
    journal.path.write_bytes(whole + torn)
    with Journal(tmp_path) as journal:
        journal.append(closed())
    assert read_lines(journal.path)[0] == [sample(0), closed()]


def test_a_last_line_of_zeros_is_cut_off(tmp_path):
    with Journal(tmp_path) as journal:
        journal.append(sample(0))
    with journal.path.open("ab") as file:
        file.write(b"\0" * 50 + b"\n")
    assert read_lines(journal.path)[0] == [sample(0)]


def test_a_damaged_line_in_the_middle_is_named(tmp_path):
    with Journal(tmp_path) as journal:
        for i in range(3):
            journal.append(sample(i))
    rows = journal.path.read_text().splitlines()
    rows[1] = rows[1][:20]
    journal.path.write_text("\n".join(rows) + "\n")
    with pytest.raises(PagestormError, match="line 2"):
        Journal(tmp_path)
    assert len(journal.path.read_text().splitlines()) == 3, "a refusal changes nothing"


def test_a_newer_format_is_refused(tmp_path):
    (tmp_path / "journal.ndjson").write_text(json.dumps({"kind": "start", "schema": 99}) + "\n")
    with pytest.raises(UsageError, match="99"):
        read_state(tmp_path)


def test_one_writer_at_a_time(tmp_path):
    with Journal(tmp_path), pytest.raises(UsageError, match="another run"):
        Journal(tmp_path)
    Journal(tmp_path).close()


def test_a_folder_without_a_journal_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match=r"no journal\.ndjson"):
        read_state(tmp_path)


@pytest.mark.parametrize("written_before_full", [0, 17])
def test_a_full_disk_keeps_every_line_before(tmp_path, monkeypatch, written_before_full):
    real_write = os.write

    def full(fd, data):
        if full.calls == 0 and written_before_full:
            full.calls += 1
            return real_write(fd, data[:written_before_full])
        raise OSError(errno.ENOSPC, "No space left on device")

    full.calls = 0
    with Journal(tmp_path) as journal:
        journal.append(sample(0))
        journal.append(closed())
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(PagestormError, match="no space left") as caught:
            journal.append(sample(1))
        monkeypatch.undo()
        assert isinstance(caught.value, NoSpaceError)
        assert "every closed block is kept" in str(caught.value)
        journal.append(sample(2))
    assert read_lines(journal.path)[0] == [sample(0), closed(), sample(2)]


def test_a_value_that_is_not_a_number_never_reaches_the_file(tmp_path):
    with Journal(tmp_path) as journal:
        with pytest.raises(ValueError, match="JSON"):
            journal.append(sample(seconds=float("nan")))
        assert read_lines(journal.path)[0] == []


def test_samples_count_only_once_their_block_closed_ok():
    state = state_of(sample())
    assert state.samples == {}
    state.apply(closed())
    assert state.samples == {("b", 0): [sample()]}


def test_samples_of_a_rejected_or_cut_off_attempt_do_not_count():
    good = sample(attempt=2)
    state = state_of(
        sample(attempt=0), closed(attempt=0, status="rejected"), sample(attempt=1), good,
        closed(attempt=2),
    )  # fmt: skip
    assert state.samples == {("b", 0): [good]}
    assert state.next_round("b") == 1


def test_a_cut_off_attempt_has_used_its_number():
    assert state_of(sample(attempt=0)).next_attempt("b", 0) == 1


def test_a_mix_invalid_three_times_in_a_row_is_left_out_and_the_round_goes_on():
    lines = []
    for attempt in range(3):
        lines += [sample(attempt=attempt, invalid="evidence: no")]
        lines += [closed(attempt=attempt, status="rejected")]
    state = state_of(*lines)
    assert not state.dropped[MIX].skip
    assert state.may_retry("b", 0)


def test_a_round_is_given_up_after_two_repeats_with_different_causes():
    lines = [sample(attempt=i, mix=f"m{i}", invalid="x") for i in range(2)]
    assert state_of(*lines).may_retry("b", 0)
    assert not state_of(*lines, sample(attempt=2, mix="m2", invalid="x")).may_retry("b", 0)


def test_a_skip_is_no_rejection():
    state = state_of(sample(error={"kind": "skip", "stage": "map", "message": "no pool"}))
    assert state.dropped[MIX].reason == "no pool"
    assert state.tallies == {}


def test_complete_rounds_are_those_of_the_slowest_block():
    state = state_of(closed(0, block="a"), closed(1, block="a"), closed(0, block="b"))
    assert state.complete_rounds(["a", "b"]) == 1
    assert state.complete_rounds(["a"]) == 2


def test_a_replaced_file_is_old_or_new_never_half(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    replace_file(path, b"old")

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(PagestormError, match="No space"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x.json"]  # noqa: PTH208 - the names are what is compared
