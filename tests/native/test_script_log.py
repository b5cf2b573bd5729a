"""The log of script operations, the warm-up by passes, and pools that are served in order."""

import statistics
from dataclasses import replace
from itertools import pairwise

import pytest

from bench import native
from bench.mix import Actor, Mix, Pool, parse_script
from bench.passlog import Event, decode, encode

STEP = Actor(
    "spin", "scalar", "base", 1, 0, (("step_us", 200), ("steps", 1)), joined=True, pin="none"
)
SINK = replace(STEP, script=parse_script("take(b).pass.put(a)"))
FIRST = replace(STEP, role="background", script=parse_script("take(a).pass(2).put(b)"))
LINE = Mix((FIRST, SINK), (Pool("a", 2), Pool("b", 0)))
SHORT = native.RunSettings(window_s=1e-4, warm_s=0, min_passes=5, warm_passes=3, log_events=4000)


def by_script(events):
    found = {}
    for event in events:
        found.setdefault((event.actor, event.thread), []).append(event)
    return found


class TestLog:
    def test_operations_are_there_in_the_order_of_the_script(self):
        raw = native.run(LINE, SHORT)
        scripts = by_script(raw.events)
        assert sorted(scripts) == [(0, 0), (1, 0)]
        assert raw.lost_events == 0
        for events in scripts.values():
            assert [(e.cycle, e.op) for e in events] == [divmod(i, 3) for i in range(len(events))]
            assert all(e.start_ns <= e.end_ns for e in events)
            assert all(e.end_ns <= f.start_ns for e, f in pairwise(events))

    def test_what_was_before_the_window_is_there_with_negative_times(self):
        raw = native.run(LINE, SHORT)
        ends = [e.end_ns for e in raw.events if (e.actor, e.op) == (1, 1)]
        assert sum(end <= 0 for end in ends) >= 3
        assert sum(end > 0 for end in ends) == raw.actors[1].passes

    def test_a_log_that_is_full_counts_what_it_loses(self):
        raw = native.run(LINE, replace(SHORT, log_events=8))
        assert {len(events) for events in by_script(raw.events).values()} == {4}
        assert raw.lost_events > 0

    def test_nothing_is_logged_where_nobody_asks(self):
        raw = native.run(LINE, replace(SHORT, log_events=0))
        assert raw.events == ()
        assert raw.lost_events == 0

    def test_threads_that_do_not_join_have_a_log_each(self):
        alone = replace(STEP, threads=2, joined=False, script=parse_script("pass.rest(1000)"))
        raw = native.run(Mix((alone,)), SHORT)
        assert sorted(by_script(raw.events)) == [(0, 0), (0, 1)]

    def test_a_team_has_one_log(self):
        team = replace(STEP, threads=2, script=parse_script("pass.rest(1000)"))
        assert sorted(by_script(native.run(Mix((team,)), SHORT).events)) == [(0, 0)]

    def test_other_processes_log_too(self):
        mix = replace(LINE, actors=(replace(FIRST, process="own"), SINK))
        assert sorted(by_script(native.run(mix, SHORT).events)) == [(0, 0), (1, 0)]

    @pytest.mark.hw
    def test_a_pass_takes_no_longer_with_a_log(self):
        """Pairs of runs, one after the other: the median of the ratios is within one percent."""
        mix = Mix((replace(STEP, script=parse_script("pass")),))
        settings = native.RunSettings(window_s=0.1, warm_s=0.02)
        ratios = []
        for _ in range(15):
            without, logged = (
                native.run(mix, replace(settings, log_events=n)).actors[0].seconds_per_pass
                for n in (0, 4000)
            )
            ratios.append(logged / without)
        assert statistics.median(ratios) < 1.01


class TestText:
    def test_events_come_back(self):
        events = [
            Event(0, 0, 0, 0, -5_000_000_000, -4_999_999_000),
            Event(0, 0, 1, 0, -4_999_998_000, 3),
            Event(65535, 7, 2, 1 << 31, 1 << 40, 1 << 41),
        ]
        assert decode(encode(events)) == events
        assert decode(encode([])) == []

    @pytest.mark.parametrize("text", ["", "!", "AAAA", encode([Event(0, 0, 0, 0, 1, 2)])[:-8]])
    def test_what_is_no_log_is_refused(self, text):
        with pytest.raises(ValueError, match=r"not a log|base64|padding|Only|Incorrect|Excess"):
            decode(text)


class TestWarmUp:
    def test_the_window_opens_after_the_passes(self):
        raw = native.run(LINE, replace(SHORT, warm_passes=7))
        ends = [e.end_ns for e in raw.events if (e.actor, e.op) == (1, 1)]
        assert sum(end <= 0 for end in ends) >= 7

    def test_passes_that_never_come_end_at_the_deadline(self):
        stuck = replace(LINE, pools=(Pool("a", 0), Pool("b", 0)))
        with pytest.raises(native.RunFailedError, match="warm-up") as caught:
            native.run(stuck, replace(SHORT, deadline_s=0.1))
        assert caught.value.stage == "warm"

    def test_threads_that_do_not_join_are_each_waited_for(self):
        alone = replace(STEP, threads=2, joined=False, script=parse_script("pass.rest(1000)"))
        raw = native.run(Mix((alone,)), replace(SHORT, warm_passes=4))
        for events in by_script(raw.events).values():
            assert sum(e.op == 0 and e.end_ns <= 0 for e in events) >= 4


class TestFairPools:
    """Holders that put a token back and take it again at once, and others that wait for it."""

    def shares(self, fair, priorities):
        actors = tuple(
            replace(STEP, priority=p, script=parse_script("take(lock).pass.put(lock)"))
            for p in priorities
        )
        mix = Mix(actors, (Pool("lock", 1, fair=fair),))
        settings = native.RunSettings(window_s=0.05, warm_s=0.01, min_passes=0)
        raw = native.run(mix, settings)
        passes = [raw.actors[i].passes for i in range(len(actors))]
        return [n / sum(passes) for n in passes]

    def test_a_fair_pool_serves_in_the_order_of_arrival(self):
        assert min(self.shares(True, (0, 0, 0))) > 0.2

    def test_a_higher_priority_goes_first(self):
        # Of several that are before it one always waits, unless the host keeps all from running.
        *before, last = self.shares(True, (1, 1, 1, 1, 0))
        assert last < min(before) / 2
