"""The engine runs mixes: exact passes, windows, pools, courtesy, processes and evidence."""

import os
import signal
import struct
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bench import native
from bench.errors import UsageError
from bench.mix import Actor, FileRef, Mix, Pool, parse_script

MIB = 1 << 20
TOY = Actor("toy", "scalar", "base", 2, MIB, (("count", 16), ("chunk", 65536)))
QUICK = native.RunSettings(window_s=0.03, warm_s=0.002)
cpus_allowed = sorted(os.sched_getaffinity(0))
multicore = pytest.mark.skipif(len(cpus_allowed) < 2, reason="needs two CPUs")


def hash64(seed, counter):
    """The engine's counter-based random bits, written again from their definition."""
    mask = 2**64 - 1
    x = (seed + 0x9E3779B97F4A7C15 * (counter + 1)) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def in_child(program):
    """Run a program that may take the process along, or changes it for good."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def doubled(once):
    raw = once.arrays["doubled"][0]
    return struct.unpack(f"{len(raw) // 8}Q", raw)


class TestDescriptor:
    def test_choice_size_number_and_file_parameters_reach_the_kernel(self, toy, tmp_path):
        salt = tmp_path / "salt"
        salt.write_bytes(b"abc")
        params = (
            ("count", 8),
            ("chunk", 8192),
            ("mode", "salted"),
            ("input", FileRef("d", str(salt))),
        )
        once = toy.run_once(replace(TOY, params=params), seed=7)
        assert doubled(once) == tuple(2 * (hash64(7, i) + 294) % 2**64 for i in range(8))

    def test_registry_shows_what_the_descriptor_says(self, toy):
        kernel = toy.kernels()["toy"]
        assert [(p.name, p.kind, p.default) for p in kernel.params] == [
            ("mode", "choice", "plain"),
            ("chunk", "size", 65536),
            ("count", "u64", 32),
            ("input", "file", ""),
        ]
        assert (kernel.sharing, kernel.memory, kernel.op) == ("team", "churn", "chunk")
        assert kernel.phases == ("map", "touch")

    @pytest.mark.parametrize("threads", [1, 2, 3, 5])
    def test_team_stages_give_the_same_result_for_any_thread_count(self, toy, threads):
        once = toy.run_once(replace(TOY, threads=threads), passes=2)
        assert doubled(once) == tuple(2 * hash64(1, i) % 2**64 for i in range(16))

    def test_kept_churn_region_has_no_array(self, toy):
        assert toy.run_once(TOY).arrays["region"] == (b"", b"")

    @pytest.mark.parametrize(
        ("params", "named"),
        [
            ((("cuont", 4),), "count"),
            ((("mode", "plaim"),), "plain"),
            ((("chunk", 1),), "4KiB to 1GiB"),
            ((("count", "many"),), "whole number"),
            ((("input", "text"),), "file"),
        ],
    )
    def test_wrong_parameters_are_named(self, toy, params, named):
        with pytest.raises(UsageError) as caught:
            toy.canonical(replace(TOY, params=params))
        assert named in f"{caught.value} {caught.value.remedy}"

    def test_canonical_drops_defaults(self, toy):
        actor = replace(TOY, params=(("mode", "plain"), ("count", 16), ("chunk", 65536)))
        assert toy.canonical(actor).params == (("count", 16),)

    def test_missing_file_is_named(self, toy):
        actor = replace(TOY, params=(("input", FileRef("d", "/nonexistent/salt")),))
        with pytest.raises(native.RunFailedError, match="/nonexistent/salt"):
            toy.run_once(actor)

    def test_layout_that_cannot_be_met_says_why(self, toy):
        with pytest.raises(UsageError, match="at least"):
            toy.footprint(replace(TOY, size=100))


class TestWindow:
    def test_whole_passes_and_steps_are_counted_inside_the_window(self, toy):
        raw = toy.run(Mix((TOY,)), QUICK)
        actor, threads = raw.actors[0], [raw.threads[i] for i in range(2)]
        assert actor.passes >= 3
        assert raw.window_s >= 0.03
        steps = sum(thread.steps for thread in threads)
        # Two stages of 16; a pass that straddles each edge may add at most one more each.
        assert actor.passes * 32 <= steps + 64
        assert steps <= (actor.passes + 2) * 32
        assert sum(sum(t.bins) for t in threads) <= steps + 1

    def test_value_times_passes_is_about_the_window_for_a_sliced_actor(self):
        mix = Mix((Actor("scan", "scalar", "base", 1, MIB),))
        raw = native.run(mix, QUICK)
        assert raw.actors[0].seconds_per_pass * raw.actors[0].passes == pytest.approx(raw.window_s)
        assert raw.threads[0].step_ns * 1e-9 <= raw.window_s

    def test_window_waits_for_three_passes(self):
        mix = Mix((Actor("spin", "scalar", "base", 1, 0),))
        raw = native.run(mix, replace(QUICK, window_s=1e-6))
        assert raw.actors[0].passes >= 3

    @pytest.mark.parametrize("joined", [False, True])
    def test_a_threads_passes_are_whole_ones_in_the_window(self, joined):
        """Not those that began before it opened or were cut off by its end."""
        actor = Actor("sleep", "scalar", "base", 1, 0, (("steps", 5),), joined=joined)
        slow = replace(actor, params=(("steps", 5), ("step_us", 4000)))
        raw = native.run(Mix((slow,)), replace(QUICK, warm_s=0.01))
        thread, steps = raw.threads[0], raw.actors[0].work.n_steps
        # The window opens in the middle of a pass and closes at the end of one.
        assert thread.passes == int(thread.steps / steps)
        assert thread.steps > thread.passes * steps
        assert raw.actors[0].passes >= 3

    def test_fixed_passes_are_exact(self, toy):
        raw = toy.run(Mix((TOY,)), replace(QUICK, fixed_passes=5))
        assert raw.actors[0].passes == 5

    @pytest.mark.parametrize("joined", [False, True])
    def test_fixed_passes_of_a_sliced_actor_are_exact(self, joined):
        actor = Actor("scan", "scalar", "base", 2, MIB, joined=joined)
        raw = native.run(Mix((actor,)), replace(QUICK, fixed_passes=4))
        assert raw.actors[0].passes == pytest.approx(4)
        steps = raw.actors[0].work.n_steps
        assert [raw.threads[i].steps for i in range(2)] == [4 * steps] * 2

    def test_deadline_closes_the_window_and_is_reported(self):
        slow = Actor("sleep", "scalar", "base", 1, 0, (("step_us", 50000),))
        raw = native.run(Mix((slow,)), replace(QUICK, min_passes=1000, deadline_s=0.1))
        assert raw.deadline_hit

    @pytest.mark.parametrize("warm_passes", [0, 1])
    def test_a_deadline_names_the_pools_that_were_waited_for(self, warm_passes):
        spin = Actor("spin", "scalar", "base", 1, 0)
        mix = Mix(
            (
                replace(spin, role="measured", script=parse_script("take(gpu).pass")),
                replace(spin, role="background", script=parse_script("take(lock).pass.put(lock)")),
            ),
            (Pool("gpu", 0, fair=True), Pool("lock", 1, fair=True)),
        )
        settings = replace(QUICK, warm_passes=warm_passes, deadline_s=0.1)
        if warm_passes:
            with pytest.raises(native.RunFailedError, match=r"waiting: 1 actor for gpu$"):
                native.run(mix, settings)
        else:
            raw = native.run(mix, settings)
            assert raw.deadline_hit
            assert [raw.pools[i].stuck for i in range(2)] == [1, 0]

    def test_clock_and_histogram_agree(self):
        raw = native.run(
            Mix((Actor("sleep", "scalar", "base", 1, 0, (("step_us", 2000),)),)), QUICK
        )
        edges = native.bin_edges_ns()
        occupied = [i for i, count in enumerate(raw.threads[0].bins) if count]
        # A sleep is never shorter than asked; the bin that holds it ends above that.
        assert edges[occupied[0] + 1] >= 2e6
        assert edges == tuple(sorted(edges))

    def test_probe_texts_are_read_before_and_after(self):
        mix = Mix((Actor("spin", "scalar", "base", 1, 0),))
        raw = native.run(mix, QUICK, probes=("/proc/self/stat", "/nonexistent"))
        before, after = raw.probes["/proc/self/stat"]
        assert before.startswith(str(os.getpid()))
        assert after
        assert raw.probes["/nonexistent"] == ("", "")
        assert raw.probe_s >= raw.window_s


class TestScripts:
    def test_a_mutex_keeps_two_actors_apart(self, toy):
        script = parse_script("take(m).pass.put(m)")
        resting = (*script, *parse_script("rest(100000)"))
        mix = Mix(
            (
                replace(TOY, threads=1, script=script),
                replace(TOY, threads=1, script=resting),
            ),
            (Pool("m", 1),),
        )
        raw = toy.run(mix, QUICK)
        active = sum(raw.threads[i].step_ns for i in range(2)) * 1e-9
        assert active <= raw.window_s * 1.02
        assert raw.pools[0].takes >= 6
        assert abs(raw.pools[0].takes - raw.pools[0].puts) <= 1

    def test_figures_of_a_pool_are_of_the_window_alone(self):
        """Not of the warm-up before it, which is ten times as long."""
        script = parse_script("take(m).pass.put(m)")
        actor = Actor("spin", "scalar", "base", 1, 0, (("steps", 10),), script=script)
        raw = native.run(
            Mix((actor, actor), (Pool("m", 1),)), replace(QUICK, warm_s=0.3, window_s=0.03)
        )
        threads, pool = [raw.threads[i] for i in range(2)], raw.pools[0]
        passes = sum(raw.actors[i].passes for i in range(2))
        assert abs(pool.takes - passes) <= 3
        assert abs(pool.puts - passes) <= 3
        assert pool.takes + pool.puts == sum(thread.acquisitions for thread in threads)
        assert pool.wait_ns == sum(thread.wait_ns for thread in threads) > 0
        assert pool.wait_ns <= 2 * raw.window_s * 1e9
        assert 0 < pool.blocked <= pool.takes + pool.puts + 2

    def test_rest_is_counted_and_lengthens_the_value(self, toy):
        script = parse_script("pass.rest(2000000)")
        raw = toy.run(Mix((replace(TOY, script=script),)), QUICK)
        actor = raw.actors[0]
        assert actor.seconds_per_pass >= actor.active_seconds_per_pass + 0.002
        assert raw.threads[0].rest_ns > 0

    def test_a_channel_of_items_and_space_keeps_producer_and_consumer_in_step(self, toy):
        producer = replace(TOY, threads=1, script=parse_script("take(space).pass.put(items)"))
        consumer = replace(TOY, threads=1, script=parse_script("take(items).pass.put(space)"))
        mix = Mix((producer, consumer), (Pool("items", 0), Pool("space", 2)))
        raw = toy.run(mix, QUICK)
        assert abs(raw.actors[0].passes - raw.actors[1].passes) <= 4

    def test_a_full_pool_makes_a_put_wait(self, toy):
        filler = replace(TOY, threads=1, script=parse_script("pass.put(full)"))
        drain = replace(TOY, threads=1, script=parse_script("take(full).pass.rest(3000000)"))
        raw = toy.run(Mix((filler, drain), (Pool("full", 0, 1),)), QUICK)
        assert raw.threads[0].wait_ns > 0

    def test_pause_blocks_while_a_higher_priority_is_active(self, toy):
        first = replace(TOY, threads=1, priority=1)
        second = replace(TOY, threads=1, courtesy="pause", role="background")
        raw = toy.run(Mix((first, second)), QUICK)
        # It may have begun a step before the other became active for the first time.
        assert raw.threads[1].steps < 0.1 * raw.threads[0].steps
        assert raw.threads[1].courtesy_ns > 0

    def test_a_pause_is_over_when_all_threads_of_those_above_are_idle(self):
        """Also where threads of theirs that only follow a leader have paused themselves."""
        spin = Actor("spin", "scalar", "base", 1, 0, (("steps", 10),))
        mix = Mix(
            (
                replace(spin, priority=2, script=parse_script("pass.rest(1000000)")),
                replace(
                    spin,
                    threads=2,
                    joined=True,
                    priority=1,
                    courtesy="pause",
                    script=parse_script("pass.rest(20000000)"),
                ),
                replace(spin, courtesy="pause", role="background"),
            )
        )
        raw = native.run(mix, replace(QUICK, warm_s=0.3, window_s=0.1))
        follower, low = raw.threads[2], raw.threads[3]
        assert low.steps > follower.steps > 0

    def test_fixed_work_that_is_done_keeps_nobody_waiting(self):
        spin = Actor("spin", "scalar", "base", 1, 0, (("steps", 10),))
        mix = Mix((replace(spin, priority=1), replace(spin, courtesy="pause")))
        raw = native.run(mix, replace(QUICK, fixed_passes=3, deadline_s=2))
        assert [raw.actors[i].passes for i in range(2)] == [3, 3]

    def test_yield_gives_way_but_goes_on(self, toy):
        first = replace(TOY, threads=1, priority=1)
        second = replace(TOY, threads=1, courtesy="yield")
        raw = toy.run(Mix((first, second)), QUICK)
        assert raw.threads[1].steps > 0
        assert raw.threads[1].courtesy_ns > 0

    def test_pace_is_kept_and_the_rate_recorded(self):
        rate = 200e6
        actor = Actor("scan", "scalar", "base", 1, MIB, pace=rate)
        raw = native.run(Mix((actor,)), replace(QUICK, window_s=0.1))
        useful = raw.actors[0].work.read_bytes
        assert useful / raw.actors[0].seconds_per_pass <= rate * 1.05


class TestProcesses:
    def test_process_twin_runs_the_same_work_in_address_spaces_of_its_own(self, toy):
        raw = toy.run(Mix((replace(TOY, process="each"),)), QUICK)
        assert raw.actors[0].passes >= 3
        assert raw.actors[0].used_bytes == 2 * toy.footprint(TOY).used[0] - 2 * 65536 * 2

    def test_labels_decide_who_shares_an_address_space(self, toy):
        mix = Mix((replace(TOY, process="a"), replace(TOY, process="b")))
        raw = toy.run(mix, QUICK)
        assert all(raw.actors[i].passes >= 3 for i in range(2))

    def test_pools_work_between_processes(self, toy):
        script = parse_script("take(m).pass.put(m)")
        mix = Mix(
            (
                replace(TOY, threads=1, process="a", script=script),
                replace(
                    TOY, threads=1, process="b", script=(*script, *parse_script("rest(500000)"))
                ),
            ),
            (Pool("m", 1),),
        )
        raw = toy.run(mix, QUICK)
        assert sum(raw.threads[i].step_ns for i in range(2)) * 1e-9 <= raw.window_s * 1.02

    def test_a_killed_process_ends_the_run_with_its_signal(self):
        program = (
            "from bench import native\n"
            "from bench.mix import *\n"
            "a = Actor('spin', 'scalar', 'base', 1, 0, process='a')\n"
            "b = Actor('spin', 'scalar', 'base', 1, 0, process='b')\n"
            "try:\n"
            "    native.run(Mix((a, b)), native.RunSettings(window_s=20))\n"
            "except native.RunFailedError as error:\n"
            "    print(error)\n"
        )
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        children = Path(f"/proc/{child.pid}/task/{child.pid}/children")
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and len(children.read_text().split()) < 2:
            time.sleep(0.02)
        os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
        assert "signal 9" in child.communicate(timeout=30)[0]

    def test_no_process_outlives_a_killed_parent(self):
        program = (
            "from bench import native\n"
            "from bench.mix import *\n"
            "a = Actor('spin', 'scalar', 'base', 1, 0, process='each')\n"
            "native.run(Mix((a,)), native.RunSettings(window_s=60))\n"
        ).replace("1, 0", "2, 0")
        child = subprocess.Popen([sys.executable, "-c", program])
        children = Path(f"/proc/{child.pid}/task/{child.pid}/children")
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and len(children.read_text().split()) < 2:
            time.sleep(0.02)
        pids = children.read_text().split()
        child.kill()
        child.wait()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and any(Path(f"/proc/{pid}").exists() for pid in pids):
            time.sleep(0.02)
        assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


class TestMemory:
    def test_used_bytes_and_offsets_are_equal_across_policies(self):
        used = {
            policy: native.footprint(Actor("scan", "scalar", policy, 2, 64 * MIB)).used
            for policy in ("base", "thp", "2m", "1g")
        }
        assert len(set(used.values())) == 1

    def test_mapping_is_rounded_up_to_the_policys_page(self):
        for name, policy in native.policies().items():
            mapped = native.footprint(Actor("scan", "scalar", name, 1, 5 * MIB)).mapped_bytes
            assert mapped % policy.page_bytes == 0
            assert mapped - native.footprint(Actor("scan", "scalar", name, 1, 5 * MIB)).used[0] < (
                policy.page_bytes
            )

    @pytest.mark.parametrize("threads", [1, 2, 3, 7])
    def test_an_arena_fits_the_size_asked_for(self, threads):
        for op in ("read", "copy", "triad"):
            actor = Actor("scan", "scalar", "base", threads, 8 * MIB, (("op", op),))
            assert native.footprint(actor).used[0] <= 8 * MIB

    def test_threads_on_two_nodes_have_a_segment_each(self):
        actor = Actor("scan", "scalar", "base", 4, 8 * MIB)
        footprint = native.footprint(actor, nodes=[0, 0, 3, 3])
        assert len(footprint.used) == 2
        assert abs(footprint.used[0] - footprint.used[1]) < 65536

    def test_a_shared_array_on_two_nodes_has_an_interleaved_segment(self, toy):
        assert len(toy.footprint(TOY, nodes=[0, 1]).used) == 3

    def test_evidence_says_what_was_obtained_before_and_after(self):
        raw = native.run(Mix((Actor("scan", "scalar", "base", 1, 4 * MIB),)), QUICK)
        for evidence in (raw.actors[0].before, raw.actors[0].after):
            assert evidence.total_bytes >= 4 * MIB - 16384
            assert evidence.matching_bytes == evidence.known_bytes == evidence.total_bytes

    def test_churn_evidence_after_the_window_comes_from_its_faults(self, toy):
        raw = toy.run(Mix((TOY,)), QUICK)
        after = raw.actors[0].after
        assert native.text(after.source) == "minflt"
        assert after.matching_bytes >= 0.99 * after.known_bytes > 0

    def test_a_wrong_result_fails_the_run_and_says_where(self, toy):
        wrong = replace(TOY, params=(("mode", "wrong"),))
        with pytest.raises(native.RunFailedError, match="number 3 is wrong") as caught:
            toy.run(Mix((wrong,)), QUICK)
        assert caught.value.stage == "check"

    def test_kept_arrays_are_released_without_the_mix(self):
        """The caller's mix and its values may be gone by then."""
        in_child(
            "from bench import native\n"
            "from bench.mix import *\n"
            "actor = Actor('spin', 'scalar', 'base', 1, 0)\n"
            "raw = native.run(Mix((actor,)), native.RunSettings(fixed_passes=1), keep=True)\n"
            "raw.spec.actors[0].kernel = raw.spec.ffi.NULL\n"
            "native.module().lib.ps_release(raw.kept)\n"
        )

    def test_pinned_threads_run_where_they_were_put(self):
        cpu = cpus_allowed[-1]
        raw = native.run(Mix((Actor("spin", "scalar", "base", 1, 0),)), QUICK, cpus=[[cpu]])
        assert (raw.threads[0].cpu_before, raw.threads[0].cpu_after) == (cpu, cpu)

    def test_a_cpu_that_is_not_there_is_named(self):
        with pytest.raises(native.RunFailedError, match="CPU 4000"):
            native.run(Mix((Actor("spin", "scalar", "base", 1, 0),)), QUICK, cpus=[[4000]])


# As a container's default profile does without --cap-add SYS_NICE.
REFUSING = """
import ctypes, struct
from bench import native
from bench.mix import *

def refuse(*calls):
    # Load the call's number; EPERM where it is one of these, else allow.
    rows = [(0x20, 0, 0, 0)]
    rows += [(0x15, len(calls) - i, 0, call) for i, call in enumerate(calls)]
    rows += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050001)]
    code = b"".join(struct.pack("HBBI", *row) for row in rows)
    data = ctypes.create_string_buffer(code)
    filter = struct.pack("HxxxxxxP", len(rows), ctypes.addressof(data))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # no new privileges
    assert libc.prctl(22, 2, filter, 0, 0) == 0  # a filter of system calls

MBIND, MOVE_PAGES = 237, 279
actor = Actor("scan", "scalar", "base", 1, 1 << 20)
settings = native.RunSettings(window_s=0.01, warm_s=0)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls are x86-64's")
class TestNodes:
    def test_a_page_whose_node_cannot_be_told_is_unknown_and_not_right(self):
        told = in_child(
            REFUSING + "refuse(MOVE_PAGES)\n"
            "raw = native.run(Mix((actor,)), settings, nodes=[[0]])\n"
            "row = raw.actors[0].before\n"
            "print(row.wrong_node_bytes, row.unknown_node_bytes, row.total_bytes)\n"
        )
        wrong, unknown, total = map(int, told.split())
        assert (wrong, unknown) == (0, total)

    def test_memory_that_was_not_bound_is_on_no_unknown_node(self):
        raw = native.run(Mix((Actor("scan", "scalar", "base", 1, MIB),)), QUICK)
        before = raw.actors[0].before
        assert (before.wrong_node_bytes, before.unknown_node_bytes) == (0, 0)

    def test_a_binding_that_is_forbidden_says_what_would_allow_it(self):
        said = in_child(
            REFUSING + "refuse(MBIND)\n"
            "try:\n"
            "    native.run(Mix((actor,)), settings, nodes=[[0]])\n"
            "except native.RefusedError as error:\n"
            "    print(error.stage, error)\n"
        )
        assert said.startswith("map ")
        assert "--cap-add SYS_NICE" in said


class TestProbes:
    @multicore
    def test_pingpong_and_shootdown_measure_something_and_restore_the_affinity(self):
        a, b = cpus_allowed[:2]
        before = os.sched_getaffinity(0)
        assert native.pingpong_ns(a, b) > 10
        alone, beside = native.shootdown_cost_ns(a, b)
        assert alone > 0
        assert beside > 0
        assert native.add_rate(a) > 0.1
        assert os.sched_getaffinity(0) == before

    def test_clock_resolution_is_measured(self):
        assert 1 <= native.clock_resolution_ns() < 1_000_000
