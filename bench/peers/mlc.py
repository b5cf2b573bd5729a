"""Intel Memory Latency Checker."""

from bench.peer import MB, Job, Part, Peer, PeerTest, Reading, find, number

NAME = "mlc"
LATENCY_KIB = 256 << 10


def command(program: str, test: PeerTest, job: Job) -> list[str]:
    """Idle latency on one CPU, in random order; bandwidth from all CPUs it may use."""
    if test.unit == "load":
        return [program, "--idle_latency", "-r", f"-b{LATENCY_KIB}", f"-c{job.cpus[0]}"]
    size = job.n_bytes // job.threads // 1024
    return [program, "--max_bandwidth", f"-b{size}", f"-t{max(1, round(job.seconds))}"]


def parse(text: str, test: PeerTest, job: Job) -> Reading:
    """Nanoseconds in brackets, or the row of reads."""
    if test.unit == "load":
        match = find(NAME, r"base frequency clocks\s+\(\s*([\d.,]+)\s*ns\)", text, "latency")
        return Reading(1e9 / number(match[1]))
    match = find(NAME, r"^ALL Reads\s*:\s*([\d.,]+)", text, "bandwidth of reads")
    return Reading(number(match[1]) * MB, job.n_bytes)


PEER = Peer(
    name=NAME,
    summary="Intel Memory Latency Checker",
    programs=("mlc",),
    install="from Intel's page of the Memory Latency Checker, then --tool mlc=PATH",
    tests=(
        PeerTest(
            "reads",
            (Part("scan", (("op", "read"),)),),
            differs="it reports the highest rate of several numbers of threads",
        ),
        PeerTest(
            "idle_latency",
            (Part("chase", (("loads", 1 << 20),)),),
            unit="load",
            most_threads=1,
            differs="as root it switches the prefetchers off while it runs",
        ),
    ),
    command=command,
    parse=parse,
    counts="its MB is 1e6 bytes; reads only",
    placement="it chooses CPUs by itself: kept to those of ours",
    notes=("its reader was written from its documentation, not from a recorded run",),
)
