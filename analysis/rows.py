"""Journal lines and pyperf values -> rows: one a value, all from the same columns.

Uses the standard library alone. A column that a source does not know is NaN or empty in its rows.
"""

import math
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from analysis.files import PyperfValue
from bench.errors import UsageError
from bench.mix import Actor, Mix, cases, name, parse, parse_mix
from bench.schema import disturbances, known_share
from bench.units import format_size

if TYPE_CHECKING:
    from pandas import DataFrame

Row = dict[str, Any]
NodeOf = Mapping[int, int]
"""CPU -> memory node."""

NAME_COLUMNS = (
    "kernel", "params", "variant", "pages", "threads", "size", "process", "priority", "courtesy",
    "pace", "weight", "joined", "aligned", "pin", "script", "beside", "pools",
)  # fmt: skip
"""What a benchmark's name says of the measured actor and of what ran beside it.

``params`` is text; each parameter that differs from its default has a column ``param_NAME`` too.
"""

_NOWHERE: NodeOf = {}
_UNKNOWN = math.nan


def as_rows(data: "Iterable[Row] | DataFrame") -> list[Row]:
    """Rows of a DataFrame, which may be a part of what was loaded; rows as they are."""
    to_dict = getattr(data, "to_dict", None)
    return cast(list[Row], list(data) if to_dict is None else to_dict("records"))


def make_rows(line: Mapping[str, Any], question: str, node_of: NodeOf = _NOWHERE) -> list[Row]:
    """Rows of one sample line of a journal: one for each measured actor.

    Seconds are per pass; ``latency_ns`` is per operation of one thread and NaN where the kernel
    counts none. ``gbps`` is useful bytes over seconds in 1e9 B/s, of all threads; ``bus_min_gbps``
    and ``bus_max_gbps`` enclose the memory traffic; ``beside_gbps`` is the useful bytes of all
    other actors. ``overlap`` is the least share of the window in which all actors were inside
    their steps at once. ``evidence`` and ``evidence_known`` are the smallest shares, over all
    actors of the mix and both looks, of known bytes backed as promised and of bytes whose pages
    and memory node are known.
    ``nodes`` counts the memory nodes whose CPUs the actor used.
    """
    actors = line["actors"]
    seen = [
        look
        for actor in actors
        for look in (actor.get("evidence") or {}).values()
        if look and look["total"]
    ]
    where, deltas = line["where"], line["disturbed"]
    rates = [_rate(actor["useful_bytes"], actor["seconds"]) for actor in actors]
    shared = {
        "host": line.get("pyperf", {}).get("hostname", ""),
        "block": line["block"],
        "question": question,
        "round": line["round"],
        "time": line["time"],
        "window_s": line["window_s"],
        "wall_s": line.get("wall_s", _UNKNOWN),
        "state": where.get("state") or "",
        "pingpong_ns": _number(where.get("pingpong_before_ns")),
        "adds_per_ns": _number(where.get("adds_per_ns")),
        "evidence": min((s["matching"] / s["known"] for s in seen if s["known"]), default=_UNKNOWN),
        "evidence_known": min((known_share(s) for s in seen), default=_UNKNOWN),
        "evidence_source": seen[0].get("source") or "" if seen else "",
        "overlap": _overlap(actors),
        "steal_s": _number(deltas.get("steal_s")),
        "disturbed": ",".join(disturbances(line)),
    }
    rows = []
    for position, named in _measured(line["mix"]):
        actor = actors[position]
        others = [rate for i, rate in enumerate(rates) if i != position]
        used = {node_of.get(cpu) for pair in actor.get("cpus", ()) for cpu in pair}
        rows.append(
            {
                **named,
                **_figures(
                    actor["seconds"],
                    actor["ops"],
                    actor["useful_bytes"],
                    actor["bus_min_bytes"],
                    actor["bus_max_bytes"],
                ),
                **shared,
                **{f"phase_{key}_s": s for key, s in (actor.get("phases") or {}).items()},
                "passes": actor["passes"],
                "oversubscribed": bool(actor["oversubscribed"]),
                "start_skew_s": actor.get("start_skew_s", _UNKNOWN),
                "stop_skew_s": actor.get("stop_skew_s", _UNKNOWN),
                "beside_gbps": math.fsum(r for r in others if r == r) if others else _UNKNOWN,
                "nodes": _UNKNOWN if None in used or not used else float(len(used)),
            }
        )
    return rows


def make_pyperf_row(value: PyperfValue) -> Row:
    """Row of one value of a pyperf file.

    Raises
    ------
    UsageError
        Its name is none of ours.
    """
    data = value.metadata
    ops = data.get("inner_loops", 0)
    block, _, round_ = str(data.get("ps_block", "")).rpartition(" ")
    return {
        **_named(str(data.get("ps_case") or value.name)),
        "case": value.name,
        **_figures(
            data.get("ps_seconds_per_pass", value.value * (ops or 1)),
            ops,
            data.get("ps_useful_bytes", 0),
            data.get("ps_bus_min_bytes", 0),
            data.get("ps_bus_max_bytes", 0),
        ),
        "run": data.get("ps_run", ""),
        "host": data.get("hostname", ""),
        "block": block,
        "question": "",
        "round": int(round_) if round_.isdigit() else -1,
        "time": data.get("ps_time", ""),
        "window_s": _number(data.get("ps_window_s")),
        "wall_s": _number(data.get("duration")),
        "state": data.get("ps_state", ""),
        "pingpong_ns": _number(data.get("ps_pingpong_ns")),
        "adds_per_ns": _number(data.get("ps_adds_per_ns")),
        "evidence": _number(data.get("ps_evidence")),
        "evidence_known": _number(data.get("ps_evidence_known")),
        "evidence_source": data.get("ps_evidence_source", ""),
        "overlap": _UNKNOWN,
        "steal_s": _number(data.get("ps_steal_s")),
        "disturbed": data.get("ps_disturbed", ""),
        "passes": _number(data.get("ps_passes")),
        "oversubscribed": bool(data.get("ps_oversubscribed", 0)),
        "start_skew_s": _number(data.get("ps_start_skew_s")),
        "stop_skew_s": _number(data.get("ps_stop_skew_s")),
        "beside_gbps": _UNKNOWN,
        "nodes": _UNKNOWN,
    }


def beside(mix: Mix, position: int) -> str:
    """What runs beside an actor, in short: ``scan[op=copy] 2t thp 1GiB at 4 GB/s``.

    The rate is that of one thread, as asked for. ``apart``: in another address space.
    """
    own = mix.actors[position].process
    return " + ".join(neighbour(a, own) for i, a in enumerate(mix.actors) if i != position)


def neighbour(actor: Actor, process: str) -> str:
    """One actor, in short, as one of another process sees it."""
    size = f" {format_size(actor.size)}" if actor.size else ""
    pace = f" at {actor.pace / 1e9:g} GB/s" if actor.pace else ""
    where = "" if actor.process == process else " apart"
    return f"{label(actor)} {actor.threads}t {actor.policy}{size}{pace}{where}"


def label(actor: Actor) -> str:
    """Kernel with its parameters: ``scan[op=copy]``."""
    params = _params(actor)
    return f"{actor.kernel}[{params}]" if params else actor.kernel


# ---- names: a run has few, and a value many ------------------------------------------------------


@cache
def _measured(mix_text: str) -> tuple[tuple[int, Row], ...]:
    mix = parse_mix(mix_text)
    return tuple((case.actor, _named(name(case)) | {"mix": mix_text}) for case in cases(mix))


@cache
def _named(case_text: str) -> Row:
    try:
        case = parse(case_text)
    except UsageError as error:
        raise UsageError(
            f"{case_text!r} is not a benchmark of this suite: {error}", error.remedy
        ) from None
    actor = case.mix.actors[case.actor]
    return {
        "case": case_text,
        "mix": case_text.rpartition("@")[0] or case_text,
        "actor": case.actor,
        "kernel": actor.kernel,
        "params": _params(actor),
        "variant": actor.variant,
        "pages": actor.policy,
        "threads": actor.threads,
        "size": actor.size,
        "process": actor.process,
        "priority": actor.priority,
        "courtesy": actor.courtesy,
        "pace": actor.pace,
        "weight": actor.weight,
        "joined": actor.joined,
        "aligned": actor.aligned,
        "pin": actor.pin,
        "script": ".".join(str(op) for op in actor.script),
        "beside": beside(case.mix, case.actor),
        "pools": "+".join(str(pool) for pool in case.mix.pools),
        **{
            f"param_{key}": value if isinstance(value, int) else str(value)
            for key, value in actor.params
        },
    }


def _params(actor: Actor) -> str:
    return ",".join(f"{key}={value}" for key, value in actor.params)


# ---- figures -------------------------------------------------------------------------------------


def _figures(
    seconds: float, ops: float, useful: float, bus_min: float, bus_max: float
) -> dict[str, float]:
    return {
        "seconds": float(seconds),
        "ops": ops,
        "useful_bytes": useful,
        "latency_ns": seconds / ops * 1e9 if ops and seconds > 0 else _UNKNOWN,
        "gbps": _rate(useful, seconds),
        "bus_min_gbps": _rate(bus_min, seconds),
        "bus_max_gbps": _rate(bus_max, seconds),
    }


def _rate(n_bytes: float, seconds: float) -> float:
    """GB/s; NaN where no progress was made."""
    return n_bytes / seconds / 1e9 if seconds > 0 else _UNKNOWN


def _overlap(actors: Iterable[Mapping[str, Any]]) -> float:
    """At least 1 less the shares in which some actor was not at work."""
    idle = 0.0
    for actor in actors:
        if "active_s" not in actor:
            return _UNKNOWN
        busy = actor["active_s"] / actor["seconds"] if actor["seconds"] > 0 else 0.0
        idle += 1 - min(busy, 1.0)
    return max(0.0, 1 - idle)


def _number(value: float | None) -> float:
    return _UNKNOWN if value is None else float(value)
