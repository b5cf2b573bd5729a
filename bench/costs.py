"""How long one sample takes, from start to end of its worker, before it has ever been run."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from bench.blocks import Settings


@dataclass(frozen=True)
class Costs:
    """Constants of the estimate.

    Medians of several dozen samples on a shared 2-CPU virtual machine (AMD Zen 5, 4 KiB base
    pages), rounded up: an estimate that is a little long is more use than one that is too short.
    """

    start_s: float = 0.25
    """A fresh Python with the extension, its request, its answer, probes of where it runs."""
    thread_s: float = 1e-4
    """Start, pin and join one thread."""
    fault_s: float = 1.9e-6
    """First touch of a page."""
    zero_s_per_byte: float = 4.5e-11
    """Clearing of a new page: 95 us for 2 MiB."""
    returned_s_per_byte: float = 1.2e-9
    """In a virtual machine, first touch of memory that the host took back since the last sample
    freed it; seen at large transparent pages only."""
    kept_bytes: int = 128 << 20
    """So much of what a sample frees the next one finds in the guest still."""
    fault_scaling: int = 8
    """Threads that take faults of one address space without waiting for each other; a guess, as
    only two could be tried."""
    fill_s_per_byte: float = 1.1e-10
    """Generating data, and checking results, by one thread."""
    release_s: float = 6e-7
    """Two looks at a page's backing, and its release at the end."""
    release_s_per_byte: float = 6e-11
    """The same for the memory itself."""
    stream_s_per_byte: float = 1e-10
    """One thread's streaming kernel: 10 GB/s, half of what current cores do."""
    stream_scaling: int = 8
    """Threads that one memory domain serves at that rate, at the least."""
    wait_s: float = 3.5e-7
    """One dependent load from memory with small pages in a virtual machine."""

    def refined(self, measured: Mapping[str, float]) -> "Costs":
        """Constants with measured ones in their place; unknown names are ignored."""
        known = {item.name for item in fields(self)}
        return replace(self, **{key: value for key, value in measured.items() if key in known})  # type: ignore[arg-type]  # all fields are numbers


@dataclass(frozen=True)
class Load:
    """One actor's part of the estimate."""

    threads: int
    used_bytes: int
    page_bytes: int
    returned: bool
    """A host below this one takes freed memory back between samples."""
    busy_s: float = 0.0
    """Of one thread in a pass; with ``waits`` 0: a pass streams the memory once."""
    waits: float = 0.0
    """Latencies of memory, one after the other, of one thread in a pass."""


def pass_s(load: Load, costs: Costs) -> float:
    """Seconds of one pass."""
    if load.busy_s or load.waits:
        return load.busy_s + load.waits * costs.wait_s
    return load.used_bytes * costs.stream_s_per_byte / min(load.threads, costs.stream_scaling)


def setup_s(load: Load, costs: Costs, check: bool) -> float:
    """Seconds from the actor's mapping to its release, without warm-up and window."""
    pages = -(-load.used_bytes // load.page_bytes)
    touch = pages * costs.fault_s
    if load.returned:
        touch += max(0, load.used_bytes - costs.kept_bytes) * costs.returned_s_per_byte
    touch /= min(load.threads, costs.fault_scaling)
    touch += load.used_bytes * costs.zero_s_per_byte / min(load.threads, costs.stream_scaling)
    fills = 2 if check else 1
    fill = fills * load.used_bytes * costs.fill_s_per_byte / min(load.threads, costs.stream_scaling)
    release = pages * costs.release_s + load.used_bytes * costs.release_s_per_byte
    return touch + fill + release + load.threads * costs.thread_s


def window_s(measured: list[Load], settings: Settings, costs: Costs) -> float:
    """Seconds the window is expected to stay open."""
    slowest = max((pass_s(load, costs) for load in measured), default=0.0)
    return max(settings.window_s, settings.min_passes * slowest)


def sample_s(loads: list[Load], measured: list[Load], settings: Settings, costs: Costs) -> float:
    """Seconds of one sample: start, touch, fill, evidence, warm-up, window, check, teardown."""
    setup = sum(setup_s(load, costs, settings.check) for load in loads)
    # Every actor makes a pass before warm-up. Where it streams or waits, the times above are long
    # enough for one more; what a kernel says of its computing is not.
    first = max((pass_s(load, costs) for load in loads if load.busy_s), default=0.0)
    return costs.start_s + setup + first + settings.warm_s + window_s(measured, settings, costs)
