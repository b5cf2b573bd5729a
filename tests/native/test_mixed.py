"""mixed reads and writes lines in the ratio it is given, and counts them."""

import importlib
import platform
import re
import shutil
import subprocess

import numpy as np
import pytest
from disassembly import functions
from driver_build import cases, host_driver

from bench import native
from bench.errors import UsageError
from bench.mix import Actor

RATIOS = [(1, 0), (0, 1), (1, 1), (2, 1), (3, 1), (1, 2), (4, 3), (4, 4)]
SIZE = 300_000


def mixed(variant="scalar", threads=1, size=SIZE, pace=0.0, **params):
    return Actor("mixed", variant, "base", threads, size, tuple(params.items()), pace=pace)


def variants():
    return [variant.name for variant in native.kernel("mixed").variants if variant.available]


@pytest.mark.parametrize(("reads", "writes"), RATIOS)
@pytest.mark.parametrize("threads", [1, 3])
def test_lines_are_read_and_written_in_the_ratio(reads, writes, threads):
    """The sum of what was read is compared by the kernel's check."""
    for variant in variants():
        for store in ("plain", "nt") if writes else ("plain",):
            params = {"reads": reads, "writes": writes, "store": store}
            once = native.run_once(mixed(variant, threads, **params), 2)
            read, written = once.work["read_bytes"], once.work["written_bytes"]
            assert read * writes == written * reads
            assert read + written > 0.8 * SIZE / threads - 8 * 1024
            for thread in range(threads):
                assert len(once.arrays["u"][thread]) == read
                # Of the second pass: every word, and no other value.
                words = np.frombuffer(once.arrays["a"][thread], "i8")
                assert words.nbytes == written
                assert (words == ~1).all()


def test_the_value_written_changes_with_the_pass():
    for passes in (1, 2, 5):
        once = native.run_once(mixed(), passes)
        assert set(np.frombuffer(once.arrays["a"][0], "i8")) == {~(passes - 1)}


def test_the_read_side_is_the_series_and_is_left_alone():
    once = native.run_once(mixed(threads=2), 3, seed=4)
    words = np.frombuffer(b"".join(once.arrays["u"]), "u8")
    assert len(set(np.diff(words))) == 1


def test_bus_bytes_add_the_write_allocate_of_plain_stores_only():
    for store, extra in (("plain", 1), ("nt", 0)):
        work = native.run_once(mixed(reads=3, writes=2, store=store)).work
        bus = work["read_bytes"] + (1 + extra) * work["written_bytes"]
        assert work["bus_min_bytes"] == work["bus_max_bytes"] == bus
        assert work["updated_bytes"] == 0


def test_long_streams_start_apart_modulo_4_kib_and_cover_all_but_the_gaps():
    once = native.run_once(mixed(size=64 << 20, reads=3, writes=1), 2)
    read, size = once.work["read_bytes"], len(once.arrays["u"][0])
    assert 0 < size - read < 3 * 4096
    apart = (size - read // 4) // 3
    starts = sorted(i * apart % 4096 for i in range(4))
    gaps = [b - a for a, b in zip(starts, [*starts[1:], starts[0] + 4096], strict=True)]
    assert min(gaps) >= 192


def test_a_pass_is_steps_of_about_the_size_asked_for():
    for step in (65536, 1 << 20):
        work = native.run_once(mixed(size=16 << 20, step=step)).work
        useful = work["read_bytes"] + work["written_bytes"]
        assert useful % work["n_steps"] == 0
        assert 0.9 * step < useful / work["n_steps"] < 1.2 * step


def test_pacing_changes_no_result():
    for reads, writes in RATIOS:
        plain = mixed(reads=reads, writes=writes)
        paced = mixed(reads=reads, writes=writes, pace=20e9)
        assert native.run_once(paced, 2).arrays == native.run_once(plain, 2).arrays


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"reads": 0, "writes": 0}, "both be 0"),
        ({"writes": 0, "store": "nt"}, "no store"),
        ({"reads": 5}, "0 to 4"),
        ({"size": 1000}, "at least"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(params, reason):
    with pytest.raises(UsageError, match=reason):
        native.footprint(mixed(**params))


def test_the_size_named_in_a_refusal_is_enough():
    for reads, writes in RATIOS:
        with pytest.raises(UsageError) as caught:
            native.footprint(mixed(threads=3, size=100, reads=reads, writes=writes))
        enough = int(re.search(r"at least (\d+) B", str(caught.value))[1])
        sized = mixed(threads=3, size=enough, reads=reads, writes=writes)
        assert native.footprint(sized).used[0] <= enough


# ---- the check -----------------------------------------------------------------------------------


def driver(steps, fault, size, threads=1):
    done = subprocess.run(
        [host_driver(), size, str(threads), str(steps), fault, "mixed"],
        capture_output=True,
        text=True,
    )
    found = cases(done.stdout)
    assert len(found) == 2 * len(variants())
    return {"ok" if said.endswith("ok") else "noticed" for said in found.values()}


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_right_results_pass_the_check_also_in_the_middle_of_a_pass(steps):
    assert driver(steps, "none", "4194304", 2) == {"ok"}


@pytest.mark.parametrize("fault", ["uncounted", "lost", "stale", "wrong", "input"])
@pytest.mark.parametrize("steps", [1, 9])
def test_every_fault_is_noticed(fault, steps):
    assert driver(steps, fault, "200000") == {"noticed"}


# ---- object code ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def code():
    if platform.machine() != "x86_64" or shutil.which("objdump") is None:
        pytest.skip("reads x86-64 instructions with objdump")
    found = functions(importlib.import_module(native.MODULE).__file__)
    if "mixed_plain_scalar" not in found or any("asan" in name for name in found):
        pytest.skip("no symbols, or a sanitiser in between")
    return found


@pytest.mark.parametrize("isa", ["scalar", "avx2", "avx512"])
@pytest.mark.parametrize("store", ["plain", "nt"])
def test_loops_call_nothing(code, store, isa):
    assert "call" not in code[f"mixed_{store}_{isa}"].text


@pytest.mark.parametrize(("isa", "register", "vectors"), [("avx2", "ymm", 4), ("avx512", "zmm", 2)])
def test_two_lines_are_whole_vectors(code, isa, register, vectors):
    plain, nt = code[f"mixed_plain_{isa}"], code[f"mixed_nt_{isa}"]
    loops = ["\n".join(loop) for loop in plain.loops]
    adds = [len(re.findall(rf"\tvpaddq\s+[^%]*\(.*%{register}", text)) for text in loops]
    stores = [len(re.findall(rf"\tvmov\w+\s+%{register}\d+,[^%]*\(", text)) for text in loops]
    assert 4 * vectors in adds
    assert vectors in stores
    assert "movnt" not in plain.text
    past = [text.count("\tvmovnt") for text in ("\n".join(loop) for loop in nt.loops)]
    assert vectors in past
    assert "\tsfence" in nt.text


def test_scalar_is_plain_c(code):
    for store in ("plain", "nt"):
        assert not re.search(r"%[xyz]mm", code[f"mixed_{store}_scalar"].text)
    assert "\tmovnti" in code["mixed_nt_scalar"].text
