"""Bandwidth saturation by the utilisation recursion of the ECM performance model."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.intervals import Floats
from analysis.model import Param, Scale, columns

NAME = "ecm"
SUBJECT = "bandwidth"
SUMMARY = "bs u(n), u(n) = min(1, n f / (1 + u(n-1) (n-1) q f)), f = b1/bs"
WHEN = "threads of one NUMA domain, every count measured; the best shape on most published curves"
SOURCE = "J. Hofmann, G. Hager, D. Fey, SC19 artefact RRZE-HPC/SC19-ECM-AA; kerncraft ecm.py"
SCALE: Scale = "linear"
PARAMS = (
    Param("b1", "y/x", "bandwidth of one thread"),
    Param("bs", "y", "saturated bandwidth"),
    # Above 1 the recursion settles below full use, which bs can no more be told from.
    Param("q", "", "penalty of waiting, in transfer times of one thread", 0.0, 2.0),
)


def f(x: Floats, b1: Floats, bs: Floats, q: Floats) -> Floats:
    """Bandwidth of x threads; straight lines between whole numbers of threads."""
    share, penalty = _leading(b1 / bs, q)
    return bs * _between(_utilisation(x, share, penalty), x)


def jacobian(x: Floats, b1: Floats, bs: Floats, q: Floats) -> Floats:
    """Differentiate by b1, bs, q."""
    share, penalty = _leading(b1 / bs, q)
    use = _utilisation(x, share, penalty)
    by_share, by_q = (_between(table, x) for table in _slopes(use, share, penalty))
    return columns(by_share, _between(use, x) - b1 / bs * by_share, bs * by_q)


def guess(x: Floats, y: Floats) -> Sequence[tuple[float, ...]]:
    """Start at several penalties: every kink of the minimum makes a valley of its own."""
    b1, bs = float(np.max(y / x)), float(y.max())
    return [(b1, bs, q) for q in (0.1, 0.5, 0.9, 1.5)]


def _leading(share: Any, q: Any) -> list[Any]:  # noqa: ANN401 - number or (m, 1)
    """Drop the axis that parameters keep for x."""
    return [v[..., 0] for v in np.broadcast_arrays(np.atleast_1d(share), np.atleast_1d(q))]


def _utilisation(x: Floats, share: Floats, q: Floats) -> Floats:
    """u(0), u(1), … up to the largest x, on a last axis."""
    use = np.zeros((*np.shape(share), int(np.ceil(x.max())) + 1))
    penalty = q * share
    for n in range(1, use.shape[-1]):
        use[..., n] = np.minimum(1.0, n * share / (1 + use[..., n - 1] * (n - 1) * penalty))
    return use


def _slopes(use: Floats, share: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Differentiate the utilisation by share and q; nothing moves where the interface is full."""
    by_share, by_q = np.zeros_like(use), np.zeros_like(use)
    for n in range(1, use.shape[-1]):
        before = use[..., n - 1]
        waiting = 1 + before * (n - 1) * q * share
        now = n * share / waiting
        rate = (n - 1) * now / waiting
        free = now < 1
        slope = n / waiting - rate * q * (before + share * by_share[..., n - 1])
        by_share[..., n] = np.where(free, slope, 0.0)
        by_q[..., n] = np.where(free, -rate * share * (before + q * by_q[..., n - 1]), 0.0)
    return by_share, by_q


def _between(table: Floats, x: Floats) -> Floats:
    """Values at x of a table over whole numbers."""
    below = np.floor(x).astype(int)
    part = x - below
    if not part.any():
        return table[..., below]
    above = np.minimum(below + 1, table.shape[-1] - 1)
    return np.asarray(table[..., below] * (1 - part) + table[..., above] * part)
