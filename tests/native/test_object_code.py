"""The compiler made of every loop what its variant's name says.

A plain C loop easily becomes a call of memcpy or a half-vectorised hybrid, and a vector loop plain
instructions; both still compute the right numbers and measure the wrong thing.
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
STORING = ("write", "copy", "triad", "vtriad")
SWEEPS = (*STORING, "update", "daxpy")
NT = tuple(f"{op}_nt" for op in STORING)
READS = ("read1", "read2", "read4", "read8")
REGISTER = {"avx2": "ymm", "avx512": "zmm"}
ALL = [f"{op}_{isa}" for op in (*SWEEPS, *NT, *READS) for isa in ("scalar", "avx2", "avx512")]


@pytest.fixture(scope="module")
def code():
    found = functions(importlib.import_module(native.MODULE).__file__)
    if "read4_scalar" not in found:
        pytest.skip("the extension is stripped of its symbols")
    if any("asan" in name for name in found):
        pytest.skip("the extension is built with a sanitiser")
    return found


@pytest.mark.parametrize("name", ALL)
def test_no_loop_became_a_call(code, name):
    assert code[name].loop
    assert "call" not in code[name].text
    assert not re.search(r"\bmem(cpy|set|move)", code[name].text)


@pytest.mark.parametrize("name", [name for name in ALL if name.endswith("_scalar")])
def test_scalar_is_plain_c(code, name):
    text = code[name].text
    assert not re.search(r"%[yz]mm", text)
    assert not re.search(r"\t(mov[au]p[sd]|movdq[au]|movntp[sd]|movntdq|(add|mul)pd|paddq)\s", text)


@pytest.mark.parametrize("name", [name for name in ALL if not name.endswith("_scalar")])
def test_vectors_have_the_full_width(code, name):
    register = REGISTER[name.rsplit("_", 1)[1]]
    touching = [line for line in code[name].loop if re.search(r"%[xyz]mm", line)]
    assert len(touching) >= 4
    assert {line for line in touching if f"%{register}" not in line} == set()


@pytest.mark.parametrize("isa", ["scalar", "avx2", "avx512"])
@pytest.mark.parametrize("op", STORING)
def test_only_nt_stores_go_past_the_caches(code, op, isa):
    store = "\tmovnti" if isa == "scalar" else "\tvmovntpd"
    past = code[f"{op}_nt_{isa}"]
    assert past.loop_text.count(store) == 8
    assert re.search(r"\tsfence", past.text)
    assert "movnt" not in code[f"{op}_{isa}"].text
    # Nothing else is written to memory: AT&T syntax puts the destination last.
    assert not re.search(r"\tv?mov[au]p[sd]\s+%\w+,[^%]*\(", past.loop_text)


@pytest.mark.parametrize("isa", ["scalar", "avx2", "avx512"])
@pytest.mark.parametrize("op", READS)
def test_reads_sum_into_at_least_four_accumulators(code, op, isa):
    """One would wait for its own last add; a sum may pass through others on the way."""
    loop = code[f"{op}_{isa}"].loop_text
    if isa == "scalar":
        sums = re.findall(r"\tadd\s+\S*(?:\(\S*\)|%\w+),(%r\w+)", loop)
    else:
        sums = re.findall(r"\tvpaddq\s.*?,%([yz]mm\d+),%\1", loop)
    assert len(set(sums)) >= 4


@pytest.mark.parametrize("chains", range(1, 9))
def test_every_chain_is_one_load(code, chains):
    """A chase whose cursors lived in memory would measure that too."""
    name = next(name for name in code if name.startswith("walk_chains"))
    loops = code[name].loops
    lengths = {len(re.findall(r"\tmov\s+\(%\w+,%\w+,1\),%\w+", "\n".join(loop))) for loop in loops}
    assert chains in lengths
