"""Other tools that measure what two of our kernels measure: likwid-bench, and a chase of its own.

Nothing of theirs is linked or copied: they run as programs, on memory of their own, and what they
print is read. Which pages that memory got is looked up in ``/proc`` while they run.
"""

import contextlib
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.errors import HostError, PagestormError

LIKWID = "likwid-bench"
COMPILERS = ("cc", "gcc", "clang")
TIMEOUT_S = 120.0
LOOK_EVERY_S = 0.02
"""Between looks at a tool's memory; a look costs microseconds and ends once the pages are known."""


class ToolError(PagestormError):
    """Another tool failed or printed what cannot be read."""


@dataclass(frozen=True)
class Reading:
    """What a tool said of one run."""

    rate: float
    """Bytes a second, or loads a second."""
    pass_bytes: int
    """Bytes of one pass over all threads; 0 for a chase."""
    cpus: tuple[int, ...]
    huge_share: float | None
    """Share of its resident memory in transparent huge pages; None where it could not be read."""


# Knuth's and Sattolo's shuffle by libc's rand(), absolute pointers, one loop: as unlike our chase
# (computed bijection, offsets, steps) as two programs for the same thing can be.
CHASE_SOURCE = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

struct line {
    struct line *next;
    char rest[56];
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct line *follow(struct line *at, long loads)
{
    while (loads-- > 0)
        at = at->next;
    return at;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    long cpu = atol(argv[1]), bytes = atol(argv[2]), loads = atol(argv[3]);
    long n = bytes / (long)sizeof(struct line);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((int)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        return 3;
    void *memory =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 4;
    madvise(memory, (size_t)bytes, MADV_NOHUGEPAGE);
    struct line *lines = memory;
    for (long i = 0; i < n; i++)
        lines[i].next = &lines[i];
    for (long i = n - 1; i > 0; i--) {
        long j = (long)((((unsigned long)rand() << 31) | (unsigned long)rand()) % (unsigned long)i);
        struct line *swap = lines[i].next;
        lines[i].next = lines[j].next;
        lines[j].next = swap;
    }
    struct line *at = follow(lines, loads / 8);
    double start = seconds();
    at = follow(at, loads);
    double end = seconds();
    printf("%.9f %d\n", end - start, at == NULL);
    return 0;
}
"""


def likwid_missing() -> str:
    """Why likwid-bench cannot be run, with the way out; empty where it can."""
    return "" if shutil.which(LIKWID) else f"{LIKWID} is not installed (Debian: apt install likwid)"


def run_likwid(test: str, n_bytes: int, threads: int, iterations: int) -> Reading:
    """Run one test on the first CPUs of the machine, its arrays taking ``n_bytes`` together."""
    group = f"N:{n_bytes // 1000}kB:{threads}"
    text, huge = _watched([LIKWID, "-t", test, "-W", group, "-i", str(iterations)], n_bytes)
    return parse_likwid(text, huge)


def parse_likwid(text: str, huge_share: float | None = None) -> Reading:
    """Reading of likwid-bench's output; ToolError where it is not that."""
    found = {}
    for key in ("Time", "Data volume (Byte)", "Iterations per thread"):
        match = re.search(rf"^{re.escape(key)}:\s+(\S+)", text, re.MULTILINE)
        if match is None:
            raise ToolError(f"{LIKWID} printed no {key!r}: {text.strip()[-200:]!r}")
        found[key] = float(match[1])
    volume = found["Data volume (Byte)"]
    cpus = tuple(
        int(cpu) for cpu in re.findall(r"Global Thread \d+ running on hwthread (\d+)", text)
    )
    return Reading(
        rate=volume / found["Time"],
        pass_bytes=round(volume / found["Iterations per thread"]),
        cpus=tuple(int(cpu) for cpu in cpus),
        huge_share=huge_share,
    )


@contextlib.contextmanager
def own_chase() -> Iterator["OwnChase"]:
    """Compile the pointer chase above, for as long as the context lasts.

    Raises
    ------
    HostError
        There is no C compiler.
    """
    compiler = next((found for name in COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        raise HostError("no C compiler for the chase to compare with (Debian: apt install gcc)")
    with tempfile.TemporaryDirectory(prefix="pagestorm-chase-") as folder:
        program = Path(folder) / "chase"
        source = program.with_suffix(".c")
        source.write_text(CHASE_SOURCE)
        done = subprocess.run(
            [compiler, "-O2", "-o", program, source], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ToolError(f"{compiler} does not compile the chase: {done.stderr[-300:]}")
        yield OwnChase(program)


@dataclass(frozen=True)
class OwnChase:
    """The compiled chase."""

    program: Path

    def run(self, cpu: int, n_bytes: int, loads: int) -> Reading:
        """Time ``loads`` dependent loads, after an eighth as many, on small pages."""
        arguments = [str(cpu), str(n_bytes), str(loads)]
        text, share = _watched([str(self.program), *arguments], n_bytes)
        return Reading(loads / float(text.split()[0]), 0, (cpu,), share)


def _watched(command: list[str], n_bytes: int) -> tuple[str, float | None]:
    """Output of a program, and how much of its memory was huge once it had touched most of it."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            share = _huge_share(process, n_bytes)
            text, _ = process.communicate(timeout=TIMEOUT_S)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise ToolError(f"{command[0]} ended with {process.returncode}: {text[-300:].strip()}")
    return text, share


def _huge_share(process: "subprocess.Popen[str]", n_bytes: int) -> float | None:
    folder = Path("/proc") / str(process.pid)
    deadline = time.monotonic() + TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            resident = int((folder / "statm").read_text().split()[1]) * 4096
            if resident >= 0.9 * n_bytes:
                return parse_rollup((folder / "smaps_rollup").read_text())
        except (OSError, IndexError, ValueError):
            return None
        time.sleep(LOOK_EVERY_S)
    return None


def parse_rollup(text: str) -> float | None:
    """AnonHugePages over Rss of a ``smaps_rollup`` file."""
    rows = dict(re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE))
    if not int(rows.get("Rss", 0)) or "AnonHugePages" not in rows:
        return None
    return int(rows["AnonHugePages"]) / int(rows["Rss"])
