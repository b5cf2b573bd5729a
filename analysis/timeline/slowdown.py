"""Estimates how much a phase is slowed down by what runs beside it, with errors.

The model: a span has an amount of work, and each span of phase q beside it stretches its time by
exp(b_q). So log(duration) - b . (mean company) is the logarithm of its work alone, and the right b
is the one that leaves no relation between that and the company beyond what is usual at the same
ages of work (`analysis.timeline.company`). Solved by Newton's method; the error comes from leaving
out one stretch of time after another, as neighbours in time share conditions.

Source: J. M. Robins, A. A. Tsiatis, Biometrika 79 (1992) 311-319 (estimating equations of
accelerated failure times under company that changes with time).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.intervals import Floats

Company = Callable[[Floats], tuple[Floats, Floats]]
"""Slopes -> mean company and company beyond the usual, both of shape (spans, phases)."""

# Company that differs by less, in spans at once, is as good as constant.
LEAST_SPREAD = 0.02
SAME = 1e-6
# Variance inflation: above, the other phases explain over 90 % of what one did.
MOST_INFLATION = 10.0
# Stretches over which the differences in company are spread: as many as there would be if they were
# spread evenly (1 / sum of squared shares). Below, it is one episode that nothing repeats.
FEWEST_SPREAD = 5.0
MOST_STEPS = 8
# Of a slope, to tell how the equations change with it.
_NUDGE = 0.01
# No step may change a duration by more than this, in logs.
_LONGEST_STEP = 0.5
# It has arrived once a step is a small part of the error.
_ARRIVED = 0.05


@dataclass(frozen=True)
class Estimate:
    """One slope, of log(duration) by one more span beside it; NaN with the reason."""

    slope: float
    error: float
    groups: float
    """Stretches of time that contribute, evenly spread: the t quantiles have one less."""
    reason: str = ""


def slowdown(
    y: Floats, company: Company, groups: NDArray[np.int64], rounding: float, names: list[str]
) -> list[Estimate]:
    """Estimate the slope of every phase beside.

    Parameters
    ----------
    y : ndarray, shape (n,)
        Logarithms of durations.
    company : callable
        See `Company`.
    groups : ndarray of int, shape (n,)
        Number of the stretch of time each span belongs to, from 0.
    rounding : float
        Standard deviation of what the clock rounds off ``y``.
    names : list of str
        Of the columns, for reasons.
    """
    nothing = np.zeros(len(names))
    beyond = company(nothing)[1]
    spread = beyond.std(axis=0)
    varies = np.flatnonzero(spread > LEAST_SPREAD)
    out = [Estimate(math.nan, math.nan, 0, _constant(float(s))) for s in spread]
    if not varies.size:
        return out
    found = _Equations(y, company, groups, varies, len(names)).solve()
    named = [names[i] for i in varies]
    for at, (column, slope, error) in enumerate(zip(varies, *found, strict=True)):
        own, spread_over, why = _own_part(beyond[:, varies], at, groups, named)
        if not why and not math.isfinite(error):
            why = "no stable estimate"
        if why:
            out[column] = Estimate(math.nan, math.nan, 0, why)
        else:
            total = math.sqrt(error**2 + rounding**2 / own)
            out[column] = Estimate(float(slope), total, spread_over)
    return out


class _Equations:
    """Sum over spans of company beyond the usual times log(work): 0 at the right slopes."""

    def __init__(
        self,
        y: Floats,
        company: Company,
        groups: NDArray[np.int64],
        varies: NDArray[np.intp],
        columns: int,
    ) -> None:
        self.y, self.company, self.groups, self.varies = y, company, groups, varies
        self.columns = columns
        self.n_groups = int(groups.max()) + 1

    def at(self, slopes: Floats) -> Floats:
        """Equations by stretch of time: shape (groups, slopes)."""
        every = np.zeros(self.columns)
        every[self.varies] = slopes
        mean, beyond = self.company(every)
        work = self.y - mean @ every
        terms = beyond[:, self.varies] * (work - work.mean())[:, None]
        # Groups are runs of neighbours.
        first = np.searchsorted(self.groups, np.arange(self.n_groups))
        return np.asarray(np.add.reduceat(terms, first, axis=0))

    def solve(self) -> tuple[Floats, Floats]:
        """Slopes and errors; errors are NaN where it does not settle."""
        k = self.varies.size
        slopes = np.zeros(k)
        for _ in range(MOST_STEPS):
            here = self.at(slopes)
            changes = np.stack(
                [(self.at(slopes + _NUDGE * unit) - here) / _NUDGE for unit in np.eye(k)], axis=2
            )
            try:
                step = -np.linalg.solve(changes.sum(axis=0), here.sum(axis=0))
                without = np.stack(
                    [
                        -np.linalg.solve(changes.sum(axis=0) - c, here.sum(axis=0) - h)
                        for c, h in zip(changes, here, strict=True)
                    ]
                )
            except np.linalg.LinAlgError:
                break
            scale = (self.n_groups - 1) / self.n_groups
            errors = np.sqrt(scale * ((without - step) ** 2).sum(axis=0))
            if (np.abs(step) <= _ARRIVED * errors).all():
                return slopes + step, errors
            slopes = slopes + step.clip(-_LONGEST_STEP, _LONGEST_STEP)
        return slopes, np.full(k, np.nan)


def _constant(spread: float) -> str:
    if spread < SAME:
        return "always as many ran beside it"
    return f"how many ran beside it varied by {spread:.1g} only"


def _own_part(
    columns: Floats, at: int, groups: NDArray[np.int64], names: list[str]
) -> tuple[float, float, str]:
    """Squares of what no other column explains, over how many groups, and why too little."""
    centred = columns - columns.mean(axis=0)
    column, others = centred[:, at], np.delete(centred, at, axis=1)
    rest = column - others @ (np.linalg.pinv(others) @ column)
    own = float(rest @ rest)
    if float(column @ column) > MOST_INFLATION * own:
        size = np.sqrt((others**2).sum(axis=0) * float(column @ column))
        r = (column @ others) / size
        alike = int(np.abs(r).argmax())
        name = np.delete(np.array(names, dtype=object), at)[alike]
        return own, 0.0, f"it comes and goes with others, most with {name} (r = {r[alike]:.2f})"
    parts = np.bincount(groups, weights=rest**2) / own
    spread_over = 1 / float(parts @ parts)
    if spread_over < FEWEST_SPREAD:
        few = f"its changes lie in about {spread_over:.0f} of {parts.size} stretches of time"
        return own, spread_over, few
    return own, spread_over, ""
