"""Output directory of a run -> one row a value: the tidy table everything else starts from.

Reads ``journal.ndjson`` and ``plan.toml`` with the standard library alone; only ``frame`` needs
pandas. Samples count once their block closed ``ok``, as ``bench.schema`` defines it.
"""

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import PagestormError, UsageError
from bench.mix import Case, Mix, cases, name, parse_mix
from bench.schema import HOST, JOURNAL, PLAN, SCHEMA, disturbances
from bench.units import format_size

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]


@dataclass(frozen=True)
class BlockInfo:
    """A block of the plan: the first mix is the baseline of the others."""

    id: str
    question: str
    mixes: tuple[str, ...]


@dataclass(frozen=True)
class Rejections:
    """Samples of one mix that did not count, and why."""

    tried: int
    rejected: int
    reasons: tuple[str, ...]

    @property
    def share(self) -> float:
        """0 to 1."""
        return self.rejected / self.tried if self.tried else 0.0


@dataclass
class Results:
    """One output directory."""

    folder: Path
    rows: list[Row] = field(default_factory=list)
    """One a measured actor of a sample that counts; columns as in ``make_rows``."""
    blocks: list[BlockInfo] = field(default_factory=list)
    plan: dict[str, Any] = field(default_factory=dict)
    """Content of ``plan.toml``; empty without one."""
    host: dict[str, Any] = field(default_factory=dict)
    """Content of ``host.json``; empty without one."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Mix -> why a worker could not have what it needs on this host."""
    rejections: dict[str, Rejections] = field(default_factory=dict)
    """Mix -> samples that did not count; mixes without any are absent."""
    rounds: int = 0
    """Rounds of the block that closed most of them ``ok``."""
    status: str = ""
    """``done``, ``interrupted``, ``budget``; empty where the run was killed or goes on."""


def load(folder: str | Path) -> Results:
    """Read an output directory.

    Raises
    ------
    UsageError
        No journal there, or one of a newer version.
    PagestormError
        A damaged line; a torn last line is what a kill leaves, and is passed over.
    """
    folder = Path(folder)
    lines = _journal_lines(folder / JOURNAL)
    plan = _toml(folder / PLAN)
    results = Results(folder, plan=plan, host=_json(folder / HOST))
    results.blocks = [
        BlockInfo(t["id"], t["question"], tuple(entry["mix"] for entry in t["entries"]))
        for t in plan.get("blocks", [])
    ]
    questions = {block.id: block.question for block in results.blocks}
    closed = {
        (line["block"], line["round"]): line["attempt"]
        for line in lines
        if line["kind"] == "block" and line["status"] == "ok"
    }
    tried: dict[str, int] = {}
    reasons: dict[str, list[str]] = {}
    for line in lines:
        if line["kind"] in ("start", "end"):
            results.status = line.get("status", "")
        if line["kind"] != "sample":
            continue
        if line.get("error", {}).get("kind") == "skip":
            results.skipped[line["mix"]] = line["error"]["message"]
            continue
        tried[line["mix"]] = tried.get(line["mix"], 0) + 1
        if line.get("invalid"):
            reasons.setdefault(line["mix"], []).append(line["invalid"])
        elif closed.get((line["block"], line["round"])) == line["attempt"]:
            results.rows += make_rows(line, questions.get(line["block"], ""))
    results.rejections = {
        mix: Rejections(tried[mix], len(given), tuple(given)) for mix, given in reasons.items()
    }
    ok_rounds: dict[str, int] = {}
    for block, _ in closed:
        ok_rounds[block] = ok_rounds.get(block, 0) + 1
    results.rounds = max(ok_rounds.values(), default=0)
    return results


def make_rows(line: Mapping[str, Any], question: str) -> list[Row]:
    """Rows of one sample line: one for each measured actor.

    Seconds are per pass; ``latency_ns`` is per operation of one thread and NaN where the kernel
    counts none. ``gbps`` is useful bytes over seconds in 1e9 B/s, of all threads; ``bus_min_gbps``
    and ``bus_max_gbps`` enclose the memory traffic. ``evidence_known`` is the smallest share of
    known bytes over all actors of the mix and both looks.
    """
    mix = parse_mix(line["mix"])
    known = [
        seen["known"] / seen["total"]
        for actor in line["actors"]
        for seen in (actor.get("evidence") or {}).values()
        if seen and seen["total"]
    ]
    shared = {
        "mix": line["mix"],
        "block": line["block"],
        "question": question,
        "round": line["round"],
        "time": line["time"],
        "window_s": line["window_s"],
        "wall_s": line.get("wall_s", math.nan),
        "state": line["where"].get("state") or "",
        "pingpong_ns": _number(line["where"].get("pingpong_before_ns")),
        "adds_per_ns": _number(line["where"].get("adds_per_ns")),
        "evidence_known": min(known, default=math.nan),
        "disturbed": ",".join(disturbances(line)),
    }
    return [_row(case, line["actors"][case.actor]) | shared for case in cases(mix)]


def _row(case: Case, measured: Mapping[str, Any]) -> Row:
    actor = case.mix.actors[case.actor]
    seconds = float(measured["seconds"])
    per_pass = seconds if seconds > 0 else math.nan
    return {
        "case": name(case),
        "actor": case.actor,
        "kernel": actor.kernel,
        "params": ",".join(f"{key}={value}" for key, value in actor.params),
        "variant": actor.variant,
        "pages": actor.policy,
        "threads": actor.threads,
        "size": actor.size,
        "beside": beside(case.mix, case.actor),
        "seconds": seconds,
        "passes": measured["passes"],
        "ops": measured["ops"],
        "useful_bytes": measured["useful_bytes"],
        "latency_ns": per_pass / measured["ops"] * 1e9 if measured["ops"] else math.nan,
        "gbps": measured["useful_bytes"] / per_pass / 1e9,
        "bus_min_gbps": measured["bus_min_bytes"] / per_pass / 1e9,
        "bus_max_gbps": measured["bus_max_bytes"] / per_pass / 1e9,
        "oversubscribed": bool(measured["oversubscribed"]),
    }


def beside(mix: Mix, position: int) -> str:
    """What runs beside an actor, in short: ``scan[op=copy] 2t thp 1GiB``.

    ``apart``: in another address space.
    """
    told = []
    for actor in (a for i, a in enumerate(mix.actors) if i != position):
        params = ",".join(f"{key}={value}" for key, value in actor.params)
        kernel = f"{actor.kernel}[{params}]" if params else actor.kernel
        where = "" if actor.process == mix.actors[position].process else " apart"
        told.append(f"{kernel} {actor.threads}t {actor.policy} {format_size(actor.size)}{where}")
    return " + ".join(told)


def frame(folder: str | Path) -> "pd.DataFrame":
    """Tidy DataFrame of an output directory: columns of ``make_rows``, one row a value."""
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("data frames need pandas", "pip install 'pagestorm[analysis]'") from None
    return pd.DataFrame(load(folder).rows)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _journal_lines(path: Path) -> list[dict[str, Any]]:
    try:
        rows = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        raise UsageError(
            f"no {JOURNAL} in {path.parent}", "give the output directory of a run"
        ) from None
    lines = []
    torn = rows.pop()
    for number, row in enumerate(rows, start=1):
        try:
            lines.append(json.loads(row))
            kind = lines[-1]["kind"]
        except (ValueError, TypeError, KeyError):
            if number == len(rows) and not torn:
                return lines
            raise PagestormError(
                f"{path}, line {number}: not a journal line", "restore the file from a copy"
            ) from None
        if kind == "start" and lines[-1].get("schema", 0) > SCHEMA:
            raise UsageError(
                f"{path} has format {lines[-1]['schema']}; this version reads up to {SCHEMA}",
                "use the version that wrote it",
            )
    return lines


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise PagestormError(f"cannot read {path}: {error}") from error


def _json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise PagestormError(f"cannot read {path}: {error}") from error
    return content
