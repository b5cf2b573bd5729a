"""What is foretold of a pair from everything else that the matrix measured.

Both forecasts start from the victim beside ``spin``, so that clock, SMT and scheduling are in it.

by law
    Shares of the memory interface, from each kernel on one thread and beside itself. For kernels
    that stream: others are slowed by waiting longer, not by getting less.
by fit
    What spinners lose beside the aggressor, which can only be interrupts, times sensitivity x
    pressure as fitted to all other pairs.
"""

import math
from collections.abc import Collection

import numpy as np

from analysis.corun_matrix import SPIN, Matrix
from analysis.fluid import saturated_traffic
from analysis.intervals import Floats
from analysis.models.pressure import left_out
from analysis.models.sharing import Group, shares

STREAMS = 0.25
"""Of the traffic of the kernel that moves most on one thread: with less, a thread is busy with
something else than asking for bandwidth."""


class Predictor:
    """Ratios of time beside over time alone that one block foretells; NaN: it does not."""

    def __init__(self, matrix: Matrix, churn: Collection[str] = ()) -> None:
        """``churn``: kernels that map and release memory."""
        self.matrix = matrix
        one = {label: self._one(label) for label in matrix.labels}
        most = max((b1 for b1 in one.values() if math.isfinite(b1)), default=0.0)
        self.b1 = {
            label: b1
            for label, b1 in one.items()
            if b1 > 0 and b1 >= STREAMS * most and label.partition("[")[0] not in churn
        }
        """Of one thread, of the kernels that the law is for."""
        alike = [c["mix"] for c in matrix.pairs("shared") if c["first"] == c["second"]]
        self.capacity = max((matrix.traffic(mix) for mix in alike), default=0.0)
        self._fitted: dict[tuple[int, int], Floats] = {}

    def as_beside_spin(self, victim: str, threads: tuple[int, int]) -> float:
        """As if the aggressor only kept its CPUs busy: what any forecast has to beat."""
        beside = (self.matrix.mix(SPIN, victim, threads), 0)
        alone = (self.matrix.mix("alone", victim, threads), 0)
        return math.exp(self.matrix.log_ratio(beside, alone))

    def by_law(self, victim: str, aggressor: str, threads: tuple[int, int]) -> float:
        """By the sharing law; NaN for kernels that it is not for."""
        n, m = threads
        mine, theirs = self._group(victim, (n, m)), self._group(aggressor, (m, n))
        if mine is None or theirs is None:
            return math.nan
        alone, together = float(shares([mine])[0]), float(shares([mine, theirs])[0])
        return self.as_beside_spin(victim, threads) * alone / together if together else math.nan

    def by_fit(self, victim: str, aggressor: str, threads: tuple[int, int]) -> float:
        """By sensitivity and pressure in all other pairs of these numbers of threads."""
        if threads not in self._fitted:
            self._fitted[threads] = left_out(self._losses(threads))
        labels = self.matrix.labels
        loss = float(self._fitted[threads][labels.index(victim), labels.index(aggressor)])
        interrupts = self._interrupts(aggressor, threads)
        return self.as_beside_spin(victim, threads) * math.exp(loss + interrupts)

    # ---- the law's inputs -----------------------------------------------------------------------

    def _one(self, label: str) -> float:
        return self.matrix.traffic(self.matrix.mix("one", label, (1, 0)))

    def _group(self, label: str, threads: tuple[int, int]) -> Group | None:
        """One kernel's part in the law: one thread of it, and as many as both have together."""
        itself = self.matrix.beside_itself(label, sum(threads))
        slower = self.as_beside_spin(label, threads)
        if label not in self.b1 or not itself or math.isnan(slower):
            return None
        b1 = self.b1[label] / max(slower, 1.0)
        bs = saturated_traffic(b1, self.matrix.traffic(itself), sum(threads), self.capacity)
        return Group(threads[0], b1, bs)

    # ---- the fit's ------------------------------------------------------------------------------

    def _interrupts(self, aggressor: str, threads: tuple[int, int]) -> float:
        """Log of what spinners lose beside an aggressor, over beside other spinners."""
        beside = self.matrix.spin_beside(aggressor, threads)
        return self.matrix.log_ratio(beside, self.matrix.spin_beside(SPIN, threads))

    def _losses(self, threads: tuple[int, int]) -> Floats:
        """Log of time beside over time beside spin, less interrupts: victims by aggressors."""
        labels = self.matrix.labels
        found = np.full((len(labels), len(labels)), np.nan)
        interrupts = [self._interrupts(label, threads) for label in labels]
        for case in self.matrix.pairs("shared"):
            for position in (0, 1):
                if tuple(case["threads"][:: 1 - 2 * position]) != threads:
                    continue
                sides = (labels.index(case["first"]), labels.index(case["second"]))
                victim, aggressor = sides[position], sides[1 - position]
                spin = (self.matrix.mix(SPIN, labels[victim], threads), 0)
                loss = self.matrix.log_ratio((case["mix"], position), spin)
                found[victim, aggressor] = loss - interrupts[aggressor]
        return found
