"""The Universal Scalability Law: throughput that contention flattens and coherence turns down.

For the throughput of a whole pipeline against its concurrency. It is not the model of memory
bandwidth: on published bandwidth curves it wins once in 25.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy import optimize

from analysis.intervals import Floats
from analysis.model import Param, Scale, columns

NAME = "usl"
SUBJECT = "throughput"
SUMMARY = "gamma n / (1 + alpha (n-1) + beta n (n-1))"
WHEN = "jobs per second of a whole pipeline against workers; ten or more levels, some past the peak"
SOURCE = "N. J. Gunther, Guerrilla Capacity Planning, Springer 2007, ch. 4-6"
SCALE: Scale = "linear"
PARAMS = (
    Param("alpha", "", "contention: the part that queues", 0.0, 1.0),
    Param("beta", "", "coherence: the cost of every pair agreeing", 0.0, 1.0),
    Param("gamma", "y/x", "throughput of one worker alone"),
)


def f(x: Floats, alpha: Floats, beta: Floats, gamma: Floats) -> Floats:
    """Throughput of x workers."""
    return gamma * x / (1 + alpha * (x - 1) + beta * x * (x - 1))


def jacobian(x: Floats, alpha: Floats, beta: Floats, gamma: Floats) -> Floats:
    """Differentiate by alpha, beta, gamma."""
    rate = x / (1 + alpha * (x - 1) + beta * x * (x - 1))
    loss = -gamma * rate**2 * (x - 1) / x
    return columns(loss, loss * x, rate)


def guess(x: Floats, y: Floats) -> Sequence[tuple[float, ...]]:
    """Fit x/y, which is linear in the parameters, keeping all of them from going negative."""
    weights = y**2 / x
    basis = np.stack([np.ones_like(x), x - 1, x * (x - 1)], axis=-1) * weights[:, np.newaxis]
    (base, queue, talk), _ = optimize.nnls(basis, x / y * weights)
    starts = [(0.01, 1e-4, float(np.max(y / x)))]
    if base > 0:
        starts.insert(0, (float(queue / base), float(talk / base), float(1 / base)))
    return starts


def derived(alpha: float, beta: float, gamma: float) -> dict[str, float]:
    """Peak, limit and optimum.

    ``peak_n`` and ``peak_x``: the most throughput and where; infinite and ``limit`` without
    coherence cost. ``limit``: throughput of unlimited workers if beta were 0. ``optimum_n``: where
    linear growth would reach that limit.
    """
    limit = gamma / alpha if alpha > 0 else math.inf
    peak_n = math.sqrt((1 - alpha) / beta) if beta > 0 else math.inf
    # At the peak beta n² = 1 - alpha, which leaves this of the formula.
    peak_x = gamma / (alpha - beta + 2 * beta * peak_n) if beta > 0 else limit
    optimum = 1 / alpha if alpha > 0 else math.inf
    return {"peak_n": peak_n, "peak_x": peak_x, "limit": limit, "optimum_n": optimum}


def efficiency(x: Floats, y: Floats, gamma: float) -> Floats:
    """Measured throughput over that of linear growth."""
    return y / (gamma * x)


def latency(x: Floats, alpha: float, beta: float, gamma: float) -> Floats:
    """Time per job with x workers, by Little's law."""
    return (1 + alpha * (x - 1) + beta * x * (x - 1)) / gamma


def concurrency_at_throughput(y: float, alpha: float, beta: float, gamma: float) -> float:
    """Fewest workers that give throughput ``y``.

    Both terms are inverted; leaving out beta, as several published libraries do, is off by a
    quarter on their own example.

    Raises
    ------
    ValueError
        ``y`` lies above the peak.
    """
    # beta y n² + (alpha y - beta y - gamma) n + (1 - alpha) y = 0; the smaller root comes first.
    a, b, c = beta * y, (alpha - beta) * y - gamma, (1 - alpha) * y
    inside = b * b - 4 * a * c
    if b >= 0 or inside < 0:
        raise ValueError(f"throughput {y:g} is never reached")
    return 2 * c / (-b + math.sqrt(inside))


def concurrency_at_latency(seconds: float, alpha: float, beta: float, gamma: float) -> float:
    """Most workers that keep the time per job at or under ``seconds``.

    Raises
    ------
    ValueError
        One worker alone takes longer, or no number of workers takes as long.
    """
    a, b, c = beta, alpha - beta, 1 - alpha - seconds * gamma
    if c + a + b > 0:
        raise ValueError(f"one job alone takes {1 / gamma:g}, more than {seconds:g}")
    if alpha == beta == 0:
        raise ValueError("without contention the time per job never grows")
    return -2 * c / (b + math.sqrt(b * b - 4 * a * c))
