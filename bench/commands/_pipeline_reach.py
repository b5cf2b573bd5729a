"""How far a simulation may go from what was compared with reality before it claims nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bench.errors import UsageError
from bench.pipeline import Pipeline

FAR = 2.0
"""Times the most, or part of the least, of what a check ran: further is another pipeline."""


@dataclass(frozen=True)
class Reach:
    """Limits of a pipeline, and the values between which the model was tested."""

    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of_file(cls, most: Mapping[str, int], pipeline: Pipeline) -> "Reach":
        """What a file says in its table ``tested``.

        Raises
        ------
        UsageError
            For a limit that the pipeline does not have.
        """
        known = limits(pipeline)
        for name in most:
            if name not in known:
                raise UsageError(f"tested: no {name!r}", f"known: {', '.join(known)}")
        return cls({name: (0.0, value) for name, value in most.items()})

    @classmethod
    def of_check(cls, checked: Iterable[Pipeline]) -> "Reach":
        """Twice as far as the settings of a check."""
        found: dict[str, tuple[float, float]] = {}
        for pipeline in checked:
            for name, value in limits(pipeline).items():
                low, high = found.get(name, (value / FAR, value * FAR))
                found[name] = min(low, value / FAR), max(high, value * FAR)
        return cls(found)

    def beyond(self, pipeline: Pipeline) -> str:
        """Why a simulation of this pipeline claims nothing; empty where it may."""
        told = []
        for name, value in limits(pipeline).items():
            low, high = self.ranges.get(name, (0.0, float("inf")))
            if not low <= value <= high:
                told.append(f"{name}={high if value > high else low:g}")
        return f"nothing tests the model beyond {', '.join(told)}" if told else ""


def limits(pipeline: Pipeline) -> dict[str, int]:
    """How many at once: jobs, items, tokens of pools that do not begin empty, workers of tasks."""
    found = {"in_flight": pipeline.in_flight, "items": pipeline.items}
    found |= {pool.name: pool.tokens for pool in pipeline.pools if pool.tokens}
    found |= {f"{task.name}.workers": task.workers for task in pipeline.tasks if task.workers}
    return found
