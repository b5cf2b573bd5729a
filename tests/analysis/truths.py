"""One known curve for every model that can be fitted: where it is measured, and its parameters."""

import numpy as np

_THREADS = np.arange(1.0, 13)
_WORKERS = np.array([1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24.0])
_GB_PER_S = np.array([2, 10, 20, 40, 60, 80, 100, 120, 140, 155, 165, 175.0])
_BYTES = 2.0 ** np.arange(16, 34)

TRUTHS = {
    "amdahl": (_WORKERS, (0.1, 100.0)),
    "ecm": (_THREADS, (13.0, 60.0, 0.5)),
    "hyperbola": (_THREADS, (90.0, 3.0)),
    "knee": (_THREADS, (13.0, 60.0)),
    "latency_general": (_GB_PER_S, (90.0, 20.0, 200.0, 0.6)),
    "latency_mm1": (_GB_PER_S, (90.0, 30.0, 200.0)),
    "power_min": (_THREADS, (13.0, 60.0, 4.0)),
    "shootdown_constant": (_THREADS, (3.0,)),
    "shootdown_linear": (_THREADS, (2.0, 0.3)),
    "shootdown_log": (_THREADS, (2.0, 1.0)),
    "tlb_ladder": (_BYTES, (5.0, 0.26 * 2**20, 6.0, 1.1 * 2**25, 12.0)),
    "usl": (_WORKERS, (0.05, 0.002, 100.0)),
}


def noisy(model, x, values, seed, noise=0.01):
    """The curve with normal noise of 1 % of its top, or of each value where errors are ratios."""
    truth = model.f(x, *values)
    errors = np.random.default_rng(seed).normal(0, noise, x.size)
    return truth * np.exp(errors) if model.SCALE == "log" else truth + errors * truth.max()
