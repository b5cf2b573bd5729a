"""Result files -> one row a value: the tidy table everything else starts from.

``frame`` gives a DataFrame of any results and is the only part that needs pandas. ``load`` gives
all that is known of one run. Samples count once their block closed ``ok``, as ``bench.schema``
defines it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.files import (
    Line,
    find,
    find_journal,
    is_journal,
    journal_lines,
    pyperf_values,
    read_json,
    read_toml,
)
from analysis.rows import NodeOf, Row, beside, make_pyperf_row, make_rows
from bench.errors import PagestormError, UsageError
from bench.schema import HOST, PLAN, run_id, step_bin_ns
from bench.units import format_size

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BlockInfo", "Rejections", "Results", "Row", "beside", "frame", "load", "rows", "steps"]


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
    """One run."""

    folder: Path
    rows: list[Row] = field(default_factory=list)
    """One a measured actor of a sample that counts; columns as in `analysis.rows.make_rows`."""
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
    argv: list[str] = field(default_factory=list)
    """Command and flags it was begun with."""

    @property
    def marks(self) -> dict[str, float]:
        """Sizes in bytes that a curve of latency may bend at, by name.

        Caches are those the system reports, which a virtual machine may not have; from the last
        one on, page policies are judged: four times what the TLB reaches at small pages.
        """
        found = {}
        for cache in self.host.get("cpus", {}).get("caches", ()):
            if cache["size_bytes"] and cache["kind"] != "Instruction":
                size = format_size(cache["size_bytes"])
                found[f"L{cache['level']} {size}, reported"] = float(cache["size_bytes"])
        least = self.plan.get("options", {}).get("least_bytes", {})
        if least:
            found["page verdicts from here on"] = float(min(least.values()))
        return found


def load(path: str | Path) -> Results:
    """Read a run: its output directory, or its journal.

    Raises
    ------
    UsageError
        No journal there, or one of a newer version.
    PagestormError
        A damaged line; a torn last line is what a kill leaves, and is passed over.
    """
    journal = find_journal(path)
    lines = journal_lines(journal)
    folder = journal.parent
    results = Results(folder, plan=read_toml(folder / PLAN), host=read_json(folder / HOST))
    if "try" in results.plan.get("options", {}):
        raise UsageError(
            f"{folder} holds runs of a command, not of kernels",
            f"bench verdict {folder}, or pyperf on its pyperf.json",
        )
    results.blocks = [
        BlockInfo(t["id"], t["question"], tuple(entry["mix"] for entry in t["entries"]))
        for t in results.plan.get("blocks", [])
    ]
    questions = {block.id: block.question for block in results.blocks}
    nodes = _node_of(results.host)
    run = _run_of(lines, journal)
    closed = closed_rounds(lines)
    tried: dict[str, int] = {}
    reasons: dict[str, list[str]] = {}
    for number, line in enumerate(lines, start=1):
        if line["kind"] in ("start", "end"):
            results.status = line.get("status", "")
        if line["kind"] == "start" and not line.get("resumed"):
            results.argv = list(line.get("argv", ()))
        if line["kind"] != "sample":
            continue
        if line.get("error", {}).get("kind") == "skip":
            results.skipped[line["mix"]] = line["error"]["message"]
            continue
        tried[line["mix"]] = tried.get(line["mix"], 0) + 1
        if line.get("invalid"):
            reasons.setdefault(line["mix"], []).append(line["invalid"])
        elif closed.get((line["block"], line["round"])) == line["attempt"]:
            try:
                made = make_rows(line, questions.get(line["block"], ""), nodes)
            except (KeyError, TypeError, IndexError) as error:
                raise PagestormError(
                    f"{journal}, line {number}: not a sample ({error!r})",
                    "restore the file from a copy",
                ) from None
            results.rows += ({"run": run, **row} for row in made)
    results.rejections = {
        mix: Rejections(tried[mix], len(given), tuple(given)) for mix, given in reasons.items()
    }
    ok_rounds: dict[str, int] = {}
    for block, _ in closed:
        ok_rounds[block] = ok_rounds.get(block, 0) + 1
    results.rounds = max(ok_rounds.values(), default=0)
    return results


def rows(*paths: str | Path) -> list[Row]:
    """Rows of any results: output directories, journals, pyperf files, folders full of these.

    Column ``source`` is the file; ``rejections`` how many of the mix's samples did not count and
    ``rejected`` their share, NaN in a pyperf file, which holds no case that lost many.

    Raises
    ------
    UsageError
        No results there; a file of a newer version; names of another suite.
    PagestormError
        Damaged files, every one of them named.
    """
    made: list[Row] = []
    damaged: list[PagestormError] = []
    for file in (file for path in paths for file in find(path)):
        try:
            made += _rows_of(file)
        except UsageError as error:
            if str(file) in str(error):
                raise
            raise UsageError(f"{file}: {error}", error.remedy) from None
        except PagestormError as error:
            damaged.append(error)
    if damaged:
        raise PagestormError("\n".join(map(str, damaged)), damaged[0].remedy)
    return made


def frame(*paths: str | Path) -> "pd.DataFrame":
    """Tidy DataFrame of any results, one row a value; see ``rows``."""
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("data frames need pandas", "pip install 'pagestorm[analysis]'") from None
    return pd.DataFrame(rows(*paths))


def steps(*paths: str | Path) -> list[Row]:
    """How long the steps of every measured actor took, of journals: one row a bin of a histogram.

    Columns: those of a name, ``state``, ``low_ns`` and ``high_ns`` of the bin, ``count``,
    ``window_s`` and ``threads_s``, the time of all threads together in which they were counted.
    """
    made: list[Row] = []
    for file in (file for path in paths for file in find(path)):
        if not is_journal(file):
            continue
        lines = journal_lines(file)
        run = _run_of(lines, file)
        closed = closed_rounds(lines)
        for line in lines:
            if line["kind"] != "sample" or "actors" not in line or line.get("invalid"):
                continue
            if closed.get((line["block"], line["round"])) != line["attempt"]:
                continue
            for row in make_rows(line, ""):
                bins = line["actors"][row["actor"]].get("step_bins", {})
                at_work = row["threads"] * row["window_s"]
                made += (
                    row
                    | {
                        "run": run,
                        "low_ns": step_bin_ns(int(b)),
                        "high_ns": step_bin_ns(int(b) + 1),
                        "count": count,
                        "threads_s": at_work,
                    }
                    for b, count in bins.items()
                )
    return made


def _rows_of(path: Path) -> list[Row]:
    if is_journal(path):
        results = load(path)
        none = Rejections(0, 0, ())
        lost = {row["mix"]: results.rejections.get(row["mix"], none) for row in results.rows}
        return [
            {
                "source": str(path),
                **row,
                "rejections": lost[row["mix"]].rejected,
                "rejected": lost[row["mix"]].share,
            }
            for row in results.rows
        ]
    try:
        return [
            {
                "source": str(path),
                **make_pyperf_row(value),
                "rejections": float("nan"),
                "rejected": float("nan"),
            }
            for value in pyperf_values(path)
        ]
    except (ValueError, TypeError) as error:
        raise PagestormError(f"{path}: metadata of the wrong kind ({error})") from None


def _run_of(lines: Iterable[Line], path: Path) -> str:
    return next((run_id(line) for line in lines if line["kind"] == "start"), str(path))


def closed_rounds(lines: Iterable[Line]) -> dict[tuple[str, int], int]:
    """(block, round) -> the attempt that closed ``ok``."""
    return {
        (line["block"], line["round"]): line["attempt"]
        for line in lines
        if line["kind"] == "block" and line["status"] == "ok"
    }


def _node_of(host: Mapping[str, Any]) -> NodeOf:
    """CPU -> memory node, of ``host.json``; empty where it does not say."""
    found: dict[int, int] = {}
    for node in host.get("cpus", {}).get("nodes", ()):
        for part in filter(None, (node.get("cpus") or "").split(",")):
            first, _, last = part.partition("-")
            found |= dict.fromkeys(range(int(first), int(last or first) + 1), node["id"])
    return found
