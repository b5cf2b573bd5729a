"""What a file in `analysis/models` provides, and the pieces such files share.

A model of a curve is a module with the names of `Curve`. Its functions work on many parameter
sets at once: each parameter may be a number, or an array of shape (m, 1) beside ``x`` of shape
(n,), which gives m curves. That is what lets thousands of bootstrap resamples be fitted together.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from analysis.intervals import Floats

Scale = Literal["linear", "log"]


@dataclass(frozen=True)
class Param:
    """One parameter of a model."""

    name: str
    unit: str
    """``y`` and ``x`` stand for the units of the data."""
    help: str
    low: float = 0.0
    high: float = math.inf
    """Data that cannot rule this end out have not determined the parameter."""


class Law(Protocol):
    """A formula that predicts from measured inputs; nothing in it is fitted."""

    NAME: str
    SUMMARY: str
    WHEN: str
    """One line for the chooser: which data this is for."""
    SUBJECT: str
    """What it describes; models with one subject compete for the same data."""
    SOURCE: str


class Curve(Law, Protocol):
    """A model y = f(x, *parameters) that can be fitted."""

    PARAMS: tuple[Param, ...]
    SCALE: Scale
    """Whether errors are compared as differences or, in logs, as ratios."""
    f: Callable[..., Floats]
    """f(x, *parameters): x (n,), parameters numbers or (m, 1) -> (n,) or (m, n)."""
    jacobian: Callable[..., Floats]
    """Derivatives by each parameter, on a last axis of their number."""
    guess: Callable[[Floats, Floats], Sequence[tuple[float, ...]]]
    """guess(x, y): where to start, several where the sum of squares has several valleys."""


def names(model: Curve) -> tuple[str, ...]:
    """Names of the parameters, in order."""
    return tuple(p.name for p in model.PARAMS)


def derived(model: Curve, values: Sequence[float]) -> dict[str, float]:
    """Quantities the model computes from its parameters; empty where it names none."""
    function: Callable[..., dict[str, float]] | None = getattr(model, "derived", None)
    return {} if function is None else function(*values)


def columns(*parts: Any) -> Floats:  # noqa: ANN401 - whatever broadcasts
    """Stack derivatives of unlike shapes on a last axis."""
    return np.stack(np.broadcast_arrays(*parts), axis=-1)


def linear_guess(basis: Sequence[Floats], y: Floats, weights: Floats | None = None) -> list[float]:
    """Coefficients of the least squares combination of ``basis`` that gives ``y``."""
    w = np.ones_like(y) if weights is None else weights
    matrix = np.stack(basis, axis=-1) * w[:, np.newaxis]
    found, *_ = np.linalg.lstsq(matrix, y * w, rcond=None)
    return [float(v) for v in found]
