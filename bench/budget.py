"""Keeping a plan within a time: shorter windows as far as the sweep allows, then fewer cases.

Blocks are in order of importance and go from the end, essential ones last. Rounds are never given
up: fewer of them would leave intervals that decide nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bench.blocks import Block, Skip
from bench.estimate import Estimator
from bench.units import format_duration

# Steps from the window asked for down to the shortest one.
_STEPS = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Terms:
    """What a budget may do to a block."""

    shortest_window_s: float
    essential: bool
    """Goes last. Where what is essential takes more than the budget, the stretch is the budget."""


@dataclass(frozen=True)
class Fitted:
    """What a budget leaves of a plan."""

    blocks: tuple[Block, ...]
    shed: tuple[Skip, ...] = ()
    notes: tuple[str, ...] = ()


def fit(
    blocks: Sequence[Block],
    terms: Mapping[str, Terms],
    rounds: int,
    budget_s: float | None,
    stretch_s: float | None,
    estimator: Estimator,
) -> Fitted:
    """Shorten windows and shed blocks until the estimate is within the budget.

    ``terms`` are by block id. ``stretch_s`` is the budget where the essential blocks alone take
    more than ``budget_s``: on a host where all is large, all may take longer.
    """

    def total(some: Sequence[Block]) -> float:
        return rounds * sum(block.estimate_s for block in some)

    if budget_s is None or total(blocks) <= budget_s:
        return Fitted(tuple(blocks))
    limit = budget_s
    if essential_s(blocks, terms, rounds, estimator) > budget_s:
        limit = max(budget_s, stretch_s or 0.0)
    kept = list(blocks)
    for step in _STEPS:
        kept = [
            _shortened(block, terms[block.id].shortest_window_s, step, estimator)
            for block in blocks
        ]
        if total(kept) <= limit:
            break
    notes = []
    if kept != list(blocks):
        notes.append(f"windows are shortened to keep within {format_duration(limit)}")
    everything, gone = total(kept), set()
    for essential in (False, True):
        for block in reversed(kept[1:]):
            left = [b for b in kept if b.id not in gone]
            if total(left) > limit and terms[block.id].essential == essential:
                gone.add(block.id)
    shed = [
        Skip(
            block.id,
            f"over the budget of {format_duration(limit)}: takes {format_duration(total([block]))}",
            f"--budget {rounded_up(everything)} measures everything",
        )
        for block in kept
        if block.id in gone
    ]
    kept = [block for block in kept if block.id not in gone]
    if len(kept) == 1 and total(kept) > limit:
        notes.append(
            f"the first block alone takes about {format_duration(total(kept))}, over the budget of"
            f" {format_duration(limit)}: fewer rounds would decide nothing"
        )
    return Fitted(tuple(kept), tuple(shed), tuple(notes))


def essential_s(
    blocks: Sequence[Block], terms: Mapping[str, Terms], rounds: int, estimator: Estimator
) -> float:
    """Seconds that the essential blocks take with the shortest windows they may have."""
    return rounds * sum(
        _shortened(block, terms[block.id].shortest_window_s, 1.0, estimator).estimate_s
        for block in blocks
        if terms[block.id].essential
    )


def _shortened(block: Block, shortest: float, step: float, estimator: Estimator) -> Block:
    asked = block.settings.window_s
    settings = replace(block.settings, window_s=asked - step * max(0.0, asked - shortest))
    entries = tuple(
        replace(entry, estimate_s=estimator.sample_s(entry.mix, settings))
        for entry in block.entries
    )
    return replace(block, settings=settings, entries=entries)


def rounded_up(seconds: float) -> str:
    """A duration that ``parse_duration`` reads, a little above."""
    seconds *= 1.05
    return f"{int(seconds) + 1}s" if seconds < 600 else f"{int(seconds / 60) + 1}m"
