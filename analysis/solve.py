"""Nonlinear least squares for many small problems at once.

One model, one set of x, thousands of right-hand sides, starts or pinned values: bootstrap
resamples, left-out points, profiles and multi-starts are all this. A loop over a general solver
spends its time entering it; here every step of all problems is one array operation.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.intervals import Floats
from analysis.model import Curve, Scale

# More than any model here needs from a fair start; problems leave as soon as they converge.
STEPS = 200
# Relative fall of the sum of squares below which a problem has converged; differences under about
# the square root of this do not show in a parameter.
CONVERGED = 1e-15
# Enough where only the sum of squares is asked for.
ROUGHLY_CONVERGED = 1e-9


@dataclass(frozen=True, eq=False)
class Problem:
    """A model at fixed x and bounds, in the scale in which errors are compared."""

    model: Curve
    x: Floats
    y: Floats
    scale: Scale
    low: Floats
    high: Floats

    @property
    def target(self) -> Floats:
        """The data in the scale of the errors."""
        return self.to_scale(self.y)

    def to_scale(self, y: Floats) -> Floats:
        """Values of y in the scale of the errors."""
        return np.log(y) if self.scale == "log" else y

    def from_scale(self, target: Floats) -> Floats:
        """Values in the scale of the errors, back as y."""
        return np.exp(target) if self.scale == "log" else target

    def values(self, params: Floats) -> Floats:
        """Model values: params (m, k) -> (m, n), in logs where the scale says so."""
        with np.errstate(all="ignore"):
            y = self.model.f(self.x, *_split(params))
            return np.log(y) if self.scale == "log" else np.asarray(y)

    def slopes(self, params: Floats) -> Floats:
        """Differentiate `values`: params (m, k) -> (m, n, k)."""
        with np.errstate(all="ignore"):
            slopes = self.model.jacobian(self.x, *_split(params))
            if self.scale == "log":
                slopes = slopes / self.model.f(self.x, *_split(params))[..., np.newaxis]
        return np.broadcast_to(slopes, (len(params), self.x.size, params.shape[1]))


def solve(
    problem: Problem,
    starts: Floats,
    *,
    target: Floats | None = None,
    weights: Floats | None = None,
    pinned: NDArray[np.bool_] | None = None,
    converged: float = CONVERGED,
) -> tuple[Floats, Floats]:
    """Fit every row by Levenberg-Marquardt steps projected on the bounds.

    Parameters
    ----------
    problem : Problem
    starts : ndarray, shape (m, k)
        Brought inside the bounds first.
    target : ndarray, shape (m, n), optional
        Other data than the problem's own, in the scale of its errors.
    weights : ndarray, shape (m, n), optional
        Factors on the errors; 0 leaves a point out.
    pinned : ndarray of bool, shape (m, k), optional
        Parameters that keep their start.
    converged : float
        Relative fall of the sum of squares at which a row is done.

    Returns
    -------
    params : ndarray, shape (m, k)
    rss : ndarray, shape (m,)
        Weighted sum of squared errors; infinite where the start has no finite value.
    """
    low, high = problem.low, problem.high
    params = np.clip(starts, low, high)
    m, k = params.shape
    target = np.broadcast_to(problem.target if target is None else target, (m, problem.x.size))
    weigh = np.ones_like(target) if weights is None else np.broadcast_to(weights, target.shape)
    held = np.zeros((m, k), dtype=bool) if pinned is None else pinned
    errors = (problem.values(params) - target) * weigh
    rss = _sum_of_squares(errors)
    damping = np.full(m, 1e-3)
    active = np.flatnonzero(np.isfinite(rss))
    diagonal = np.arange(k)
    slopes = np.empty((m, problem.x.size, k))
    stale = np.ones(m, dtype=bool)
    for _ in range(STEPS):
        if active.size == 0:
            break
        renew = active[stale[active]]
        slopes[renew] = problem.slopes(params[renew]) * weigh[renew][..., np.newaxis]
        stale[renew] = False
        at, j = params[active], slopes[active]
        gradient = np.einsum("mnk,mn->mk", j, errors[active])
        fixed = held[active] | ((at <= low) & (gradient > 0)) | ((at >= high) & (gradient < 0))
        normal = np.einsum("mnk,mnl->mkl", j, j)
        size = normal[:, diagonal, diagonal]
        normal[:, diagonal, diagonal] += damping[active, np.newaxis] * size
        # A parameter that is held, or moves nothing, gets a row of the identity.
        fixed |= size == 0
        normal[fixed] = 0.0
        normal.transpose(0, 2, 1)[fixed] = 0.0
        normal[:, diagonal, diagonal] += fixed
        gradient[fixed] = 0.0
        trial = np.clip(at - _solve(normal, gradient), low, high)
        trial_errors = (problem.values(trial) - target[active]) * weigh[active]
        trial_rss = _sum_of_squares(trial_errors)
        better = trial_rss < rss[active]
        fall = np.where(better, rss[active] - trial_rss, 0.0)
        moved = active[better]
        params[moved], errors[moved] = trial[better], trial_errors[better]
        settled = better & (fall <= converged * rss[active])
        rss[moved] = trial_rss[better]
        stale[moved] = True
        damping[active] *= np.where(better, 0.2, 5.0)
        # Damping this high moves nothing: no step from here helps.
        active = active[~settled & (damping[active] < 1e10) & (rss[active] > 0)]
    return params, rss


def _split(params: Floats) -> list[Floats]:
    """Columns of params, each (m, 1), to broadcast against x."""
    return [params[:, j, np.newaxis] for j in range(params.shape[1])]


def _sum_of_squares(errors: Floats) -> Floats:
    total = np.einsum("mn,mn->m", errors, errors)
    return np.where(np.isfinite(total), total, np.inf)


def _solve(matrices: Floats, vectors: Floats) -> Floats:
    """Solve row by row after scaling to a unit diagonal; parameters differ by up to 1e6."""
    scale = 1 / np.sqrt(np.maximum(matrices.diagonal(axis1=1, axis2=2), 1e-300))
    scaled = matrices * scale[:, :, np.newaxis] * scale[:, np.newaxis, :]
    # Parameters that do the same make this singular; the ridge picks the shortest step.
    scaled[:, np.arange(scale.shape[1]), np.arange(scale.shape[1])] += 1e-13
    step = np.linalg.solve(scaled, (vectors * scale)[..., np.newaxis])[..., 0]
    return np.asarray(step * scale)
