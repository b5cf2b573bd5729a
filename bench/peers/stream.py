"""STREAM: a binary of the user's, as its size is fixed when it is compiled."""

import re

from bench.peer import MB, Job, Part, Peer, PeerTest, Reading, ToolError, find, number, whole_lines

NAME = "STREAM"
_BEST = "the best of its passes, where ours is the mean"


def command(program: str, test: PeerTest, job: Job) -> list[str]:
    """It takes no arguments."""
    return [program]


def environment(job: Job) -> dict[str, str]:
    """Threads of an OpenMP build, one a CPU."""
    places = ",".join(f"{{{cpu}}}" for cpu in job.cpus)
    return {"OMP_NUM_THREADS": str(job.threads), "OMP_PROC_BIND": "true", "OMP_PLACES": places}


def parse(text: str, test: PeerTest, job: Job) -> Reading:
    """Best rate of one of its four loops; the size is the one that it was compiled with."""
    if "STREAM version" not in text:
        raise ToolError(f"{NAME} printed no version: another program of that name?")
    elements = number(find(NAME, r"^Array size = (\d+) \(elements\)", text, "array size")[1])
    width = number(find(NAME, r"uses (\d+) bytes per array element", text, "element size")[1])
    row = find(NAME, rf"^{test.name.capitalize()}:\s+([\d.,]+)\s", text, f"rate of {test.name}")
    counted = re.search(r"^Number of Threads counted = (\d+)", whole_lines(text), re.MULTILINE)
    threads = int(counted[1]) if counted else 1
    if threads != job.threads:
        raise ToolError(
            f"{NAME} ran {threads} threads instead of {job.threads}: built without OpenMP?"
        )
    arrays = 2 if test.name in ("copy", "scale") else 3
    return Reading(number(row[1]) * MB, round(arrays * elements * width))


def _test(name: str, op: str, more: str = "") -> PeerTest:
    return PeerTest(name, (Part("scan", (("op", op),)),), differs=_BEST + more)


PEER = Peer(
    name="stream",
    summary="STREAM, a binary of yours",
    programs=("stream_c.exe", "stream_c", "stream.omp", "stream"),
    install="build stream.c with -O3 -fopenmp -DSTREAM_ARRAY_SIZE=10000000, "
    "then --tool stream=PATH",
    tests=(
        _test(
            "copy",
            "copy",
            "; many compilers make this loop a call of memcpy, which may go past the caches",
        ),
        _test("scale", "copy", "; ours is a copy: the same traffic"),
        _test("add", "triad", "; ours is a triad: the same traffic"),
        _test("triad", "triad"),
    ),
    command=command,
    parse=parse,
    counts="its MB is 1e6 bytes; bytes read and written, write-allocate not counted",
    placement="pinned by OpenMP to the CPUs of ours; a build without OpenMP is kept to them",
    notes=("arrays are as large as it was compiled for, and ours the same",),
    joins=True,
    environment=environment,
)
