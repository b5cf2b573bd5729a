"""Where the time of kernels with phases goes: each phase by operation, and TLB interrupts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.paired import grouped, middle
from analysis.rows import Row, row_label

_TOUCH = "phase_touch_s"


@dataclass(frozen=True)
class Phases:
    """Medians over the samples of one case; NaN where not known."""

    case: str
    label: str
    size: int
    pages: str
    threads: int
    op: str
    """What the kernel calls an operation: ``release``."""
    ns_per_op: dict[str, float]
    """Phase -> time of one thread by operation."""
    touch_ns_per_fault: float
    """First touch by page that the system filled; NaN where nothing is touched."""
    tlb_per_s: float
    """TLB interrupts received by the CPUs used; NaN where the host does not count them."""
    tlb_per_op: float


def phases(rows: Sequence[Row], ops: Mapping[str, str]) -> list[Phases]:
    """One a case whose kernel has phases, in order of appearance."""
    timed = [row for row in rows if _names(row) and _ops(row) > 0]
    found = []
    for case, own in grouped(timed, "case").items():
        row = own[0]
        found.append(
            Phases(
                case,
                row_label(row),
                row["size"],
                row["pages"],
                row["threads"],
                ops.get(row["kernel"], "operation"),
                {
                    name: middle(r[f"phase_{name}_s"] / _ops(r) * 1e9 for r in own)
                    for name in _names(row)
                },
                middle(_per_fault(r) for r in own),
                middle(r["tlb_per_s"] for r in own),
                middle(r["tlb_per_s"] * r["window_s"] / _ops(r) for r in own),
            )
        )
    return found


def _names(row: Row) -> list[str]:
    return [
        key.removeprefix("phase_").removesuffix("_s") for key in row if key.startswith("phase_")
    ]


def _ops(row: Row) -> float:
    """Operations of all threads in the window: phases are summed over threads, too."""
    return float(row["ops"] * row["passes"] * row["threads"])


def _per_fault(row: Row) -> float:
    if _TOUCH not in row or not row["minor_faults"] > 0:
        return math.nan
    return float(row[_TOUCH] / row["minor_faults"] * 1e9)
