"""The decision rule.

Every comparison in this package becomes one list of paired log ratios, one interval for their
median (`analysis.intervals`), and one of five verdicts. Significance tests that are not the
decision rule are in `analysis.significance`; what happened along a series of samples is in
`analysis.series`.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from analysis.intervals import LEVEL, Floats, finite, interval, pairs_needed
from bench.units import counted

Verdict = Literal["helps", "hurts", "neutral", "cannot tell", "not tested"]

DEAD_BAND = 0.02
# Beyond this a longer run is no answer: the effect lies at the edge of the dead band.
MOST_SAMPLES = 10_000
# An interval that just clears the edge on average does so in half of the runs; this many half
# widths of room, (1.96 + 0.84) / 1.96, let four runs in five decide.
POWER = 1.43


def paired_log_ratio(numerator: ArrayLike, denominator: ArrayLike) -> Floats:
    """Natural log of numerator / denominator, pair by pair.

    Parameters
    ----------
    numerator, denominator : array_like, shape (n,)
        Positive values in the same unit; element i of both comes from the same block.

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    ValueError
        Unequal lengths, or a value that is not finite and positive.
    """
    top, bottom = finite("numerator", numerator), finite("denominator", denominator)
    if top.size != bottom.size:
        raise ValueError(f"pairs need equal lengths, not {top.size} and {bottom.size}")
    for name, values in (("numerator", top), ("denominator", bottom)):
        bad = np.flatnonzero(values <= 0)
        if bad.size:
            raise ValueError(f"{name}[{bad[0]}] is {values[bad[0]]}: a ratio needs values over 0")
    return np.asarray(np.log(top / bottom))


@dataclass(frozen=True)
class PairedByState:
    """Log ratios of the pairs whose two samples ran in the same state, and what was set aside."""

    log_ratios: Floats
    """One per pair of equal state, in block order."""
    states: tuple[str, ...]
    """The state of each of those pairs."""
    unequal: dict[tuple[str, str], int] = field(default_factory=dict)
    """Pairs not formed, by (numerator state, denominator state)."""

    @property
    def n_unequal(self) -> int:
        """How many pairs were not formed because the states differed."""
        return sum(self.unequal.values())

    @property
    def counts(self) -> dict[str, int]:
        """Pairs formed, by state."""
        return dict(Counter(self.states))

    def of_state(self, state: str) -> Floats:
        """Log ratios of the pairs in one state."""
        mask = np.array([s == state for s in self.states], dtype=bool)
        return np.asarray(self.log_ratios[mask])


def pair_by_state(
    numerator: ArrayLike,
    denominator: ArrayLike,
    numerator_states: Sequence[str],
    denominator_states: Sequence[str],
) -> PairedByState:
    """Pair samples block by block where both ran in the same state (near, far, moved, …).

    A pair of unequal states compares placements, not treatments. Such a pair is counted in
    ``unequal``; it is never matched with a sample of another block, because between blocks the
    host has drifted.

    Raises
    ------
    ValueError
        Unequal lengths, or a value that is not finite and positive.
    """
    ratios = paired_log_ratio(numerator, denominator)
    if not len(numerator_states) == len(denominator_states) == ratios.size:
        raise ValueError(
            f"every sample needs a state: {ratios.size} pairs, "
            f"{len(numerator_states)} and {len(denominator_states)} states"
        )
    both = list(zip(numerator_states, denominator_states, strict=True))
    equal = np.array([a == b for a, b in both], dtype=bool)
    return PairedByState(
        log_ratios=ratios[equal],
        states=tuple(a for a, b in both if a == b),
        unequal=dict(Counter((a, b) for a, b in both if a != b)),
    )


@dataclass(frozen=True)
class Decision:
    """What one comparison says, and how much it could have said."""

    verdict: Verdict
    ratio: float = math.nan
    """Median of treated / baseline; below 1 is better where lower is better."""
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    level: float = LEVEL
    """Of this interval; above the family's level where several remedies were tried."""
    coverage: float = math.nan
    method: str = ""
    dead_band: float = DEAD_BAND
    smallest_effect: float = math.nan
    """Smallest relative change this interval could have told from the dead band; 0.05 is 5 %."""
    samples_to_decide: int | None = None
    """Pairs that would decide, about; None if decided or if no practical number would."""
    reason: str = ""
    command: str = ""
    """What to run to get an answer, where nothing was tested."""

    @property
    def decided(self) -> bool:
        """Whether the data allowed a verdict."""
        return self.verdict in ("helps", "hurts", "neutral")

    def __str__(self) -> str:
        if math.isnan(self.ratio):
            return f"{self.verdict}: {self.reason}"
        text = f"{self.verdict}: {self.ratio:.3f} [{self.low:.3f}, {self.high:.3f}], n={self.n}"
        return f"{text}; {self.reason}" if self.reason else text


def not_tested(reason: str, command: str = "") -> Decision:
    """Make the decision for a remedy nothing was measured for."""
    return Decision("not tested", reason=reason, command=command)


def verdict_of(
    low: float, high: float, dead_band: float = DEAD_BAND, *, lower_is_better: bool = True
) -> Verdict:
    """Verdict of an interval of treated / baseline: the rule itself, without the statistics.

    The band is symmetric in logs: from 1/(1+dead_band) to 1+dead_band.

    Raises
    ------
    ValueError
        ``low`` above ``high``, a NaN, or a negative dead band.
    """
    if not 0 <= low <= high:
        raise ValueError(f"not an interval of a ratio: {low} to {high}")
    if not 0 <= dead_band < math.inf:
        raise ValueError(f"the dead band must be 0 or more, not {dead_band}")
    top = 1 + dead_band
    bottom = 1 / top
    if high < bottom:
        return "helps" if lower_is_better else "hurts"
    if low > top:
        return "hurts" if lower_is_better else "helps"
    return "neutral" if bottom <= low and high <= top else "cannot tell"


def decide(
    log_ratios: ArrayLike,
    dead_band: float = DEAD_BAND,
    level: float = LEVEL,
    *,
    lower_is_better: bool = True,
    seed: int = 0,
) -> Decision:
    """Decide what a treatment does, from the paired log ratios of treated over baseline.

    Parameters
    ----------
    log_ratios : array_like, shape (n,)
        From `paired_log_ratio` or `pair_by_state`.
    dead_band : float
        Relative change that is of no interest; 0.02 is 2 %.
    level : float
    lower_is_better : bool
        True for seconds, false for GB/s.

    Raises
    ------
    ValueError
        Empty or non-finite input. Too few pairs is not an error but "cannot tell".
    """
    values = finite("log_ratios", log_ratios)
    n, centre, needed = values.size, float(np.median(values)), pairs_needed(level)
    ratio = math.exp(centre)
    if n < needed:
        return Decision(
            "cannot tell", ratio, 0.0, math.inf, n, level, 0.0, "", dead_band, math.inf, needed,
            f"{counted(n, 'pair')}; an interval at {level:.4g} needs {needed}",
        )  # fmt: skip
    found = interval(values, level, seed=seed)
    low, high = math.exp(found.low), math.exp(found.high)
    verdict = verdict_of(low, high, dead_band, lower_is_better=lower_is_better)
    half_width, band = (found.high - found.low) / 2, math.log1p(dead_band)
    smallest = math.expm1(half_width + band)
    more: int | None = None
    reason = ""
    if verdict == "cannot tell":
        more = _samples_to_decide(n, centre, half_width, band)
        way_out = f"about {more} pairs would decide" if more else "it lies at the dead band's edge"
        reason = f"this run could have seen {smallest:.1%}; {way_out}"
    return Decision(
        verdict, ratio, low, high, n, level, found.coverage, found.method, dead_band, smallest,
        more, reason,
    )  # fmt: skip


def decide_family(
    family: Mapping[str, ArrayLike],
    dead_band: float = DEAD_BAND,
    level: float = LEVEL,
    *,
    lower_is_better: bool = True,
    seed: int = 0,
) -> dict[str, Decision]:
    """Decide several remedies so that one false verdict among all has probability 1 - ``level``.

    Holm's steps on intervals: with m remedies open, each is decided at 1 - (1 - level)/m; those
    decided keep that interval and leave, m shrinks, and the rest are tried again.

    Parameters
    ----------
    family : mapping of name to array_like
        Paired log ratios of each remedy against the same baseline.

    Returns
    -------
    dict
        One decision a name, in the order given; ``Decision.level`` is the adjusted level.

    References
    ----------
    S. Holm, Scandinavian Journal of Statistics 6 (1979) 65-70.
    """
    if not family:
        raise ValueError("a family of remedies needs at least one")
    decisions: dict[str, Decision] = {}
    remaining = list(family)
    while remaining:
        adjusted = 1 - (1 - level) / len(remaining)
        tried = {
            name: decide(
                family[name], dead_band, adjusted, lower_is_better=lower_is_better, seed=seed
            )
            for name in remaining
        }
        decisions.update(tried)
        still_unclear = [name for name in remaining if not tried[name].decided]
        if len(still_unclear) == len(remaining):
            break
        remaining = still_unclear
    return {name: decisions[name] for name in family}


def _samples_to_decide(n: int, centre: float, half_width: float, band: float) -> int | None:
    """Pairs at which an interval that shrinks as 1/√n clears the band's nearer edge."""
    room = abs(abs(centre) - band)
    if room * math.sqrt(MOST_SAMPLES / n) <= POWER * half_width:
        return None
    return max(n + 1, math.ceil(n * (POWER * half_width / room) ** 2))
