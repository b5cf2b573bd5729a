"""What kernels lose beside each other, as sensitivity of the victim times pressure of the other."""

import numpy as np
from scipy.sparse.csgraph import connected_components

from analysis.intervals import Floats

NAME = "pressure"
SUBJECT = "sharing"
SUMMARY = "log slowdown_ij = sensitivity_i x pressure_j"
WHEN = "pairs that no law of bandwidth is for (walkers, gathers): from other pairs of the same two"
SOURCE = (
    "sensitivity and pressure after J. Mars et al., Bubble-Up (MICRO 2011), linear in the pressure"
    " and with every other kernel in place of the bubble"
)

PULL = 1e-3
"""Towards equal sensitivity, in units of squared pressure: pressures of a few percent are noise,
and say nothing about who is sensitive."""
STEPS = 200


def factors(losses: Floats) -> tuple[Floats, Floats]:
    """Sensitivities and pressures, neither negative, that fit a matrix best (least squares).

    Parameters
    ----------
    losses : ndarray, shape (n, n)
        Of victim i beside aggressor j: log of time over time beside CPUs that leave memory alone.
        NaN where not known.

    Returns
    -------
    sensitivity, pressure : ndarray, shape (n,)
        Their product is what counts; the sensitivities have mean 1. NaN without any loss known.
    """
    known = np.isfinite(losses)
    filled = np.where(known, losses, 0.0)
    pressure = np.maximum(filled.sum(0) / np.maximum(known.sum(0), 1), 0.0)
    sensitivity = np.ones(losses.shape[0])
    for _ in range(STEPS):
        before = sensitivity
        sensitivity = (filled @ pressure + PULL) / (known @ pressure**2 + PULL)
        sensitivity = np.maximum(sensitivity, 0.0)
        mean = sensitivity.mean()
        if mean <= 0:
            break
        sensitivity /= mean
        squares = np.maximum(sensitivity**2 @ known, PULL)
        pressure = np.maximum(sensitivity @ filled / squares, 0.0)
        if np.allclose(sensitivity, before, rtol=1e-9, atol=1e-12):
            break
    sensitivity[~known.any(1)] = np.nan
    pressure[~known.any(0)] = np.nan
    return sensitivity, pressure


def left_out(losses: Floats) -> Floats:
    """Every loss as foretold by all other pairs: neither it nor its reverse is looked at.

    Parameters
    ----------
    losses : ndarray, shape (n, n)
        As of ``factors``.

    Returns
    -------
    ndarray, shape (n, n)
        NaN on the diagonal, and where the other pairs do not connect the two: with fewer than three
        kernels nothing does.
    """
    n = losses.shape[0]
    found = np.full((n, n), np.nan)
    for i in range(n):
        for j in range(i + 1, n):
            rest = losses.copy()
            rest[i, j] = rest[j, i] = np.nan
            sensitivity, pressure = factors(rest)
            part = _parts(np.isfinite(rest))
            for a, b in ((i, j), (j, i)):
                if part[a] == part[n + b]:
                    found[a, b] = sensitivity[a] * pressure[b]
    return found


def _parts(known: np.ndarray) -> np.ndarray:
    """Which victims (0 to n-1) and aggressors (n on) known losses connect: a label each."""
    n = known.shape[0]
    graph = np.zeros((2 * n, 2 * n), dtype=bool)
    graph[:n, n:] = known
    return np.asarray(connected_components(graph, directed=False)[1])
