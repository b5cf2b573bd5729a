"""A pointer chase of our own that shares nothing with the kernel: compiled here, then run."""

import shutil
import subprocess
from pathlib import Path

from bench.errors import HostError
from bench.peer import Job, Part, Peer, PeerTest, Reading, ToolError, number

NAME = "chase"
COMPILERS = ("cc", "gcc", "clang")
CHASE_BYTES = 256 << 20
LOADS = 1 << 20

# Knuth's and Sattolo's shuffle by libc's rand(), absolute pointers, one loop: as unlike our chase
# (computed bijection, offsets, steps) as two programs for the same thing can be.
SOURCE = r"""
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


def make(folder: Path) -> str:
    """Compile it into the folder and return the program."""
    compiler = next((found for name in COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        raise HostError("no C compiler for the chase to compare with", PEER.install)
    program = folder / "chase"
    source = program.with_suffix(".c")
    source.write_text(SOURCE)
    done = subprocess.run(
        [compiler, "-O2", "-o", program, source], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ToolError(f"{compiler} does not compile the chase: {done.stderr[-300:]}")
    return str(program)


def command(program: str, test: PeerTest, job: Job) -> list[str]:
    """Time dependent loads, after an eighth as many, on small pages."""
    return [program, str(job.cpus[0]), str(CHASE_BYTES), str(LOADS)]


def parse(text: str, test: PeerTest, job: Job) -> Reading:
    """Seconds of all loads."""
    words = text.split()
    if len(words) != 2:
        raise ToolError(f"the chase printed {text!r}")
    return Reading(LOADS / number(words[0]), cpus=job.cpus[:1])


PEER = Peer(
    name=NAME,
    summary="an independent pointer chase, compiled here",
    programs=(),
    install="Debian: apt install gcc",
    tests=(PeerTest("loads", (Part("chase", (("loads", LOADS),)),), unit="load", most_threads=1),),
    command=command,
    parse=parse,
    counts="seconds of a number of dependent loads",
    placement="pins itself to the CPU of ours",
    make=make,
)
