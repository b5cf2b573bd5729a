"""mbw: copies by memcpy and by a plain loop, in one thread."""

import re

from bench.peer import MIB, Job, Part, Peer, PeerTest, Reading, ToolError, number, whole_lines

NAME = "mbw"
TESTS = {"memcpy": ("0", "MEMCPY"), "dumb": ("1", "DUMB")}
_ROW = re.compile(
    r"^\d+\s+Method: (\w+)\s+Elapsed: ([\d.,]+)\s+MiB: ([\d.,]+)\s+Copy: [\d.,]+ MiB/s$",
    re.MULTILINE,
)


def command(program: str, test: PeerTest, job: Job) -> list[str]:
    """Two arrays of whole MiB; one run more than passes, as the first is left out."""
    mib = max(1, job.n_bytes // 2 // MIB)
    return [program, "-n", str(job.passes + 1), f"-t{TESTS[test.name][0]}", str(mib)]


def parse(text: str, test: PeerTest, job: Job) -> Reading:
    """All runs but the first, which is cold: ours has a pass of its own before the clock starts."""
    rows = [row for row in _ROW.findall(whole_lines(text)) if row[0] == TESTS[test.name][1]]
    if len(rows) != job.passes + 1:
        raise ToolError(f"{NAME} printed {len(rows)} of {job.passes + 1} runs of {test.name}")
    seconds = sum(number(elapsed) for _, elapsed, _ in rows[1:])
    copied = sum(number(mib) for _, _, mib in rows[1:]) * MIB
    return Reading(test.counted * copied / seconds, round(2 * number(rows[0][2]) * MIB))


PEER = Peer(
    name=NAME,
    summary="copies in one thread",
    programs=("mbw",),
    install="Debian: apt install mbw",
    tests=(
        PeerTest(
            "memcpy",
            (Part("scan", (("op", "libc_copy"), ("step", 1 << 30))),),
            counted=2.0,
            most_threads=1,
            differs="one memcpy of the whole array: its size decides whether libc goes past the "
            "caches",
        ),
        PeerTest(
            "dumb",
            (Part("scan", (("op", "copy"),), "scalar"),),
            counted=2.0,
            most_threads=1,
            differs="a loop over 8 bytes, unless its compiler made it a call of memcpy",
        ),
    ),
    command=command,
    parse=parse,
    counts="MiB of 2**20 bytes, of a copy one side (taken twice here); write-allocate not counted",
    placement="one thread, not pinned: kept to the CPU of ours",
    notes=(
        "its averages include a cold first run, which is left out here",
        "its third test, MCBLOCK, copies the same block of the source again and again: no copy of "
        "an array, and so not compared",
    ),
)
