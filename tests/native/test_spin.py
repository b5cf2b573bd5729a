"""spin and sleep pass their time without memory."""

import pytest

from bench import native
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
