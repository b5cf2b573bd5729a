"""Builds ``bench._native``: slices the ABI header for cffi and writes both registries from folders.

A file in ``kernels/`` defines ``ps_kernel_<stem>``; a file in ``pages/`` defines the list
``ps_policies_<stem>``. Adding one is adding a file.
"""

from __future__ import annotations

from pathlib import Path

from cffi import FFI

HERE = Path(__file__).parent
BEGIN, END = "/* cffi: begin */", "/* cffi: end */"
CFLAGS = [
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-O2",
    "-g",
    "-pthread",
    # GCC turns plain loops into memcpy and memset calls and half-vectorises the scalar baseline.
    "-fno-tree-loop-distribute-patterns",
    "-fno-tree-vectorize",
    # A fused multiply-add rounds once: the scalar variant would differ from its reference.
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
]


def slice_header(text: str) -> str:
    """Return the declarations between the two markers of the ABI header."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"the ABI header needs exactly one {BEGIN!r} and one {END!r}")
    return text.split(BEGIN)[1].split(END)[0]


def registry_source(kernels: list[str], policies: list[str]) -> str:
    """C source of the two tables the mechanism reads."""
    lines = ['#include "internal.h"']
    lines += [f"extern const ps_kernel ps_kernel_{stem};" for stem in kernels]
    lines += [f"extern const ps_policy_list ps_policies_{stem};" for stem in policies]
    lines.append("extern const ps_kernel *const ps_kernels[];")
    lines.append("extern const uint32_t ps_kernels_count;")
    lines.append("extern const ps_policy_list *const ps_policy_lists[];")
    lines.append("extern const uint32_t ps_policy_lists_count;")
    rows = "".join(f"    &ps_kernel_{stem},\n" for stem in kernels)
    lines.append(f"const ps_kernel *const ps_kernels[] = {{\n{rows}}};")
    lines.append(f"const uint32_t ps_kernels_count = {len(kernels)};")
    rows = "".join(f"    &ps_policies_{stem},\n" for stem in policies)
    lines.append(f"const ps_policy_list *const ps_policy_lists[] = {{\n{rows}}};")
    lines.append(f"const uint32_t ps_policy_lists_count = {len(policies)};")
    return "\n".join(lines) + "\n"


def make_ffi(
    module: str = "bench._native",
    root: Path = HERE,
    extra_kernels: tuple[Path, ...] = (),
    extra_cflags: tuple[str, ...] = (),
    absolute: bool = False,
) -> FFI:
    """Describe the extension; ``extra_kernels`` lets a test build one with kernels of its own.

    setuptools wants paths relative to setup.py; a build elsewhere wants them absolute.
    """
    kernels = sorted((root / "kernels").glob("*.c")) + list(extra_kernels)
    policies = sorted((root / "pages").glob("*.c"))
    sources = sorted(root.glob("*.c")) + kernels + policies
    headers = sorted(root.glob("*.h")) + sorted((root / "kernels").glob("*.h"))

    def shown(path: Path) -> str:
        path = path.resolve()
        return str(path) if absolute else str(path.relative_to(root.resolve().parent))

    ffi = FFI()
    ffi.cdef(slice_header((root / "pagestorm.h").read_text(encoding="utf-8")))
    ffi.set_source(
        module,
        registry_source([path.stem for path in kernels], [path.stem for path in policies]),
        sources=[shown(path) for path in sources],
        depends=[shown(path) for path in headers],
        include_dirs=[shown(root)],
        extra_compile_args=[*CFLAGS, *extra_cflags],
        extra_link_args=["-pthread", *extra_cflags],
    )
    return ffi
