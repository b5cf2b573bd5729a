"""Every kernel, variant and choice on tiny arrays: results checked, variants compared bit for bit.

Reads only the registry: a kernel added as one file is tested without a line here. A kernel's own
check compares its results with a closed form; on top of that all variants must leave the same bytes
as the first, which is the plainest. Combinations a kernel refuses are counted with their reason.
"""

import itertools
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from bench import native
from bench.errors import PagestormError, UsageError
from bench.mix import Actor, Value

THREADS = 2
PASSES = 3
"""More than one, as a pass starts from what the last one left; odd, as some undo the one before."""
SIZES = tuple(1 << exponent for exponent in range(16, 27, 2))
"""Tried from 64 KiB on: the first that a kernel can be laid out in."""


@dataclass(frozen=True)
class KernelReport:
    """What testing one kernel came to."""

    kernel: str
    variants: tuple[str, ...]
    cases: int
    """Runs made, one a variant and combination of choices."""
    refused: tuple[str, ...]
    """Combinations that cannot be, each with its reason."""
    failures: tuple[str, ...]
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether something ran and nothing failed."""
        return self.cases > 0 and not self.failures


def reports(names: Iterable[str] = ()) -> Iterator[KernelReport]:
    """Test the named kernels, or all, one by one; UsageError for an unknown name."""
    chosen = [native.kernel(name) for name in names] or list(native.kernels().values())
    for described in chosen:
        yield _test_kernel(described)


def combinations(described: native.Kernel) -> Iterator[tuple[tuple[str, Value], ...]]:
    """Every combination of a kernel's choice parameters, the others at their defaults."""
    choices = [param for param in described.params if param.kind == "choice"]
    for values in itertools.product(*(param.choices for param in choices)):
        yield tuple((param.name, value) for param, value in zip(choices, values, strict=True))


def _test_kernel(described: native.Kernel) -> KernelReport:
    started = time.perf_counter()
    variants = tuple(variant.name for variant in described.variants if variant.available)
    cases, refused, failures = 0, [], []
    for params in combinations(described):
        reference: native.Once | None = None
        for variant in variants:
            actor = Actor(described.name, variant, "base", THREADS, SIZES[0], params)
            title = " ".join([f"{described.name}/{variant}", *(f"{k}={v}" for k, v in params)])
            try:
                once = native.run_once(_smallest(actor), PASSES)
            except (UsageError, native.RefusedError) as error:
                refused.append(f"{title}: {error}")
                continue
            except PagestormError as error:
                failures.append(f"{title}: {error}")
                cases += 1
                continue
            cases += 1
            if reference is None:
                reference = once
                continue
            found = difference(described, reference.arrays, once.arrays)
            if found:
                failures.append(f"{title}: {found} in {variants[0]}")
    seconds = time.perf_counter() - started
    return KernelReport(described.name, variants, cases, tuple(refused), tuple(failures), seconds)


def _smallest(actor: Actor) -> Actor:
    """The actor at the first size that holds it; UsageError with the last reason if none does."""
    for size in SIZES[:-1]:
        sized = replace(actor, size=size)
        try:
            native.footprint(sized)
        except UsageError:
            continue
        return sized
    native.footprint(replace(actor, size=SIZES[-1]))
    return replace(actor, size=SIZES[-1])


def difference(
    described: native.Kernel,
    expected: Mapping[str, tuple[bytes, ...]],
    found: Mapping[str, tuple[bytes, ...]],
) -> str:
    """First element that differs, as ``a[5] of thread 1 is 2.0, not 3.0``; empty if none does.

    Scratch arrays may hold what they like.
    """
    for array in described.arrays:
        if array.role == "scratch":
            continue
        pairs = zip(expected[array.name], found[array.name], strict=True)
        for thread, (want, got) in enumerate(pairs):
            if want == got:
                continue
            if len(want) != len(got):
                return f"{array.name} of thread {thread} has {len(got)} bytes, not {len(want)}"
            width = _width(array.element)
            byte = next(i for i in range(len(want)) if want[i] != got[i])
            first = byte // width * width
            return (
                f"{array.name}[{byte // width}] of thread {thread} is "
                f"{_shown(array.element, got[first : first + width])}, not "
                f"{_shown(array.element, want[first : first + width])}"
            )
    return ""


def _width(element: str) -> int:
    return int(element.lstrip("<>=|")[1:])


_FORMATS = {"u1": "B", "i1": "b", "u4": "I", "i4": "i", "u8": "Q", "i8": "q", "f4": "f", "f8": "d"}


def _shown(element: str, data: bytes) -> str:
    """Value of one element; as hex digits where struct has no such type."""
    code = _FORMATS.get(element.lstrip("<>=|"))
    return repr(struct.unpack(f"={code}", data)[0]) if code else f"0x{data[::-1].hex()}"
