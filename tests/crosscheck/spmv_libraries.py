"""spmv beside scipy's and MKL's products: the same arrays in the same pages, in interleaved pairs.

A script, not a test: it takes minutes of a quiet machine, and MKL from PyPI (``pip install mkl``)
in the Python that runs it. A pair is a window of whole passes of ours, then as many of the
library's on the very arrays that ours left, both warmed up; ratios are ours over theirs in speed.

    python tests/crosscheck/spmv_libraries.py --threads 1 2 --rounds 12
"""

import argparse
import ctypes
import os
import random
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from bench import native
from bench.mix import Actor, Mix

ROWS, NNZ_ROW = 1_000_000, 32
# Row starts, columns and values, x and y, and padding of six arrays.
SIZE = 4 * (ROWS + 1) + ROWS * NNZ_ROW * 12 + 16 * ROWS + 6 * 4096


@dataclass
class Arrays:
    """Views of one run's memory."""

    start: np.ndarray
    column: np.ndarray
    value: np.ndarray
    x: np.ndarray
    y: np.ndarray


def views(raw):
    ffi, lib = native.module().ffi, native.module().lib
    found = {}
    start, size = ffi.new("void **"), ffi.new("uint64_t *")
    for k, array in enumerate(native.kernel("spmv").arrays):
        lib.ps_kept_array(raw.kept, 0, 0, k, start, size)
        if size[0]:
            dtype = {"u4": np.int32, "f8": np.float64}[array.element]
            found[array.name] = np.frombuffer(ffi.buffer(start[0], size[0]), dtype)
    return Arrays(**found)


class Scipy:
    """``csr_matvec``: what ``A @ x`` calls, without the allocation of a result."""

    threads = (1,)

    def __init__(self, arrays, threads):
        self.arrays = arrays

    def run(self):
        from scipy.sparse import _sparsetools

        a = self.arrays
        n = len(a.start) - 1
        _sparsetools.csr_matvec(n, len(a.x), a.start, a.column, a.value, a.x, a.y)

    def close(self):
        pass


class Mkl:
    """``mkl_sparse_d_mv`` on plain rows."""

    threads = None
    inspects = False
    _lib = None

    class Descr(ctypes.Structure):
        _fields_ = (("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int))

    @classmethod
    def lib(cls):
        if Mkl._lib is None:
            (path, *_) = sorted((Path(sys.prefix) / "lib").glob("libmkl_rt.so*"))
            Mkl._lib = ctypes.CDLL(str(path))
        return Mkl._lib

    def call(self, function, *arguments):
        code = getattr(self.lib(), function)(*arguments)
        if code:
            raise RuntimeError(f"{function}: status {code}")

    def __init__(self, arrays, threads):
        def pointer(array, skip=0):
            return ctypes.c_void_p(array.ctypes.data + skip)

        self.lib().MKL_Set_Num_Threads(threads)
        a, self.handle = arrays, ctypes.c_void_p()
        self.general = self.Descr(20, 0, 0)
        self.x, self.y = pointer(a.x), pointer(a.y)
        n = len(a.start) - 1
        self.call(
            "mkl_sparse_d_create_csr",
            ctypes.byref(self.handle),
            0,
            n,
            len(a.x),
            pointer(a.start),
            pointer(a.start, 4),
            pointer(a.column),
            pointer(a.value),
        )
        if self.inspects:
            self.call("mkl_sparse_set_mv_hint", self.handle, 10, self.general, 1000)
            self.call("mkl_sparse_optimize", self.handle)

    def run(self):
        one, zero = ctypes.c_double(1.0), ctypes.c_double(0.0)
        self.call("mkl_sparse_d_mv", 10, one, self.handle, self.general, self.x, zero, self.y)

    def close(self):
        self.call("mkl_sparse_destroy", self.handle)


class MklInspector(Mkl):
    """The same after its inspector has rearranged the matrix into memory of its own."""

    inspects = True


LIBRARIES = {"scipy": Scipy, "mkl": Mkl, "mkl_inspector": MklInspector}


def pair(actor, cpus, library, window_s, seed):
    """Seconds a pass of ours and of theirs, on the same arrays."""
    settings = native.RunSettings(window_s=window_s, min_passes=5, seed=seed, check=False)
    raw = native.run(Mix((actor,)), settings, [cpus], keep=True)
    try:
        ours, passes = raw.actors[0].seconds_per_pass, int(raw.actors[0].passes)
        arrays = views(raw)
        want = arrays.y.copy()
        other = library(arrays, actor.threads)
        other.run()
        started = time.perf_counter()
        for _ in range(passes):
            other.run()
        theirs = (time.perf_counter() - started) / passes
        if library is not Scipy and not np.array_equal(arrays.y, want):
            raise RuntimeError("the library's product differs from ours")
        other.close()
    finally:
        native.module().lib.ps_release(raw.kept)
    return ours, theirs


def interval(values, share=0.95):
    """Median and its order-statistic interval of at least this confidence."""
    from scipy.stats import binom

    ordered, n = sorted(values), len(values)
    k = max(0, int(binom.ppf((1 - share) / 2, n, 0.5)) - 1)
    while k > 0 and 1 - 2 * binom.cdf(k - 1, n, 0.5) < share:
        k -= 1
    return ordered[k], statistics.median(ordered), ordered[n - 1 - k]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--columns", nargs="+", default=["banded", "uniform"])
    parser.add_argument("--libraries", nargs="+", default=list(LIBRARIES))
    parser.add_argument("--pages", default="thp")
    parser.add_argument("--variant", default="")
    parser.add_argument("--prefetch", default="auto")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--window", type=float, default=0.3, help="seconds of ours a pair")
    args = parser.parse_args()
    variant = args.variant or native.kernel("spmv").best_variant
    plan = [
        (columns, threads, name)
        for columns in args.columns
        for threads in args.threads
        for name in args.libraries
        if not LIBRARIES[name].threads or threads in LIBRARIES[name].threads
    ]
    found = {item: [] for item in plan}
    usable = sorted(os.sched_getaffinity(0))
    for round_ in range(args.rounds):
        for item in random.sample(plan, len(plan)):
            columns, threads, name = item
            params = [("columns", columns), ("prefetch", args.prefetch)]
            actor = Actor("spmv", variant, args.pages, threads, SIZE, tuple(params))
            cpus = usable[:threads]
            os.sched_setaffinity(0, cpus)
            try:
                seconds = pair(native.canonical(actor), cpus, LIBRARIES[name], args.window, round_)
            finally:
                os.sched_setaffinity(0, usable)
            found[item].append(seconds)
    for (columns, threads, name), pairs in found.items():
        low, middle, high = interval([theirs / ours for ours, theirs in pairs])
        gflops = [
            2e-9 * ROWS * NNZ_ROW / statistics.median(side) for side in zip(*pairs, strict=True)
        ]
        sys.stdout.write(
            f"{columns:8} {threads}t {args.pages} {variant}: {gflops[0]:5.2f} GFLOP/s, {name} "
            f"{gflops[1]:5.2f}; ratio {middle:.3f} [{low:.3f}, {high:.3f}]\n"
        )


if __name__ == "__main__":
    main()
