"""lmbench: bw_mem, and lat_mem_rd where it is named."""

import re

from bench.peer import (
    MB,
    Job,
    Part,
    Peer,
    PeerTest,
    Reading,
    ToolError,
    find,
    number,
    whole_lines,
)

NAME = "lmbench"
STRIDE = 64
CHASE_MIB = 256


def command(program: str, test: PeerTest, job: Job) -> list[str]:
    """A process a thread, each with arrays of its own."""
    if test.unit == "load":
        folder = program.rpartition("/")[0]
        tool = f"{folder}/lat_mem_rd" if folder else "lat_mem_rd"
        return [tool, "-P", "1", "-W", "0", "-N", "1", "-t", str(CHASE_MIB), str(STRIDE)]
    what = ["-P", str(job.threads), "-W", "0", "-N", "1", str(array_bytes(test, job)), test.name]
    return [program, *what]


def array_bytes(test: PeerTest, job: Job) -> int:
    """Of one array of one process; a copy has two."""
    return round(job.n_bytes / job.threads / test.counted) // 4096 * 4096


def environment(job: Job) -> dict[str, str]:
    """So long a measurement, and no calibration: that takes minutes on a machine that is busy."""
    return {"ENOUGH": str(round(job.seconds * 1e6)), "TIMING_O": "0", "LOOP_O": "0"}


def parse(text: str, test: PeerTest, job: Job) -> Reading:
    """Megabytes of an array and the rate of all processes together; or the last row of a ladder."""
    if test.unit == "load":
        rows = re.findall(r"^([\d.,]+) ([\d.,]+)$", whole_lines(text), re.MULTILINE)
        if not rows or round(number(rows[-1][0])) != CHASE_MIB:
            raise ToolError(f"{NAME} printed no latency at {CHASE_MIB} MiB")
        return Reading(1e9 / number(rows[-1][1]))
    match = find(NAME, r"^([\d.,]+) ([\d.,]+)$", text, "rate")
    # Printed with two decimals: enough to see that it took the size that it was given.
    if abs(number(match[1]) * MB / array_bytes(test, job) - 1) > 0.01:
        raise ToolError(f"{NAME} took {match[1]} MB instead of {array_bytes(test, job)} bytes")
    each = array_bytes(test, job) * test.counted
    return Reading(test.counted * number(match[2]) * MB, round(each * job.threads))


def _stream(name: str, op: str, differs: str = "", counted: float = 1.0) -> PeerTest:
    params: tuple[tuple[str, str | int], ...] = (("op", op),)
    variant = "scalar"
    if op == "read":
        params = (*params, ("streams", 1))
    if op.startswith("libc"):
        params, variant = (*params, ("step", 1 << 30)), ""
    return PeerTest(name, (Part("scan", params, variant),), counted=counted, differs=differs)


PEER = Peer(
    name=NAME,
    summary="bw_mem, and lat_mem_rd on request",
    programs=(
        "bw_mem",
        "/usr/lib/lmbench/bin/x86_64-linux-gnu/bw_mem",
        "/usr/lib/lmbench/bin/aarch64-linux-gnu/bw_mem",
    ),
    install="Debian: apt install lmbench (section non-free)",
    tests=(
        _stream("frd", "read", "loads of 4 bytes in one thread of sums: its adds may be the limit"),
        _stream("fwr", "write", "stores of 4 bytes"),
        _stream("fcp", "copy", "copies 4 bytes at a time", counted=2.0),
        _stream("bcopy", "libc_copy", "libc's copy of the whole array", counted=2.0),
        _stream(
            "bzero",
            "libc_set",
            "it stores zeros, which some CPUs do twice as fast as other values; ours are none",
        ),
        PeerTest(
            "lat_mem_rd",
            (Part("chase", (("within", "page"), ("loads", 1 << 20))),),
            unit="load",
            most_threads=1,
            differs="the random order is its own",
            on_request=True,
        ),
    ),
    command=command,
    parse=parse,
    counts="its MB is 1e6 bytes; of a copy one side (taken twice here); write-allocate not counted",
    placement="a process a thread, not pinned: kept to the CPUs that ours are pinned to",
    notes=(
        "rd, wr, rdwr and cp touch 4 bytes in 16 and count all 16: not compared",
        "its calibration is switched off (ENOUGH, TIMING_O, LOOP_O)",
    ),
    environment=environment,
)
