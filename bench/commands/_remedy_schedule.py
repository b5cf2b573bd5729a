"""Pilot, pairs, verdict, spinners: the schedule of ``bench remedy``."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bench.blocks import Block, Entry, Plan
from bench.journal import State
from bench.mix import mix_name
from bench.remedyplan import PAIRS, PILOT, SPIN, VERDICT
from bench.runner import live_entries

if TYPE_CHECKING:
    from analysis.remedy_stages import Choice


def rows_of(state: State) -> list[Any]:
    """Rows of ``analysis.load`` of all samples that count."""
    from analysis.rows import make_rows

    return [
        row for lines in state.samples.values() for line in lines for row in make_rows(line, "")
    ]


class Stages:
    """Pilot, pairs, verdict, spinners: what comes next is a function of the journal."""

    def __init__(self, plan: Plan, options: dict[str, Any], started_s: float) -> None:
        from analysis.remedy_stages import Spec

        self.blocks = {block.id: block for block in plan.blocks}
        self.spec = Spec.of(options)
        self.most_pairs = int(options["remedy"]["most_pairs"])
        self._started = started_s
        self._before_s: float | None = None
        self._known: dict[str, Any] = {}

    def _once(self, key: str, compute: Callable[[], Any]) -> Any:  # noqa: ANN401 - its result
        """What a stage before has fixed is worked out once a sitting."""
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]

    def part(self, block_id: str, mixes: Sequence[str]) -> Block:
        """A block with these mixes only, the baseline among them."""
        wanted = set(mixes)
        block = self.blocks[block_id]
        entries = tuple(entry for entry in block.entries if mix_name(entry.mix) in wanted)
        return replace(block, entries=entries)

    def pending(self, state: State) -> list[tuple[Block, int]]:
        """Blocks that are known to be needed, with the rounds each has left."""
        if self._before_s is None:
            self._before_s = sum(wall for walls in state.walls.values() for wall in walls)
        todo: list[tuple[Block, int]] = []
        pilot = self.blocks[PILOT]
        if not self._can_go_on(pilot, state):
            return []
        if left := self._left(pilot, self.spec.pilot_rounds, state):
            return [(pilot, left)]
        chosen = self._once("pairs", lambda: self._pairs(state))
        if chosen:
            block = self.part(PAIRS, [self.spec.baseline, *chosen])
            if left := self._left(block, self.spec.pilot_rounds, state):
                return [(block, left)]
        choice = self._once("choice", lambda: self._choice(state))
        if not choice.remedies:
            return []
        mixes = [self.spec.mixes[name] for name in choice.remedies]
        block = self.part(VERDICT, [self.spec.baseline, *mixes])
        left = self._left(block, choice.rounds, state)
        if left and not self._out_of_time(block, state):
            return [(block, left)]
        spinners = self._once("spin", lambda: self._spinners(state))
        if spinners:
            block = self.part(SPIN, [self.spec.spin[""], *spinners])
            left = self._left(block, self._spin_rounds(choice.rounds), state)
            # Too few rounds of spinners tell nothing: then the cause stays unknown.
            least = max(1, self.spec.pilot_rounds - state.next_round(SPIN))
            if left and not self._out_of_time(block, state, least, keep=0):
                todo.append((block, left))
        return todo

    def next_block(self, state: State) -> Block | None:
        """For the runner."""
        todo = self.pending(state)
        return todo[0][0] if todo else None

    def stages(self, state: State) -> list[list[Block]]:
        """For ``bench.results``: of a mix in several stages the verdict's samples count."""
        ran = {
            block: {line["mix"] for lines in rounds for line in lines}
            for block in self.blocks
            for rounds in [[v for (b, _), v in state.samples.items() if b == block]]
        }
        return [[self.part(block, sorted(mixes))] for block, mixes in ran.items() if mixes]

    def _left(self, block: Block, rounds: int, state: State) -> int:
        if len(live_entries(block, state)) < 2:
            return 0
        return max(0, rounds - state.next_round(block.id))

    def _can_go_on(self, block: Block, state: State) -> bool:
        return mix_name(block.entries[0].mix) not in state.dropped

    def _pairs(self, state: State) -> list[str]:
        from analysis.remedy_stages import worth_pairing

        if PAIRS not in self.blocks:
            return []
        names = worth_pairing(rows_of(state), self.spec, self.most_pairs)
        return [self.spec.mixes[name] for name in names]

    def _choice(self, state: State) -> "Choice":
        from analysis.remedy_stages import choose

        return choose(rows_of(state), self.spec)

    def _spinners(self, state: State) -> list[str]:
        """Spinners of the remedies that the verdict stage has shown to help."""
        from analysis.remedy import helping

        if SPIN not in self.blocks:
            return []
        names = helping(rows_of(state), self.spec, self._known["choice"])
        return sorted({self.spec.spin[name] for name in names if name in self.spec.spin})

    def _spin_rounds(self, rounds: int) -> int:
        return max(self.spec.pilot_rounds, rounds)

    def _out_of_time(
        self, block: Block, state: State, rounds: int = 1, keep: int | None = None
    ) -> bool:
        """Whether so many more rounds would exceed the budget.

        The first ``keep`` rounds are run in any case: without them there is no interval.
        """
        closed = state.next_round(block.id)
        keep = self.spec.pilot_rounds if keep is None else keep
        if closed < keep or self._before_s is None:
            return False
        next_s = rounds * sum(self._expected_s(block, entry, state) for entry in block.entries)
        return self._before_s + time.monotonic() - self._started + next_s > self.spec.budget_s

    def _expected_s(self, block: Block, entry: Entry, state: State) -> float:
        walls = sorted(state.walls.get((block.id, mix_name(entry.mix)), []))
        return walls[len(walls) // 2] if walls else entry.estimate_s
