"""What ran beside each span of a phase, and how much of that is more than usual.

*Length makes its own company.* A phase that always finds the same burst at its beginning has more
of it on average the shorter it is. So from each mean the one is subtracted that is usual at the
same ages: at age u, over all spans that lived that long (as in a partial likelihood). What is left
has no relation to the length of a span unless the company changed it.
"""

import numpy as np

from analysis.intervals import Floats
from analysis.timeline.beside import Level
from analysis.timeline.spans import Spans

AGES = 32
"""Classes of age, by quantiles of the durations."""


def company(
    spans: Spans, other: Spans, level: Level, *, same: bool, stretch: Floats | float = 1.0
) -> tuple[Floats, Floats]:
    """How many spans of a phase ran beside each span on average, and that beyond what is usual.

    Parameters
    ----------
    spans : Spans, n of them
        Of positive duration.
    other : Spans
        The phase looked for beside them, and its ``level``.
    same : bool
        Whether it is the same phase, so that each span itself must not count.
    stretch : array_like, shape (n,)
        What each took over what it would have taken alone: age is counted in work done.

    Returns
    -------
    mean, beyond : ndarrays, shape (n,)
        ``beyond`` is the mean less the mean at equal ages; see the module.
    """
    work = spans.duration / stretch
    ages = np.unique(np.concatenate([[0.0], np.quantile(work, np.linspace(0, 1, AGES))]))
    lived = np.diff(np.minimum(ages[None, :], work[:, None]), axis=1)
    ends = np.minimum(ages[None, :], work[:, None]) * (spans.duration / work)[:, None]
    ends += spans.start[:, None]
    seconds = np.diff(level.integral(ends), axis=1)
    seconds -= np.diff(ends, axis=1) if same else _own_item(spans, other, ends)
    # Per unit of work done, so that those who were slowed down do not count for more.
    done = seconds * (work / spans.duration)[:, None]
    with np.errstate(invalid="ignore"):
        usual = done.sum(axis=0) / lived.sum(axis=0)
    expected = lived @ np.nan_to_num(usual)
    # Sums of large numbers leave crumbs below 0.
    mean = np.maximum(seconds.sum(axis=1) / spans.duration, 0.0)
    return mean, (done.sum(axis=1) - expected) / work


def _own_item(spans: Spans, other: Spans, ends: Floats) -> Floats:
    """Seconds of the same item's spans of another phase, by age."""
    keys, others = (s.job.astype(np.int64) << 32 | (s.item + 1) for s in (spans, other))
    order = np.argsort(others, kind="stable")
    sorted_keys = others[order]
    first = np.searchsorted(sorted_keys, keys, side="left")
    count = np.searchsorted(sorted_keys, keys, side="right") - first
    own = np.zeros((len(spans), ends.shape[1] - 1))
    for k in range(int(count.max(initial=0))):
        rows = np.flatnonzero(count > k)
        at = order[first[rows] + k]
        inside = ends[rows].clip(other.start[at, None], other.end[at, None])
        own[rows] += np.diff(inside, axis=1)
    return own
