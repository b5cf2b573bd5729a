"""A few more rounds where too many pairs of a comparison are unequal in placement, or were lost.

How many more there may be is fixed before anything is measured, and whether one is run depends on
where samples ran and never on what they came to: an interval cannot be waited for.
"""

from collections.abc import Sequence

from bench.blocks import Block
from bench.journal import State
from bench.mix import mix_name
from bench.runner import NextBlock, in_rounds, live_entries
from bench.schema import strata

LEAST_PAIRS = 6
"""Fewer give no 95 % interval of a median."""
MOST_EXTRA = 0.5
"""Of the rounds planned."""


def with_extra_rounds(blocks: Sequence[Block], rounds: int, seed: int) -> NextBlock:
    """Schedule as ``in_rounds``, then more rounds of blocks that lack pairs, half as many at most.

    Blocks take turns, so that a round's samples are not all of one moment.
    """
    planned = in_rounds(blocks, rounds, seed)
    most = rounds + int(MOST_EXTRA * rounds)

    def next_block(state: State) -> Block | None:
        block = planned(state)
        if block is not None or rounds < LEAST_PAIRS:
            return block
        lacking = [
            block
            for block in blocks
            if state.next_round(block.id) < most and fewest_pairs(block, state) < LEAST_PAIRS
        ]
        return min(lacking, key=lambda block: state.next_round(block.id), default=None)

    return next_block


def fewest_pairs(block: Block, state: State) -> int:
    """Pairs in equal placement of the comparison that has fewest; plenty where there is none."""
    baseline, *others = [mix_name(entry.mix) for entry in block.entries]
    live = {mix_name(entry.mix) for entry in live_entries(block, state)}
    pairs = dict.fromkeys((mix for mix in others if {mix, baseline} <= live), 0)
    for (id_, _), lines in state.samples.items():
        states = {line["mix"]: line["where"].get("state") or "" for line in lines}
        if id_ != block.id or baseline not in states:
            continue
        for mix in pairs.keys() & states.keys():
            mine, theirs = strata(states[mix], states[baseline])
            pairs[mix] += mine == theirs
    return min(pairs.values(), default=LEAST_PAIRS)
