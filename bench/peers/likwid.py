"""likwid-bench: assembly loops, its own threads, its own pinning."""

import re

from bench.peer import Job, Part, Peer, PeerTest, Reading, ToolError, find, number, whole_lines

NAME = "likwid"


def _test(name: str, op: str, store: str = "", variant: str = "avx2") -> PeerTest:
    params = (("op", op), *((("store", store),) if store else ()))
    return PeerTest(name, (Part("scan", params, variant),))


def command(program: str, test: PeerTest, job: Job) -> list[str]:
    """Run on the first CPUs of the machine, the arrays initialised by the threads that use them."""
    group = f"N:{job.n_bytes // 1000}kB:{job.threads}"
    return [program, "-t", test.name, "-W", group, "-i", str(job.passes)]


def parse(text: str, test: PeerTest, job: Job) -> Reading:
    """Volume over time, as printed; the CPUs are those that it names."""
    found = {
        key: number(find(NAME, rf"^{re.escape(key)}:\s+(\S+)", text, repr(key))[1])
        for key in ("Time", "Data volume (Byte)", "Iterations per thread")
    }
    volume = found["Data volume (Byte)"]
    rows = re.findall(r"Global Thread \d+ running on hwthread (\d+)", whole_lines(text))
    if len(rows) != job.threads:
        raise ToolError(f"{NAME} says where {len(rows)} of {job.threads} threads ran")
    return Reading(
        rate=volume / found["Time"],
        pass_bytes=round(volume / found["Iterations per thread"]),
        cpus=tuple(int(cpu) for cpu in rows),
    )


PEER = Peer(
    name=NAME,
    summary="assembly loops for streams",
    programs=("likwid-bench",),
    install="Debian: apt install likwid",
    # Its triad is a = b * c + d, its stream a = b * s + c.
    tests=(
        _test("load_avx", "read", variant=""),
        _test("copy_avx", "copy"),
        _test("copy_mem_avx", "copy", "nt"),
        _test("triad_avx", "vtriad"),
        _test("triad_mem_avx_fma", "vtriad", "nt"),
        _test("stream_avx", "triad"),
        _test("stream_mem_avx_fma", "triad", "nt"),
    ),
    command=command,
    parse=parse,
    counts="bytes loaded and stored over seconds (its MByte is 1e6); write-allocate not counted",
    placement="it pins its threads to the first CPUs of the machine; ours go to the same",
    notes=("its threads meet after the last pass only, ours after each",),
    joins=True,
    version_flags=("-v",),
)
