"""What ``--dry-run`` prints: blocks, what is left out and why, memory and time."""

import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TextIO

from bench.blocks import Plan, Skip
from bench.commands._session import dump_json
from bench.mix import mix_name
from bench.units import counted, format_duration, format_size


def show(
    plan: Plan, stream: TextIO, as_json: bool, called: Mapping[str, str] | None = None
) -> None:
    """Print a plan as text or as JSON data; ``called``: what to print for the name of a mix."""
    if as_json:
        dump_json(data(plan), stream)
        return
    for block in plan.blocks:
        settings = block.settings
        stream.write(
            f"{block.question}: {counted(len(block.entries), 'case')}, window"
            f" {format_duration(settings.window_s)}, {format_duration(block.estimate_s)} a round\n"
        )
        for entry in block.entries:
            name = mix_name(entry.mix)
            told = (called or {}).get(name, f"{name}  on {_places(entry.cpus)}")
            stream.write(f"  {told}\n")
    for title, skips in (("skipped", plan.skips), ("left out for time", plan.shed)):
        _show_skips(title, skips, stream)
    for note in plan.notes:
        _write_wrapped(stream, f"note: {note}", "  ")
    samples = plan.rounds * sum(len(block.entries) for block in plan.blocks)
    if not plan.rounds:
        stream.write(f"{_gib(plan.memory_bytes)} of memory at most\n")
        return
    stream.write(
        f"{samples} samples in {plan.rounds} rounds of {counted(len(plan.blocks), 'block')};"
        f" about {format_duration(plan.estimate_s)}, {_gib(plan.memory_bytes)} of memory at most\n"
    )


def data(plan: Plan) -> dict[str, Any]:
    """Plan as JSON data."""
    return {
        "preset": plan.preset,
        "rounds": plan.rounds,
        "seed": plan.seed,
        "digest": plan.digest(),
        "estimate_s": plan.estimate_s,
        "memory_bytes": plan.memory_bytes,
        "blocks": [
            {
                "id": block.id,
                "question": block.question,
                "estimate_s": block.estimate_s,
                "settings": asdict(block.settings),
                "entries": [
                    {
                        "mix": mix_name(entry.mix),
                        "cpus": entry.cpus,
                        "nodes": entry.nodes,
                        "estimate_s": entry.estimate_s,
                    }
                    for entry in block.entries
                ],
            }
            for block in plan.blocks
        ],
        "skips": [asdict(skip) for skip in plan.skips],
        "shed": [asdict(skip) for skip in plan.shed],
        "notes": list(plan.notes),
    }


def _show_skips(title: str, skips: tuple[Skip, ...], stream: TextIO) -> None:
    if skips:
        stream.write(f"{title}:\n")
    for skip in skips:
        _write_wrapped(stream, f"  {skip.what}: {skip.reason}", "    ")
        if skip.remedy:
            stream.write(f"    -> {skip.remedy}\n")


def _write_wrapped(stream: TextIO, text: str, indent: str) -> None:
    lines = textwrap.wrap(
        text, 80, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    stream.write("\n".join(lines) + "\n")


def _places(cpus: tuple[tuple[int, ...], ...]) -> str:
    """CPUs of every actor; ``any`` is not pinned."""
    told = []
    for actor in cpus:
        told.append("any" if set(actor) == {-1} else "cpu " + ",".join(map(str, actor)))
    return " + ".join(told)


def _gib(n_bytes: int) -> str:
    exact = format_size(n_bytes)
    return exact if len(exact) <= 7 else f"{n_bytes / 1024**3:.1f}GiB"
