"""From the seconds of measured mixes to verdicts, contrasts and what is left unexplained.

Everything here takes arrays paired by block; reading them from files belongs elsewhere.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.intervals import LEVEL, finite, interval, pairs_needed
from analysis.stats import (
    DEAD_BAND,
    Decision,
    PairedByState,
    Verdict,
    decide_family,
    not_tested,
    paired_log_ratio,
)

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Remedies:
    """Decisions on the remedies of one baseline."""

    decisions: dict[str, Decision]
    pairs: dict[str, PairedByState]

    def table(self) -> "DataFrame":
        """Tabulate: one row a remedy, with the pairs set aside for unequal states.

        Returns
        -------
        DataFrame
            Column remedy, those of `Decision`, and n_unequal.
        """
        import pandas as pd

        unequal = {name: pairs.n_unequal for name, pairs in self.pairs.items()}
        return pd.DataFrame(
            [
                {"remedy": name, **asdict(decision), "n_unequal": unequal.get(name, 0)}
                for name, decision in self.decisions.items()
            ]
        )


def decide_remedies(
    remedies: Mapping[str, PairedByState | Decision],
    dead_band: float = DEAD_BAND,
    level: float = LEVEL,
    *,
    lower_is_better: bool = True,
) -> Remedies:
    """Decide every remedy against the baseline of its blocks, by Holm over all tested.

    Parameters
    ----------
    remedies : mapping of name to pairs
        Remedy over baseline, from `analysis.stats.pair_by_state`; or a decision made already, such
        as `analysis.stats.not_tested`, which is kept.

    Raises
    ------
    ValueError
        Log ratios that are not finite.
    """
    decisions: dict[str, Decision] = {}
    pairs: dict[str, PairedByState] = {}
    for name, remedy in remedies.items():
        if isinstance(remedy, Decision):
            decisions[name] = remedy
            continue
        pairs[name] = remedy
        if remedy.log_ratios.size == 0:
            decisions[name] = not_tested("no block ran baseline and remedy in the same state")
    tested = {name: p.log_ratios for name, p in pairs.items() if name not in decisions}
    if tested:
        decisions |= decide_family(tested, dead_band, level, lower_is_better=lower_is_better)
    return Remedies({name: decisions[name] for name in remedies}, pairs)


@dataclass(frozen=True)
class Contrast:
    """Two mixes that differ in one thing, whose ratio is the cost of that thing."""

    name: str
    with_it: str
    """The mix that pays the cost."""
    without_it: str
    ratio: float
    low: float
    high: float

    @property
    def resolved(self) -> bool:
        """Whether the interval leaves out "no cost"."""
        return not self.low <= 1 <= self.high

    def __str__(self) -> str:
        found = f"{self.ratio:.3f} [{self.low:.3f}, {self.high:.3f}]"
        end = "" if self.resolved else ", not resolved"
        return f"{self.name}: {self.with_it} / {self.without_it} = {found}{end}"


def contrast(
    name: str,
    with_it: tuple[str, ArrayLike],
    without_it: tuple[str, ArrayLike],
    level: float = LEVEL,
) -> Contrast:
    """Compare two named mixes block by block.

    Parameters
    ----------
    name : str
        What differs: TLB reach, bandwidth, cache, shootdown, lock.
    with_it, without_it : (str, array_like)
        Name of the mix and its seconds.

    Raises
    ------
    ValueError
        Unequal lengths, values not finite and positive, or too few blocks for ``level``.
    """
    logs = paired_log_ratio(with_it[1], without_it[1])
    found = interval(logs, level)
    ratio = math.exp(float(np.median(logs)))
    ends = math.exp(found.low), math.exp(found.high)
    return Contrast(name, with_it[0], without_it[0], ratio, *ends)


def residual(total: Contrast, parts: Sequence[Contrast]) -> float:
    """Ratio that the parts leave unexplained; 1 is nothing. Costs multiply, so logs add."""
    return total.ratio / math.prod(part.ratio for part in parts)


Cause = Literal["memory", "scheduling", "cannot tell", "no effect"]


def cause(remedy: Decision, among_spinners: Decision) -> Cause:
    """Tell a memory remedy from a scheduling one.

    Parameters
    ----------
    remedy : Decision
        On the real mix.
    among_spinners : Decision
        On the same mix with every kernel replaced by ``spin`` of equal time. What helps there
        cannot be about memory.
    """
    if remedy.verdict not in ("helps", "hurts"):
        return "no effect" if remedy.verdict == "neutral" else "cannot tell"
    if among_spinners.verdict == remedy.verdict:
        return "scheduling"
    return "memory" if among_spinners.decided else "cannot tell"


def helps_from(x: Sequence[float], verdicts: Sequence[Verdict]) -> float | None:
    """Smallest x from which on every verdict is "helps"; None if the last is not."""
    if len(x) != len(verdicts):
        raise ValueError(f"every x needs a verdict, not {len(x)} and {len(verdicts)}")
    start = None
    for at, verdict in sorted(zip(x, verdicts, strict=True), reverse=True):
        if verdict != "helps":
            break
        start = at
    return start


def pairs_for_width(
    pilot: ArrayLike, half_width: float = DEAD_BAND, level: float = LEVEL, remedies: int = 1
) -> int:
    """Pairs that make the interval about this narrow, from a pilot's log ratios.

    Depends on the pilot's spread and never on its middle: planning by where the answer seems to
    lie would favour it. The pilot's samples must not enter the verdict.

    Parameters
    ----------
    pilot : array_like
        At least six log ratios.
    half_width : float
        Wanted half width, relative; 0.02 is 2 %.
    level : float
    remedies : int
        How many share ``level``, by Holm's first step.
    """
    values = finite("pilot", pilot)
    if half_width <= 0 or remedies < 1:
        raise ValueError("the half width must be over 0 and remedies 1 or more")
    adjusted = 1 - (1 - level) / remedies
    found = interval(values, level)
    # The pilot is too short for the adjusted level itself; normal quantiles scale its width.
    wider = float(stats.norm.isf((1 - adjusted) / 2) / stats.norm.isf((1 - level) / 2))
    have = wider * (found.high - found.low) / 2
    needed = math.ceil(values.size * (have / math.log1p(half_width)) ** 2)
    return max(needed, pairs_needed(adjusted))
