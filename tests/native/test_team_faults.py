"""The checks of spmv, prep and gather notice wrong results; arm64 computes what x86-64 does."""

import shutil
import subprocess

import pytest
from driver_build import build_driver, cases, host_driver

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64-static"
KERNELS = ("spmv", "prep", "gather")
SIZE = "600000"
# Nothing is kept of it but the last chunk, in scratch memory.
NO_OUTPUT = ("output=warm", "op=read")


def run(command, steps, fault, threads=1, size=SIZE, kernels=KERNELS):
    done = subprocess.run(
        [*command, size, str(threads), str(steps), fault, *kernels], capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stderr
    return cases(done.stdout)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_right_results_pass_the_check(threads):
    found = run([host_driver()], 5, "none", threads, "1000000")
    assert len(found) > 40
    assert {case for case, said in found.items() if not said.endswith("ok")} == set()


def missed(fault, blind, steps=3):
    found = run([host_driver()], steps, fault)
    could_show = {case for case in found if not any(part in case for part in blind)}
    assert could_show
    return {case for case in could_show if found[case].endswith("ok")}


def test_one_changed_element_of_a_result_is_noticed():
    assert missed("wrong", NO_OUTPUT) == set()


def test_one_changed_element_of_an_input_is_noticed():
    """Of the row starts of spmv (but of an empty row), of the scalars of prep; of gather where the
    element is read."""
    assert missed("input", ("gather", "output=warm", "matrix=c")) == set()
    assert missed("input", ("spmv", "prep", "op=update"), steps=40) == set()


@pytest.mark.parametrize("fault", ["uncounted", "lost"])
def test_a_step_that_was_not_made_is_noticed(fault):
    """Steps of a team leave in the second pass what they left in the first."""
    blind = ("spmv", "prep", *(("op=read",) if fault == "lost" else ()))
    assert missed(fault, blind) == set()


@pytest.fixture(scope="module")
def arm_driver(tmp_path_factory):
    for tool in (COMPILER, EMULATOR):
        if shutil.which(tool) is None:
            pytest.skip(f"not installed: {tool}")
    return build_driver(tmp_path_factory.mktemp("arm64"), COMPILER, "-static")


def test_arrays_are_the_same_bytes_on_arm64(arm_driver):
    here = run([host_driver()], 3, "none", 2, "200000")
    there = run([EMULATOR, arm_driver], 3, "none", 2, "200000")
    scalar = {case: said for case, said in here.items() if "/scalar" in case}
    assert len(scalar) > 40
    assert there == scalar
