"""Latency of random accesses against working set: one step for each TLB level outgrown.

The knees are fitted, never taken from a table of known cores: virtual machines report wrong sizes
and the number of entries can be the limit as well as the reach. `analysis.tlb` puts labels on what
was found.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from analysis.intervals import Floats
from analysis.model import Param, Scale, columns


@dataclass(frozen=True)
class Ladder:
    """The ladder with a given number of levels, as a model of its own."""

    levels: int

    SUBJECT = "tlb"
    WHEN = "one chased line a page, caches out of the way; two or more points between the knees"
    SOURCE = "R. H. Saavedra, A. J. Smith, IEEE Trans. Computers 44 (1995) 1223-1235, random order"
    SCALE: Scale = "log"

    @property
    def NAME(self) -> str:  # noqa: N802 - the contract's name
        """Name with the number of levels."""
        return f"tlb_ladder[levels={self.levels}]"

    @property
    def SUMMARY(self) -> str:  # noqa: N802 - the contract's name
        """Formula."""
        terms = (f"cost{k} max(0, 1 - reach{k}/w)" for k in range(1, self.levels + 1))
        return " + ".join(("t0", *terms))

    @property
    def PARAMS(self) -> tuple[Param, ...]:  # noqa: N802 - the contract's name
        """t0, then reach and cost of every level; the last cost is that of a page walk."""
        steps = (
            param
            for k in range(1, self.levels + 1)
            for param in (
                Param(f"reach{k}", "x", f"bytes that level {k} covers"),
                Param(f"cost{k}", "y", f"cost of a miss in level {k}"),
            )
        )
        return (Param("t0", "y", "latency of a hit in the first level"), *steps)

    def f(self, x: Floats, t0: Floats, *steps: Floats) -> Floats:
        """Latency at working set x."""
        total = t0 + 0 * x
        for reach, cost in zip(steps[::2], steps[1::2], strict=True):
            total = total + cost * np.maximum(0.0, 1 - reach / x)
        return total

    def jacobian(self, x: Floats, t0: Floats, *steps: Floats) -> Floats:
        """Differentiate by t0, reach1, cost1 and so on."""
        parts: list[Any] = [1 + 0 * (x + t0)]
        for reach, cost in zip(steps[::2], steps[1::2], strict=True):
            parts += [np.where(x > reach, -cost / x, 0.0), np.maximum(0.0, 1 - reach / x)]
        return columns(*parts)

    def guess(self, x: Floats, y: Floats) -> Sequence[tuple[float, ...]]:
        """Try every set of knees between measured points; given knees, the rest is linear."""
        sizes = np.unique(x)
        candidates = np.sqrt(sizes[:-1] * sizes[1:])
        knees = np.array(list(combinations(candidates, self.levels)))
        misses = np.maximum(0.0, 1 - knees[:, np.newaxis, :] / x[:, np.newaxis])
        basis = np.concatenate([np.ones((len(knees), x.size, 1)), misses], axis=2)
        relative = basis / y[:, np.newaxis]
        found = np.linalg.pinv(relative).sum(axis=2)
        error = np.sum((np.einsum("bnk,bk->bn", relative, found) - 1) ** 2, axis=1)
        error[np.any(found < 0, axis=1)] += 1e6
        return [
            (max(float(found[i, 0]), 1e-9), *_interleave(knees[i], np.maximum(found[i, 1:], 0)))
            for i in np.argsort(error)[:4]
        ]


def _interleave(knees: Floats, costs: Floats) -> list[float]:
    return [float(v) for pair in zip(knees, costs, strict=True) for v in pair]


_TWO = Ladder(2)
NAME = "tlb_ladder"
SUBJECT, SUMMARY, WHEN, SOURCE = _TWO.SUBJECT, _TWO.SUMMARY, _TWO.WHEN, _TWO.SOURCE
SCALE, PARAMS = _TWO.SCALE, _TWO.PARAMS
f, jacobian, guess = _TWO.f, _TWO.jacobian, _TWO.guess
