"""How well data determine the parameters of a fit: profiles, resamples and left-out points."""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from scipy import stats

from analysis.intervals import Floats
from analysis.solve import ROUGHLY_CONVERGED, Problem, solve

Centre = Literal["median", "mean"]

# Steps of the search for an end, in standard errors: first where it is likely, then far out.
_NEAR = np.array([1, 1.5, 2, 2.5, 3, 4])
_FARTHER = np.array([6, 10, 20, 50, 200, 1000, 1e4])
_REFINE = 6
# Rounding stops the search on data without noise, where both ends fall on the estimate.
_MOST_REFINES = 20
# An infinite bound is tried at this many times the estimate.
_FAR = 1e4
# Fewer samples than this at a point have medians that resampling says little about.
LEAST_GROUP = 5


def limit_of_rss(problem: Problem, rss: float, level: float) -> float:
    """Sum of squares within which a pinned parameter is still believable, by the F statistic."""
    n, k = problem.x.size, problem.low.size
    t = float(stats.t.ppf((1 + level) / 2, n - k))
    # Exact data would make every interval empty: rounding is their noise.
    floor = n * (1e-12 * float(np.abs(problem.target).max())) ** 2
    return max(rss, floor) * (1 + t * t / (n - k))


def far_end(problem: Problem, values: Floats, j: int) -> float:
    """Return the upper bound of parameter j, or a value far above it where there is none."""
    high = float(problem.high[j])
    return high if np.isfinite(high) else _FAR * max(abs(float(values[j])), 1e-6)


def pinned_rss(problem: Problem, starts: Floats, j: int, at: Floats) -> Floats:
    """Least sum of squares with parameter j held at each of ``at``, over all starts.

    Parameters
    ----------
    starts : ndarray, shape (s, k) or (len(at), s, k)
    j : int
    at : ndarray, shape (m,)

    Returns
    -------
    ndarray, shape (m,)
    """
    tries = np.array(np.broadcast_to(starts, (at.size, *starts.shape[-2:])))
    tries[:, :, j] = at[:, np.newaxis]
    rows = tries.reshape(-1, starts.shape[-1])
    pinned = np.zeros(rows.shape, dtype=bool)
    pinned[:, j] = True
    _, rss = solve(problem, rows, pinned=pinned, converged=ROUGHLY_CONVERGED)
    return np.asarray(rss.reshape(at.size, -1).min(axis=1))


def profile_interval(
    problem: Problem,
    values: Floats,
    rss: float,
    j: int,
    level: float,
    *,
    starts: Floats,
    covariance: Floats,
) -> tuple[float, float]:
    """Values of parameter j that the data do not rule out, whatever the others are.

    Parameters
    ----------
    values : ndarray, shape (k,)
        Best fit, with sum of squares ``rss``.
    starts : ndarray, shape (s, k)
        Tried for the others at every step: kinked models have several valleys.
    covariance : ndarray, shape (k, k)
        Sets the size of the first steps and where the others begin; NaN where unknown.

    Returns
    -------
    low, high : float
        A bound of the parameter where the data do not rule it out; infinity where there is none.
    """
    limit = limit_of_rss(problem, rss, level)
    best = float(values[j])
    variance = covariance[j, j]
    known = bool(np.isfinite(variance) and variance > 0)
    step = float(np.sqrt(variance)) if known else max(abs(best), 1e-9) * 0.05
    drift = np.nan_to_num(covariance[j] / variance) if known else np.zeros_like(values)

    def rss_at(at: Floats) -> Floats:
        drifted = values + (at - best)[:, np.newaxis] * drift
        fixed = np.broadcast_to(
            np.vstack([values, starts]), (at.size, 1 + len(starts), values.size)
        )
        return pinned_rss(problem, np.concatenate([fixed, drifted[:, np.newaxis]], axis=1), j, at)

    sides = (-1.0, 1.0)
    # Another valley that is not ruled out belongs to the interval: search outwards from there.
    others = starts[:, j][rss_at(starts[:, j]) <= limit]
    outmost = [float(np.min(others, initial=best)), float(np.max(others, initial=best))]
    near = [
        _clipped(problem, j, origin + sign * step * _NEAR)
        for sign, origin in zip(sides, outmost, strict=True)
    ]
    found = np.split(rss_at(np.concatenate(near)), 2)
    ends = []
    for sign, origin, at, errors in zip(sides, outmost, near, found, strict=True):
        bound = float((problem.low if sign < 0 else problem.high)[j])
        if errors[-1] <= limit and at[-1] != bound:
            last = bound if np.isfinite(bound) else best + sign * _FAR * max(abs(best), step)
            farther = _clipped(problem, j, origin + sign * step * _FARTHER)
            farther = np.append(farther[np.abs(farther - origin) < abs(last - origin)], last)
            at, errors = np.append(at, farther), np.append(errors, rss_at(farther))
        if errors[-1] <= limit:
            ends.append(bound)
            continue
        at, errors = np.append(origin, at), np.append(rss, errors)
        ends.append(_crossing(at, errors, limit, rss, rss_at))
    return ends[0], ends[1]


def _clipped(problem: Problem, j: int, at: Floats) -> Floats:
    return np.clip(at, problem.low[j], problem.high[j])


def _crossing(
    at: Floats, errors: Floats, limit: float, rss: float, rss_at: Callable[[Floats], Floats]
) -> float:
    """Where the profile last passes ``limit``, given values from the best outwards."""
    best = at[0]
    for _ in range(_MOST_REFINES):
        last = int(np.flatnonzero(errors <= limit)[-1])
        (inner, outer), (low, high) = at[last : last + 2], errors[last : last + 2]
        if outer - inner == 0 or abs(outer - inner) <= 0.1 * abs(outer - best):
            break
        at = np.linspace(inner, outer, _REFINE + 1)
        errors = np.concatenate([[low], rss_at(at[1:-1]), [high]])
    if not np.isfinite(high):
        return float(inner)
    # The root of the excess is nearly straight where the excess itself is a parabola.
    a, b, c = (math.sqrt(max(float(v) - rss, 0.0)) for v in (low, high, limit))
    return float(inner + (outer - inner) * (c - a) / (b - a) if b > a else inner)


def resample(
    problem: Problem,
    values: Floats,
    groups: Sequence[Floats],
    *,
    centre: Centre,
    resamples: int,
    seed: int,
) -> Floats:
    """Parameters of fits to resampled data: the samples of each x are drawn again.

    What varies is the noise between samples; a curve that the model does not follow varies no
    more for it, so these intervals are no test of the model.

    Parameters
    ----------
    groups : sequence of ndarray
        The samples at each x, as y.

    Returns
    -------
    ndarray, shape (resamples, k)

    Raises
    ------
    ValueError
        A point with fewer than five samples.
    """
    rng = np.random.default_rng(seed)
    drawn = np.empty((resamples, problem.x.size))
    middle = np.median if centre == "median" else np.mean
    for i, group in enumerate(groups):
        m = group.size
        if m < LEAST_GROUP:
            raise ValueError(
                f"x={problem.x[i]:g} has {m} samples; resampling needs {LEAST_GROUP} at every x"
            )
        scaled = problem.to_scale(group)
        again = middle(scaled[rng.integers(0, m, (resamples, m))], axis=1)
        # Values drawn again vary by (m-1)/m of what fresh ones would; this makes up for it.
        drawn[:, i] = middle(scaled) + np.sqrt(m / (m - 1)) * (again - middle(scaled))
    params, _ = solve(problem, np.tile(values, (resamples, 1)), target=drawn)
    return params


def leave_one_out(problem: Problem, starts: Floats) -> float:
    """Root mean square error of predicting each point from all others, in the scale of the errors.

    Raises
    ------
    ValueError
        Without some point the model cannot be fitted.
    """
    n, s = problem.x.size, len(starts)
    weights = np.repeat(1.0 - np.eye(n), s, axis=0)
    params, rss = solve(problem, np.tile(starts, (n, 1)), weights=weights)
    best = rss.reshape(n, s).argmin(axis=1) + s * np.arange(n)
    errors = (problem.values(params[best]) - problem.target).diagonal()
    if not np.all(np.isfinite(errors)):
        raise ValueError(f"{problem.model.NAME} cannot be fitted with a point left out")
    return float(np.sqrt(np.mean(errors**2)))
