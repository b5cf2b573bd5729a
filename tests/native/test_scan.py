"""scan stores what its ops say, counts the bytes it says, and refuses what cannot be."""

import sys
from pathlib import Path

import numpy as np
import pytest

from bench import native
from bench.errors import UsageError
from bench.mix import Actor

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))
from sweeps import STATEMENTS, after_passes, useful_bytes

OPS = sorted(STATEMENTS)
PURE_STORES = ("write", "copy", "triad", "vtriad")
SIZE = 200_000


def scan(variant="scalar", threads=1, size=SIZE, **params):
    return Actor("scan", variant, "base", threads, size, tuple(params.items()))


def variants():
    return [variant.name for variant in native.kernel("scan").variants if variant.available]


def test_the_reference_knows_every_op():
    assert set(native.kernel("scan").param("op").choices) == set(OPS)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("op", OPS)
def test_every_array_is_byte_for_byte_what_numpy_makes_of_it(op, threads):
    for variant in variants():
        for store in ("plain", "nt") if op in PURE_STORES else ("plain",):
            for passes in (1, 2, 5):
                once = native.run_once(scan(variant, threads, op=op, store=store), passes, seed=9)
                for thread in range(threads):
                    for name, contents in once.arrays.items():
                        if not contents[thread]:
                            continue
                        n = len(contents[thread]) // 8
                        want = after_passes(op, n, thread, 9, passes).contents[name]
                        assert contents[thread] == want.tobytes(), (variant, store, passes, name)


def test_a_statement_has_the_arrays_that_its_op_has():
    for op in OPS:
        present = {name for name, rows in native.run_once(scan(op=op)).arrays.items() if rows[0]}
        accesses = after_passes(op, 8, 0, 1, 1)
        assert present == {name for name, _ in accesses.loaded | accesses.stored}, op


@pytest.mark.parametrize("op", OPS)
def test_useful_bytes_are_those_the_statement_touches(op):
    once = native.run_once(scan(op=op, size=20_000))
    n = max(len(rows[0]) for rows in once.arrays.values()) // 8
    read, written, updated = useful_bytes(op, n)
    assert (once.work["read_bytes"], once.work["written_bytes"], once.work["updated_bytes"]) == (
        read,
        written,
        updated,
    )


@pytest.mark.parametrize("op", ["write", "copy", "triad", "vtriad", "libc_copy", "libc_set"])
def test_written_bytes_are_those_that_a_pass_changes(op):
    once = native.run_once(scan(op=op))
    changed = np.frombuffer(once.arrays["a"][0]) != -1.0
    assert changed.all()
    assert once.work["written_bytes"] == 8 * np.count_nonzero(changed)


def test_bus_bytes_add_the_write_allocate_of_plain_stores_only():
    def bus(**params):
        work = native.run_once(scan(**params)).work
        useful = [work["read_bytes"], work["written_bytes"], work["updated_bytes"]]
        return useful, work["bus_min_bytes"], work["bus_max_bytes"]

    for op in PURE_STORES:
        (read, written, _), least, most = bus(op=op)
        assert (least, most) == (read + 2 * written,) * 2
        (read, written, _), least, most = bus(op=op, store="nt")
        assert (least, most) == (read + written,) * 2
    for op in ("update", "daxpy"):
        (read, _, updated), least, most = bus(op=op)
        assert (least, most) == (read + 2 * updated,) * 2
    for op in ("libc_copy", "libc_set"):
        (read, written, _), least, most = bus(op=op)
        assert (least, most) == (read + written, read + 2 * written)


@pytest.mark.parametrize("streams", [1, 2, 4, 8])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_streams_cover_the_slice_but_for_small_gaps(streams, threads):
    """The kernel's check compares the sum; here, how much of the slice went into it."""
    for size in (30_000 * threads, 8 << 20):
        for variant in variants():
            once = native.run_once(scan(variant, threads, size, streams=streams), passes=2)
            unread = len(once.arrays["u"][0]) - once.work["read_bytes"]
            assert 0 <= unread < 4096 * streams
            assert unread == 0 or size == 8 << 20


@pytest.mark.parametrize("streams", [2, 4, 8])
def test_long_streams_start_apart_modulo_4_kib(streams):
    once = native.run_once(scan(size=64 << 20, streams=streams))
    length = once.work["read_bytes"] // streams
    apart = (len(once.arrays["u"][0]) - length) // (streams - 1)
    starts = sorted(i * apart % 4096 for i in range(streams))
    gaps = [b - a for a, b in zip(starts, [*starts[1:], starts[0] + 4096], strict=True)]
    assert min(gaps) >= 192


def test_a_pass_is_whole_steps_of_about_the_size_asked_for():
    for op in OPS:
        for step in (65536, 262144, 1 << 20):
            work = native.run_once(scan(op=op, size=16 << 20, step=step)).work
            useful = work["read_bytes"] + work["written_bytes"] + work["updated_bytes"]
            assert useful % work["n_steps"] == 0
            assert 0.9 * step < useful / work["n_steps"] < 1.2 * step


def test_pacing_changes_no_result():
    for op in OPS:
        plain = native.run_once(scan(op=op), 2)
        actor = Actor("scan", "scalar", "base", 1, SIZE, (("op", op),), pace=20e9)
        assert native.run_once(actor, 2).arrays == plain.arrays


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"op": "read", "store": "nt"}, "stores nothing"),
        ({"op": "update", "store": "nt"}, "reads the line"),
        ({"op": "daxpy", "store": "nt"}, "reads the line"),
        ({"op": "libc_copy", "store": "nt"}, "libc chooses"),
        ({"op": "copy", "streams": 2}, "op=read"),
        ({"streams": 3}, "1, 2, 4 or 8"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(params, reason):
    with pytest.raises(UsageError, match=reason):
        native.footprint(scan(**params))


def test_the_smallest_size_named_in_a_refusal_is_enough():
    for threads in (1, 3):
        for params in ({"op": "vtriad"}, {"streams": 8}, {"op": "write"}):
            with pytest.raises(UsageError, match="at least") as caught:
                native.footprint(scan(threads=threads, size=4096, **params))
            least = int(str(caught.value).split("at least ")[1].split()[0])
            assert native.footprint(scan(threads=threads, size=least, **params)).used[0] <= least
            with pytest.raises(UsageError):
                native.footprint(scan(threads=threads, size=least - 4096, **params))
