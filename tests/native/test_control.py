"""The first error of a run is seen whole, whoever recorded it and whatever became of them."""

import os
import subprocess

import pytest
from driver_build import CSRC, build_module

DRIVER = "control_driver.c"


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """What the driver printed."""
    program = tmp_path_factory.mktemp("control") / "driver"
    source = CSRC.parent / "tests" / "native" / DRIVER
    command = ["gcc", *build_module().CFLAGS, f"-I{CSRC}", str(source), str(CSRC / "control.c")]
    built = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program, "300"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_an_error_that_is_seen_has_its_whole_reason(lines):
    assert lines[0] == "torn 0"


def test_while_one_process_records_an_error_others_leave_it_alone(lines):
    assert lines[1] == "claimed 0 "
    assert lines[2] == "other died 0 "


def test_a_process_that_died_recording_makes_way_for_another_error(lines):
    assert lines[3] == "died 1 process died"


def test_a_recorded_error_stays(lines):
    assert lines[4] == "late 1 died"
