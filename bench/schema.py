"""File formats, metadata keys, units and versions: what writer and reader must agree on.

The output directory holds ``journal.ndjson`` (append-only, fsync'd, one JSON object a line),
``pyperf.json`` (written whole, atomically), ``host.json`` and ``plan.toml``.

Journal lines, by ``kind``:

``start``   the run begins or resumes: ``schema``, ``time``, ``boot_id``, ``host_digest``,
            ``plan_digest``, ``version``, ``argv``, ``resumed``.
``sample``  one mix run once: ``block``, ``round``, ``attempt``, ``mix`` (its name), ``time``,
            ``wall_s`` (worker start to end), and the worker's response (``SAMPLE_FIELDS``) or its
            ``error``; ``invalid``: why it must not count; ``messages``: what it said on stderr. An
            ``error`` of kind ``skip`` leaves the mix out from there on.
``block``   a block closed: ``block``, ``round``, ``attempt``, ``status`` (``ok``, ``rejected`` or
            ``failed``), ``reason``. Samples count only once their block closed ``ok``: a block that
            a kill cut off has no such line, and is run again.
``end``     the run is over: ``status`` (``done``, ``interrupted``, ``budget``), ``time``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# Version history of the journal and of the ps_* metadata. A key that may be absent is no new
# version; anything else is, and needs an entry in UPGRADES.
# 1  2026-11-30  first
SCHEMA = 1

JOURNAL = "journal.ndjson"
PYPERF = "pyperf.json"
HOST = "host.json"
PLAN = "plan.toml"
CALIBRATION = "calibration.json"

# ---- worker protocol: one JSON object on stdin, one on stdout -----------------------------------
# Request:  {"schema", "mix": name of the mix, "files": {digest: path}, "place": [[cpu, ...] an
#            actor], "nodes": [[node, ...] an actor] or null, "oversubscribed": [bool an actor],
#            "seed", "window_s", "warm_s", "min_passes", "warm_passes", "log_events",
#            "fixed_passes", "deadline_s", "check", "probes": bool,
#            "spawned_s": CLOCK_MONOTONIC when the driver began to start it}
# Response: the fields below, or {"schema", "error": {"kind": "skip" | "fail", "stage", "message"}}.
# A skip is what the host cannot give; it carries the reason and never becomes a number.
SAMPLE_FIELDS = (
    "window_s",  # length of the window
    "deadline_hit",  # closed by the deadline before min_passes
    "actors",  # list of ACTOR_FIELDS objects, in the mix's order
    "pools",  # {name: {"wait_s", "takes", "puts", "blocked", "stuck"}}, of the window
    "where",  # {"pingpong_before_ns", "pingpong_after_ns", "state", "adds_per_ns"}; state: one CPU,
    # near, far, moved, or unknown: not all of several threads are pinned, or no round trip seen
    "disturbed",  # {counter: delta over the window}, see DISTURBANCES
    "worker",  # {"start_s": spawn until the request is read: fork, Python, imports; "touch_s" and
    # "fill_s": of the slowest actor; "total_s": spawn to answer}. wall_s - total_s is its end.
    "pyperf",  # pyperf's collected metadata of the worker process
)
# A sample of ``bench try`` has two fields instead, ``disturbed`` and ``run``; its ``mix`` is the
# remedy's name. ``run`` is
# {"seconds": exec to exit, "status": exit code, or a signal's number, negative, "failure": how it
# failed, "said": the end of what it then wrote, "metric" and "metric_unit": what it printed,
# "usage": {"user_s", "system_s", "minor_faults", "major_faults", "switches",
# "forced_switches", "peak_bytes" where it is known}, "looks": what was seen in /proc where anybody
# looked (``bench.looks``)}
EXTRA_FIELDS = (
    "log",  # {"events": text of bench.passlog, "lost": events there was no room for}; where asked
)
ACTOR_FIELDS = (
    "seconds",  # per pass; 0 where no progress was made
    "passes",  # behind the value
    "active_s",  # per pass, inside steps or tickets
    "threads",
    "useful_bytes",  # per pass of all threads: read + written + updated
    "read_bytes",
    "written_bytes",
    "updated_bytes",
    "bus_min_bytes",
    "bus_max_bytes",
    "ops",  # per pass of one thread; 0: none
    "mapped_bytes",
    "used_bytes",
    # {"before", "after"}: {"matching", "known", "total", "wrong_node", "unknown_node", "source"},
    # in bytes; "unknown_node" is absent in older files
    "evidence",
    "cpus",  # [[before, after] a thread]
    "start_skew_s",
    "stop_skew_s",
    "oversubscribed",
    "steps",
    "step_bins",  # {bin: count}, see step_bin_ns
    "max_step_s",
    "rest_s",
    "wait_s",
    "courtesy_s",
    "minor_faults",
    "touched_bytes",
    "switches",
    "forced_switches",
    "phases",  # {phase: seconds}
    "thread_passes",  # [whole passes a thread]; where threads join, the first counts them
)

LEAST_MATCHING = 0.99
"""Share of the known bytes that must be backed as the policy promises, else a sample is invalid."""
LEAST_KNOWN = 0.99
"""Share of the bytes whose backing must be known: with less of it known a sample is kept, flagged,
and takes part in no verdict."""
MOST_REJECTED = 0.10
"""Share of its samples that a case may lose to rejections."""
FEWEST_REJECTED = 2
"""One rejection is chance, and of the seven samples of six rounds it is over a tenth."""


def too_many_rejected(rejected: float, share: float) -> bool:
    """Whether a case has lost so many samples that what is left may be a selection.

    ``share`` is of all that were tried, repeats included.
    """
    return rejected >= FEWEST_REJECTED and share > MOST_REJECTED


def strata(state: str, other: str) -> tuple[str, str]:
    """Placement states as they are paired: a sample on one CPU goes with any, others with theirs.

    ``unknown`` (threads that are not pinned) is a stratum of its own: never paired with ``near`` or
    ``far``.

    Where its thread runs beside a second one is not a question for it, so the pair belongs to the
    stratum of the other sample.
    """
    if state == "one":
        return other, other
    return (state, state) if other == "one" else (state, other)


# Counters of ``disturbed`` that mark a sample, and the rate a second above which they do. Most
# count the whole host, where something always happens; interrupts are what some kernels measure.
DISTURBANCES = {
    "steal_s": 0.01,
    "swapped_in": 0,
    "swapped_out": 0,
    "compact_stalls": 0,
    "migrated": 1000,
    "numa_hints": 1000,
    "numa_migrated": 100,
    "thp_splits": 10,
    "thp_collapses": 10,
    "major_faults": 100,
    "forced_switches": 50,
}


def disturbances(sample: Mapping[str, Any]) -> list[str]:
    """What disturbed a sample: names of ``DISTURBANCES``. ``forced_switches``: others ran there."""
    deltas = dict(sample["disturbed"])
    actors = sample.get("actors", ())
    seconds = deltas.get("probed_s") or sample["window_s"]
    threads = [actor["threads"] for actor in actors]
    if threads and not any(actor["oversubscribed"] for actor in actors):
        switches = sum(actor["forced_switches"] for actor in actors)
        deltas["forced_switches"] = switches / sum(threads)
    return [key for key, rate in DISTURBANCES.items() if deltas.get(key, 0) > rate * seconds]


def known_share(look: Mapping[str, Any]) -> float:
    """Share of one look's bytes whose pages and, where bound to one, memory node could be told."""
    told = min(look["known"], look["total"] - look.get("unknown_node", 0))
    return float(max(0, told) / look["total"])


def run_id(start: Mapping[str, Any]) -> str:
    """Identity of a run, of its first ``start`` line."""
    return f"{start.get('time', '')} {(start.get('boot_id') or '')[:8]}".strip()


def step_bin_ns(step_bin: int) -> float:
    """Lower edge of a bin of ``step_bins``; the next bin's is its end. 16 bins an octave."""
    if step_bin < 16:
        return float(step_bin)
    octave, part = divmod(step_bin, 16)
    return float((16 + part) << (octave - 1))


# ---- older files --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Upgrade:
    """What turns data of one version into data of the next; each changes what it is given."""

    line: Callable[[dict[str, Any]], None]
    """Of a journal."""
    metadata: Callable[[dict[str, Any]], None]
    """Of one value of a pyperf file."""


UPGRADES: dict[int, Upgrade] = {}
"""By the version that is upgraded: one entry for each but the last."""


def upgrade_line(line: dict[str, Any], version: int) -> None:
    """Bring a journal line of an older version up to date; ``start`` lines say which it is."""
    for old in range(version, SCHEMA):
        UPGRADES[old].line(line)


def upgrade_metadata(metadata: dict[str, Any]) -> None:
    """Bring the metadata of a value up to date; ``ps_schema`` says which version it is."""
    for old in range(metadata.get("ps_schema", SCHEMA), SCHEMA):
        UPGRADES[old].metadata(metadata)


# ---- pyperf metadata ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """One flat metadata key of a pyperf file."""

    name: str
    unit: str
    help: str


# Metadata of one value in pyperf.json. pyperf allows flat int, float and str only.
KEYS = (
    Key("ps_schema", "", "version of these keys"),
    Key("ps_run", "", "which run: values of one block and round of one run may be paired"),
    Key("ps_block", "", "block and round"),
    Key("ps_case", "", "full name, where an export took a field out of it"),
    Key("ps_useful_bytes", "byte", "read + written + updated by all threads in one pass"),
    Key("ps_bus_min_bytes", "byte", "memory traffic of one pass, at least"),
    Key("ps_bus_max_bytes", "byte", "memory traffic of one pass, at most"),
    Key("ps_seconds_per_pass", "second", "the pass behind a per-operation value"),
    Key("ps_passes", "", "passes in the window"),
    Key("ps_window_s", "second", "length of the window"),
    Key("ps_evidence", "", "share of known bytes backed as the policy promises, 0 to 1"),
    Key("ps_evidence_known", "", "share of bytes whose pages and node could be told, 0 to 1"),
    Key("ps_evidence_source", "", "where the evidence is from"),
    Key("ps_mapped_bytes", "byte", "mapping rounded up to the policy's page"),
    Key("ps_state", "", "one, near, far, moved or unknown: the CPUs used, by ping-pong"),
    Key("ps_pingpong_ns", "nanosecond", "cache-line round trip before the window"),
    Key("ps_adds_per_ns", "", "independent adds a nanosecond: a busy sibling lowers it"),
    Key("ps_oversubscribed", "", "1 where there were more threads than CPUs"),
    Key("ps_start_skew_s", "second", "between the first and the last thread's start"),
    Key("ps_stop_skew_s", "second", "between the first and the last thread's stop"),
    Key("ps_steal_s", "second", "time the hypervisor gave to others, on the CPUs used"),
    Key("ps_disturbed", "", "what disturbed the sample, comma-separated; absent when nothing did"),
    Key("ps_time", "", "start of the sample, UTC"),
    Key("ps_remedy", "", "of a user's command: what was tried on it, or baseline"),
    Key("ps_metric", "", "what the command printed, where it is judged by that; the value is its"),
    Key("ps_wall_s", "second", "exec to exit of a user's command"),
    Key("ps_user_s", "second", "its time in user mode, of all its processes it waited for"),
    Key("ps_system_s", "second", "its time in the kernel"),
    Key(
        "ps_peak_bytes",
        "byte",
        "largest resident size of one of its processes; absent below the driver's",
    ),
    Key("ps_minor_faults", "", "page faults served from memory"),
    Key("ps_major_faults", "", "page faults that waited for a device"),
)
