"""What a plan is: blocks of mixes that are compared with each other, and what was left out.

A block is a baseline and its alternatives, run back to back in random order; a round runs every
block once, in an order shuffled anew. Ratios are formed inside a block only.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from bench.mix import Actor, Mix, mix_name

Placement = tuple[tuple[int, ...], ...]
"""CPUs of every thread, an inner tuple an actor; -1 is not pinned."""


@dataclass(frozen=True)
class Settings:
    """How long one sample measures."""

    window_s: float
    warm_s: float
    min_passes: int = 3
    deadline_s: float = 30.0
    """From the opening of the window; a sample that needs longer is invalid."""
    check: bool = True
    warm_passes: int = 0
    """Of every measured actor, before the window opens."""
    log_events: int = 0
    """Operations of scripts that are noted with their times; 0: none."""

    def plain(self) -> dict[str, Any]:
        """For files: what is not used is left out, so that plans made before it was there stay."""
        young = {"warm_passes": 0, "log_events": 0}
        return {key: v for key, v in asdict(self).items() if v or key not in young}


@dataclass(frozen=True)
class Entry:
    """One mix of a block, and where its threads run."""

    mix: Mix
    cpus: Placement
    nodes: Placement | None = None
    """NUMA node of every thread where the mix spans several; else nothing is bound."""
    estimate_s: float = 0.0
    """Expected time of one sample, worker start to end."""

    @property
    def name(self) -> str:
        """What a journal calls it."""
        return mix_name(self.mix)


BASELINE = "baseline"
"""A user's command as it is."""
_STAND_IN = Mix((Actor("sleep", "scalar", "base", 1, 0),))


@dataclass(frozen=True)
class CommandEntry(Entry):
    """A user's command under one remedy. Its mix is a stand-in that nobody runs."""

    mix: Mix = _STAND_IN
    cpus: Placement = ()
    remedy: str = BASELINE

    @property
    def name(self) -> str:
        """What a journal calls it: a command has no other name in its own run."""
        return self.remedy


@dataclass(frozen=True)
class Block:
    """A baseline (the first entry) and its alternatives."""

    id: str
    question: str
    """What the block compares: ``pages``, ``threads``, ``aliasing``, ..."""
    entries: tuple[Entry, ...]
    settings: Settings

    @property
    def estimate_s(self) -> float:
        """Expected time of one round of the block."""
        return sum(entry.estimate_s for entry in self.entries)


@dataclass(frozen=True)
class Skip:
    """What was asked for and is not measured: never replaced by something else."""

    what: str
    reason: str
    remedy: str = ""


@dataclass(frozen=True)
class Plan:
    """Everything a run will do; the same plan always has the same digest."""

    preset: str
    blocks: tuple[Block, ...]
    rounds: int
    seed: int
    skips: tuple[Skip, ...] = ()
    shed: tuple[Skip, ...] = ()
    """Left out for the budget."""
    memory_bytes: int = 0
    """Largest live memory of any sample."""
    notes: tuple[str, ...] = ()

    @property
    def estimate_s(self) -> float:
        """Expected time of the whole run."""
        return self.rounds * sum(block.estimate_s for block in self.blocks)

    def digest(self) -> str:
        """Identity of the plan: what is measured and how, not what it is expected to take."""
        content = [self.rounds, self.seed] + [
            [block.id, block.settings.plain()]
            + [[entry.name, entry.cpus, entry.nodes] for entry in block.entries]
            for block in self.blocks
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
