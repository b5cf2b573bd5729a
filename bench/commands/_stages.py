"""A schedule in stages: what comes next is a function of the journal, and of the time left."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bench.blocks import Block, Entry, Plan
from bench.journal import State
from bench.runner import live_entries


class Stages:
    """What schedules of stages share; a schedule says in ``pending`` what is still to run."""

    def __init__(self, plan: Plan, pilot_rounds: int, budget_s: float, started_s: float) -> None:
        self.blocks = {block.id: block for block in plan.blocks}
        self._pilot_rounds, self._budget_s = pilot_rounds, budget_s
        self._started = started_s
        self._before_s: float | None = None
        self._known: dict[str, Any] = {}

    def pending(self, state: State) -> list[tuple[Block, int]]:
        """Blocks that are known to be needed, with the rounds each has left."""
        raise NotImplementedError

    def next_block(self, state: State) -> Block | None:
        """For the runner."""
        todo = self.pending(state)
        return todo[0][0] if todo else None

    def part(self, block_id: str, names: Sequence[str]) -> Block:
        """A block with these entries only, the baseline among them."""
        wanted = set(names)
        block = self.blocks[block_id]
        return replace(block, entries=tuple(e for e in block.entries if e.name in wanted))

    def _once(self, key: str, compute: Callable[[], Any]) -> Any:  # noqa: ANN401 - its result
        """What a stage before has fixed is worked out once a sitting."""
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]

    def _note_begin(self, state: State) -> None:
        """Count what earlier sittings took."""
        if self._before_s is None:
            self._before_s = sum(wall for walls in state.walls.values() for wall in walls)

    def _left(self, block: Block, rounds: int, state: State) -> int:
        if len(live_entries(block, state)) < 2:
            return 0
        return max(0, rounds - state.next_round(block.id))

    def _can_go_on(self, block: Block, state: State) -> bool:
        return block.entries[0].name not in state.dropped

    def _out_of_time(
        self, block: Block, state: State, rounds: int = 1, keep: int | None = None
    ) -> bool:
        """Whether so many more rounds would exceed the budget.

        The first ``keep`` rounds are run in any case: without them there is no interval.
        """
        closed = state.next_round(block.id)
        keep = self._pilot_rounds if keep is None else keep
        if closed < keep or self._before_s is None:
            return False
        next_s = rounds * sum(self._expected_s(block, entry, state) for entry in block.entries)
        return self._before_s + time.monotonic() - self._started + next_s > self._budget_s

    def _expected_s(self, block: Block, entry: Entry, state: State) -> float:
        walls = sorted(state.walls.get((block.id, entry.name), []))
        return walls[len(walls) // 2] if walls else entry.estimate_s
