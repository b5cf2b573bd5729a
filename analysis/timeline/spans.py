"""What is kept of a log: spans of time by phase, in the order they began."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.intervals import Floats
from analysis.timeline.events import WAITS

if TYPE_CHECKING:
    from pandas import DataFrame

Ids = NDArray[np.int32]

NONE = -1
"""Id of a worker or an item that no line named."""


@dataclass(frozen=True)
class Spans:
    """All spans of one phase, by start; seconds since the writer's zero."""

    start: Floats
    end: Floats
    job: Ids
    item: Ids
    worker: Ids
    reported: NDArray[np.float32]
    """The writer's own figure, seconds; NaN where it gave none."""

    def __len__(self) -> int:
        return int(self.start.size)

    @cached_property
    def duration(self) -> Floats:
        """Seconds, in the order of starts."""
        return np.asarray(self.end - self.start)

    def where(self, chosen: NDArray[np.bool_]) -> "Spans":
        """Those that a mask chooses."""
        return Spans(
            self.start[chosen],
            self.end[chosen],
            self.job[chosen],
            self.item[chosen],
            self.worker[chosen],
            self.reported[chosen],
        )


@dataclass(frozen=True)
class Run:
    """One run of the program that wrote the log: one clock."""

    origin: str
    """File and line where it begins."""
    phases: dict[str, Spans]
    """In the order in which they first began; each has at least one span."""
    jobs: tuple[str, ...] = ()
    """Names by id."""
    items: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    resolution: float = 1e-3
    """Seconds of the last digit of a time."""
    waits: frozenset[str] = field(default=WAITS)
    """Phases of waiting."""
    compound: frozenset[str] = frozenset()
    """Phases that tasks of the same log describe in more detail."""

    @property
    def start(self) -> float:
        """First beginning, seconds."""
        return min(float(spans.start[0]) for spans in self.phases.values())

    @cached_property
    def end(self) -> float:
        """Last end, seconds."""
        return max(float(spans.end.max()) for spans in self.phases.values())

    @property
    def seconds(self) -> float:
        """From the first beginning to the last end."""
        return self.end - self.start

    @property
    def finest(self) -> dict[str, Spans]:
        """Phases that do something, without those that are made of others."""
        return {name: one for name, one in self.working.items() if name not in self.compound}

    @property
    def working(self) -> dict[str, Spans]:
        """Phases that do something."""
        return {name: spans for name, spans in self.phases.items() if name not in self.waits}

    def frame(self) -> "DataFrame":
        """Tidy DataFrame: one row a span."""
        import pandas as pd

        parts = []
        for phase, spans in self.phases.items():
            columns = {
                "phase": phase,
                "job": _named(self.jobs, spans.job),
                "item": _named(self.items, spans.item),
                "worker": _named(self.workers, spans.worker),
                "start_s": spans.start,
                "end_s": spans.end,
                "duration_s": spans.duration,
                "reported_s": spans.reported,
            }
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True)


def _named(names: tuple[str, ...], ids: Ids) -> NDArray[np.object_]:
    return np.array([*names, ""], dtype=object)[ids]
