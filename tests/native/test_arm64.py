"""The same sources build for arm64 and compute the same there, under an emulator."""

import re
import shutil
import subprocess

import pytest
from disassembly import functions
from driver_build import build_driver, cases, host_driver

COMPILER, EMULATOR, OBJDUMP = (
    "aarch64-linux-gnu-gcc",
    "qemu-aarch64-static",
    "aarch64-linux-gnu-objdump",
)
missing = [tool for tool in (COMPILER, EMULATOR, OBJDUMP) if shutil.which(tool) is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")
KERNELS = ("bitmap", "chase", "mixed", "scan")


@pytest.fixture(scope="module")
def arm_driver(tmp_path_factory):
    return build_driver(tmp_path_factory.mktemp("arm64"), COMPILER, "-static")


@pytest.fixture(scope="module")
def arm_code(arm_driver):
    return functions(arm_driver, OBJDUMP)


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return cases(done.stdout)


def test_arrays_are_the_same_bytes_as_on_this_cpu(arm_driver):
    arguments = ("1048576", "2", "5", "none", *KERNELS)
    here, there = output(host_driver(), *arguments), output(EMULATOR, arm_driver, *arguments)
    scalar = {case: said for case, said in here.items() if "/scalar" in case}
    neon = {
        case.replace("/neon", "/scalar"): said for case, said in there.items() if "neon" in case
    }
    assert len(scalar) > 10
    assert {case: said for case, said in there.items() if "/scalar" in case} == scalar
    assert neon == {case: said for case, said in scalar.items() if not case.startswith("chase/")}


@pytest.mark.parametrize("streams", [1, 2, 4, 8])
def test_neon_reads_into_several_accumulators(arm_code, streams):
    adds = re.findall(r"\tadd\s+(v\d+)\.2d, \1\.2d", arm_code[f"read{streams}_neon"].loop_text)
    assert len(set(adds)) >= 4


@pytest.mark.parametrize("op", ["write", "copy", "triad", "vtriad"])
def test_neon_stores_pairs_past_the_caches_where_told(arm_code, op):
    assert "stnp\tq" in arm_code[f"{op}_nt_neon"].loop_text
    assert "dmb\tishst" in arm_code[f"{op}_nt_neon"].text
    assert "stnp" not in arm_code[f"{op}_neon"].text


@pytest.mark.parametrize("op", ["read4", "write", "copy", "triad", "update", "daxpy"])
def test_scalar_uses_no_vectors(arm_code, op):
    assert not re.search(r"\.(2d|4s|16b)|\bq\d", arm_code[f"{op}_scalar"].loop_text)
