"""How groups of threads running different kernels share one memory interface."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.intervals import Floats, finite

NAME = "sharing"
SUBJECT = "sharing"
SUMMARY = "share_i = b n_i f_i / sum(n f), b = mean of bs over threads, f = b1/bs"
WHEN = "two or more kernels side by side in one NUMA domain; all inputs come from running alone"
SOURCE = (
    "after A. Afzal, G. Hager, G. Wellein, arXiv:2011.00243, as the law is remembered: check it "
    "against measured pairs. The cap at what a group can take is an addition"
)


@dataclass(frozen=True)
class Group:
    """Threads that run one kernel."""

    threads: float
    b1: float
    """Bandwidth of one thread alone."""
    bs: float
    """Saturated bandwidth of the kernel alone, in the same unit."""

    def __post_init__(self) -> None:
        # An array only where it fails: a simulation makes thousands of groups.
        if not all(map(math.isfinite, (self.threads, self.b1, self.bs))):
            finite("group", [self.threads, self.b1, self.bs])
        if self.threads < 0 or not 0 < self.b1 <= self.bs:
            raise ValueError(f"a group needs threads >= 0 and 0 < b1 <= bs: {self}")

    @property
    def request_fraction(self) -> float:
        """Share of the interface that one thread asks for."""
        return self.b1 / self.bs


def total_bandwidth(groups: Sequence[Group]) -> float:
    """Bandwidth of the full interface under this mix: the saturated ones, weighted by threads."""
    threads = sum(g.threads for g in groups)
    if threads == 0:
        raise ValueError("no group has a thread")
    return sum(g.threads * g.bs for g in groups) / threads


def shares(groups: Sequence[Group]) -> Floats:
    """Bandwidth of each group.

    While the requests do not fill the interface every thread keeps its b1. Beyond that the groups
    divide the total in proportion to their requests, none gets more than threads × b1, and what
    such a group leaves is divided among the others. At the point where the interface fills, the
    law jumps if the kernels' saturated bandwidths differ.

    Parameters
    ----------
    groups : sequence of Group
        Any number; all bandwidths in one unit.

    Returns
    -------
    ndarray, shape (number of groups,)
    """
    total = total_bandwidth(groups)
    requests = np.array([g.threads * g.request_fraction for g in groups])
    most = np.array([g.threads * g.b1 for g in groups])
    if requests.sum() < 1:
        return most
    got = np.zeros(len(groups))
    open_ = requests > 0
    left = total
    while open_.any():
        offer = np.where(open_, left * requests / requests[open_].sum(), 0.0)
        capped = open_ & (offer > most)
        if not capped.any():
            return np.asarray(got + offer)
        got[capped] = most[capped]
        left -= most[capped].sum()
        open_ &= ~capped
    return got
