"""The time left is believed by people who wait for it."""

import io
import random

import pytest
from faked import pages_plan

from bench import progress
from bench.blocks import BASELINE
from bench.journal import State
from bench.mix import mix_name
from bench.progress import Pace, Reporter, remaining_rounds
from bench.tryplan import make_plan


class Clock:
    """Stands in for the time module."""

    now = 0.0

    def monotonic(self):
        return self.now


def samples(plan, seconds_of, seed=1):
    """Every sample of a plan in order, with the journal's lines."""
    chance = random.Random(seed)
    for round_ in range(plan.rounds):
        for block in chance.sample(plan.blocks, len(plan.blocks)):
            for entry in block.entries:
                mix = mix_name(entry.mix)
                wall_s = seconds_of(mix, round_) * chance.uniform(0.9, 1.1)
                line = {"kind": "sample", "block": block.id, "round": round_, "attempt": 0}
                yield block, entry, {**line, "mix": mix, "wall_s": wall_s}
            line = {"kind": "block", "block": block.id, "round": round_, "attempt": 0}
            yield block, None, {**line, "status": "ok", "reason": ""}


@pytest.mark.parametrize("cold", [1.0, 3.0])
@pytest.mark.parametrize("wrong_estimate", [0.2, 5.0])
@pytest.mark.parametrize("between_s", [0.0, 0.3])
def test_the_time_left_holds_within_30_percent_over_the_second_half(
    monkeypatch, cold, wrong_estimate, between_s
):
    """Whatever the plan believed, however slow the first round, and with work between samples."""
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    plan = pages_plan(rounds=6, kernels=("scan", "chase", "gather", "spin"))
    plain = {"scan": 0.5, "chase": 2.0, "gather": 1.0, "spin": 0.05}

    def seconds_of(mix, round_):
        return plain[mix.split("/")[0]] * (cold if round_ == 0 else 1.0) / wrong_estimate

    everything = [(e, line) for _, e, line in samples(plan, seconds_of)]
    total = sum(line["wall_s"] + between_s for e, line in everything if e is not None)
    state, pace = State(), Pace(remaining_rounds(plan.blocks, plan.rounds))
    for entry, line in everything:
        if entry is not None:
            clock.now += line["wall_s"] + between_s
            pace.add(line["wall_s"])
        state.apply(line)
        left = total - clock.now
        if clock.now > total / 2 and left > 0.02 * total:
            assert pace.left_s(state) == pytest.approx(left, rel=0.3)


def test_a_first_guess_is_the_plan_s_own():
    plan = pages_plan(rounds=6)
    pace = Pace(remaining_rounds(plan.blocks, plan.rounds))
    assert pace.left_s(State()) == pytest.approx(plan.estimate_s)


def test_nothing_is_claimed_of_a_command_that_never_ran():
    """Its plan has no estimate: a first run is one."""
    plan = make_plan(["thp"], 1)
    first, pilot, _ = plan.blocks
    state = State()
    assert Pace(lambda _: [(first, 1)]).left_s(state) is None
    for row in (
        {"kind": "sample", "mix": BASELINE, "wall_s": 2.0},
        {"kind": "block", "status": "ok", "reason": ""},
    ):
        state.apply({"block": first.id, "round": 0, "attempt": 0, **row})
    assert Pace(lambda _: [(pilot, 3)]).left_s(state) == pytest.approx(2 * 3 * 2.0)


def test_what_is_left_out_takes_no_time():
    plan = pages_plan(rounds=6)
    state = State()
    for block in plan.blocks:
        for entry in block.entries:
            error = {"kind": "skip", "stage": "map", "message": "no"}
            line = {"kind": "sample", "block": block.id, "round": 0, "attempt": 0, "error": error}
            state.apply({**line, "mix": mix_name(entry.mix), "wall_s": 0.1})
    assert Pace(remaining_rounds(plan.blocks, plan.rounds)).left_s(state) == 0


def report_run(stream):
    plan = pages_plan(rounds=3)
    state = State()
    reporter = Reporter(stream, plan.blocks, plan.rounds, lambda *_: None)
    reporter.start()
    for block, entry, line in samples(plan, lambda *_: 1.0):
        if entry is not None:
            reporter.sample_starts(block, entry, state)
        state.apply(line)
        if entry is not None:
            reporter.sample_ended(block, entry, line)
    reporter.message("[not markup]")
    reporter.close()
    return stream.getvalue()


def test_plain_lines_without_a_terminal():
    text = report_run(io.StringIO())
    assert "round 1/3" in text
    assert "left" in text
    assert "[not markup]" in text
    assert "\x1b" not in text
    assert len(text.splitlines()) == 4, "a line a round, not a line a sample"


def test_a_terminal_gets_a_bar_and_no_thread(monkeypatch):
    import threading

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    threads = threading.active_count()
    monkeypatch.setenv("TERM", "xterm")
    seen = []
    monkeypatch.setattr(
        Reporter, "message", lambda self, text: seen.append((text, threading.active_count()))
    )
    text = report_run(Terminal())
    assert "\x1b" in text
    assert "scan/scalar" in text
    assert seen == [("[not markup]", threads)]


def test_no_bar_stands_while_a_table_is_printed(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    stream, plan = Terminal(), pages_plan(rounds=3)

    def table(*_):
        assert not reporter._bar.live.is_started
        stream.write("| a table |")

    reporter = Reporter(stream, plan.blocks, plan.rounds, table)
    reporter.start()
    block = plan.blocks[0]
    reporter.sample_starts(block, block.entries[0], State())
    reporter.round_ended(State())
    assert reporter._bar.live.is_started, "and afterwards it is there again"
    reporter.close()
    before, _, _ = stream.getvalue().partition("| a table |")
    assert before.endswith(("\x1b[2K", "\x1b[?25h", "\n", "\r")), "on a line of its own"
