"""Reading logs: what counts, what does not, and that every line is accounted for."""

import gzip
import io

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from timelines import job_name, prover_lines, record, task_lines

from analysis.timeline.events import EVENTS
from analysis.timeline.faults import NOT_USED, Faults
from analysis.timeline.reading import LONGEST, read_log
from analysis.timeline.records import Reader
from analysis.timeline.tokens import tokens
from bench.errors import UsageError

A, B = job_name(0), job_name(1)
PROVER = [
    record(0, "SYNTH_START", A, partition=3),
    record(30_000, "SYNTH_END", A, partition=3, synth_ms=30_000),
    record(30_500, "CHAN_SEND", A, partition=3),
    record(32_000, "GPU_PICKUP", A, worker=1, partition=3),
    record(32_100, "GPU_START", A, worker=1, partition=3),
    record(36_100, "GPU_END", A, worker=1, partition=3, gpu_ms=3_900),
]


@pytest.fixture
def read(tmp_path):
    def reading(content, **options):
        if isinstance(content, list):
            content = "".join(line + "\n" for line in content)
        path = tmp_path / "x.log"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        log = read_log(path, **options)
        for fault in log.faults:
            fault.lines = [line.replace(f"{path}:", "") for line in fault.lines]
        return log

    return reading


def faults(log):
    return {fault.kind: fault.count for fault in log.faults}


def durations(log, run=0):
    found = log.runs[run].phases if log.runs else {}
    return {name: spans.duration.round(6).tolist() for name, spans in found.items()}


# ---- what is read --------------------------------------------------------------------------------


def test_every_phase_of_an_item_is_found(read):
    log = read(PROVER)
    assert durations(log) == {
        "synth": [30],
        "send": [0.5],
        "queue": [1.5],
        "pickup": [0.1],
        "gpu": [4],
    }
    (run,) = log.runs
    gpu = run.phases["gpu"]
    assert (run.jobs, run.items, run.workers) == ((A,), ("3",), ("1",))
    assert gpu.reported.tolist() == pytest.approx([3.9])
    assert gpu.worker.tolist() == [0]
    assert run.phases["synth"].worker.tolist() == [-1]
    assert not log.faults
    assert log.records == log.used == 6


def test_a_job_may_be_one_piece(read):
    log = read(
        [
            record(0, "SYNTH_START", A, kind="porep"),
            record(5_000, "SYNTH_END", A, synth_ms=5_000),
            f"TIMELINE,5001,GPU_QUEUE,{A},monolithic",
            record(5_002, "GPU_PICKUP", A, worker=0),
            record(5_003, "GPU_START", A, worker=0),
            record(9_003, "GPU_END", A, worker=0, gpu_ms=4_000),
        ]
    )
    assert durations(log)["gpu"] == pytest.approx([4])
    assert not log.faults
    assert log.runs[0].phases["gpu"].item.tolist() == [-1]


def test_the_details_of_a_queued_job_may_be_empty(read):
    lines = [record(0, "SYNTH_START", A), record(1, "SYNTH_END", A)]
    log = read([*lines, f"TIMELINE,3,CHAN_SEND,{A},", record(5, "GPU_PICKUP", A, worker=0)])
    assert durations(log)["queue"] == pytest.approx([0.002])


def test_tasks_are_phases_of_their_name(read):
    log = read(task_lines([("ntt", "j", 0, 1, 0.0015, 0.5), ("msm", "j", 0, 0, 0.5, 1.25)], ".3f"))
    assert durations(log) == {"ntt": [0.4985], "msm": [0.75]}
    assert log.runs[0].resolution == pytest.approx(1e-6)
    assert not log.faults


def test_an_event_without_its_task_is_named(read):
    log = read(["TIMELINE,1,TASK_START,j,worker=0"])
    assert [f.lines for f in log.faults] == [["1 no task="]]


@pytest.mark.parametrize(
    "dress",
    [
        lambda line: f"2026-01-01T00:00:00Z  INFO engine: {line}",
        lambda line: f"\x1b[2m12:00\x1b[0m \x1b[32mINFO\x1b[0m \x1b[1m{line}\x1b[0m",
        lambda line: line + "\r",
        lambda line: line + "   ",
        lambda line: f"ÿ progress 50%\r{line}",
        lambda line: f"something else, a=b\n\n{line}",
    ],
)
def test_what_stands_around_a_record_does_not_matter(read, dress):
    log = read([dress(line) for line in PROVER])
    assert durations(log) == durations(read(PROVER))
    assert not log.faults


def test_lines_are_named_by_number_among_others(read):
    log = read(["hello", "TIMELINE,x,GPU_START,j", "", "TIMELINE,5,NO_SUCH,j", "TIMELINE,5,"])
    assert {f.kind: f.lines for f in log.faults} == {
        "malformed": ["2", "5"],
        "unknown event": ["4 NO_SUCH"],
    }
    assert log.lines == 5


def test_only_the_first_few_lines_of_a_fault_are_kept(read):
    log = read(["TIMELINE,,,"] * 1_000)
    assert faults(log) == {"malformed": 1_000}
    assert [len(f.lines) for f in log.faults] == [5]


@pytest.mark.parametrize("time", ["", "-1", "1e5", "1_000", "nan", "inf", "0x10", "1.", ".5", " 1"])
def test_a_time_is_digits(read, time):
    assert faults(read([f"TIMELINE,{time},SYNTH_START,j"])) == {"malformed": 1}


# ---- faults --------------------------------------------------------------------------------------


def test_lines_out_of_order_are_used_by_their_time(read):
    order = [2, 0, 1, 5, 4, 3]
    log = read([PROVER[i] for i in order])
    assert durations(log) == durations(read(PROVER))
    assert faults(log) == {"out of order": 4}
    assert log.used == 6


def test_what_has_no_other_half_is_named_and_not_used(read):
    log = read([PROVER[1], *PROVER[3:5], record(40_000, "SYNTH_START", B, partition=0)])
    assert {f.kind: (f.count, sorted(f.lines)) for f in log.faults} == {
        "start without end": (2, ["3", "4"]),
        "end without start": (1, ["1"]),
    }
    assert durations(log) == {"pickup": [0.1]}


def test_a_second_start_begins_anew(read):
    lines = [(0, "SYNTH_START"), (9_000, "SYNTH_START"), (10_000, "SYNTH_END")]
    log = read([record(ms, event, A) for ms, event in lines])
    assert durations(log) == {"synth": [1]}
    assert {f.kind: f.lines for f in log.faults} == {"start without end": ["1"]}


def test_an_end_before_its_start_belongs_to_something_else(read):
    log = read([record(50, "SYNTH_START", A), record(40, "SYNTH_END", A)])
    assert faults(log) == {"start without end": 1, "end without start": 1, "out of order": 1}
    assert not log.runs


def test_a_line_that_comes_twice_counts_once(read):
    log = read([line for line in PROVER for _ in range(2)])
    assert durations(log) == durations(read(PROVER))
    assert faults(log) == {"duplicate": 6}


def test_a_part_that_comes_twice_counts_once(read):
    lines = prover_lines(jobs=1, synth_s=5, spread=0.3)
    log = read([*lines, *lines[:100]])
    assert durations(log) == durations(read(lines))
    assert len(log.runs) == 1
    assert log.used == len(lines)


def test_a_file_given_twice_is_refused(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(UsageError, match="given twice"):
        read_log(tmp_path / "x", tmp_path / "x")


def test_another_file_whose_clock_starts_anew_is_another_run(tmp_path):
    """Programs may give their jobs the same names every time."""
    for name in "ab":
        (tmp_path / name).write_text("".join(line + "\n" for line in PROVER))
    log = read_log(tmp_path / "a", tmp_path / "b")
    assert durations(log, 0) == durations(log, 1)
    assert not log.faults


def test_the_worker_is_left_open_where_start_and_end_differ(read):
    lines = [record(0, "GPU_START", A, worker=0), record(9, "GPU_END", A, worker=1)]
    log = read(lines)
    assert log.runs[0].phases["gpu"].worker.tolist() == [-1]
    assert faults(log) == {"worker differs": 1}


def test_the_last_line_is_not_used_where_it_has_no_end(read):
    text = "\n".join(PROVER)
    log = read(text)
    assert faults(log) == {"truncated": 1, "start without end": 1}
    assert "gpu" not in durations(log)


def test_a_record_in_which_another_begins_is_not_used(read):
    log = read([PROVER[0][:20] + PROVER[0], *PROVER[1:]])
    assert durations(log) == durations(read(PROVER))
    assert faults(log) == {"torn": 1}


def test_a_log_without_the_other_event_says_so_instead_of_finding_fault(read):
    log = read([PROVER[0], PROVER[1]])
    assert not log.faults
    assert log.notes == ["send: no event of this log marks its end"]


def test_a_figure_that_is_no_number_is_left_out(read):
    log = read([PROVER[0], record(30_000, "SYNTH_END", A, partition=3, synth_ms="12x")])
    assert np.isnan(log.runs[0].phases["synth"].reported).all()
    assert faults(log) == {"unreadable figure": 1}


def test_a_line_longer_than_any_record_is_passed_over(read):
    long = b"TIMELINE," + b"x" * (3 * LONGEST)
    text = "\n".join(PROVER).encode() + b"\n"
    for content in (long + b"\n" + text, text + long):
        log = read(content)
        assert sum(faults(log).values()) == 1
        assert len(log.runs[0].phases["gpu"]) == 1


# ---- files ---------------------------------------------------------------------------------------


def test_gzip_and_standard_input(read, tmp_path, monkeypatch):
    text = "".join(line + "\n" for line in PROVER).encode()
    expected = durations(read(text))
    assert durations(read(gzip.compress(text))) == expected
    path = tmp_path / "in"
    path.write_bytes(gzip.compress(text))
    with path.open("rb") as stream:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
        assert durations(read_log("-")) == expected


def test_an_archive_that_is_cut_off_gives_what_is_there(read):
    packed = gzip.compress("".join(line + "\n" for line in prover_lines(jobs=40)).encode())
    log = read(packed[: len(packed) // 2])
    assert log.count("damaged archive") == 1
    assert len(log.runs[0].phases["synth"]) > 50


def test_files_are_parts_of_one_log_while_time_goes_on(tmp_path):
    lines = prover_lines(jobs=4)
    for name, part in (("1", lines[:100]), ("2", lines[100:])):
        (tmp_path / name).write_text("\n".join(part) + "\n")
    (tmp_path / "all").write_text("\n".join(lines) + "\n")
    log = read_log(tmp_path / "1", tmp_path / "2")
    assert durations(log) == durations(read_log(tmp_path / "all"))
    assert not log.faults


def test_a_program_started_again_is_another_run(read):
    again = [line.replace(A, B) for line in PROVER]
    log = read([*PROVER, *again])
    assert [run.origin.rpartition(":")[2] for run in log.runs] == ["1", "7"]
    assert durations(log, 0) == durations(log, 1)
    assert not log.faults


def test_what_is_not_there_is_an_error_that_says_so(tmp_path):
    with pytest.raises(UsageError, match=r"none\.log does not exist"):
        read_log(tmp_path / "none.log")
    with pytest.raises(UsageError, match="cannot read"):
        read_log(tmp_path)


def test_figures_without_a_time_are_collected_by_key(read):
    log = read(
        [
            "CUZK_TIMING: prep_msm_ms=1700 num_circuits=1 path=x",
            "12:00 INFO CUZK_TIMING: gpu_tid=0 ntt_msm_h_ms=690.5",
            "CUZK_TIMING: prep_msm_ms=1900",
            "DEBUG synth{witness_ms=26500, eval_ms=8800}: done took_ms=5",
            "an unrelated_ms=5 line",
        ]
    )
    found = {t.key: (t.n, t.mean) for t in log.timings}
    assert found == {
        "prep_msm_ms": (2, 1800),
        "num_circuits": (1, 1),
        "gpu_tid": (1, 0),
        "ntt_msm_h_ms": (1, 690.5),
        "witness_ms": (1, 26500),
        "eval_ms": (1, 8800),
    }
    assert log.notes == ["1 figure without a time: no number, left out"]


# ---- any content at all --------------------------------------------------------------------------

names = st.sampled_from([*EVENTS, "GPU_STAR", ""])
details = st.sampled_from(
    [
        "", "partition=1", "partition=2", "worker=0", "worker=1,partition=1", "monolithic",
        "worker=0,partition=2,gpu_ms=x", "synth_ms=12", "task=a,worker=0,item=1", "task=a,item=1",
    ]
)  # fmt: skip
times = st.one_of(st.integers(0, 60).map(str), st.sampled_from(["", "x", "5.25", "40000"]))
records = st.builds(
    lambda ms, event, job, detail: f"TIMELINE,{ms},{event},{job},{detail}".encode(),
    times, names, st.sampled_from(["j", "k", ""]), details,
)  # fmt: skip
noise = st.one_of(
    st.binary(max_size=30),
    st.sampled_from([b"TIMELINE,", b"TIMELINE,1,SYNTH_ST", b"\x1b[31m", b"CUZK_TIMING: a=1 b=x"]),
)
pieces = st.lists(st.one_of(records, noise, st.tuples(noise, records).map(b"".join)), max_size=40)


@settings(max_examples=400)
@given(pieces, st.sampled_from([b"\n", b"\r\n", b"", b" "]), st.booleans())
def test_any_bytes_are_read_and_every_record_is_accounted_for(tmp_path_factory, parts, gap, ends):
    content = gap.join(parts) + (b"\n" if ends else b"")
    assume(not content.startswith(b"\x1f\x8b"))
    path = tmp_path_factory.getbasetemp() / "any.log"
    path.write_bytes(content)
    log = read_log(path)
    found = faults(log)
    assert log.records == log.used + sum(found.get(kind, 0) for kind in NOT_USED)
    assert log.lines == len(content.split(b"\n")) - (content[-1:] in (b"\n", b""))
    for run in log.runs:
        for spans in run.phases.values():
            assert (spans.duration >= 0).all()
            assert (np.diff(spans.start) >= 0).all()


moments = st.tuples(
    st.integers(0, 50), st.booleans(), st.sampled_from("jk"), st.integers(0, 2), st.booleans()
)


@settings(max_examples=300)
@given(st.lists(moments, max_size=60))
def test_every_start_and_every_end_is_accounted_for(tmp_path_factory, found):
    """Each is half of a span or is named; a repeated record is one."""
    lines = [
        record(ms, "TASK_START" if begins else "TASK_END", job, task="t", item=item)
        for ms, begins, job, item, _ in found
    ]
    path = tmp_path_factory.getbasetemp() / "halves.log"
    path.write_text("".join(line + "\n" for line in lines))
    log = read_log(path)
    spans = sum(len(run.phases["t"]) for run in log.runs)
    halves = log.count("start without end") + log.count("end without start")
    assert log.used == 2 * spans + halves
    assert log.used + log.count("duplicate") == len(lines)


@given(st.randoms(use_true_random=False))
@settings(max_examples=25)
def test_lines_that_overtake_each_other_give_the_same_spans(tmp_path_factory, random):
    lines = prover_lines(jobs=2, items=4, spread=0.3)
    path = tmp_path_factory.getbasetemp() / "order.log"

    def found(lines):
        path.write_text("".join(line + "\n" for line in lines))
        log = read_log(path)
        return {
            name: sorted(zip(spans.start, spans.end, strict=True))
            for name, spans in log.runs[0].phases.items()
        }

    late = sorted(lines, key=lambda line: int(line.split(",")[1]) + random.randrange(4_000))
    assert found(late) == found(lines)


plain = st.builds(
    lambda ms, event, job, detail, before, after: (
        f"{before}TIMELINE,{ms},{event},{job},{detail}{after}\n".encode()
    ),
    st.one_of(
        st.integers(0, 10**9).map(str),
        st.floats(0, 1e9).map("{:.3f}".format),
        st.from_regex(r"[0-9.]{1,18}", fullmatch=True),
    ),
    names,
    st.sampled_from(["j", "k" * 36, "k" * 35 + "l", ""]),
    st.one_of(
        details,
        st.builds("partition={},gpu_ms={}".format, st.integers(0, 99), st.integers(0, 10**17)),
        st.builds("{}={}".format, st.sampled_from(["synth_ms", "x_ms", "ms", "_ms"]), times),
        st.text("partion=,_ms0123456789", max_size=40),
    ),
    st.sampled_from(["", "INFO ", "a,b,", "TIMELINE"]),
    st.sampled_from(["", "\r", " ", " \t", "\r\r\r"]),
)


@settings(max_examples=400)
@example([b"TIMELINE,0,SYNTH_START,j,\n", b"TIMELINE,0.000,GPU_STAR,j,\n"])
@given(st.lists(plain, min_size=1, max_size=12))
def test_reading_a_block_at_once_is_the_same_as_line_by_line(parts):
    """A block with an escape code is read line by line; here the code stands in no record."""
    text = b"".join(parts)
    found = []
    for block in (text, text + b"\x1b\n"):
        faults = Faults()
        faults.begin_file("x")
        reader = Reader(faults)
        columns = [column.tolist() for column in reader.read(block, 1)]
        told = [(f.kind, f.count, f.lines) for f in faults.found]
        found.append((str(columns), reader.names, reader.records, reader.decimals, told))
    assert found[0] == found[1]


def test_blocks_are_read_at_once_where_nothing_is_wrong():
    text = "".join(line + "\n" for line in prover_lines(jobs=2)).encode()
    for dressed in (text, text.replace(b"\n", b"\r\n"), text.replace(b"TIME", b"12:00 a,b TIME")):
        assert tokens(dressed) is not None


def test_spans_are_paired_across_blocks(read, monkeypatch):
    lines = prover_lines(jobs=4, spread=0.3)
    expected = {name: sorted(found) for name, found in durations(read(lines)).items()}
    monkeypatch.setattr("analysis.timeline.pairing.BLOCK", 7)
    monkeypatch.setattr("analysis.timeline.reading.CHUNK", 1_000)
    log = read(lines)
    assert {name: sorted(found) for name, found in durations(log).items()} == expected
    assert not log.faults
