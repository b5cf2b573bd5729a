"""A scenario file to start from: what can be seen from outside, and comments where it cannot."""

from collections.abc import Iterator

from bench.capacity import SHARE
from bench.observe.figures import Observation, ProcessFigures
from bench.observe.finding import IDLE_CPUS, share
from bench.observe.known import Known
from bench.observe.translation import CHURN_BYTES_PER_S, CHURN_FAULTS_PER_S
from bench.units import MIB, about, format_size

LEAST_BYTES = 4 * MIB
"""Of an actor: less is cached everywhere, and some kernels cannot be laid out."""
DUTY = 0.9
"""Share of the time a thread works above which it needs no rest in its script."""


def skeleton(seen: Observation, known: Known) -> str:
    """Text of a scenario that ``bench.scenariofile`` reads."""
    return "\n".join([*_head(seen), *_work(seen, known), *_churn(seen)]) + "\n"


def _head(seen: Observation) -> Iterator[str]:
    yield f"# Seen from outside in {seen.seconds:.0f} s of {_plain(seen.target)}: sizes, threads"
    yield "# and rates. What the program does with its memory is for you to say."
    yield "# docs/scenarios.md explains every key; `remedy FILE --dry-run` shows what it comes to."
    yield f'summary = "{_plain(seen.target)}"'


def _plain(text: str) -> str:
    """A name of a process or group may hold anything; TOML and comments may not."""
    return "".join(c if c.isprintable() and c not in '"\\' else "?" for c in text)


def _work(seen: Observation, known: Known) -> Iterator[str]:
    resident = sum(_data(process) for process in seen.processes)
    runnable = sum(process.running for process in seen.processes)
    # Threads that wait for a CPU want to work, too; more than there are CPUs cannot.
    active = max(seen.cpus_used, min(runnable, known.cpus))
    threads = max(1, round(active))
    yield ""
    yield "# The pattern cannot be seen. gather: independent random accesses; scan[op=read]: a"
    yield "# stream; chase: dependent loads; `list kernels`: more. Take what is most like it."
    yield "[[actor]]"
    yield 'name = "work"'
    yield 'kernel = "gather"'
    yield f"# {runnable:.2g} threads runnable on average, {seen.cpus_used:.2g} CPUs used."
    yield f"threads = {threads}"
    size = max(LEAST_BYTES, resident // MIB * MIB)
    yield f"# {about(resident)} resident without program files; less may be in use at a time."
    room = None if known.available_bytes is None else int(known.available_bytes * SHARE)
    if room is not None and size > room >= LEAST_BYTES:
        size = room // MIB * MIB
        yield "# Cut to a quarter of what is free; remedy --max-memory allows more."
    yield f'size = "{format_size(size)}"'
    yield from _pages(seen)
    many = [process for process in seen.processes if process.cpus_used >= IDLE_CPUS]
    if threads > 1 and len(many) > 1 and all(process.threads == 1 for process in many):
        yield f"# {len(many)} processes of one thread each: no address space in common."
        yield 'process = "each"'
    if active < DUTY * threads:
        yield f"# At work {share(active / threads)} of the time; rests shape the load:"
        yield '# script = "pass.rest(5ms)"'


def _data(process: ProcessFigures) -> int:
    """Resident bytes that are not files; all, where kinds are not known."""
    return process.memory.resident - process.memory.kinds.get("file", (0, 0))[0]


def _pages(seen: Observation) -> Iterator[str]:
    resident = sum(_data(process) for process in seen.processes)
    kinds = [process.memory.kinds for process in seen.processes]
    hugetlb = sum(found.get("hugetlb", (0, 0))[1] for found in kinds)
    huge = sum(process.memory.huge or 0 for process in seen.processes)
    if any(process.memory.huge is None for process in seen.processes):
        yield "# On which pages it lies is not known."
    elif huge:
        yield f"# {about(huge)} of it on huge pages."
    if resident and hugetlb * 2 > resident:
        yield 'pages = "2m"'
    elif resident and huge * 2 > resident:
        yield 'pages = "thp"'


def _churn(seen: Observation) -> Iterator[str]:
    faults = sum(process.untraced_per_s for process in seen.processes)
    released = sum(process.released_per_s for process in seen.processes)
    if faults < CHURN_FAULTS_PER_S and released < CHURN_BYTES_PER_S:
        return
    pace = max(released, faults * 4096)
    yield ""
    yield f"# {faults:,.0f} faults/s left no page behind; resident memory fell by at least"
    yield f"# {released / 1e6:.3g} MB/s between looks. The sizes of its blocks cannot be seen:"
    yield "# set chunk, and method (munmap, dontneed, heap, ...; `list kernels storm`)."
    yield "[[actor]]"
    yield 'name = "release"'
    yield 'kernel = "storm[chunk=262144]"'
    yield "threads = 1"
    yield 'size = "8MiB"'
    yield f'pace = "{max(1, round(pace / 1e6))}MB/s"'
    yield "weight = 0  # no work in itself"
