"""Significance tests for samples that cannot be paired, and for many comparisons at once.

The decision rule for paired samples is `analysis.stats.decide`; these serve files of different
sessions, where there are no blocks to pair.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.intervals import LEVEL, Floats, Interval, finite


@dataclass(frozen=True)
class WelchTest:
    """Ratio of two geometric means, from unpaired samples."""

    ratio: float
    low: float
    high: float
    t: float
    p: float
    level: float


def welch(treated: ArrayLike, baseline: ArrayLike, level: float = LEVEL) -> WelchTest:
    """Compare the logs of two independent samples without assuming equal variances.

    Parameters
    ----------
    treated, baseline : array_like, shapes (n,) and (m,)
        Positive values in one unit; at least two each.

    Raises
    ------
    ValueError
        Too few values, values that are not finite and positive, or no spread in either sample.
    """
    logs = []
    for name, values in (("treated", finite("treated", treated)),
                         ("baseline", finite("baseline", baseline))):  # fmt: skip
        if values.size < 2:
            raise ValueError(f"{name} has one value: a spread needs two")
        if values.min() <= 0:
            raise ValueError(f"{name} holds {values.min()}: a ratio needs values over 0")
        logs.append(np.log(values))
    if np.ptp(logs[0]) == 0 and np.ptp(logs[1]) == 0:
        raise ValueError("neither sample has any spread: there is no noise to compare with")
    result = stats.ttest_ind(logs[0], logs[1], equal_var=False)
    low, high = result.confidence_interval(level)
    ratio = np.exp(logs[0].mean() - logs[1].mean())
    return WelchTest(
        ratio=float(ratio),
        low=float(np.exp(low)),
        high=float(np.exp(high)),
        t=float(result.statistic),
        p=float(result.pvalue),
        level=level,
    )


def holm(p_values: ArrayLike) -> Floats:
    """Holm-adjusted p-values: each may be compared with the family's level directly.

    Raises
    ------
    ValueError
        Empty, or a value outside 0 to 1.
    """
    p = _p_values(p_values)
    order = np.argsort(p)
    steps = np.maximum.accumulate((p.size - np.arange(p.size)) * p[order])
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def false_discovery(p_values: ArrayLike) -> Floats:
    """Benjamini-Hochberg adjusted p-values: for long lists, where some false alarms are accepted.

    Raises
    ------
    ValueError
        Empty, or a value outside 0 to 1.
    """
    return np.asarray(stats.false_discovery_control(_p_values(p_values)), dtype=np.float64)


def bootstrap_interval(
    x: ArrayLike,
    statistic: Callable[..., Any] = np.mean,
    level: float = LEVEL,
    *,
    method: Literal["basic", "percentile", "BCa"] = "BCa",
    resamples: int = 9999,
    seed: int = 0,
) -> Interval:
    """Bootstrap interval of any statistic that takes ``axis``, without small-sample widening.

    Raises
    ------
    ValueError
        Fewer than 10 values.
    """
    values = finite("x", x)
    if values.size < 10:
        raise ValueError(f"the bootstrap needs 10 values, not {values.size}")
    result = stats.bootstrap(
        (values,),
        statistic,
        confidence_level=level,
        n_resamples=resamples,
        method=method,
        vectorized=True,
        axis=-1,
        rng=np.random.default_rng(seed),
    )
    low, high = (float(v) for v in result.confidence_interval)
    return Interval(low, high, level, f"{method} bootstrap")


def geometric_mean(ratios: ArrayLike) -> float:
    """Geometric mean of positive ratios."""
    values = finite("ratios", ratios)
    if values.min() <= 0:
        raise ValueError(f"ratios holds {values.min()}: a geometric mean needs values over 0")
    return float(stats.gmean(values))


def _p_values(p_values: ArrayLike) -> Floats:
    p = finite("p_values", p_values)
    if p.min() < 0 or p.max() > 1:
        raise ValueError("p-values lie between 0 and 1")
    return p
