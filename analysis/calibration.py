"""How far the simulation was from the proxy: kept in a file, and used as its uncertainty.

``pipeline check`` writes ``calibration.json``; ``pipeline simulate`` and ``plan`` read it.
"""

import json
import math
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from analysis.rates import Alone
from bench.errors import PagestormError, UsageError
from bench.schema import CALIBRATION, SCHEMA


@dataclass(frozen=True)
class Checked:
    """One setting, simulated and run: seconds per job."""

    setting: str
    predicted: float
    measured: float
    low: float = math.nan
    high: float = math.nan
    """Interval of what was measured; NaN: too few jobs for one."""

    @property
    def error(self) -> float:
        """Of the prediction, as a share of what was measured; NaN where either is missing."""
        return self.predicted / self.measured - 1 if self.measured > 0 else math.nan


@dataclass(frozen=True)
class Calibration:
    """What the simulation's predictions are worth on this host, for this pipeline."""

    pipeline: str
    checked: tuple[Checked, ...]
    costs: Mapping[str, Alone] = field(default_factory=dict)
    """Every kernel task alone, as the first setting has it; traffic in bytes a second."""
    bandwidth: float = 0.0
    """Bytes a second that any kernel moved with all CPUs; 0: not measured."""

    @property
    def errors(self) -> list[float]:
        """Sizes of the errors that are known."""
        return [abs(c.error) for c in self.checked if math.isfinite(c.error)]

    @property
    def median_error(self) -> float:
        """Half the predictions were closer than this; NaN: nothing was compared."""
        return statistics.median(self.errors) if self.errors else math.nan

    @property
    def worst_error(self) -> float:
        """Largest error; NaN: nothing was compared."""
        return max(self.errors, default=math.nan)


def plain(calibration: Calibration) -> dict[str, Any]:
    """Calibration as JSON data; what is not known is null."""

    def known(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return {
        "schema": SCHEMA,
        "pipeline": calibration.pipeline,
        "median_error": known(calibration.median_error),
        "worst_error": known(calibration.worst_error),
        "n": len(calibration.errors),
        "bandwidth": calibration.bandwidth,
        "costs": {
            # An Alone without a limit of its own says so by leaving it out.
            task: {key: value for key, value in asdict(alone).items() if math.isfinite(value)}
            for task, alone in calibration.costs.items()
        },
        "settings": [
            {
                "setting": c.setting,
                "predicted": known(c.predicted),
                "measured": known(c.measured),
                "low": known(c.low),
                "high": known(c.high),
                "error": known(c.error),
            }
            for c in calibration.checked
        ],
    }


def read(folder: str | Path) -> Calibration:
    """Calibration of the output directory of a check, or of the file itself.

    Raises
    ------
    UsageError
        Where there is none.
    PagestormError
        Where it cannot be read.
    """
    path = Path(folder)
    path = path / CALIBRATION if path.is_dir() else path
    if not path.exists():
        raise UsageError(
            f"no {CALIBRATION} in {folder}", "give the output directory of a pipeline check"
        )
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Calibration(
            data["pipeline"],
            tuple(
                Checked(row["setting"], *(_number(row[key]) for key in _NUMBERS))
                for row in data["settings"]
            ),
            {task: Alone(**alone) for task, alone in data["costs"].items()},
            data["bandwidth"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PagestormError(f"cannot read {path}: {error}") from error


_NUMBERS = ("predicted", "measured", "low", "high")


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
