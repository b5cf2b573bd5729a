"""Runs of a command -> ``pyperf.json``: one Benchmark a remedy, one Run a run that did not fail."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.journal import Line, State, replace_file
from bench.results import Metadata, flat, host_metadata
from bench.schema import PYPERF, SCHEMA, disturbances, run_id


def write_pyperf(
    folder: Path, state: State, command: Sequence[str], stages: Sequence[str], higher: bool
) -> None:
    """Write ``pyperf.json`` whole and atomically; of several ``stages`` a remedy's last one counts.

    A value is less-is-better: where more is better it is 1 / number, seconds for one of what the
    program counts.
    """
    import pyperf  # type: ignore[import-untyped]  # it has no annotations

    chosen: dict[str, list[Line]] = {}
    for stage in stages:
        rounds = sorted((key, lines) for key, lines in state.samples.items() if key[0] == stage)
        found: dict[str, list[Line]] = {}
        for _, lines in rounds:
            for line in lines:
                if "failure" not in line["run"]:
                    found.setdefault(line["mix"], []).append(line)
        chosen |= found
    if not chosen:
        return
    host = host_metadata() | flat({"ps_run": run_id(state.starts[0]), "command": " ".join(command)})
    name = Path(command[0]).name
    benchmarks = [
        pyperf.Benchmark(
            [
                pyperf.Run(
                    [_value(line["run"], higher)],
                    metadata=host | _metadata(f"{name}/{remedy}", line, higher),
                    collect_metadata=False,
                )
                for line in lines
            ]
        )
        for remedy, lines in chosen.items()
    ]
    text = io.StringIO()
    pyperf.BenchmarkSuite(benchmarks).dump(text)
    replace_file(folder / PYPERF, text.getvalue().encode())


def _value(run: dict[str, Any], higher: bool) -> float:
    value = float(run.get("metric", run["seconds"]))
    return 1 / value if higher else value


def _metadata(name: str, line: Line, higher: bool) -> Metadata:
    run = line["run"]
    usage = run["usage"]
    kind = run.get("metric_unit", "second")
    unit = kind if kind in ("second", "byte") and not higher else "second" if higher else "integer"
    return flat(
        {
            "name": name,
            "unit": unit,
            "loops": 1,
            "date": line["time"].replace("T", " ").removesuffix("Z"),
            "duration": line["wall_s"],
            "ps_schema": SCHEMA,
            "ps_block": f"{line['block']} {line['round']}",
            "ps_remedy": line["mix"],
            "ps_metric": run.get("metric"),
            "ps_wall_s": run["seconds"],
            "ps_user_s": usage["user_s"],
            "ps_system_s": usage["system_s"],
            "ps_peak_bytes": usage.get("peak_bytes"),
            "ps_minor_faults": usage["minor_faults"],
            "ps_major_faults": usage["major_faults"],
            "ps_steal_s": line["disturbed"].get("steal_s"),
            "ps_disturbed": ",".join(disturbances(line)),
            "ps_time": line["time"],
        }
    )
