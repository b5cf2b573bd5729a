"""Which event of a log begins and which ends a phase: one table, one row an event.

A line is ``TIMELINE,<ms>,<EVENT>,<job>,<key=value,...>``. One event may end a phase and begin the
next: what lies between two pieces of work is a phase as well, of waiting.
"""

from dataclasses import dataclass

TASK = "task="
"""In place of a phase: the detail names it."""


@dataclass(frozen=True)
class Boundary:
    """What an event means."""

    closes: str = ""
    """Phase that it ends; empty: none."""
    opens: str = ""
    """Phase that it begins; empty: none."""
    reports: str = ""
    """Detail with the writer's own figure for the phase that it ends, in milliseconds."""


EVENTS = {
    "SYNTH_START": Boundary(opens="synth"),
    "SYNTH_END": Boundary(closes="synth", opens="send", reports="synth_ms"),
    "CHAN_SEND": Boundary(closes="send", opens="queue"),
    "GPU_QUEUE": Boundary(closes="send", opens="queue"),
    "GPU_PICKUP": Boundary(closes="queue", opens="pickup"),
    "GPU_START": Boundary(closes="pickup", opens="gpu"),
    "GPU_END": Boundary(closes="gpu", reports="gpu_ms"),
    "TASK_START": Boundary(opens=TASK),
    "TASK_END": Boundary(closes=TASK),
}
WAITS = frozenset({"send", "queue", "pickup"})
"""Phases in which nothing is done: they keep no memory busy and say nothing about contention."""
ITEM_KEYS = ("partition", "item")
"""Details that say which part of a job it is; without one it is the whole job."""
WORKER_KEY = "worker"
TASK_KEY = "task"
