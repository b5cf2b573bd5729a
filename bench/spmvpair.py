"""One pair of sparse products: ours, then a library's on the arrays that ours left.

Run as a program, so that each pair has a fresh process and the library's threads end with it:
``python -m bench.spmvpair LIBRARY COLUMNS THREADS BYTES SECONDS POLICY`` prints one JSON line.
"""

import ctypes
import ctypes.util
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench.errors import PagestormError
from bench.peer import Job, PeerTest, Reading, ToolError, whole_lines

COLUMNS = ("banded", "uniform")
NNZ_ROW = 32
# Row start, columns and values, x and y.
ROW_BYTES = 4 + NNZ_ROW * 12 + 16
PADDING = 6 * 4096


@dataclass
class Arrays:
    """Views of one run's memory."""

    start: Any
    column: Any
    value: Any
    x: Any
    y: Any


class Library(Protocol):
    """A product prepared on given arrays."""

    def run(self) -> None:
        """Multiply: y = A x."""

    def close(self) -> None:
        """Give back what preparing took."""


class Scipy:
    """``csr_matvec`` without the allocation of a result."""

    def __init__(self, arrays: Arrays, threads: int) -> None:
        from scipy.sparse import _sparsetools

        self._a, self._multiply = arrays, _sparsetools.csr_matvec

    def run(self) -> None:
        """Adds to y, as scipy's own caller hands it zeros."""
        a = self._a
        self._multiply(len(a.start) - 1, len(a.x), a.start, a.column, a.value, a.x, a.y)

    def close(self) -> None:
        """Nothing to give back."""


class _Descr(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int))


class Mkl:
    """``mkl_sparse_d_mv``, after its inspector where that is asked for."""

    def __init__(self, arrays: Arrays, threads: int, inspect: bool = False) -> None:
        def pointer(array: Any, skip: int = 0) -> ctypes.c_void_p:  # noqa: ANN401 - numpy stays out of the driver
            return ctypes.c_void_p(array.ctypes.data + skip)

        self._lib = ctypes.CDLL(mkl_path())
        self._lib.MKL_Set_Num_Threads(threads)
        self._handle, self._general = ctypes.c_void_p(), _Descr(20, 0, 0)
        a, rows = arrays, len(arrays.start) - 1
        self._x, self._y = pointer(a.x), pointer(a.y)
        starts = pointer(a.start), pointer(a.start, 4)
        data = pointer(a.column), pointer(a.value)
        self._call("create_csr", ctypes.byref(self._handle), 0, rows, len(a.x), *starts, *data)
        if inspect:
            self._call("set_mv_hint", self._handle, 10, self._general, 1000, prefix="mkl_sparse_")
            self._call("optimize", self._handle, prefix="mkl_sparse_")

    def _call(self, function: str, *arguments: Any, prefix: str = "mkl_sparse_d_") -> None:  # noqa: ANN401 - C
        code = getattr(self._lib, prefix + function)(*arguments)
        if code:
            raise PagestormError(f"{prefix}{function} returned status {code}")

    def run(self) -> None:
        """Multiply: y = 1 A x + 0 y."""
        one, zero = ctypes.c_double(1.0), ctypes.c_double(0.0)
        self._call("mv", 10, one, self._handle, self._general, self._x, zero, self._y)

    def close(self) -> None:
        """Destroy the handle."""
        self._call("destroy", self._handle, prefix="mkl_sparse_")


def scipy_missing() -> str:
    """Why scipy cannot be compared with; empty where it can."""
    found = importlib.util.find_spec("scipy.sparse._sparsetools")
    return "" if found else "this scipy has no csr_matvec to call"


def mkl_path() -> str:
    """The run-time library of a pip or a system install; empty where there is none."""
    own = sorted((Path(sys.prefix) / "lib").glob("libmkl_rt.so*"))
    return str(own[0]) if own else ctypes.util.find_library("mkl_rt") or ""


def mkl_missing() -> str:
    """Why MKL cannot be compared with; empty where it can."""
    return "" if mkl_path() else "libmkl_rt.so is neither in this Python nor on the system"


def command_of(library: str) -> Callable[[str, PeerTest, Job], list[str]]:
    """What makes the command line of a pair."""

    def command(program: str, test: PeerTest, job: Job) -> list[str]:
        words = [library, test.name, job.threads, job.n_bytes, job.seconds]
        cpus = ",".join(map(str, job.cpus))
        return [sys.executable, "-P", "-m", "bench.spmvpair", *map(str, words), cpus]

    return command


def parse(text: str, test: PeerTest, job: Job) -> Reading:
    """Read the JSON line."""
    try:
        row = json.loads(whole_lines(text).splitlines()[-1])
        return Reading(row["theirs"], row["bytes"], tuple(job.cpus), row["ours"])
    except (ValueError, LookupError, TypeError):
        raise ToolError(f"the pair of products printed {text.strip()[-200:]!r}") from None


def pair(
    library: str, columns: str, threads: int, n_bytes: int, seconds: float, cpus: list[int]
) -> dict[str, Any]:
    """Rates of both sides in useful bytes of ours a second, on equal arrays and threads."""
    from bench import native
    from bench.mix import Actor, Mix

    columns, _, how = columns.partition("+")
    size = n_bytes // ROW_BYTES * ROW_BYTES + PADDING
    params = (("columns", columns), ("nnz_row", NNZ_ROW))
    policy = policy_here()
    actor = native.canonical(
        Actor("spmv", native.kernel("spmv").best_variant, policy, threads, size, params)
    )
    settings = native.RunSettings(window_s=seconds, min_passes=5, check=False)
    raw = native.run(Mix((actor,)), settings, [cpus], keep=True)
    try:
        row = raw.actors[0]
        passes = max(1, round(row.passes))
        work = native.work_of(row.work)
        useful = work["read_bytes"] + work["written_bytes"] + work["updated_bytes"]
        arrays = _views(raw)
        want = arrays.y.copy()
        other: Library
        if library == "scipy":
            other = Scipy(arrays, threads)
            arrays.y[:] = 0
        else:
            other = Mkl(arrays, threads, inspect=how == "inspector")
        other.run()
        import numpy as np

        if not np.allclose(arrays.y, want, rtol=1e-9, atol=1e-9):
            raise PagestormError(f"{library}: its product differs from ours")
        began = time.perf_counter()
        for _ in range(passes):
            other.run()
        theirs_s = (time.perf_counter() - began) / passes
        other.close()
    finally:
        native.module().lib.ps_release(raw.kept)
    return {
        "ours": useful / row.seconds_per_pass,
        "theirs": useful / theirs_s,
        "bytes": useful,
        "policy": policy,
    }


def policy_here() -> str:
    """Pages of the arrays that both sides use: huge where the host gives them."""
    from bench import native

    return "base" if native.policy_available("thp") else "thp"


def _views(raw: Any) -> Arrays:  # noqa: ANN401 - cffi
    import numpy as np

    from bench import native

    ffi, lib = native.module().ffi, native.module().lib
    found = {}
    start, size = ffi.new("void **"), ffi.new("uint64_t *")
    for k, array in enumerate(native.kernel("spmv").arrays):
        lib.ps_kept_array(raw.kept, 0, 0, k, start, size)
        if size[0]:
            dtype = {"u4": np.int32, "f8": np.float64}[array.element]
            found[array.name] = np.frombuffer(ffi.buffer(start[0], size[0]), dtype)
    return Arrays(**found)


def main(argv: list[str]) -> int:
    """Run one pair and print it."""
    library, columns, threads, n_bytes, seconds, cpus = argv
    where = [int(cpu) for cpu in cpus.split(",")]
    os.sched_setaffinity(0, where)
    result = pair(library, columns, int(threads), int(n_bytes), float(seconds), where)
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
