"""The insides of msm as Python functions: fields, groups, grids, and passes over chosen inputs."""

import functools
import importlib.util
import os
import re
import tempfile
from pathlib import Path
from types import SimpleNamespace

from cffi import FFI
from driver_build import CSRC, build_module

from bench import native

DRIVER = Path(__file__).with_name("msm_driver.c")
FIELD_OPS = ("add", "sub", "mul", "square", "inverse")
GROUP_OPS = ("add_point", "add_bucket", "double")
ISAS = ("scalar", "adx")


def _build(folder):
    build = build_module()
    text = DRIVER.read_text(encoding="utf-8")
    declared = re.findall(r"^(?:int|void) driver_\w+\([^{]*?\);$", text, re.MULTILINE)
    flags = os.environ.get("CFLAGS", "").split()
    ffi = FFI()
    ffi.cdef("\n".join(declared))
    ffi.set_source(
        "_msm_driver",
        build.registry_source([], []) + "\n".join(declared),
        sources=[str(DRIVER), *(str(CSRC / f"{stem}.c") for stem in ("isa", "pace", "registry"))],
        include_dirs=[str(CSRC)],
        extra_compile_args=[*build.CFLAGS, *flags, "-Werror", "-Wno-pedantic"],
        extra_link_args=["-pthread", *flags],
    )
    path = ffi.compile(tmpdir=str(folder))
    spec = importlib.util.spec_from_file_location("_msm_driver", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return SimpleNamespace(ffi=module.ffi, lib=module.lib)


class Driver:
    """Arguments and results are bytes as they lie in memory."""

    def __init__(self, module):
        self.ffi, self.lib = module.ffi, module.lib

    def field(self, degree, isa, op, a, b=None):
        out = self.ffi.new("char[]", len(a))
        code = self.lib.driver_field(degree, ISAS.index(isa), FIELD_OPS.index(op), a, b or a, out)
        assert code == 0
        return bytes(self.ffi.buffer(out, len(a)))

    def group(self, name, isa, op, bucket, other=b""):
        # Room of its own for each: a read past the end would show under a sanitizer.
        held, given = self.ffi.new("char[]", bucket), self.ffi.new("char[]", other)
        code = self.lib.driver_group(
            ("g1", "g2").index(name), ISAS.index(isa), GROUP_OPS.index(op), held, given
        )
        assert code == 0
        return bytes(self.ffi.buffer(held, len(bucket)))

    def plain(self, montgomery):
        out = self.ffi.new("uint64_t[4]")
        self.lib.driver_plain(self.ffi.from_buffer("uint64_t[4]", montgomery), out)
        return bytes(self.ffi.buffer(out))

    def grid(self, n, threads, window=0):
        out = self.ffi.new("uint32_t[3]")
        self.lib.driver_grid(n, threads, window, out)
        return tuple(out)

    def tile(self, grid, n, ticket):
        out = self.ffi.new("uint64_t[4]")
        self.lib.driver_tile(self.ffi.new("uint32_t[3]", grid), n, ticket, out)
        return tuple(out)

    def sum(self, isa, threads, points, scalars, bucket_bytes, **given):
        """Result of one pass; ``given`` are the kernel's parameters."""
        described = native.kernel("msm").params
        values = {param.name: given.get(param.name, param.default) for param in described}
        numbers = [
            param.choices.index(values[param.name])
            if param.kind == "choice"
            else values[param.name]
            for param in described
        ]
        out, why = self.ffi.new("char[]", bucket_bytes), self.ffi.new("char[256]")
        code = self.lib.driver_sum(
            numbers, ISAS.index(isa), threads, len(scalars) // 32, points, scalars, out, why
        )
        assert code == 0, self.ffi.string(why).decode()
        return bytes(self.ffi.buffer(out, bucket_bytes))


@functools.cache
def driver():
    """Built once a test session."""
    # An object of its own, so that the folder goes when the interpreter does.
    driver.folder = tempfile.TemporaryDirectory(prefix="msm-driver-")
    return Driver(_build(Path(driver.folder.name)))


@functools.cache
def isas():
    """Variants that this CPU has."""
    return [variant.name for variant in native.kernel("msm").variants if variant.available]
