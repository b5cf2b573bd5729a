"""Table of where the time of kernels with phases goes."""

import math
from typing import TYPE_CHECKING

from bench.units import format_size

if TYPE_CHECKING:
    from rich.console import Console

    from analysis.report import Report


def show(console: "Console", report: "Report") -> None:
    """Print one table for each set of phases."""
    from bench.commands._tables import number, table

    for names in dict.fromkeys(tuple(found.ns_per_op) for found in report.phases):
        own = [found for found in report.phases if tuple(found.ns_per_op) == names]
        units = " or ".join(dict.fromkeys(found.op for found in own))
        table(
            console,
            f"where the time went, ns by {units}; TLB: interrupts received",
            ("<case", *names, "touch/page", "TLB/s", "TLB/op"),
            (
                [
                    f"{found.label} {format_size(found.size)} {found.pages} {found.threads}t",
                    *(number(found.ns_per_op[name]) for name in names),
                    number(found.touch_ns_per_fault),
                    _count(found.tlb_per_s),
                    _count(found.tlb_per_op),
                ]
                for found in own
            ),
        )


def _count(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3g}"
