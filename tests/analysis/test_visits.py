"""From a log of operations to items at tasks, pools in use, TIMELINE lines and seconds per job."""

import json
import math
import re
import uuid
from dataclasses import replace

import pytest

from analysis import calibration
from analysis.proxy import Sampled, job_blocks, setting_result, throughput
from analysis.rates import Alone
from analysis.timelog import timeline
from analysis.visits import Layout, LostEventsError, events_of, pool_use, visits
from bench.errors import PagestormError, UsageError
from bench.mix import Actor, Mix, Pool, mix_name, parse_script
from bench.passlog import Event, encode

MS = 1_000_000
SPIN = Actor("spin", "scalar", "base", 1, 0, pin="none")


def actor(script):
    return Actor("spin", "scalar", "base", 1, 0, script=parse_script(script))


# Two workers of `a`, which share a pool of two, hand items to `b`, which gathers two for a job.
MIX = Mix(
    (
        actor("take(start,1).take(w,1).pass.put(w,1).put(a_to_b,1)"),
        actor("take(start,1).take(w,1).pass.put(w,1).put(a_to_b,1)"),
        actor("take(a_to_b,1).rest(5).put(b_to_c,1)"),
        actor("take(b_to_c,2).pass.put(end,1)"),
        actor("take(end,1).pass.put(start,2)"),
    ),
    (
        Pool("w", 2),
        Pool("start", 4),
        Pool("a_to_b", 0),
        Pool("b_to_c", 0),
        Pool("end", 0),
    ),
)
LAYOUT = Layout(
    mix_name(MIX),
    ("a", "a", "b", "c", "job"),
    frozenset({"start", "a_to_b", "b_to_c", "end"}),
    frozenset({"c"}),
    2,
    2,
    {"SYNTH_START": "a.start", "SYNTH_END": "a.end", "GPU_START": "b.start", "GPU_END": "b.end"},
)


def played():
    """Worker 1 overtakes worker 0 once: the second item reaches `b` first."""
    rows = []

    def go(which, cycle, *times):
        """Times between operations: one more than there are operations."""
        for op in range(len(times) - 1):
            rows.append(Event(which, 0, op, cycle, times[op] * MS, times[op + 1] * MS))

    go(0, 0, 0, 0, 0, 30, 30, 31)  # item 0: 0 to 30
    go(1, 0, 0, 1, 1, 20, 20, 21)  # item 1: 1 to 20
    go(1, 1, 21, 22, 22, 40, 40, 41)  # item 2
    go(0, 1, 31, 32, 32, 50, 50, 51)  # item 3
    go(2, 0, 0, 22, 27, 28)  # item 1
    go(2, 1, 28, 32, 37, 38)  # item 0
    go(2, 2, 38, 42, 47, 48)  # item 2
    go(2, 3, 48, 52, 57, 58)  # item 3
    go(3, 0, 0, 39, 44, 45)  # job 0
    go(3, 1, 45, 59, 64, 65)  # job 1
    go(4, 0, 0, 46, 47, 47)
    go(4, 1, 47, 66, 67, 67)
    return rows


def line(rows, **changes):
    seconds = {"seconds": 0.02, "passes": 2.0}
    return {
        "log": {"events": encode(rows), "lost": 0},
        "window_s": 0.067,
        "time": "2026-01-01T00:00:00Z",
        "actors": [{"seconds": 0.0, "passes": 0.0}] * 4 + [seconds],
        "pools": {
            name: {"takes": 4, "puts": 4, "blocked": 1, "wait_s": 0.008}
            for name in ("w", "start", "a_to_b", "b_to_c", "end")
        },
        **changes,
    }


class TestVisits:
    def test_items_pass_in_order_of_arrival(self):
        seen = visits(played(), LAYOUT)
        found = {(v.task, v.begin // MS): (v.item, v.job, v.worker) for v in seen}
        assert found["a", 0] == (0, 0, 0)
        assert found["a", 1] == (1, 0, 1)
        assert found["b", 22] == (1, 0, 0)
        assert found["b", 32] == (0, 0, 0)
        assert found["a", 32] == (3, 1, 0)
        assert found["c", 39] == (0, 0, 0)
        assert found["c", 59] == (1, 1, 0)
        assert found["job", 66] == (1, 1, 0)

    def test_waiting_is_no_work(self):
        (first,) = [v for v in visits(played(), LAYOUT) if v.task == "c" and v.job == 0]
        assert (first.ready, first.begin, first.end) == (39 * MS, 39 * MS, 44 * MS)

    def test_work_that_was_cut_off_is_no_visit(self):
        rows = [e for e in played() if (e.actor, e.cycle) != (3, 1) or e.op == 0]
        assert [v.job for v in visits(rows, LAYOUT) if v.task == "c"] == [0]

    def test_a_script_may_hold_several_rounds(self):
        twice = Mix(
            (
                actor("take(start,1).rest(5).put(end,1).take(start,1).rest(9).put(end,1)"),
                actor("take(end,1).pass.put(start,1)"),
            ),
            (Pool("start", 1), Pool("end", 0)),
        )
        layout = Layout(
            mix_name(twice), ("a", "job"), frozenset({"start", "end"}), frozenset(), 1, 1
        )
        rows = [Event(0, 0, op, cycle, 0, 10 * cycle + op) for cycle in range(2) for op in range(6)]
        assert [v.item for v in visits(rows, layout) if v.task == "a"] == [0, 1, 2, 3]

    def test_a_log_that_lost_events_is_refused(self):
        with pytest.raises(LostEventsError, match="3 events"):
            events_of({"log": {"events": encode([]), "lost": 3}})

    def test_pools_in_use(self):
        used = pool_use(played(), LAYOUT, 50 * MS)
        # Of two tokens over 50 ms: one from 0 to 30 and from 32 on, one from 1 to 20, 22 to 40.
        assert used == {"w": pytest.approx((30 + 18 + 19 + 18) / 100)}

    @pytest.mark.parametrize("capacity", [0, 2])
    def test_whoever_wakes_up_before_a_put_is_noted_holds_no_more_than_there_is(self, capacity):
        """Both tokens are out all the time, and every put is noted late."""
        pools = (Pool("w", 2, capacity), *MIX.pools[1:])
        late = [
            Event(which, 0, op, cycle, at * MS, end * MS)
            for which in (0, 1)
            for cycle in range(4)
            for op, at, end in (
                (1, 10 * cycle, 10 * cycle),
                (3, 10 * cycle + 10, 10 * cycle + 13),
            )
        ]
        used = pool_use(late, replace(LAYOUT, mix_name=mix_name(Mix(MIX.actors, pools))), 40 * MS)
        assert used == {"w": pytest.approx(1)}

    def test_pools_are_counted_in_the_window_only(self):
        late = [
            Event(e.actor, 0, e.op, e.cycle, e.start_ns - 10 * MS, e.end_ns - 10 * MS)
            for e in played()
        ]
        used = pool_use(late, LAYOUT, 20 * MS)
        assert used == {"w": pytest.approx((20 + 10 + 8) / 40)}


class TestTimeline:
    def lines(self):
        return [
            text.split(",", 4) for text in timeline(visits(played(), LAYOUT), LAYOUT, "sample 1")
        ]

    def test_lines_are_in_the_order_of_time_and_have_five_parts(self):
        rows = self.lines()
        times = [float(row[1]) for row in rows]
        assert times == sorted(times)
        assert times[0] == 0
        assert all(row[0] == "TIMELINE" and len(row) == 5 for row in rows)
        assert all(str(uuid.UUID(row[3])) == row[3] for row in rows)

    def test_every_task_that_works_starts_and_ends(self):
        rows = self.lines()
        for task, n in (("a", 4), ("b", 4), ("c", 2)):
            for event in ("TASK_START", "TASK_END"):
                mine = [r for r in rows if r[2] == event and f"task={task}," in r[4]]
                assert len(mine) == n
        assert not [row for row in rows if "task=job" in row[4]]

    def test_jobs_and_items_are_told_apart(self):
        rows = [row for row in self.lines() if row[2] == "TASK_START" and "task=a" in row[4]]
        jobs = {row[3] for row in rows}
        assert len(jobs) == 2
        for job in jobs:
            own = [re.search(r"item=(\d+)", row[4])[1] for row in rows if row[3] == job]
            assert sorted(own) == ["0", "1"]
        assert "item" not in next(row[4] for row in self.lines() if "task=c" in row[4])

    def test_the_provers_names_stand_where_the_pipeline_says(self):
        rows = self.lines()
        ends = [(row[1], row[4]) for row in rows if row[2] == "SYNTH_END"]
        assert ends[0] == ("20.000", "partition=1,synth_ms=19")
        first = next(row[4] for row in rows if row[2] == "GPU_START")
        assert first == "worker=0,partition=1"
        assert {row[4].split(",")[0] for row in rows if row[2].startswith("GPU")} == {"worker=0"}
        assert all("gpu_ms=5" in row[4] for row in rows if row[2] == "GPU_END")

    def test_workers_of_the_same_moment_have_different_numbers(self):
        layout = replace(LAYOUT, events={"GPU_START": "a.start", "GPU_END": "a.end"})
        rows = timeline(visits(played(), layout), layout, "s")
        workers = [row.split("worker=")[1][0] for row in rows if "GPU_START" in row]
        assert workers == ["0", "1", "1", "0"]


class TestThroughput:
    def test_six_samples_have_an_interval_of_their_own(self):
        values = [0.1, 0.12, 0.11, 0.13, 0.09, 0.115]
        samples = []
        for i, seconds in enumerate(values):
            made = line(played())
            made["actors"] = [*made["actors"][:-1], {"seconds": seconds, "passes": 2.0}]
            samples.append(Sampled(i, made))
        found = throughput(samples, LAYOUT)
        assert found.of == "samples"
        assert (found.low, found.high, found.n, found.jobs) == (0.09, 0.13, 6, 12)
        assert found.seconds == pytest.approx(0.1125)

    def test_blocks_are_whole_and_begin_with_the_last_job_before_the_window(self):
        ends = [-30, -10, 20, 30, 60, 70, 90]
        rows = [Event(4, 0, 1, i, (end - 1) * MS, end * MS) for i, end in enumerate(ends)]
        assert job_blocks(line(rows), LAYOUT) == pytest.approx([0.02, 0.02])

    def test_few_samples_are_cut_into_blocks(self):
        ends = list(range(0, 1000, 10))
        rows = [Event(4, 0, 1, i, (end - 1) * MS, end * MS) for i, end in enumerate(ends)]
        found = throughput([Sampled(0, line(rows))], LAYOUT)
        assert found.of == "blocks of 2 jobs"
        assert found.low == pytest.approx(0.01)
        assert math.isnan(throughput([Sampled(0, line(played()))], LAYOUT).low)
        assert math.isnan(throughput([], LAYOUT).seconds)

    def test_a_setting_has_times_of_tasks_and_waits_of_pools(self):
        found = setting_result("x", [Sampled(0, line(played()))], LAYOUT, {"a": 0.01, "b": 0.005})
        times = {task.name: task for task in found.tasks}
        assert sorted(times) == ["a", "b", "c"]
        assert times["a"].n == 4
        assert times["a"].median_s == pytest.approx(0.0185)
        assert times["a"].alone_s == 0.01
        assert math.isnan(times["c"].alone_s)
        assert times["b"].at_once == pytest.approx(20 / 67)
        (pool,) = found.pools
        assert (pool.name, pool.tokens, pool.wait_s) == ("w", 2, 0.002)

    def test_settings_are_paired_by_rounds(self):
        def samples(seconds):
            made = line(played())
            made["actors"] = [*made["actors"][:-1], {"seconds": seconds, "passes": 2.0}]
            return made

        base = [Sampled(r, samples(1 + 0.5 * (r % 2))) for r in range(8)]
        half = [Sampled(r, samples((1 + 0.5 * (r % 2)) / 2)) for r in range(8)]
        found = setting_result("half", half, LAYOUT, {}, base).against
        assert found.verdict == "helps"
        assert found.ratio == pytest.approx(0.5)

    def test_a_lost_log_is_said_and_leaves_the_rest(self):
        made = line(played(), log={"events": encode([]), "lost": 7})
        found = setting_result("x", [Sampled(0, made)], LAYOUT, {})
        assert found.throughput.seconds == 0.02
        assert found.tasks == ()
        assert "7 events" in found.notes[0]


class TestCalibration:
    FOUND = calibration.Calibration(
        "line",
        (
            calibration.Checked("pw=1", 1.1, 1.0, 0.9, 1.1),
            calibration.Checked("pw=2", 0.95, 1.0),
            calibration.Checked("pw=3", math.nan, 1.0),
        ),
        {"mv": Alone(0.01, 1e9, 2e9)},
        3e9,
    )

    def test_errors_are_of_what_was_compared(self):
        assert self.FOUND.errors == pytest.approx([0.1, 0.05])
        assert self.FOUND.median_error == pytest.approx(0.075)
        assert self.FOUND.worst_error == pytest.approx(0.1)

    def test_a_file_comes_back(self, tmp_path):
        (tmp_path / "calibration.json").write_text(
            json.dumps(calibration.plain(self.FOUND), allow_nan=False)
        )
        back = calibration.read(tmp_path)
        assert back.costs == self.FOUND.costs
        assert back.errors == self.FOUND.errors
        assert [c.setting for c in back.checked] == ["pw=1", "pw=2", "pw=3"]
        assert calibration.read(tmp_path / "calibration.json").bandwidth == 3e9

    def test_a_missing_or_torn_file_is_named(self, tmp_path):
        with pytest.raises(UsageError, match=r"calibration\.json"):
            calibration.read(tmp_path)
        (tmp_path / "calibration.json").write_text("{")
        with pytest.raises(PagestormError, match="cannot read"):
            calibration.read(tmp_path)


def test_what_only_moves_tokens_before_the_window_ends_before_it():
    mix = Mix(
        (
            actor("take(start,1).pass.put(on,1)"),
            actor("take(on,1).put(end,1)"),
            actor("take(end,1).pass.put(start,1)"),
        ),
        (Pool("start", 1), Pool("on", 0), Pool("end", 0)),
    )
    links = frozenset({"start", "on", "end"})
    layout = Layout(mix_name(mix), ("a", "send", "job"), links, frozenset(), 1, 1)
    times = {(0, 0): -90, (0, 1): -60, (0, 2): -59, (1, 0): -58, (1, 1): -57}
    rows = [Event(a, 0, op, 0, (at - 1) * MS, at * MS) for (a, op), at in times.items()]
    (send,) = [visit for visit in visits(rows, layout) if visit.task == "send"]
    assert (send.ready, send.begin, send.end) == (-58 * MS, -58 * MS, -58 * MS)
