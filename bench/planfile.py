"""``plan.toml``: the plan of a run, resolved, so that a resumed run does exactly what is left.

Mixes stand by name, which holds everything but the paths of users' files; those have a table.
"""

import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.blocks import Block, CommandEntry, Entry, Placement, Plan, Settings, Skip
from bench.errors import PagestormError, UsageError
from bench.journal import replace_file
from bench.mix import FileRef, Mix, parse_mix, with_paths
from bench.schema import PLAN, SCHEMA


def write_plan(folder: Path, plan: Plan, options: dict[str, Any]) -> None:
    """Write a plan, and the options of the command that no block holds (dead band and the like)."""
    import tomli_w

    content = {
        "schema": SCHEMA,
        "digest": plan.digest(),
        "preset": plan.preset,
        "rounds": plan.rounds,
        "seed": plan.seed,
        "memory_bytes": plan.memory_bytes,
        "notes": list(plan.notes),
        "options": options,
        "files": {
            value.digest: value.path
            for block in plan.blocks
            for entry in block.entries
            for value in _files(entry.mix)
        },
        "skips": [asdict(skip) for skip in plan.skips],
        "shed": [asdict(skip) for skip in plan.shed],
        "blocks": [_block_table(block) for block in plan.blocks],
    }
    replace_file(folder / PLAN, tomli_w.dumps(content).encode())


def read_plan(folder: Path) -> tuple[Plan, dict[str, Any]]:
    """Plan and options of an output directory; refuses one that was edited."""
    path = folder / PLAN
    try:
        content = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise UsageError(f"no {PLAN} in {folder}", "give the output directory of a run") from None
    except (OSError, ValueError) as error:
        raise PagestormError(f"cannot read {path}: {error}") from error
    if content.get("schema", 0) > SCHEMA:
        raise UsageError(
            f"{path} has format {content['schema']}; this version reads up to {SCHEMA}",
            "use the version that wrote it",
        )
    try:
        plan = Plan(
            content["preset"],
            tuple(
                _block(table, content["files"], "try" in content["options"])
                for table in content["blocks"]
            ),
            content["rounds"],
            content["seed"],
            tuple(Skip(**table) for table in content["skips"]),
            tuple(Skip(**table) for table in content["shed"]),
            content["memory_bytes"],
            tuple(content["notes"]),
        )
    except (KeyError, TypeError) as error:
        raise PagestormError(f"{path} is not a plan: {error}") from error
    if plan.digest() != content["digest"]:
        raise UsageError(
            f"{path} was changed after the run began: digest {plan.digest()}, not "
            f"{content['digest']}",
            "put the file back, or start a new run with another -o",
        )
    return plan, content["options"]


def _block_table(block: Block) -> dict[str, Any]:
    return {
        "id": block.id,
        "question": block.question,
        "settings": block.settings.plain(),
        "entries": [
            {"mix": entry.name, "cpus": entry.cpus, "estimate_s": entry.estimate_s}
            # TOML has no null: an absent key is "nothing is bound".
            | ({} if entry.nodes is None else {"nodes": entry.nodes})
            for entry in block.entries
        ],
    }


def _block(table: dict[str, Any], files: dict[str, str], of_command: bool) -> Block:
    entries = tuple(
        CommandEntry(estimate_s=item["estimate_s"], remedy=item["mix"])
        if of_command
        else Entry(
            with_paths(parse_mix(item["mix"]), files),
            _placement(item["cpus"]),
            _placement(item["nodes"]) if "nodes" in item else None,
            item["estimate_s"],
        )
        for item in table["entries"]
    )
    return Block(table["id"], table["question"], entries, Settings(**table["settings"]))


def _placement(rows: list[list[int]]) -> Placement:
    return tuple(tuple(row) for row in rows)


def _files(mix: Mix) -> list[FileRef]:
    return [v for actor in mix.actors for _, v in actor.params if isinstance(v, FileRef)]
