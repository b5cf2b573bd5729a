"""A kernel's own check notices results that are wrong."""

import subprocess

import pytest
from driver_build import cases, host_driver

SIZE = "300000"
OWN = ("chase", "scan", "sleep", "spin")
# Of a team, or with other arrays: what a fault in a store shows is in the kernels' own tests.
COUNTED = ("gather", "prep", "spmv")
# After more than one pass an op without a scale has stored the same values before.
SAME_EVERY_PASS = ("op=copy", "op=vtriad", "op=libc_copy")
NO_OUTPUT = ("chase/", "sleep/", "spin/", "op=read")
NO_INPUT = ("sleep/", "spin/", "op=write", "op=update", "op=libc_set")


@pytest.fixture(scope="module")
def driver():
    return host_driver()


def run(driver, steps, fault, threads=1, size=SIZE, kernels=OWN):
    done = subprocess.run(
        [driver, size, str(threads), str(steps), fault, *kernels], capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stderr
    found = cases(done.stdout)
    assert len(found) >= 2
    return found


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_right_results_pass_the_check_also_in_the_middle_of_a_pass(driver, steps, threads):
    found = run(driver, steps, "none", threads, size="16777216")
    assert {case for case, said in found.items() if not said.endswith("ok")} == set()


@pytest.mark.parametrize(
    ("fault", "steps", "blind"),
    [
        ("uncounted", 1, ()),
        ("uncounted", 9, ()),
        ("lost", 1, NO_OUTPUT),
        ("lost", 9, NO_OUTPUT + SAME_EVERY_PASS),
        ("stale", 1, NO_OUTPUT),
        ("stale", 9, NO_OUTPUT + SAME_EVERY_PASS),
        ("wrong", 9, NO_OUTPUT),
        ("input", 9, NO_INPUT),
    ],
)
def test_every_fault_is_noticed_where_it_can_show(driver, fault, steps, blind):
    found = run(driver, steps, fault)
    missed = {case for case, said in found.items() if said.endswith("ok")}
    could_show = {case for case in found if not any(part in case for part in blind)}
    assert could_show
    assert missed & could_show == set()


@pytest.mark.parametrize("kernel", COUNTED)
def test_a_step_that_is_counted_but_not_made_is_noticed(driver, kernel):
    for fault, good in (("none", True), ("uncounted", False)):
        found = run(driver, 3, fault, size="4000000", kernels=(kernel,))
        said = [case for case in found.values() if not case.startswith("refused")]
        assert said
        assert {case.endswith("ok") for case in said} == {good}


def test_a_failed_check_says_where(driver):
    said = run(driver, 9, "wrong")["scan/scalar op=triad store=plain"]
    assert "a[" in said
    assert "of thread 0 is" in said
