"""Pilot, pairs, verdict, spinners: the schedule of ``bench remedy``."""

from typing import TYPE_CHECKING, Any

from bench.blocks import Block, Plan
from bench.commands import _stages
from bench.journal import State
from bench.remedyplan import PAIRS, PILOT, SPIN, VERDICT

if TYPE_CHECKING:
    from analysis.remedy_stages import Choice


def rows_of(state: State) -> list[Any]:
    """Rows of ``analysis.load`` of all samples that count."""
    from analysis.rows import make_rows

    return [
        row for lines in state.samples.values() for line in lines for row in make_rows(line, "")
    ]


class Stages(_stages.Stages):
    """Pilot, pairs, verdict, spinners: what comes next is a function of the journal."""

    def __init__(self, plan: Plan, options: dict[str, Any], started_s: float) -> None:
        from analysis.remedy_stages import Spec

        self.spec = Spec.of(options)
        super().__init__(plan, self.spec.pilot_rounds, self.spec.budget_s, started_s)
        self.most_pairs = int(options["remedy"]["most_pairs"])

    def pending(self, state: State) -> list[tuple[Block, int]]:
        """Blocks that are known to be needed, with the rounds each has left."""
        self._note_begin(state)
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

    def stages(self, state: State) -> list[list[Block]]:
        """For ``bench.results``: of a mix in several stages the verdict's samples count."""
        ran = {
            block: {line["mix"] for lines in rounds for line in lines}
            for block in self.blocks
            for rounds in [[v for (b, _), v in state.samples.items() if b == block]]
        }
        return [[self.part(block, sorted(mixes))] for block, mixes in ran.items() if mixes]

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
