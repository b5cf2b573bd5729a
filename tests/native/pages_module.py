"""A module of the page policies and of what they call, built for tests: internals included."""

import importlib.util
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cffi import FFI

ROOT = Path(__file__).parents[2]
CSRC = ROOT / "csrc"
SOURCES = ("evidence.c", "folios.c", "map.c", "registry.c", "smaps.c", "sysfs.c")
MIB = 1 << 20
PMD = 2 * MIB
PAGE = os.sysconf("SC_PAGESIZE")
THP = Path("/sys/kernel/mm/transparent_hugepage")
POOLS = Path("/sys/kernel/mm/hugepages")

DECLARATIONS = """
typedef struct {
    uint64_t matching_bytes, known_bytes, total_bytes, wrong_node_bytes; char source[32]; ...;
} ps_evidence;
typedef struct ps_policy ps_policy;
struct ps_policy {
    const char *name; const char *summary; uint64_t page_bytes; bool hugetlb;
    int (*available)(const ps_policy *self, char *why);
    int (*map)(const ps_policy *self, void *where, uint64_t bytes, void **out);
    int (*evidence)(const ps_policy *self, const void *start, uint64_t bytes, ps_evidence *out);
    ...;
};
uint32_t ps_n_policies(void);
const ps_policy *ps_policy_at(uint32_t index);
uint64_t ps_policy_page(const ps_policy *policy);
int ps_policy_available(const ps_policy *policy, char *why);

typedef struct { uint64_t small, huge, zero; const char *source; ...; } ps_backing;
typedef struct { uint64_t small, huge, hugetlb, hugetlb_page; ...; } ps_smaps;
void ps_backing_of(const void *start, uint64_t bytes, ps_backing *out);
int ps_pagemap_scan(const void *start, uint64_t bytes, ps_backing *out);
int ps_smaps_range(const void *start, uint64_t bytes, ps_smaps *out);
int ps_folio_bytes(const void *start, uint64_t bytes, uint64_t page_bytes, uint64_t *known,
                   uint64_t *matching);
int ps_map_aligned(void *where, uint64_t bytes, uint64_t align, int extra_flags, void **out);
uint64_t ps_pmd_bytes(void);

void *mmap(void *where, size_t bytes, int protection, int flags, int file, long offset);
int munmap(void *start, size_t bytes);
int mprotect(void *start, size_t bytes, int protection);
int madvise(void *start, size_t bytes, int advice);
int capset(void *header, const void *data);
int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
"""


def build(folder: Path) -> SimpleNamespace:
    """Compile and import the module; ``.ffi`` and ``.lib`` as cffi has them."""
    spec = importlib.util.spec_from_file_location("build_native", CSRC / "build_native.py")
    assert spec is not None
    assert spec.loader is not None
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    policies = sorted((CSRC / "pages").glob("*.c"))
    ffi = FFI()
    ffi.cdef(DECLARATIONS)
    ffi.set_source(
        "_pages",
        "#include <sys/mman.h>\n#include <sys/prctl.h>\n"
        + "int capset(void *header, const void *data);\n"  # libc exports it, no header has it
        + builder.registry_source([], [path.stem for path in policies]),
        sources=[str(path) for path in [*(CSRC / name for name in SOURCES), *policies]],
        include_dirs=[str(CSRC)],
        extra_compile_args=[*builder.CFLAGS, "-Werror", "-Wno-pedantic"],
    )
    path = ffi.compile(tmpdir=str(folder))
    spec = importlib.util.spec_from_file_location("_pages", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return SimpleNamespace(ffi=module.ffi, lib=module.lib)


class Pages:
    """The module's calls as tests want to read them."""

    def __init__(self, module: SimpleNamespace) -> None:
        self.ffi, self.lib = module.ffi, module.lib
        rows = [self.lib.ps_policy_at(i) for i in range(self.lib.ps_n_policies())]
        self.policies = {self.ffi.string(row.name).decode(): row for row in rows}

    def available(self, name: str) -> tuple[int, str]:
        why = self.ffi.new("char[256]")
        code = self.lib.ps_policy_available(self.policies[name], why)
        return code, self.ffi.string(why).decode()

    def try_map(self, name: str, n_bytes: int, where: Any = None) -> tuple[int, Any]:
        """Return (errno, start)."""
        out = self.ffi.new("void **")
        policy = self.policies[name]
        code = policy.map(policy, self.ffi.NULL if where is None else where, n_bytes, out)
        return code, out[0]

    @contextmanager
    def mapped(self, name: str, n_bytes: int, touch: bool = True) -> Iterator[Any]:
        """A mapping of a policy, every page of it written unless told otherwise."""
        code, start = self.try_map(name, n_bytes)
        assert code == 0, os.strerror(code)
        try:
            if touch:
                self.touch(start, n_bytes)
            yield start
        finally:
            assert self.lib.munmap(start, n_bytes) == 0

    def touch(self, start: Any, n_bytes: int) -> None:
        view = self.ffi.buffer(start, n_bytes)
        for offset in range(0, n_bytes, PAGE):
            view[offset] = b"\x01"

    def at(self, start: Any, offset: int) -> Any:
        return self.ffi.cast("char *", start) + offset

    def evidence(self, name: str, start: Any, n_bytes: int) -> tuple[int, int, int, str]:
        """Return (matching, known, total, source)."""
        out = self.ffi.new("ps_evidence *")
        policy = self.policies[name]
        assert policy.evidence(policy, start, n_bytes, out) == 0
        source = self.ffi.string(out.source).decode()
        return out.matching_bytes, out.known_bytes, out.total_bytes, source

    def scan(self, start: Any, n_bytes: int) -> tuple[int, int, int]:
        """PAGEMAP_SCAN: (small, huge, zero)."""
        out = self.ffi.new("ps_backing *")
        code = self.lib.ps_pagemap_scan(start, n_bytes, out)
        assert code == 0, os.strerror(code)
        return out.small, out.huge, out.zero

    def smaps(self, start: Any, n_bytes: int) -> tuple[int, int, int, int]:
        """smaps: (small, huge, hugetlb, hugetlb_page)."""
        out = self.ffi.new("ps_smaps *")
        code = self.lib.ps_smaps_range(start, n_bytes, out)
        assert code == 0, os.strerror(code)
        return out.small, out.huge, out.hugetlb, out.hugetlb_page

    def folios(self, start: Any, n_bytes: int, page_bytes: int) -> tuple[int, int, int]:
        """kpageflags: (errno, known, matching)."""
        known, matching = self.ffi.new("uint64_t *"), self.ffi.new("uint64_t *")
        code = self.lib.ps_folio_bytes(start, n_bytes, page_bytes, known, matching)
        return code, known[0], matching[0]


def in_child(claim: Callable[[], None]) -> None:
    """Run a claim in a forked process: it may drop privileges or change what is inherited."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            claim()
        except BaseException as error:
            os.write(writer, repr(error).encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        failure = stream.read()
    _, status = os.waitpid(child, 0)
    assert (failure, status) == ("", 0)


def as_nobody(pages: Pages, claim: Callable[[], None]) -> None:
    """Run a claim without root's rights, and then as any program of that user would run."""

    def become_nobody() -> None:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        # A change of user hides /proc/self from the process itself until its next exec.
        assert pages.lib.prctl(4, 1, 0, 0, 0) == 0  # PR_SET_DUMPABLE
        claim()

    in_child(become_nobody)


@contextmanager
def setting(path: Path, value: str) -> Iterator[None]:
    """Write a kernel setting and put back what was there."""
    before = path.read_text()
    if "[" in before:
        before = before.split("[")[1].split("]")[0]
    path.write_text(value)
    try:
        yield
    finally:
        path.write_text(before)


def choose(path: Path, value: str) -> AbstractContextManager[None]:
    """The same, or a skip where the kernel has no such setting."""
    if not path.exists():
        pytest.skip(f"this kernel has no {path}")
    return setting(path, value)


@contextmanager
def only_64k_pages() -> Iterator[None]:
    """64 KiB transparent pages switched on, every larger size off."""
    with ExitStack() as stack:
        for kib in (128, 256, 512, 1024, 2048):
            stack.enter_context(choose(THP / f"hugepages-{kib}kB/enabled", "never"))
        stack.enter_context(choose(THP / "hugepages-64kB/enabled", "madvise"))
        yield


def pool_folder(name: str) -> Path:
    """Where the kernel shows a hugetlb pool."""
    return POOLS / {"2m": "hugepages-2048kB", "1g": "hugepages-1048576kB"}[name]


@contextmanager
def reserve(name: str, n_pages: int) -> Iterator[None]:
    """That many more pages in a pool, or a skip."""
    pool = pool_folder(name) / "nr_hugepages"
    wanted = int(pool.read_text()) + n_pages if pool.exists() else 0
    with choose(pool, str(wanted)):
        if int(pool.read_text()) < wanted:
            pytest.skip(f"the kernel finds no {n_pages} free pages for the {name} pool")
        yield


@cache
def load() -> Pages:
    """The module, built once a test run."""
    with tempfile.TemporaryDirectory(prefix="pages-test-") as folder:
        return Pages(build(Path(folder)))
