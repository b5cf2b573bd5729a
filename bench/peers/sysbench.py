"""sysbench: its memory test."""

import math

from bench.peer import MIB, Job, Part, Peer, PeerTest, Reading, find, number

NAME = "sysbench"


def block_bytes(job: Job) -> int:
    """Of a thread: the power of two nearest to its share, as sysbench takes no other size."""
    return 1 << round(math.log2(job.n_bytes / job.threads))


def command(program: str, test: PeerTest, job: Job) -> list[str]:
    """A block a thread, and so many passes over it. The default is one of 1 KiB for all."""
    block = block_bytes(job)
    return [
        program, "memory", f"--threads={job.threads}", "--memory-scope=local",
        f"--memory-block-size={block}", f"--memory-oper={test.name}",
        f"--memory-total-size={block * job.threads * job.passes}", "--time=0", "run",
    ]  # fmt: skip


def parse(text: str, test: PeerTest, job: Job) -> Reading:
    """The rate it prints, over the whole run."""
    match = find(NAME, r"MiB transferred \(([\d.,]+) MiB/sec\)", text, "rate")
    return Reading(number(match[1]) * MIB, block_bytes(job) * job.threads)


PEER = Peer(
    name=NAME,
    summary="its memory test",
    programs=("sysbench",),
    install="Debian: apt install sysbench",
    tests=(
        PeerTest(
            "read",
            (Part("scan", (("op", "read"), ("streams", 1)), "scalar"),),
            differs="plain loads of 8 bytes, one place after the other",
        ),
        PeerTest("write", (Part("scan", (("op", "write"),), "scalar"),)),
    ),
    command=command,
    parse=parse,
    counts="MiB of 2**20 bytes; each byte read or written once, write-allocate not counted",
    placement="not pinned: kept to the CPUs that ours are pinned to",
    notes=(
        "takes powers of two only: the size is the nearest, and ours the same",
        "its main thread touches all blocks first; its clock runs from the start of the threads "
        "to the end of the last",
    ),
    version_flags=("--version",),
)
