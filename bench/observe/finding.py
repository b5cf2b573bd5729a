"""The form of a verdict on one mechanism, and the sizes of effects it goes by."""

from dataclasses import dataclass, replace
from typing import Literal

Verdict = Literal["could matter", "cannot", "unknown"]
COULD: Verdict = "could matter"
CANNOT: Verdict = "cannot"
UNKNOWN: Verdict = "unknown"

MATTERS = 0.02
"""Of the time: the dead band of the suite's verdicts. What takes less is no effect."""
IDLE_CPUS = 0.05
"""Below this use of a CPU a process is called idle: what memory costs it is a part of it."""

PROBE = "host --probe"
"""Command that measures what is assumed otherwise."""


@dataclass(frozen=True)
class Finding:
    """``because`` holds the figures; ``proposed`` are commands, without the program's name.

    In commands, ``{command}`` stands for the target's own and ``{scenario}`` for its skeleton.
    """

    mechanism: str
    verdict: Verdict
    because: tuple[str, ...]
    proposed: tuple[str, ...] = ()


ORDER: dict[Verdict, int] = {COULD: 0, UNKNOWN: 1, CANNOT: 2}


def strongest(findings: list[Finding]) -> Finding:
    """Of one mechanism in several processes: that which claims most, the first of equals."""
    most = min(findings, key=lambda finding: ORDER[finding.verdict])
    others = len(findings) - 1
    if not others:
        return most
    same = sum(finding.verdict == most.verdict for finding in findings) - 1
    told = f"the same of {same} of {others} other processes that were at work"
    return replace(most, because=(*most.because, told))


def share(value: float) -> str:
    """``34 %``, ``0.3 %``."""
    percent = value * 100
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


def rate(value: float) -> str:
    """``0``, ``12``, ``3,400``: events a second, without more digits than they deserve."""
    if value >= 100:
        digits = len(str(int(value))) - 3
        return f"{round(value, -digits):,.0f}"
    return f"{value:.2g}"
