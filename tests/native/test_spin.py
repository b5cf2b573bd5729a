"""spin and sleep pass their time without memory."""

import subprocess
import sys

import pytest

from bench import native
from bench.errors import UsageError
from bench.mix import Actor


@pytest.mark.parametrize("kernel", ["spin", "sleep"])
@pytest.mark.parametrize("threads", [1, 3])
def test_no_memory_is_used_or_counted(kernel, threads):
    actor = Actor(kernel, "scalar", "base", threads, 0, (("steps", 3),))
    once = native.run_once(actor, 4)
    assert once.arrays == {}
    assert once.work["n_steps"] == 3
    assert {key: value for key, value in once.work.items() if key.endswith("bytes") and value} == {}
    assert native.footprint(actor).mapped_bytes == 0


def test_sleep_lasts_at_least_as_long_as_asked():
    """The system promises that much; how much longer is the host's affair."""
    actor = Actor("sleep", "scalar", "base", 1, 0, (("steps", 4), ("step_us", 2000)))
    assert native.run_once(actor).seconds_per_pass >= 4 * 2000e-6


def test_a_longer_step_is_more_work():
    def seconds(step_us):
        actor = Actor("spin", "scalar", "base", 1, 0, (("steps", 10), ("step_us", step_us)))
        return min(native.run_once(actor).seconds_per_pass for _ in range(5))

    assert seconds(400) > 4 * seconds(25)


def spin(**params):
    return Actor("spin", "scalar", "base", 1, 0, (("steps", 10), *params.items()))


def test_what_one_process_calibrated_is_the_same_work_in_another():
    calibrated = native.run_once(spin())
    iterations, rest = divmod(calibrated.work["ops"], 10)
    assert rest == 0
    program = (
        "from bench import native\n"
        "from bench.mix import Actor\n"
        f"params = (('steps', 10), ('iterations', {iterations}))\n"
        "once = native.run_once(Actor('spin', 'scalar', 'base', 1, 0, params))\n"
        "print(once.work['ops'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == calibrated.work["ops"]


def test_seconds_an_operation_are_the_same_whatever_the_number_of_iterations():
    def seconds(iterations):
        runs = [native.run_once(spin(iterations=iterations)) for _ in range(7)]
        assert {run.work["ops"] for run in runs} == {10 * iterations}
        return min(run.seconds_per_pass for run in runs) / (10 * iterations)

    assert 0.5 < seconds(100_000) / seconds(20_000) < 2


def test_iterations_and_a_time_contradict_each_other():
    with pytest.raises(UsageError, match="step_us belongs to iterations=0"):
        native.footprint(spin(iterations=5, step_us=100))
