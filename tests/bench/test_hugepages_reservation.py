"""Reserving huge pages and giving exactly those back, whatever happens in between."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from poolkernel import GIB, MIB2, PoolKernel, make_pools

from bench import pool_records, reservation
from bench.errors import HostError
from bench.reservation import leftovers, reserve, undo

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="changes the host's pools: needs root")


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Three nodes, none of them 0, with eight pages of each size."""
    kernel = PoolKernel(make_pools(tmp_path / "host", nodes=(2, 3, 4)))
    monkeypatch.setattr(reservation, "_set_pages", kernel.write)
    monkeypatch.setattr(reservation, "_RELEASE_WAIT_S", 0.0)
    return kernel


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def notes(state):
    return list(state.glob("*.json"))


def test_pages_are_added_for_the_block_only(kernel, state):
    before = kernel.pages()
    with reserve({MIB2: 10}, state, root=kernel.root) as held:
        assert sum(kernel.pages().values()) == sum(before.values()) + 10
        assert sum(held.added.values()) == 10
        assert len(notes(state)) == 1
        assert leftovers([state], kernel.root) == []
    assert kernel.pages() == before
    assert notes(state) == []
    assert held.problems == []


def test_pages_of_one_node(kernel, state):
    before = kernel.pages(GIB)
    with reserve({GIB: 3}, state, node=4, root=kernel.root) as held:
        assert kernel.pages(GIB) == {**before, 4: before[4] + 3}
        assert held.added == {(GIB, 4): 3}
    assert kernel.pages(GIB) == before


def test_two_sizes_at_once(kernel, state):
    before = kernel.pages(MIB2), kernel.pages(GIB)
    with reserve({MIB2: 4, GIB: 2}, state, root=kernel.root):
        assert sum(kernel.pages(GIB).values()) == sum(before[1].values()) + 2
    assert (kernel.pages(MIB2), kernel.pages(GIB)) == before


def test_too_little_contiguous_memory_says_how_much_and_puts_it_back(kernel, state):
    before = kernel.pages(GIB)
    kernel.contiguous = 3
    with (
        pytest.raises(HostError, match="3 of 5 pages of 1GiB on node 2") as refused,
        reserve({GIB: 5}, state, node=2, root=kernel.root),
    ):
        pytest.fail("the block must not run")
    assert "hugepagesz=1G hugepages=5" in refused.value.remedy
    assert kernel.pages(GIB) == before
    assert notes(state) == []


def test_the_second_size_failing_takes_the_first_back(kernel, state):
    before = kernel.pages(MIB2)
    kernel.contiguous = 5
    with (
        pytest.raises(HostError, match="1 of 2 pages of 1GiB"),
        reserve({MIB2: 4, GIB: 2}, state, root=kernel.root),
    ):
        pytest.fail("the block must not run")
    assert kernel.pages(MIB2) == before


def test_not_root_is_told_what_to_do(kernel, state):
    file = kernel.root / "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: path != file)
        with (
            pytest.raises(HostError, match="needs root") as refused,
            reserve({MIB2: 1}, state, root=kernel.root),
        ):
            pytest.fail("the block must not run")
    assert "echo" in refused.value.remedy
    assert refused.value.exit_code == 3


def test_a_size_the_kernel_lacks(kernel, state):
    with (
        pytest.raises(HostError, match="no pool of 64KiB"),
        reserve({65536: 1}, state, root=kernel.root),
    ):
        pytest.fail("the block must not run")


def test_most_of_the_memory_is_refused_before_anything_is_changed(kernel, state):
    (kernel.root / "proc/meminfo").write_text("MemAvailable:  4194304 kB\n")
    with (
        pytest.raises(HostError, match="too little memory"),
        reserve({GIB: 4}, state, root=kernel.root),
    ):
        pytest.fail("the block must not run")
    assert notes(state) == []


def test_pages_the_control_group_forbids_are_not_reserved(kernel, state):
    group = kernel.root / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (kernel.root / "proc/self").mkdir()
    (kernel.root / "proc/self/cgroup").write_text("0::/\n")
    (kernel.root / "proc/self/mountinfo").write_text(
        "34 24 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    )
    (group / "hugetlb.2MB.max").write_text(f"{4 * MIB2}\n")
    (group / "hugetlb.2MB.current").write_text("0\n")
    with (
        pytest.raises(HostError, match="allows 4 more pages"),
        reserve({MIB2: 5}, state, root=kernel.root),
    ):
        pytest.fail("the block must not run")


@pytest.mark.parametrize(
    ("number", "raised"),
    [
        (signal.SIGINT, KeyboardInterrupt),
        (signal.SIGTERM, SystemExit),
        (signal.SIGHUP, SystemExit),
    ],
)
def test_signals_give_the_pages_back_and_still_end_the_run(kernel, state, number, raised):
    before, handler = kernel.pages(), signal.getsignal(number)
    with pytest.raises(raised), reserve({MIB2: 10}, state, root=kernel.root):
        signal.raise_signal(number)
    assert kernel.pages() == before
    assert notes(state) == []
    assert signal.getsignal(number) is handler


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_between_the_pool_and_its_note_waits(kernel, state, number, monkeypatch):
    before = kernel.pages()

    def interrupted(path, pages):
        kernel.write(path, pages)
        signal.raise_signal(number)

    seen = []

    def watched(held, root):
        seen.append([share.added for share in held.record.shares])
        give_back(held, root)

    give_back = reservation._give_back
    monkeypatch.setattr(reservation, "_give_back", watched)
    monkeypatch.setattr(reservation, "_set_pages", interrupted)
    with (
        pytest.raises((KeyboardInterrupt, SystemExit)),
        reserve({MIB2: 10}, state, root=kernel.root),
    ):
        pytest.fail("the block must not run")
    assert sum(seen[0]) == 10
    assert kernel.pages() == before
    assert notes(state) == []


def test_a_failure_in_the_block_gives_the_pages_back(kernel, state):
    before = kernel.pages()
    with pytest.raises(ZeroDivisionError), reserve({MIB2: 10}, state, root=kernel.root):
        raise ZeroDivisionError
    assert kernel.pages() == before


def test_pages_someone_else_adds_meanwhile_stay(kernel, state):
    before = kernel.pages()
    with reserve({MIB2: 10}, state, node=2, root=kernel.root):
        file = kernel.root / "sys/devices/system/node/node2/hugepages/hugepages-2048kB/nr_hugepages"
        kernel.write(file, kernel.pages()[2] + 7)
    assert kernel.pages() == {**before, 2: before[2] + 7}


def test_a_pool_someone_else_lowers_meanwhile_is_not_lowered_again(kernel, state):
    before = kernel.pages()
    with reserve({MIB2: 10}, state, node=2, root=kernel.root):
        file = kernel.root / "sys/devices/system/node/node2/hugepages/hugepages-2048kB/nr_hugepages"
        kernel.write(file, before[2])
    assert kernel.pages() == before


def test_pages_in_use_are_left_named_and_undone_later(kernel, state, monkeypatch):
    before = kernel.pages()
    with reserve({MIB2: 10}, state, node=2, root=kernel.root) as held:
        kernel.use(2, before[2] + 4)  # a neighbour has taken four of ours
    assert kernel.pages() == {**before, 2: before[2] + 4}
    assert kernel.read(MIB2, 2, "surplus_hugepages") == 0
    assert "4 pages of 2MiB on node 2 are still in use" in held.problems[0]

    monkeypatch.setattr(pool_records, "alive", lambda _record: False)
    assert [(one.pages, one.node) for one in leftovers([state], kernel.root)] == [(4, 2)]
    kernel.use(2, -before[2] - 4)
    file = kernel.root / "sys/devices/system/node/node2/hugepages/hugepages-2048kB/nr_hugepages"
    kernel.write(file, before[2] + 4 + 7)  # someone else's seven come on top
    assert [(one.pages, one.node) for one in leftovers([state], kernel.root)] == [(4, 2)]
    assert undo([state], kernel.root) == []
    assert kernel.pages() == {**before, 2: before[2] + 7}
    assert notes(state) == []


def test_promised_pages_are_not_taken(kernel, state):
    before = kernel.pages()
    whole = kernel.root / "sys/kernel/mm/hugepages/hugepages-2048kB"
    with reserve({MIB2: 10}, state, node=2, root=kernel.root) as held:
        free = int((whole / "free_hugepages").read_text())
        (whole / "resv_hugepages").write_text(f"{free - 6}\n")
    assert kernel.pages() == {**before, 2: before[2] + 4}
    assert held.problems


def in_a_child_that_dies(action):
    """Run ``action`` in a forked child that is gone without any clean-up."""
    child = os.fork()
    if child == 0:
        try:
            action()
        finally:
            os._exit(9)
    os.waitpid(child, 0)


def test_a_killed_run_is_found_and_undone(kernel, state):
    before = kernel.pages()

    def killed():
        with reserve({MIB2: 10}, state, root=kernel.root):
            os._exit(9)

    in_a_child_that_dies(killed)
    left = leftovers([state], kernel.root)
    assert sum(one.pages for one in left) == 10
    assert {one.node for one in left} == {2, 3, 4}
    for one in left:
        pool = f"/sys/devices/system/node/node{one.node}/hugepages/hugepages-2048kB"
        assert one.by_hand == f"echo {before[one.node]} > {pool}/nr_hugepages"
    assert undo([state], kernel.root) == []
    assert kernel.pages() == before
    assert leftovers([state], kernel.root) == []
    assert notes(state) == []


@pytest.mark.parametrize("step", range(8))
def test_killed_at_any_step_is_undone_exactly(kernel, state, step, monkeypatch):
    """Each write of a note or of the pool is a step; the process dies right after one of them."""
    before = kernel.pages()
    steps = 0

    def count():
        nonlocal steps
        if steps == step:
            os._exit(9)
        steps += 1

    def counted(function):
        def call(*arguments):
            function(*arguments)
            count()

        return call

    def killed():
        monkeypatch.setattr(reservation, "_set_pages", counted(kernel.write))
        monkeypatch.setattr(pool_records.Record, "write", counted(pool_records.Record.write))
        with reserve({MIB2: 10}, state, node=2, root=kernel.root):
            count()

    in_a_child_that_dies(killed)
    # Someone else's pages that came after must survive the clean-up.
    file = kernel.root / "sys/devices/system/node/node3/hugepages/hugepages-2048kB/nr_hugepages"
    kernel.write(file, before[3] + 5)
    assert undo([state], kernel.root) == []
    assert kernel.pages() == {**before, 3: before[3] + 5}
    assert notes(state) == []


def test_a_run_after_one_killed_in_mid_reservation_is_told_apart_from_it(
    kernel, state, monkeypatch
):
    before = kernel.pages()

    def killed():
        monkeypatch.setattr(reservation, "_set_pages", lambda *_: os._exit(9))
        with reserve({MIB2: 10}, state, node=2, root=kernel.root):
            pass

    in_a_child_that_dies(killed)  # noted ten pages, and died before it got any
    with reserve({MIB2: 4}, state, node=2, root=kernel.root):
        assert leftovers([state], kernel.root) == []
        undo([state], kernel.root)
        assert kernel.pages() == {**before, 2: before[2] + 4}
    assert kernel.pages() == before


def test_another_boot_leaves_nothing(kernel, state):
    def killed():
        with reserve({MIB2: 10}, state, root=kernel.root):
            os._exit(9)

    in_a_child_that_dies(killed)
    assert leftovers([state], kernel.root)
    (kernel.root / "proc/sys/kernel/random/boot_id").write_text("another\n")
    assert leftovers([state], kernel.root) == []


def test_a_broken_note_is_passed_over(kernel, state):
    state.mkdir()
    (state / "hugepages-1-0.json").write_text('{"version": 1, "sha')
    (state / "hugepages-1-1.json").write_text('{"version": 99}')
    assert leftovers([state], kernel.root) == []


def test_a_forked_child_gives_nothing_back(kernel, state):
    parent = os.getpid()
    try:
        with reserve({MIB2: 10}, state, root=kernel.root):
            during = kernel.pages()
            child = os.fork()
            if child == 0:
                raise SystemExit
            os.waitpid(child, 0)
            assert kernel.pages() == during
    except SystemExit:
        if os.getpid() == parent:
            raise
        os._exit(0)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["start", "end", "kill", "other", "undo"]),
            st.integers(0, 3),
            st.sampled_from([None, 2, 3]),
        ),
        max_size=14,
    )
)
def test_any_interleaving_of_runs_ends_where_it_began(tmp_path_factory, actions):
    """Runs start, end and die in any order while others raise pools: all that stays is theirs."""
    folder = tmp_path_factory.mktemp("pools")
    root = make_pools(folder / "host", nodes=(2, 3, 4))
    kernel, state = PoolKernel(root), folder / "state"
    expected, running, dead = kernel.pages(), [], set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reservation, "_set_pages", kernel.write)
        patch.setattr(reservation, "_RELEASE_WAIT_S", 0.0)
        patch.setattr(pool_records, "alive", lambda record: record.path not in dead)
        kept = []
        for action, number, node in actions:
            if action == "start":
                run = reserve({MIB2: number + 1}, state, node=node, root=root)
                running.append((run, run.__enter__()))
            elif action == "end" and running:
                run, _ = running.pop(number % len(running))
                run.__exit__(None, None, None)
            elif action == "kill" and running:
                run, held = running.pop(number % len(running))
                dead.add(held.record.path)
                kept.append(run)  # a generator that is collected would clean up after itself
            elif action == "other":
                where = node or 4
                pool = root / f"sys/devices/system/node/node{where}/hugepages/hugepages-2048kB"
                kernel.write(pool / "nr_hugepages", kernel.pages()[where] + number)
                expected[where] += number
            elif action == "undo":
                undo([state], root)
        for run, _ in running:
            run.__exit__(None, None, None)
        assert undo([state], root) == []
        assert kernel.pages() == expected
        assert notes(state) == []
        # Nothing is left for the abandoned generators to give back.
        for run in kept:
            patch.setattr(reservation, "_give_back", lambda *_: None)
            run.__exit__(None, None, None)


HOLD = """
import sys, time
from pathlib import Path
from bench.reservation import reserve
with reserve({2 * 1024**2: 3}, Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def real_pages():
    return int(Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages").read_text())


@ROOT_ONLY
@pytest.mark.root
@pytest.mark.isolated
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL], ids=lambda n: n.name
)
def test_the_real_pool_is_put_back_after_a_signal(state, number):
    before = real_pages()
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(state)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert child.stdout.readline() == b"held\n"
        assert real_pages() == before + 3
        child.send_signal(number)
        child.wait(timeout=30)
        if number == signal.SIGKILL:
            assert sum(one.pages for one in leftovers([state])) == 3
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        undo([state])
    assert real_pages() == before


@ROOT_ONLY
@pytest.mark.root
@pytest.mark.isolated
def test_the_real_pool_grows_for_the_block_only(state):
    before = real_pages()
    with reserve({MIB2: 3}, state) as held:
        assert real_pages() == before + 3
        assert sum(held.added.values()) == 3
    assert real_pages() == before
