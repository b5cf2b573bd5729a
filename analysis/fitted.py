"""A fitted model: its parameters, how well the data determine them, and what it predicts.

`analysis.fit` makes these; `analysis.selection` compares them.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from analysis import model as contract
from analysis import uncertainty
from analysis.intervals import LEVEL, Floats, check_level, finite
from analysis.model import Curve, Scale
from analysis.solve import Problem
from analysis.uncertainty import Centre

if TYPE_CHECKING:
    from analysis.plot import Axes

RESAMPLES = 2000
Method = Literal["profile", "normal", "bootstrap"]


@dataclass(frozen=True, eq=False)
class Fit:
    """A model fitted to data."""

    problem: Problem
    values: Floats
    """Best parameters, in the model's order."""
    rss: float
    """Sum of squared errors, of log y where the scale is log."""
    valleys: Floats = field(repr=False)
    """Where other starts ended, best first; tried again whenever part of the problem changes."""
    groups: tuple[Floats, ...] | None = field(default=None, repr=False)
    centre: Centre = "median"

    @property
    def model(self) -> Curve:
        """The model fitted."""
        return self.problem.model

    @property
    def x(self) -> Floats:
        """Where the data were measured."""
        return self.problem.x

    @property
    def y(self) -> Floats:
        """The data fitted; the centre of the samples where there were several."""
        return self.problem.y

    @property
    def scale(self) -> Scale:
        """Whether errors are differences or ratios."""
        return self.problem.scale

    @property
    def n(self) -> int:
        """Points."""
        return int(self.x.size)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return contract.names(self.model)

    @property
    def params(self) -> dict[str, float]:
        """Best parameters by name."""
        return dict(zip(self.names, map(float, self.values), strict=True))

    @cached_property
    def derived(self) -> dict[str, float]:
        """What the model computes from its parameters: a peak, a limit."""
        return contract.derived(self.model, [float(v) for v in self.values])

    @property
    def residuals(self) -> Floats:
        """Data minus model, in units of y."""
        return self.y - self.predict(self.x)

    @property
    def residual_error(self) -> float:
        """Residual standard error, in the scale of the errors."""
        return math.sqrt(self.rss / (self.n - self.values.size))

    @property
    def rms_percent(self) -> float:
        """Typical error in percent: of the largest y, or of y itself where the scale is log."""
        largest = 1.0 if self.scale == "log" else float(np.abs(self.y).max())
        return 100 * math.sqrt(self.rss / self.n) / largest

    @property
    def aicc(self) -> float | None:
        """Corrected Akaike criterion; None where the points are too few for it.

        n ln(RSS/n) + 2k + 2k(k+1)/(n-k-1), where k counts the noise too. Only differences between
        models of the same data mean anything.
        """
        k = self.values.size + 1
        room = self.n - k - 1
        if room <= 1:
            return None
        smallest = (np.finfo(float).eps * float(np.abs(self.problem.target).max())) ** 2
        per_point = max(self.rss / self.n, smallest)
        return self.n * math.log(per_point) + 2 * k + 2 * k * (k + 1) / room

    @cached_property
    def loo(self) -> float:
        """Leave-one-out error: root mean square of predicting each point from the others.

        In units of y, or relative where the scale is log.
        """
        return uncertainty.leave_one_out(self.problem, self._tries)

    @cached_property
    def at_bound(self) -> dict[str, float]:
        """Parameters that the data push against a bound, and the bound."""
        held = pushed(self.problem, self.values)
        return {name: self.params[name] for name, at in zip(self.names, held, strict=True) if at}

    @cached_property
    def not_identifiable(self) -> tuple[str, ...]:
        """Parameters the data do not determine: they move nothing, or have no upper limit."""
        limit = uncertainty.limit_of_rss(self.problem, self.rss, LEVEL)
        loose = self._moves_nothing
        found = []
        for j, name in enumerate(self.names):
            if self.at_bound.get(name) == self.problem.low[j]:
                # At its lower bound a term is not there, which is an answer.
                continue
            far = np.array([uncertainty.far_end(self.problem, self.values, j)])
            open_end = uncertainty.pinned_rss(self.problem, self._tries, j, far)[0] <= limit
            if loose[j] or open_end:
                found.append(name)
        return tuple(found)

    @cached_property
    def stderr(self) -> dict[str, float]:
        """Standard errors by name; NaN at an active bound and where not identifiable."""
        sd = np.sqrt(np.diag(self._covariance))
        silent = set(self.not_identifiable) | set(self.at_bound)
        return {
            name: math.nan if name in silent else float(s)
            for name, s in zip(self.names, sd, strict=True)
        }

    def interval(
        self, name: str, level: float = LEVEL, method: Method = "profile", **options: int
    ) -> tuple[float, float]:
        """Interval of one parameter.

        Parameters
        ----------
        name : str
        level : float
        method : {"profile", "normal", "bootstrap"}
            ``profile``: values that the scatter about the curve does not rule out; the default,
            right at bounds and for skewed parameters. ``normal``: Student's t times the standard
            error. ``bootstrap``: samples drawn again at every x, see `bootstrap`.
        **options
            ``resamples`` and ``seed`` of `bootstrap`.

        Returns
        -------
        low, high : float
            An end at a bound, or infinite, is one the data do not rule out.

        Raises
        ------
        ValueError
            No such parameter; ``normal`` where there is no standard error; ``bootstrap`` without
            samples.
        """
        j = self._index(name)
        check_level(level)
        if method == "bootstrap":
            drawn = self.bootstrap(**options)[:, j]
            low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
            return float(low), float(high)
        if method == "normal":
            if math.isnan(self.stderr[name]):
                why = "at its bound" if name in self.at_bound else "not identifiable"
                raise ValueError(f"{name} is {why}: it has no normal interval, use the profile")
            reach = float(stats.t.ppf((1 + level) / 2, self.n - self.values.size))
            half = reach * self.stderr[name]
            return self.params[name] - half, self.params[name] + half
        return uncertainty.profile_interval(
            self.problem,
            self.values,
            self.rss,
            j,
            level,
            starts=self.valleys,
            covariance=self._covariance,
        )

    def bootstrap(self, resamples: int = RESAMPLES, seed: int = 0) -> Floats:
        """Parameters of fits to resampled samples, shape (resamples, number of parameters).

        Raises
        ------
        ValueError
            The data were single values, or fewer than five samples at some x.
        """
        if self.groups is None:
            raise ValueError("resampling needs the samples at every x, not one value")
        return uncertainty.resample(
            self.problem,
            self.values,
            self.groups,
            centre=self.centre,
            resamples=resamples,
            seed=seed,
        )

    def predict(self, x: ArrayLike) -> Floats:
        """Model values at x, shape of x; beyond the data they are an extrapolation."""
        return np.asarray(self.model.f(finite("x", x), *self.values))

    def predict_band(self, x: ArrayLike, level: float = LEVEL) -> tuple[Floats, Floats]:
        """Interval of the curve (not of a new sample) at each x, by the delta method.

        Parameters at a bound, and those that move nothing, are taken as known.
        """
        check_level(level)
        at = finite("x", x)
        wide = Problem(self.model, at, at, self.scale, self.problem.low, self.problem.high)
        centre = wide.values(self.values[np.newaxis])[0]
        slopes = np.nan_to_num(wide.slopes(self.values[np.newaxis])[0])
        sd = np.sqrt(np.einsum("nk,kl,nl->n", slopes, self._covariance, slopes))
        half = float(stats.t.ppf((1 + level) / 2, self.n - self.values.size)) * sd
        return wide.from_scale(centre - half), wide.from_scale(centre + half)

    def summary(self) -> str:
        """Describe the fit in plain text, a line a parameter."""
        lines = [f"{self.model.NAME}: {self.model.SUMMARY}", self._quality()]
        for param, (low, high), note in self._rows():
            value = f"{self.params[param.name]:.5g} [{low:.5g}, {high:.5g}]"
            lines.append(f"  {param.name:<8} {value:<36} {note or param.help}")
        lines += [f"  {name:<8} {value:.5g}" for name, value in self.derived.items()]
        return "\n".join(lines)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the data and the curve with its band; returns the axes."""
        from analysis.plot import plot_fit

        return plot_fit(self, ax)

    def __repr__(self) -> str:
        params = ", ".join(f"{name}={value:.4g}" for name, value in self.params.items())
        return f"<Fit {self.model.NAME}: {params}; {self._quality()}>"

    def _repr_html_(self) -> str:
        from analysis.page.model import Cell, Text, columns, table
        from analysis.page.notebook import blocks_html

        rows = [
            (
                Cell(p.name),
                Cell(f"{self.params[p.name]:.5g}"),
                Cell(f"[{low:.5g}, {high:.5g}]"),
                Cell(note or p.help),
            )
            for p, (low, high), note in self._rows()
        ]
        heads = columns("parameter", "-value", f"-{LEVEL:.0%} interval", "meaning")
        text = f"{self.model.NAME}: {self.model.SUMMARY}. {self._quality()}."
        return blocks_html([Text(text), *table(f"Fit of {self.model.NAME}", heads, rows)])

    def _quality(self) -> str:
        aicc = "too few points" if self.aicc is None else f"{self.aicc:.1f}"
        return f"{self.n} points, error {self.rms_percent:.2g} %, AICc {aicc}"

    def _rows(self) -> list[tuple[contract.Param, tuple[float, float], str]]:
        notes = dict.fromkeys(self.not_identifiable, "not identifiable")
        notes |= {name: f"at its bound {bound:g}" for name, bound in self.at_bound.items()}
        return [(p, self.interval(p.name), notes.get(p.name, "")) for p in self.model.PARAMS]

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(f"{self.model.NAME} has no {name!r}, only {', '.join(self.names)}")
        return self.names.index(name)

    @property
    def _tries(self) -> Floats:
        return np.vstack([self.values, self.valleys])

    @cached_property
    def _unit_slopes(self) -> Floats:
        """Slopes scaled to unit columns; zero columns stay zero."""
        slopes = self.problem.slopes(self.values[np.newaxis])[0]
        return np.asarray(slopes * self._per_column(slopes))

    @staticmethod
    def _per_column(slopes: Floats) -> Floats:
        size = np.sqrt(np.einsum("nk,nk->k", slopes, slopes))
        return np.asarray(np.divide(1.0, size, out=np.zeros_like(size), where=size > 0))

    @cached_property
    def _moves_nothing(self) -> list[bool]:
        """Whether each parameter, alone or with others, can change without changing the curve."""
        _, sizes, directions = np.linalg.svd(self._unit_slopes, full_matrices=False)
        flat = directions[sizes < 1e-7]
        return [bool(v) for v in np.any(np.abs(flat) > 1e-3, axis=0)]

    @cached_property
    def _covariance(self) -> Floats:
        """Covariance of the parameters that are free to move; 0 for the others."""
        slopes = self.problem.slopes(self.values[np.newaxis])[0]
        free = np.array(
            [
                n not in self.at_bound and not loose
                for n, loose in zip(self.names, self._moves_nothing, strict=True)
            ]
        )
        scale = self._per_column(slopes)[free]
        unit = slopes[:, free] * scale
        inverse = np.linalg.inv(unit.T @ unit) * np.outer(scale, scale)
        full = np.zeros((free.size, free.size))
        full[np.ix_(free, free)] = inverse * self.residual_error**2
        return full


def pushed(problem: Problem, values: Floats) -> NDArray[np.bool_]:
    """Which parameters are at a bound with the sum of squares falling beyond it."""
    row = values[np.newaxis]
    errors = problem.values(row)[0] - problem.target
    gradient = errors @ problem.slopes(row)[0]
    return np.asarray(
        ((values <= problem.low) & (gradient > 0)) | ((values >= problem.high) & (gradient < 0))
    )
