"""The loops of spmv, prep and gather are made of what their names say.

Results would be right without: a product by a call, a branch turned into arithmetic or a sum that
waits in memory only measure something else.
"""

import importlib
import platform
import re
import shutil

import pytest
from disassembly import functions

from bench import native

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86-64 instructions"),
    pytest.mark.skipif(shutil.which("objdump") is None, reason="not installed: objdump"),
]
SWEEPS = [
    f"{values}_{isa}{ahead}"
    for values, isas in {
        "f64": ("scalar", "avx2"),
        "pattern": ("scalar", "avx2"),
        "fr": ("scalar", "adx"),
        "pattern_fr": ("scalar", "adx"),
    }.items()
    for isa in isas
    for ahead in ("", "_ahead")
]
JUMP = re.compile(r"\tj(?!mp)\w+\s")


@pytest.fixture(scope="module")
def code():
    found = functions(importlib.import_module(native.MODULE).__file__)
    if "spmv_f64_scalar" not in found:
        pytest.skip("the extension is stripped of its symbols")
    if any("asan" in name for name in found):
        pytest.skip("the extension is built with a sanitiser")
    return found


@pytest.mark.parametrize("name", SWEEPS)
def test_products_are_made_in_place_and_ask_ahead_only_where_told(code, name):
    text = code[f"spmv_{name}"].text
    assert "call" not in text
    assert ("\tprefetch" in text) == name.endswith("_ahead")


@pytest.mark.parametrize("values", ["f64", "pattern"])
def test_double_precision_uses_the_vectors_of_its_name(code, values):
    assert not re.search(r"%[yz]mm|\t(add|mul)pd\s", code[f"spmv_{values}_scalar"].text)
    loops = ("\n".join(loop) for loop in code[f"spmv_{values}_avx2"].loops)
    text = max(loops, key=lambda loop: loop.count("\tvmovhpd"))
    # Eight entries a turn: single loads put together, no gathers.
    assert text.count("\tvmovsd") == text.count("\tvmovhpd") == 4
    assert len(re.findall(r"\tv(?:fmadd\d+|add)pd\s.*%ymm", text)) == 2
    assert "gather" not in text


def test_scalar_sums_wait_for_no_other(code):
    for values in ("f64", "pattern"):
        sums = re.findall(r"\taddsd\s.*,%(xmm\d+)$", code[f"spmv_{values}_scalar"].loop_text, re.M)
        assert len(set(sums)) == 4


def test_field_products_use_both_carry_chains(code):
    loop = code["spmv_fr_adx"].loop_text
    # Four rows and four reductions of four products each.
    assert loop.count("\tmulx") == 32
    assert loop.count("\tadcx") >= 16
    assert loop.count("\tadox") >= 16
    # No branch looks at a number: only the loop's own.
    assert len(JUMP.findall(loop)) == 1
    assert len(JUMP.findall(code["spmv_pattern_fr_adx"].loop_text)) == 1


def test_branchy_sweeps_branch_on_every_scalar_and_free_ones_do_not(code):
    def by_scalar(name, step):
        """The loop that advances by one scalar."""
        found = [loop for loop in code[name].loops if any(step in line for line in loop)]
        return "\n".join(min(found, key=len))

    # Zero, two densities and the end of the word; the test for one lies out of line.
    assert len(JUMP.findall(by_scalar("classify_branchy", "$0x20,"))) >= 4
    for name in ("classify_free", "fill_free"):
        assert len(JUMP.findall(by_scalar(name, "$0x20,"))) == 1


@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
@pytest.mark.parametrize("words", [1, 2, 4, 8])
def test_a_round_reads_each_lane_s_element_once(code, words, lanes):
    for op in ("read", "update"):
        function = code[f"gather_{op}_{words}_{lanes}"]
        assert "call" not in function.text
        loop = function.loop_text
        # One product chooses the element, one moves the lane on.
        assert len(re.findall(r"\tmul\s", loop)) == lanes
        assert len(re.findall(r"\timul\s", loop)) == lanes
        # What was read goes into the next address.
        assert len(re.findall(r"\tand\s", loop)) == lanes
