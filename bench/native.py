"""The engine as Python sees it: one name for the modules behind it.

``extension`` loads it, ``descriptors`` are its registries, ``structs`` what it is given, ``engine``
runs it, ``hostprobes`` are its small measurements. Imports no numpy, so that a worker starts
quickly.
"""

from bench.descriptors import (
    Array,
    Kernel,
    Param,
    Policy,
    Variant,
    canonical,
    checked,
    kernel,
    kernels,
    policies,
    policy,
    policy_available,
)
from bench.engine import (
    Once,
    RawRun,
    RefusedError,
    RunFailedError,
    RunSettings,
    run,
    run_once,
    work_of,
)
from bench.extension import MODULE, NotBuiltError, load, module, text, use_module
from bench.hostprobes import (
    add_rate,
    bin_edges_ns,
    clock_resolution_ns,
    pingpong_ns,
    shootdown_cost_ns,
)
from bench.structs import Effort, Footprint, accepts, effort, environment, footprint

__all__ = [
    "MODULE",
    "Array",
    "Effort",
    "Footprint",
    "Kernel",
    "NotBuiltError",
    "Once",
    "Param",
    "Policy",
    "RawRun",
    "RefusedError",
    "RunFailedError",
    "RunSettings",
    "Variant",
    "accepts",
    "add_rate",
    "bin_edges_ns",
    "canonical",
    "checked",
    "clock_resolution_ns",
    "effort",
    "environment",
    "footprint",
    "kernel",
    "kernels",
    "load",
    "module",
    "pingpong_ns",
    "policies",
    "policy",
    "policy_available",
    "run",
    "run_once",
    "shootdown_cost_ns",
    "text",
    "use_module",
    "work_of",
]
