"""spmv and prep stay right in windows that cut passes off, with many threads, and as process twins.

Their own checks compare all results at the end of each run.
"""

import pytest

from bench import native
from bench.mix import Actor, Mix

CASES = [
    ("spmv", ()),
    ("spmv", (("values", "fr"), ("output", "warm"))),
    ("spmv", (("columns", "uniform"), ("chunk", 64))),
    ("prep", ()),
    ("prep", (("branches", "free"), ("chunk", 64))),
]


@pytest.mark.parametrize("process", ["", "each"])
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("kernel", "params"), CASES, ids=str)
def test_results_are_right_wherever_the_window_ends(kernel, params, threads, process):
    variant = native.kernel(kernel).best_variant
    actor = Actor(kernel, variant, "base", threads, 3 << 20, params, process=process)
    settings = native.RunSettings(window_s=0.02, warm_s=0.005, min_passes=3)
    raw = native.run(Mix((actor,)), settings)
    assert raw.actors[0].passes >= 3
    assert raw.actors[0].seconds_per_pass > 0


def test_phases_of_prep_are_the_time_of_its_steps():
    actor = Actor("prep", "scalar", "base", 1, 8 << 20)
    raw = native.run(Mix((actor,)), native.RunSettings(window_s=0.05))
    row = raw.threads[0]
    phases = dict(zip(native.kernel("prep").phases, row.phase_ns, strict=False))
    assert list(phases) == ["classify", "merge", "decide", "fill"]
    assert phases["classify"] > phases["merge"] > phases["decide"] > 0
    # The steps at both edges of the window are cut or counted differently.
    assert sum(phases.values()) == pytest.approx(row.step_ns, rel=0.2)
