"""multichase: a pointer chase."""

import re

from bench.peer import Job, Part, Peer, PeerTest, Reading, ToolError, number, whole_lines

NAME = "multichase"
CHASE_MIB = 256


def command(program: str, test: PeerTest, job: Job) -> list[str]:
    """Average (-a), and the whole memory as one locality: its default of 256 KiB hides the TLB."""
    return [program, "-a", "-m", f"{CHASE_MIB}m", "-T", f"{CHASE_MIB}m", "-s", "64"]


def parse(text: str, test: PeerTest, job: Job) -> Reading:
    """Nanoseconds a load: the last line that is nothing but a number."""
    rows = re.findall(r"^\s*([\d.,]+)\s*$", whole_lines(text), re.MULTILINE)
    if not rows:
        raise ToolError(f"{NAME} printed no latency: {text.strip()[-200:]!r}")
    return Reading(1e9 / number(rows[-1]))


PEER = Peer(
    name=NAME,
    summary="a pointer chase",
    programs=("multichase",),
    install="build it from its source, then --tool multichase=PATH",
    tests=(
        PeerTest(
            "chase",
            (Part("chase", (("loads", 1 << 20),)),),
            unit="load",
            most_threads=1,
            differs="the random order is its own",
        ),
    ),
    command=command,
    parse=parse,
    counts="nanoseconds a load",
    placement="one thread, kept to the CPU of ours",
    notes=("its reader was written from its documentation, not from a recorded run",),
)
