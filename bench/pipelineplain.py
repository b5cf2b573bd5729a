"""A pipeline as data that JSON and TOML hold, and back."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from bench.mix import Pool, actor_name, parse_mix
from bench.pipeline import Pipeline, Task

PIPELINE, ALONE = "pipeline", "alone"
"""Ids of the blocks of its plan."""


def to_plain(pipeline: Pipeline) -> dict[str, Any]:
    """Pipeline as data; ``from_plain`` reads it back."""
    return {
        "name": pipeline.name,
        "summary": pipeline.summary,
        "items": pipeline.items,
        "in_flight": pipeline.in_flight,
        "bandwidth": pipeline.bandwidth,
        "events": [list(event) for event in pipeline.events],
        "pools": [
            {"name": pool.name, "tokens": pool.tokens, "capacity": pool.capacity}
            for pool in pipeline.pools
        ],
        "tasks": [_task(task) for task in pipeline.tasks],
    }


def from_plain(data: Mapping[str, Any]) -> Pipeline:
    """Pipeline of ``to_plain``; file parameters come back by digest, without their paths."""
    return Pipeline(
        data["name"],
        tuple(_read_task(row) for row in data["tasks"]),
        tuple(Pool(**row) for row in data["pools"]),
        items=data["items"],
        in_flight=data["in_flight"],
        bandwidth=data["bandwidth"],
        summary=data["summary"],
        events=tuple((event, point) for event, point in data["events"]),
    )


def _task(task: Task) -> dict[str, Any]:
    """What differs from the defaults."""
    plain: dict[str, Any] = {}
    for item in fields(Task):
        value = getattr(task, item.name)
        if item.name == "name" or value != item.default:
            plain[item.name] = value
    if task.actor is not None:
        plain["actor"] = actor_name(task.actor)
    for key in ("takes", "puts"):
        if key in plain:
            plain[key] = [list(pair) for pair in plain[key]]
    if "after" in plain:
        plain["after"] = list(task.after)
    return plain


def _read_task(row: Mapping[str, Any]) -> Task:
    values = dict(row)
    if "actor" in values:
        (values["actor"],) = parse_mix(values["actor"]).actors
    for key in ("takes", "puts"):
        values[key] = tuple((name, amount) for name, amount in values.get(key, ()))
    values["after"] = tuple(values.get("after", ()))
    return Task(**values)
