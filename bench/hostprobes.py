"""Small measurements of the host: lines between CPUs, a busy sibling, shootdowns, the clock."""

import os

from bench.engine import RunFailedError
from bench.extension import module

N_BINS = 640


def bin_edges_ns() -> tuple[float, ...]:
    """Lower edges of the step-time histogram's bins, and the end of the last but one."""
    return tuple(module().lib.ps_bin_edge_ns(i) for i in range(N_BINS + 1))


def _measure(function: str, *arguments: int, n_out: int = 1) -> tuple[float, ...]:
    ffi, lib = module().ffi, module().lib
    out = [ffi.new("double *") for _ in range(n_out)]
    code = getattr(lib, function)(*arguments, *out)
    if code:
        raise RunFailedError(f"{function}: {os.strerror(code)}", "probe")
    return tuple(value[0] for value in out)


def pingpong_ns(cpu_a: int, cpu_b: int, rounds: int = 2000) -> float:
    """Cache-line round trip between two CPUs."""
    return _measure("ps_pingpong", cpu_a, cpu_b, rounds)[0]


def add_rate(cpu: int, seconds: float = 0.0005) -> float:
    """Independent 64-bit adds a nanosecond; a busy SMT sibling lowers it."""
    return _measure("ps_add_rate", cpu, int(seconds * 1e9))[0]


def shootdown_cost_ns(cpu_a: int, cpu_b: int, rounds: int = 200) -> tuple[float, float]:
    """One-page munmap, alone and beside a running thread of this process on ``cpu_b``."""
    alone, beside = _measure("ps_shootdown_cost", cpu_a, cpu_b, rounds, n_out=2)
    return alone, beside


def clock_resolution_ns() -> int:
    """Smallest step of the clock, measured."""
    return int(module().lib.ps_clock_resolution_ns())
