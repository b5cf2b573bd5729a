"""What a peer is: another tool that measures what some of our kernels measure.

Nothing of a peer is linked or copied. It runs as a program, on memory of its own, and what it
prints is read. A row of the registry says how to call it, how to read it, and what its figures
mean; ``bench.peers`` holds one file a tool.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.errors import PagestormError
from bench.mix import Value

MB, MIB = 10**6, 1 << 20


class ToolError(PagestormError):
    """Another tool failed or printed what cannot be read."""


@dataclass(frozen=True)
class Part:
    """What of ours does the same work; several parts take turns."""

    kernel: str
    params: tuple[tuple[str, Value], ...] = ()
    variant: str = ""
    """Empty: the best the CPU has."""
    share: float = 1.0
    """Of the bytes of the other's pass: a copy touches two of three arrays."""


@dataclass(frozen=True)
class PeerTest:
    """One thing a peer measures."""

    name: str
    ours: tuple[Part, ...]
    unit: str = "byte"
    """``byte`` or ``load``: what the speeds count."""
    counted: float = 1.0
    """Our useful bytes for each byte that it counts: 2 where it counts one side of a copy."""
    most_threads: int | None = None
    differs: str = ""
    """Why a ratio may differ from 1 though nothing is wrong."""
    on_request: bool = False
    """Takes so long that it is run only where it is named."""


@dataclass(frozen=True)
class Job:
    """What a peer is to do."""

    n_bytes: int
    """All arrays of all threads together."""
    threads: int
    cpus: tuple[int, ...]
    passes: int
    """Over the arrays, for tools that count passes."""
    seconds: float
    """About so long, for tools that count seconds."""


@dataclass(frozen=True)
class Reading:
    """What a tool said of one run, in our units."""

    rate: float
    """Useful bytes a second as our kernels count them, or loads a second."""
    pass_bytes: int = 0
    """Of one pass over all threads; 0 where the test has no such thing."""
    cpus: tuple[int, ...] = ()
    """Where it says it ran; empty: where it was put."""
    ours: float = 0.0
    """Our rate, where the program measured both sides."""


def _nothing(job: Job) -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class Peer:
    """One tool."""

    name: str
    summary: str
    programs: tuple[str, ...]
    """Names it goes by on PATH."""
    install: str
    """How to get it."""
    tests: tuple[PeerTest, ...]
    command: Callable[[str, PeerTest, Job], list[str]]
    """Arguments, the program first."""
    parse: Callable[[str, PeerTest, Job], Reading]
    """Read its output; ToolError where it is not that."""
    counts: str
    """Its unit, and which traffic it counts."""
    placement: str
    """How its threads and ours come to run on the same CPUs."""
    notes: tuple[str, ...] = ()
    joins: bool = False
    """Whether its clock waits for the slowest thread: ours then meet after each pass. Else each
    thread goes on by itself, on both sides."""
    environment: Callable[[Job], Mapping[str, str]] = _nothing
    version_flags: tuple[str, ...] = ()
    """What makes it print its version; empty: it cannot."""
    make: Callable[[Path], str] | None = None
    """Build it in a folder, where it is source of ours; HostError where that is impossible."""
    missing: Callable[[], str] | None = None
    """Why a library is not there; empty where it is. A library has no program of its own."""

    def test(self, name: str) -> PeerTest | None:
        """Test of this name, if it has it."""
        return next((test for test in self.tests if test.name == name), None)


def whole_lines(text: str) -> str:
    """The text without a last line that does not end: its figures may have been cut off."""
    return text[: text.rfind("\n") + 1]


def number(text: str) -> float:
    """A positive figure of a tool. A locale may have put a comma for the point."""
    plain = text.replace(",", ".") if text.count(",") == 1 and "." not in text else text
    try:
        value = float(plain)
    except ValueError:
        raise ToolError(f"not a number: {text!r}") from None
    if not 0 < value < float("inf"):
        raise ToolError(f"not a speed: {text!r}")
    return value


def find(tool: str, pattern: str, text: str, what: str) -> re.Match[str]:
    """First match in whole lines; ToolError naming what is missing."""
    match = re.search(pattern, whole_lines(text), re.MULTILINE)
    if match is None:
        end = text.strip()[-200:]
        raise ToolError(f"{tool} printed no {what}; it ended with {end!r}")
    return match
