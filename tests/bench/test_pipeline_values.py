"""``--set`` and ``--sweep`` of a pipeline, and its remedies."""

from dataclasses import replace

import pytest

from bench import native
from bench.errors import UsageError
from bench.mix import Actor, Pool
from bench.pipeline import Pipeline, Task
from bench.pipelineremedies import treat
from bench.pipelinevalues import combinations, parse_sweep, settable, with_value, with_values
from bench.remedies import Setting
from bench.resources import read_resources

SCAN = Actor("scan", "scalar", "base", 4, 1 << 20, pin="none")
STORM = Actor("storm", "scalar", "base", 1, 4 << 20, pin="none")
LINE = Pipeline(
    "line",
    (
        Task("mv", SCAN, threads=4, takes=(("pw", 1),), puts=(("pw", 1),)),
        Task("gpu", seconds=0.1, threads=0, after=("mv",)),
        Task("prep", replace(SCAN, threads=1, priority=2), after=("mv",), priority=2, workers=2),
        Task("free", STORM, after=("prep", "gpu"), workers=2),
    ),
    (Pool("pw", 3, 3),),
    items=5,
    in_flight=2,
)
SETTING = Setting(native, read_resources(), tuple(native.policies()), lambda policy: "")


class TestValues:
    @pytest.mark.parametrize(
        ("setting", "found"),
        [
            ("pw=7", lambda line: line.pools == (Pool("pw", 7, 7),)),
            ("items=2", lambda line: line.items == 2),
            ("in_flight=9", lambda line: line.in_flight == 9),
            ("bandwidth=2GB/s", lambda line: line.bandwidth == 2e9),
            ("gpu.seconds=25ms", lambda line: line.task("gpu").seconds == 0.025),
            ("gpu.seconds=2", lambda line: line.task("gpu").seconds == 2),
            ("gpu.jitter=20%", lambda line: line.task("gpu").jitter == 0.2),
            ("gpu.traffic=1GB/s", lambda line: line.task("gpu").traffic == 1e9),
            ("mv.threads=2", lambda line: line.task("mv").threads == 2),
            ("mv.threads=2", lambda line: line.task("mv").actor.threads == 2),
            ("mv.pages=thp", lambda line: line.task("mv").actor.policy == "thp"),
            ("mv.size=8MiB", lambda line: line.task("mv").actor.size == 8 << 20),
            ("mv.passes=3", lambda line: line.task("mv").passes == 3),
            ("prep.workers=1", lambda line: line.task("prep").workers == 1),
            ("prep.priority=5", lambda line: line.task("prep").actor.priority == 5),
            ("mv.courtesy=yield", lambda line: line.task("mv").actor.courtesy == "yield"),
        ],
    )
    def test_one_value_changes(self, setting, found):
        assert not found(LINE)
        assert found(with_values(LINE, [setting]))

    def test_a_capacity_of_its_own_stays(self):
        line = replace(LINE, pools=(Pool("pw", 3, 8),))
        assert with_value(line, "pw", "5").pools == (Pool("pw", 5, 8),)

    @pytest.mark.parametrize("name", ["px", "gpu.pages", "mv.seconds", "nobody.threads"])
    def test_what_is_not_there_is_refused_with_what_is(self, name):
        with pytest.raises(UsageError) as caught:
            with_value(LINE, name, "1")
        assert name in str(caught.value)
        assert caught.value.remedy == f"known: {', '.join(settable(LINE))}"

    @pytest.mark.parametrize(
        ("name", "text"), [("pw", "-1"), ("items", "0"), ("mv.threads", "0"), ("gpu.seconds", "x")]
    )
    def test_wrong_values_are_refused(self, name, text):
        with pytest.raises(UsageError):
            with_value(LINE, name, text)

    def test_all_that_can_be_set_can_be_set(self):
        sample = {"pages": "thp", "size": "2MiB", "courtesy": "pause", "process": "own"}
        sample |= {"traffic": "1GB/s", "bandwidth": "1GB/s"}
        for name in settable(LINE):
            assert with_value(LINE, name, sample.get(name.rpartition(".")[2], "7")) != LINE

    def test_sweeps_list_and_cross(self):
        assert parse_sweep("pw=1..4") == ["pw=1", "pw=2", "pw=3", "pw=4"]
        assert parse_sweep("pw=1..16:5,20") == ["pw=1", "pw=6", "pw=11", "pw=16", "pw=20"]
        assert combinations(["pw=1,2", "mv.pages=base,thp"]) == [
            ("pw=1", "mv.pages=base"),
            ("pw=1", "mv.pages=thp"),
            ("pw=2", "mv.pages=base"),
            ("pw=2", "mv.pages=thp"),
        ]
        assert combinations([]) == [()]

    @pytest.mark.parametrize("text", ["pw", "pw=", "=3", "pw=a..b", "pw=3..1", "pw=1,,2"])
    def test_what_is_no_sweep_is_refused(self, text):
        with pytest.raises(UsageError):
            parse_sweep(text)


def treated(spec, line=LINE):
    made = treat(line, spec, SETTING)
    assert made.pipeline is not None, made.reason
    return made.pipeline


class TestRemedies:
    def test_a_mutex_is_a_pool_around_the_work_of_the_tasks_named(self):
        line = treated("mutex:mv,prep")
        assert line.pools[-1] == Pool("interlock", 1, 1)
        assert line.task("mv").takes == (("pw", 1), ("interlock", 1))
        assert line.task("mv").puts == (("interlock", 1), ("pw", 1))
        assert line.task("prep").takes == (("interlock", 1),)
        assert line.task("free") == LINE.task("free")

    def test_a_lock_without_names_is_for_all_that_moves_memory(self):
        line = treated("sem:2")
        assert line.pools[-1].tokens == 2
        locked = [task.name for task in line.tasks if ("interlock", 1) in task.takes]
        assert locked == ["mv", "prep", "free"]
        streams = replace(LINE, tasks=(*LINE.tasks, Task("s", seconds=1.0, traffic=1e9)))
        assert ("interlock", 1) in treated("mutex", streams).task("s").takes

    def test_page_policies_and_caps_are_for_all_or_for_those_named(self):
        assert [t.actor.policy for t in treated("thp").tasks if t.actor] == ["thp"] * 3
        line = treated("thp:mv")
        assert [t.actor.policy for t in line.tasks if t.actor] == ["thp", "base", "base"]
        capped = treated("cap:2:mv").task("mv")
        assert (capped.threads, capped.actor.threads) == (2, 2)

    def test_lower_priorities_give_way(self):
        line = treated("yield")
        courtesies = {t.name: t.actor.courtesy for t in line.tasks if t.actor}
        assert courtesies == {"mv": "yield", "prep": "proceed", "free": "yield"}
        assert all(not t.actor.script for t in line.tasks if t.actor)

    def test_memory_is_kept(self):
        assert dict(treated("pool").task("free").actor.params)["method"] == "pool"

    def test_remedies_compose(self):
        line = treated("mutex:mv+thp:mv")
        assert line.task("mv").actor.policy == "thp"
        assert ("interlock", 1) in line.task("mv").takes

    @pytest.mark.parametrize("spec", ["mutex:gpu,nobody", "mutx", "apart", "cap", "sem:0"])
    def test_unknown_words_are_refused(self, spec):
        with pytest.raises(UsageError):
            treat(LINE, spec, SETTING)

    @pytest.mark.parametrize(
        ("spec", "why"),
        [("sem:9:mv", "at once at most"), ("cap:4", "no actor"), ("pool:mv", "changes nothing")],
    )
    def test_what_would_change_nothing_says_why(self, spec, why):
        made = treat(LINE, spec, SETTING)
        assert made.pipeline is None
        assert why in made.reason

    def test_nothing_is_kept_apart_where_nothing_is_done(self):
        line = replace(LINE, tasks=(*LINE.tasks, Task("send", after=("free",))))
        assert "send" in treat(line, "mutex:send,mv", SETTING).reason
