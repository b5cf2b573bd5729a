"""bitmap counts and merges what numpy counts and merges, in the instructions its variants name."""

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

OPS = native.kernel("bitmap").param("op").choices
SIZE = 200_000
MASK = 2**64 - 1


def bitmap(variant="scalar", threads=1, size=SIZE, pace=0.0, **params):
    return Actor("bitmap", variant, "base", threads, size, tuple(params.items()), pace=pace)


def variants():
    return [variant.name for variant in native.kernel("bitmap").variants if variant.available]


def random_words(seed, n):
    """The counter-based generator, written again from its definition."""
    x = np.uint64(seed & MASK) + np.uint64(0x9E3779B97F4A7C15) * np.arange(1, n + 1, dtype="u8")
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_bitmaps_are_random_and_merged_as_numpy_merges_them(threads):
    for variant in variants():
        once = native.run_once(bitmap(variant, threads, op="merge"), 2, seed=9)
        n = len(once.arrays["a"][0]) // 8
        for k, name in enumerate("abc"):
            whole = b"".join(once.arrays[name])
            assert whole == random_words(9 + k, n * threads).tobytes()
        a, b, c = (np.frombuffer(b"".join(once.arrays[name]), "u8") for name in "abc")
        assert b"".join(once.arrays["d"]) == (a | b | c).tobytes()


@pytest.mark.parametrize("op", OPS)
def test_useful_bytes_are_those_of_the_arrays(op):
    once = native.run_once(bitmap(op=op))
    inputs = sum(len(once.arrays[name][0]) for name in "abc")
    assert once.work["read_bytes"] == inputs > 0.8 * SIZE * (0.7 if op == "merge" else 1)
    assert once.work["written_bytes"] == len(once.arrays["d"][0])
    assert once.work["updated_bytes"] == 0
    bus = inputs + 2 * len(once.arrays["d"][0])
    assert once.work["bus_min_bytes"] == once.work["bus_max_bytes"] == bus


def test_only_a_merge_has_the_other_bitmaps():
    arrays = native.run_once(bitmap(op="popcount")).arrays
    assert {name for name, rows in arrays.items() if rows[0]} == {"a"}


def test_a_pass_is_steps_of_about_the_size_asked_for():
    for op in OPS:
        for step in (65536, 1 << 20):
            work = native.run_once(bitmap(op=op, size=16 << 20, step=step)).work
            useful = work["read_bytes"] + work["written_bytes"]
            assert 0.9 * step < useful / work["n_steps"] < 1.2 * step


def test_pacing_changes_no_result():
    for op in OPS:
        plain, paced = bitmap(op=op), bitmap(op=op, pace=20e9)
        assert native.run_once(paced, 2).arrays == native.run_once(plain, 2).arrays


def test_too_small_a_size_names_one_that_is_enough():
    for op in OPS:
        with pytest.raises(UsageError, match="at least") as caught:
            native.footprint(bitmap(threads=3, size=100, op=op))
        enough = int(re.search(r"at least (\d+) B", str(caught.value))[1])
        assert native.footprint(bitmap(threads=3, size=enough, op=op)).used[0] <= enough


# ---- the check -----------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_right_results_pass_the_check_also_in_the_middle_of_a_pass(steps):
    done = subprocess.run(
        [host_driver(), "4194304", "2", str(steps), "none", "bitmap"],
        capture_output=True,
        text=True,
    )
    found = cases(done.stdout)
    assert len(found) == 2 * len(variants())
    assert {said.split()[-1] for said in found.values()} == {"ok"}


@pytest.mark.parametrize(
    ("fault", "steps", "blind"),
    [
        ("uncounted", 9, ()),
        ("lost", 1, ("op=popcount",)),
        # A merge stores in every pass what it stored in the last.
        ("lost", 9, tuple(f"op={op}" for op in OPS)),
        ("stale", 1, ("op=popcount",)),
        ("wrong", 9, ("op=popcount",)),
        ("input", 9, ()),
    ],
)
def test_every_fault_is_noticed_where_it_can_show(fault, steps, blind):
    done = subprocess.run(
        [host_driver(), "300000", "1", str(steps), fault, "bitmap"], capture_output=True, text=True
    )
    found = cases(done.stdout)
    assert len(found) == 2 * len(variants())
    missed = {case for case, said in found.items() if said.endswith("ok")}
    assert {case for case in missed if not any(part in case for part in blind)} == set()


# ---- object code ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def code():
    if platform.machine() != "x86_64" or shutil.which("objdump") is None:
        pytest.skip("reads x86-64 instructions with objdump")
    found = functions(importlib.import_module(native.MODULE).__file__)
    if "popcount_scalar" not in found or any("asan" in name for name in found):
        pytest.skip("no symbols, or a sanitiser in between")
    return found


@pytest.mark.parametrize("isa", ["scalar", "avx2", "avx512"])
@pytest.mark.parametrize("op", OPS)
def test_loops_call_nothing(code, op, isa):
    assert "call" not in code[f"{op}_{isa}"].loop_text
    assert len(code[f"{op}_{isa}"].loop) > 8


@pytest.mark.parametrize("op", OPS)
def test_each_set_counts_its_own_way(code, op):
    assert not re.search(r"%[xyz]mm|popcnt", code[f"{op}_scalar"].loop_text)
    assert code[f"{op}_avx2"].loop_text.count("\tvpshufb") == 8
    assert code[f"{op}_avx2"].loop_text.count("\tvpsadbw") == 1
    assert code[f"{op}_avx512"].loop_text.count("\tvpopcntq") == 4
    assert "%zmm" not in code[f"{op}_avx2"].text


@pytest.mark.parametrize(("isa", "register"), [("avx2", "ymm"), ("avx512", "zmm")])
def test_a_merge_stores_whole_vectors(code, isa, register):
    stores = re.findall(rf"\tvmov\w+\s+%{register}\d+,[^%]*\(", code[f"merge_{isa}"].loop_text)
    assert len(stores) == 4
