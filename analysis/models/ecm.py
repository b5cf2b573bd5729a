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
    use, _, _ = _recursion(x, b1 / bs, q)
    return bs * use


def jacobian(x: Floats, b1: Floats, bs: Floats, q: Floats) -> Floats:
    """Differentiate by b1, bs, q."""
    share = b1 / bs
    use, by_share, by_q = _recursion(x, share, q)
    return columns(by_share, use - share * by_share, bs * by_q)


def guess(x: Floats, y: Floats) -> Sequence[tuple[float, ...]]:
    """Start at several penalties: every kink of the minimum makes a valley of its own."""
    b1, bs = float(np.max(y / x)), float(y.max())
    return [(b1, bs, q) for q in (0.1, 0.5, 0.9, 1.5)]


def _recursion(x: Floats, share: Any, q: Any) -> tuple[Floats, Floats, Floats]:  # noqa: ANN401 - number or array
    """Utilisation at x, and its derivatives by share and q."""
    top = int(np.ceil(x.max()))
    shape = np.broadcast_shapes(np.shape(share), np.shape(q), (1,))
    use, by_share, by_q = (np.zeros((*shape[:-1], top + 1)) for _ in range(3))
    share_, q_ = np.broadcast_to(share, shape)[..., 0], np.broadcast_to(q, shape)[..., 0]
    for n in range(1, top + 1):
        u, du_share, du_q = use[..., n - 1], by_share[..., n - 1], by_q[..., n - 1]
        waiting = 1 + u * (n - 1) * q_ * share_
        now = n * share_ / waiting
        free = now < 1
        use[..., n] = np.where(free, now, 1.0)
        rate = (n - 1) * now / waiting
        slope_share = n / waiting - rate * q_ * (u + share_ * du_share)
        by_share[..., n] = np.where(free, slope_share, 0.0)
        by_q[..., n] = np.where(free, -rate * share_ * (u + q_ * du_q), 0.0)
    below = np.floor(x).astype(int)
    above = np.minimum(below + 1, top)
    part = x - below
    return tuple(
        table[..., below] * (1 - part) + table[..., above] * part for table in (use, by_share, by_q)
    )
