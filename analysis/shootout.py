"""How the bandwidth models do on published curves: why `ecm` and `power_min` are tried first."""

import json
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from analysis import models
from analysis.fit import fit
from analysis.intervals import Floats
from analysis.selection import compare

if TYPE_CHECKING:
    from pandas import DataFrame

# The USL is no model of bandwidth; it competes here because it is often used as one.
CONTENDERS = ("ecm", "power_min", "knee", "hyperbola", "usl")


@dataclass(frozen=True, eq=False)
class PublishedCurve:
    """One published bandwidth curve."""

    machine: str
    kernel: str
    threads: Floats
    gb_per_s: Floats


def published_curves() -> list[PublishedCurve]:
    """Bandwidth against threads of five machines and five kernels, with the source in the file."""
    text = resources.files("analysis").joinpath("data/published_bandwidth.json").read_text("utf-8")
    return [
        PublishedCurve(machine, kernel, np.arange(1.0, len(values) + 1), np.array(values))
        for machine, facts in json.loads(text)["machines"].items()
        for kernel, values in facts["gb_per_s"].items()
    ]


def shoot_out() -> "DataFrame":
    """Fit every contender to every published curve.

    Returns
    -------
    DataFrame
        The columns of `analysis.selection.compare` after machine, kernel, n_points and ``winner``,
        which is true for the best AICc of each curve.
    """
    import pandas as pd

    parts = []
    for curve in published_curves():
        fits = [fit(models.find(name), curve.threads, curve.gb_per_s) for name in CONTENDERS]
        table = compare(fits)
        table.insert(0, "winner", table.index == 0)
        table.insert(0, "n_points", curve.threads.size)
        table.insert(0, "kernel", curve.kernel)
        table.insert(0, "machine", curve.machine)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)
