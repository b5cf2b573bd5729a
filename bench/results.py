"""Journal -> ``pyperf.json``: one Benchmark a case, one Run a sample, seconds as the value.

A Run has one value because several of one process are not independent, and every Benchmark has the
same number of Runs because pyperf calls unequal samples significant whatever they hold. So only
complete rounds go in, and a case that lost rounds stays out; the journal keeps everything.
"""

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bench.blocks import Block
from bench.journal import Line, State, replace_file
from bench.mix import Case, cases, mix_name, name
from bench.runner import live_entries
from bench.schema import (
    KEYS,
    MOST_REJECTED,
    PYPERF,
    SCHEMA,
    disturbances,
    known_share,
    run_id,
)

Stages = Sequence[Sequence[Block]]
"""Blocks that run equally many rounds; of a case in several stages the last one counts."""

Metadata = dict[str, int | float | str]

HOST_KEYS = (
    "hostname",
    "platform",
    "cpu_model_name",
    "cpu_count",
    "cpu_config",
    "aslr",
    "boot_time",
    "perf_version",
)
"""Of pyperf's own keys, those that are the same in driver and worker."""


@dataclass(frozen=True)
class Value:
    """One value of one case, and the sample it is from."""

    case: Case
    line: Line

    @property
    def actor(self) -> dict[str, Any]:
        """The measured actor's part of the worker's response."""
        found: dict[str, Any] = self.line["actors"][self.case.actor]
        return found

    @property
    def seconds(self) -> float:
        """Per operation where the kernel counts any, else per pass; 0 without progress."""
        return float(self.actor["seconds"]) / (self.actor["ops"] or 1)


@dataclass
class Selection:
    """What goes into the file, and what does not."""

    values: dict[str, list[Value]] = field(default_factory=dict)
    """Benchmark name -> values in the order of rounds, equally many for all of a stage."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Benchmark name -> reason."""


def select(state: State, stages: Stages) -> Selection:
    """Choose the samples that make up the file."""
    chosen = Selection()
    for blocks in stages:
        stage = _select_stage(state, blocks)
        for case_name, values in stage.values.items():
            chosen.values[case_name] = values
            chosen.left_out.pop(case_name, None)
        for case_name, reason in stage.left_out.items():
            if case_name not in chosen.values:
                chosen.left_out[case_name] = reason
    return chosen


def _select_stage(state: State, blocks: Sequence[Block]) -> Selection:
    stage = Selection()
    rounds = state.complete_rounds(b.id for b in blocks if live_entries(b, state))
    closed_ok = {
        block.id: [i for i in range(rounds) if (block.id, i) in state.samples] for block in blocks
    }
    enough = [n for n in map(len, closed_ok.values()) if n and n >= (1 - MOST_REJECTED) * rounds]
    n_runs = min(enough, default=0)
    for block in blocks:
        for entry in block.entries:
            mix = mix_name(entry.mix)
            for case in cases(entry.mix):
                case_name = name(case)
                if case_name in stage.values:
                    continue  # the baseline of several blocks: one of them is enough
                reason, values = "", []
                if mix in state.dropped:
                    reason = state.dropped[mix].reason
                elif len(closed_ok[block.id]) < n_runs or not n_runs:
                    done = len(closed_ok[block.id])
                    reason = f"{done} of {rounds} rounds closed without rejected samples"
                else:
                    values = [
                        Value(case, line)
                        for i in closed_ok[block.id][:n_runs]
                        for line in state.samples[block.id, i]
                        if line["mix"] == mix
                    ]
                    reason = _why_unfit(values)
                if reason:
                    stage.left_out.setdefault(case_name, reason)
                else:
                    stage.values[case_name] = values
                    stage.left_out.pop(case_name, None)
    return stage


def _why_unfit(values: Sequence[Value]) -> str:
    if any(value.seconds <= 0 or not math.isfinite(value.seconds) for value in values):
        return "made no progress in at least one window"
    if len({value.actor["ops"] for value in values}) > 1:
        return "the number of operations in a pass differs between samples"
    return ""


def write_pyperf(folder: Path, state: State, stages: Stages) -> Selection:
    """Write ``pyperf.json`` whole and atomically; nothing before the first complete round."""
    import pyperf  # type: ignore[import-untyped]  # it has no annotations

    chosen = select(state, stages)
    host = host_metadata() if chosen.values else {}
    host |= flat({"ps_run": run_id(state.starts[0]) if state.starts else None})
    benchmarks = []
    for case_name, values in list(chosen.values.items()):
        runs = [
            pyperf.Run(
                [value.seconds], metadata=metadata(case_name, value, host), collect_metadata=False
            )
            for value in values
        ]
        try:
            benchmarks.append(pyperf.Benchmark(runs))
        except ValueError as error:  # resumed under another Python, say
            del chosen.values[case_name]
            chosen.left_out[case_name] = f"its runs do not go together: {error}"
    if benchmarks:
        text = io.StringIO()
        pyperf.BenchmarkSuite(benchmarks).dump(text)
        replace_file(folder / PYPERF, text.getvalue().encode())
    return chosen


def host_metadata() -> Metadata:
    """What pyperf says about this host; the worker adds what is of its own process."""
    import pyperf

    collected = pyperf.Run([1.0], collect_metadata=True).get_metadata()
    return flat({key: collected.get(key) for key in HOST_KEYS})


def metadata(
    case_name: str, value: Value, host: Mapping[str, object] = MappingProxyType({})
) -> Metadata:
    """Flat metadata of one value: pyperf's of host and worker, and the keys of ``bench.schema``."""
    line, actor = value.line, value.actor
    passes = float(actor["passes"])
    ours = {
        "name": case_name,
        "unit": "second",
        "loops": max(1, int(passes)),
        "inner_loops": int(actor["ops"]) if actor["ops"] else None,
        "date": line["time"].replace("T", " ").removesuffix("Z"),
        "duration": line["wall_s"],
        "ps_schema": SCHEMA,
        "ps_block": f"{line['block']} {line['round']}",
        "ps_useful_bytes": actor["useful_bytes"],
        "ps_bus_min_bytes": actor["bus_min_bytes"],
        "ps_bus_max_bytes": actor["bus_max_bytes"],
        "ps_seconds_per_pass": actor["seconds"] if actor["ops"] else None,
        "ps_passes": passes,
        "ps_window_s": line["window_s"],
        **_evidence(actor),
        "ps_mapped_bytes": actor["mapped_bytes"],
        "ps_state": line["where"].get("state"),
        "ps_pingpong_ns": line["where"].get("pingpong_before_ns"),
        "ps_adds_per_ns": line["where"].get("adds_per_ns"),
        "ps_oversubscribed": 1 if actor["oversubscribed"] else None,
        "ps_start_skew_s": actor["start_skew_s"],
        "ps_stop_skew_s": actor["stop_skew_s"],
        "ps_steal_s": line["disturbed"].get("steal_s"),
        "ps_disturbed": ",".join(disturbances(line)),
        "ps_time": line["time"],
    }
    return flat(host) | flat(line["pyperf"]) | flat(ours)


def flat(items: Mapping[str, object]) -> Metadata:
    """Keep what pyperf allows: numbers, and text of one line; None is "not known" and absent."""
    kept: Metadata = {}
    for key, value in items.items():
        if isinstance(value, str):
            text = " ".join(value.split())
            if text:
                kept[key] = text
        elif isinstance(value, int | float) and math.isfinite(value):
            kept[key] = value
    return kept


def _evidence(actor: Mapping[str, Any]) -> dict[str, object]:
    seen = [s for s in ((actor.get("evidence") or {}).get(w) for w in ("before", "after")) if s]
    shares = [s["matching"] / s["known"] for s in seen if s["known"]]
    known = [known_share(s) for s in seen if s["total"]]
    return {
        "ps_evidence": min(shares, default=None),
        "ps_evidence_known": min(known, default=None),
        "ps_evidence_source": seen[0].get("source") if seen else None,
    }


def unknown_keys(keys: Iterable[str]) -> list[str]:
    """Metadata keys of ours that ``bench.schema`` does not list."""
    listed = {key.name for key in KEYS}
    return sorted(key for key in keys if key.startswith("ps_") and key not in listed)
