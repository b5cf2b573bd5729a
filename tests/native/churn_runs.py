"""Runs of kernels that map and release: in a fresh process, or kept and looked at from outside."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench import native
from bench.mix import Mix, mix_name

ROOT = Path(__file__).parents[2]
MIB = 1 << 20
PAGE = os.sysconf("SC_PAGESIZE")
QUICK = native.RunSettings(window_s=0.02, warm_s=0.0, min_passes=2)


def sample(asked, environment=None, **request):
    """The response of a fresh process, started with these variables set (or unset, if empty)."""
    variables = {**os.environ, **(environment or {})}
    done = subprocess.run(
        [sys.executable, "-m", "bench.worker"],
        input=json.dumps(
            {
                "mix": mix_name(asked),
                "place": [[-1] * actor.threads for actor in asked.actors],
                "window_s": 0.02,
                "warm_s": 0.0,
                "min_passes": 2,
                "deadline_s": 60,
                "probes": False,
                **request,
            }
        ),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
        env={name: value for name, value in variables.items() if value},
    )
    return json.loads(done.stdout)


@dataclass(frozen=True)
class Held:
    """What a thread holds after a run: its address, bytes, and pages present in its region."""

    start: int
    contents: bytes
    faults: int
    touched: int
    work: dict

    def present(self, bytes_from_start):
        """Bytes present in the page table from the start on, as the kernel tells anyone."""
        n = bytes_from_start // PAGE
        with Path("/proc/self/pagemap").open("rb", buffering=0) as pagemap:
            pagemap.seek(self.start // PAGE * 8)
            entries = pagemap.read(8 * n)
        return PAGE * sum(entries[8 * i + 7] >> 7 for i in range(n))


@contextmanager
def held(actor, passes=1, seed=1):
    """What every thread still holds after so many passes; gone when the context is left."""
    ffi, lib = native.module().ffi, native.module().lib
    settings = native.RunSettings(fixed_passes=passes, check=False, seed=seed)
    raw = native.run(Mix((replace(actor, role="measured"),)), settings, keep=True)
    start, size = ffi.new("void **"), ffi.new("uint64_t *")
    threads = []
    try:
        for thread in range(actor.threads):
            lib.ps_kept_array(raw.kept, 0, thread, 0, start, size)
            row = raw.threads[thread]
            threads.append(
                Held(
                    int(ffi.cast("uintptr_t", start[0])),
                    bytes(ffi.buffer(start[0], size[0])) if size[0] else b"",
                    row.minor_faults,
                    row.touched_bytes,
                    native.work_of(raw.actors[0].work),
                )
            )
        yield threads
    finally:
        lib.ps_release(raw.kept)


def left_behind(names):
    """What runs of these mixes leave: mappings more and resident KiB more, by mix, checked.

    Each is run twice in one process that runs nothing else: the first run leaves what a program
    keeps for good (stacks of threads, the heap's own).
    """
    program = (
        "import gc, json, sys\n"
        "from pathlib import Path\n"
        "from bench import native\n"
        "from bench.mix import parse_mix\n"
        "def state():\n"
        "    gc.collect()\n"
        "    text = Path('/proc/self/smaps_rollup').read_text()\n"
        "    rss = next(line for line in text.splitlines() if line.startswith('Rss:'))\n"
        "    return Path('/proc/self/maps').read_text().count('\\n'), int(rss.split()[1])\n"
        "settings = native.RunSettings(window_s=0.01, warm_s=0, min_passes=1)\n"
        "left = {}\n"
        "for name in json.load(sys.stdin):\n"
        "    state(), native.run(parse_mix(name), settings), state()\n"
        "    before = state()\n"
        "    native.run(parse_mix(name), settings)\n"
        "    after = state()\n"
        "    left[name] = after[0] - before[0], after[1] - before[1]\n"
        "print(json.dumps(left))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(names),
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def lazy_library(folder, source):
    """A library for LD_PRELOAD whose calls do less than they should."""
    path = folder / "lazy.so"
    done = subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-xc", "-", "-o", str(path), "-ldl"],
        input=source,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return str(path)


LAZY_MADVISE = """
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int madvise(void *start, size_t bytes, int advice)
{
#ifdef LAZY
    if (advice == LAZY)
        return 0;
#endif
#ifdef UNKNOWN
    if (advice == UNKNOWN) {
        errno = EINVAL;
        return -1;
    }
#endif
    return (int)syscall(SYS_madvise, start, bytes, advice);
}
"""
"""madvise(2) that ignores advice LAZY, and does not know advice UNKNOWN."""
