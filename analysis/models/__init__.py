"""Contention models, one file each; the folder is the registry.

Which one for which data:

bandwidth of one NUMA domain against threads
    `ecm` and `power_min` first, `knee` where saturation is abrupt or points are few, `hyperbola`
    as a reference. Fit all and let `analysis.selection.choose` compare.
jobs per second of a pipeline against workers
    `usl`, with `amdahl` nested in it.
latency against bandwidth of other traffic
    `latency_mm1`, `latency_general`. Report bandwidths measured at a latency, not fitted peaks.
latency against working set
    `tlb_ladder`, with `tlb_ladder.Ladder(levels)` for other than two levels.
time of one unmap against CPUs
    `shootdown_constant`, `shootdown_log`, `shootdown_linear`.
two or more kernels side by side
    `sharing` predicts shares from each kernel alone; `pressure` slowdowns from other pairs.
workers, servers and stations
    `queueing` computes; nothing is fitted.

A new model is one more file with the names of `analysis.model.Curve`, or of `Law` if nothing in
it is fitted.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from analysis.model import Curve, Law
from bench.errors import unknown_name


@cache
def laws() -> dict[str, Law]:
    """Every model by name, curves and formulas alike."""
    modules = (import_module(f"{__name__}.{m.name}") for m in iter_modules(__path__))
    return {m.NAME: cast(Law, m) for m in modules}


def curves(subject: str | None = None) -> dict[str, Curve]:
    """Models that can be fitted, by name; of one subject, or all."""
    return {
        name: cast(Curve, model)
        for name, model in laws().items()
        if hasattr(model, "jacobian") and subject in (None, model.SUBJECT)
    }


def find(name: str) -> Curve:
    """Return the model of that name.

    Raises
    ------
    bench.errors.UsageError
        No such model; the close ones are listed.
    """
    known = curves()
    if name not in known:
        raise unknown_name("model", name, sorted(known))
    return known[name]
