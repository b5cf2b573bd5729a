"""stress-ng: its stream and memrate stressors."""

import re

from bench.peer import MIB, Job, Part, Peer, PeerTest, Reading, ToolError, number, whole_lines

NAME = "stress-ng"
# Releases up to 0.15 refuse a rate for under about five seconds of stream.
STREAM_SECONDS = 6
MEMRATE_SECONDS = 3
_STREAM = re.compile(
    r"stream: memory rate: ([\d.,]+) MB read/sec, ([\d.,]+) MB write/sec.*\(instance \d+\)"
)
_COPY, _TRIAD = (("op", "copy"),), (("op", "triad"),)


def command(program: str, test: PeerTest, job: Job) -> list[str]:
    """One process a thread. stream takes arrays of four times the cache size it is told."""
    if test.name == "stream":
        cache = f"{job.n_bytes // 12 // 1024}k"
        what = ["--stream", str(job.threads), "--stream-l3-size", cache]
        seconds = STREAM_SECONDS
    else:
        size = f"{job.n_bytes // job.threads // 1024}k"
        what = ["--memrate", str(job.threads), "--memrate-bytes", size]
        seconds = MEMRATE_SECONDS
    return [program, *what, "-t", str(seconds), "--metrics"]


def parse(text: str, test: PeerTest, job: Job) -> Reading:
    """Sum over its processes."""
    lines = whole_lines(text)
    if "run duration too short" in lines:
        raise ToolError(f"{NAME} calls {STREAM_SECONDS} s too short on this machine")
    if test.name == "stream":
        rows = _STREAM.findall(lines)
        if len(rows) != job.threads:
            raise ToolError(f"{NAME} printed rates of {len(rows)} of {job.threads} processes")
        rate = sum(number(read) + number(write) for read, write in rows) * MIB
        array = job.n_bytes // 12 // 1024 * 1024 // job.threads * 4 // 8 * 8
        return Reading(rate, 3 * array * job.threads)
    pattern = rf"memrate\s+([\d.,]+) {test.name} MB per sec \(\w+ mean of (\d+) instance"
    match = re.search(pattern, lines)
    if match is None:
        raise ToolError(f"{NAME} printed no rate of {test.name}: {lines.strip()[-200:]!r}")
    if int(match[2]) != job.threads:
        raise ToolError(f"{NAME} printed the mean of {match[2]} of {job.threads} processes")
    each = job.n_bytes // job.threads // 1024 * 1024
    return Reading(number(match[1]) * job.threads * MIB, each * job.threads)


PEER = Peer(
    name=NAME,
    summary="its stream and memrate stressors",
    programs=("stress-ng",),
    install="Debian: apt install stress-ng",
    tests=(
        PeerTest(
            "stream",
            (Part("scan", _COPY, share=2 / 3), Part("scan", _TRIAD)),
            differs="a copy, a scale, an add and a triad in turn, beside a copy and a triad: "
            "the same traffic; its compiler chooses the instructions",
        ),
        PeerTest(
            "read64",
            (Part("scan", (("op", "read"), ("streams", 1)), "scalar"),),
            differs="plain loads of 8 bytes, one place after the other",
        ),
        PeerTest(
            "memset",
            (Part("scan", (("op", "libc_set"), ("step", 1 << 30))),),
            differs="one memset of the whole buffer: its size decides whether libc goes past the "
            "caches",
        ),
    ),
    command=command,
    parse=parse,
    counts="its MB is 2**20 bytes; each byte read or written once, write-allocate not counted",
    placement="a process a thread, not pinned: kept to the CPUs that ours are pinned to",
    notes=(
        "memrate goes through all its methods in turn, and of several processes gives a mean, "
        "which is taken times their number",
    ),
    version_flags=("--version",),
)
