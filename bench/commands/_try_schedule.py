"""First run, pilot, verdict: the schedule of ``bench try``."""

import math
import statistics
from typing import TYPE_CHECKING, Any

from bench.blocks import Block, Plan
from bench.commands import _stages
from bench.errors import UsageError
from bench.journal import Line, State
from bench.tryplan import BASELINE, FIRST, PILOT, VERDICT
from bench.units import format_duration

if TYPE_CHECKING:
    from analysis.remedy_stages import Choice

SLACK = 1.1
"""Times the budget, before a remedy is given up in its pilot for its time."""
FIRST_RUNS = 2
"""Tries that a command has to show that it works as it is."""


def sample_lines(state: State) -> list[Line]:
    """All samples that count."""
    return [line for lines in state.samples.values() for line in lines]


class Stages(_stages.Stages):
    """What comes next is a function of the journal."""

    def __init__(self, plan: Plan, options: dict[str, Any], started_s: float) -> None:
        from analysis.tried import Spec

        self.spec = Spec.of(options)
        super().__init__(plan, self.spec.pilot_rounds, self.spec.budget_s, started_s)

    def pending(self, state: State) -> list[tuple[Block, int]]:
        """Blocks that are known to be needed, with the rounds each has left."""
        self._note_begin(state)
        first = [line["run"] for line in sample_lines(state) if line["block"] == FIRST]
        if all("failure" in run for run in first):
            again = len(first) < FIRST_RUNS and not any(run.get("timed_out") for run in first)
            return [(self.blocks[FIRST], 1)] if again else []
        tried = self._in_time(self._once("tried", lambda: self._affordable(state)), state)
        pilot = self._live(PILOT, tried, state)
        if left := self._left(pilot, self.spec.pilot_rounds, state):
            return [(pilot, left)]
        choice = self._once("choice", lambda: self._choice(state))
        block = self._live(VERDICT, choice.remedies, state)
        left = self._left(block, choice.rounds, state)
        if left and not self._out_of_time(block, state):
            return [(block, left)]
        return []

    def _live(self, block: str, names: Any, state: State) -> Block:  # noqa: ANN401 - a sequence
        """A block without the remedies that fail; with nothing where the command itself does."""
        from analysis.tried import failing, runs

        lines = sample_lines(state)
        found = [runs(lines, one, self.spec) for one in (PILOT, VERDICT)]
        live = [name for name in (BASELINE, *names) if not failing(found, name)]
        return self.part(block, live if BASELINE in live else [])

    def _in_time(self, names: list[str], state: State) -> list[str]:
        """Remedies whose pilot goes on: under some, a command takes many times its usual time.

        The slowest are left out until the rest of the pilot and the fewest fresh runs of one remedy
        fit the budget. A function of the rounds closed, so that a resumed run leaves out the same.
        """
        from analysis.intervals import pairs_needed
        from analysis.remedy_stages import GAP_S

        closed = state.next_round(PILOT)
        if not closed:
            return names
        ran = {line["mix"] for line in state.samples.get((PILOT, closed - 1), [])}
        left = [name for name in names if name in ran]
        if closed >= self.spec.pilot_rounds:
            return left
        walls = {
            name: GAP_S + statistics.median(state.walls.get((PILOT, name)) or [0.0])
            for name in (BASELINE, *left)
        }
        spent_s = sum(GAP_S + wall for walls in state.walls.values() for wall in walls)
        rounds = self.spec.pilot_rounds - closed

        def needs_s() -> float:
            own = [walls[name] for name in left]
            fresh = pairs_needed() * (walls[BASELINE] + min(own))
            return rounds * (walls[BASELINE] + sum(own)) + fresh

        while left and spent_s + needs_s() > SLACK * self.spec.budget_s:
            left.remove(max(left, key=walls.__getitem__))
        return left

    def _affordable(self, state: State) -> list[str]:
        """Remedies that the time is enough for, in the order given."""
        from analysis.intervals import pairs_needed
        from analysis.remedy_stages import GAP_S

        names = list(self.spec.shows)
        first = [line for line in sample_lines(state) if line["block"] == FIRST]
        one_s = GAP_S + max(float(line["wall_s"]) for line in first)

        def least_s(k: int) -> float:
            # A pilot of all of them, and fresh runs of the most promising one.
            return one_s * (self.spec.pilot_rounds * (k + 1) + 2 * pairs_needed() + FIRST_RUNS)

        for k in range(len(names), 0, -1):
            if least_s(k) <= self.spec.budget_s:
                return names[:k]
        raise UsageError(
            f"one run takes {format_duration(one_s)}, and a verdict on one remedy about"
            f" {format_duration(least_s(1))}: {format_duration(self.spec.budget_s)} are too short",
            f"--budget {math.ceil(1.5 * least_s(1) / 60)}m",
        )

    def _choice(self, state: State) -> "Choice":
        from analysis.tried import choose

        return choose(sample_lines(state), self.spec)
