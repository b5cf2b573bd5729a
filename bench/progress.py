"""What a run says while it runs, on stderr: where it is, and when it will be done.

Nothing ticks: rich's refresh thread is off, and lines are written between samples only, because a
driver that wakes up beside a measurement disturbs it.
"""

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from bench.blocks import Block, Entry
from bench.journal import Line, State
from bench.runner import live_entries
from bench.units import format_duration

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

Remaining = Callable[[State], Iterable[tuple[Block, int]]]
"""Blocks still to run, and how many rounds of each."""

PLAIN_LINE_S = 15.0
"""Least time between two plain lines inside a round."""


def remaining_rounds(blocks: Sequence[Block], rounds: int) -> Remaining:
    """Say what is left of the usual schedule."""

    def remaining(state: State) -> Iterable[tuple[Block, int]]:
        return [(block, max(0, rounds - state.next_round(block.id))) for block in blocks]

    return remaining


class Pace:
    """Predicts from the measured time of each entry.

    The first sample of an entry is often its slowest: memory the host has to find first, cold
    caches of files. So later samples count where there are any, and where there are none the first
    is scaled by what the others became faster.
    """

    def __init__(self, remaining: Remaining) -> None:
        self._remaining = remaining
        self._last_end = time.monotonic()
        self._gaps_s: list[float] = []

    def add(self, wall_s: float) -> None:
        """Count one sample of this sitting that ended now, for the time between two workers."""
        now = time.monotonic()
        self._gaps_s.append(max(0.0, now - self._last_end - wall_s))
        self._last_end = now

    def left_s(self, state: State) -> float | None:
        """Seconds until the run is done, about; None while nothing is known of what is left."""
        estimates: list[tuple[Entry, Block, int]] = []
        for block, rounds in self._remaining(state):
            done = state.running(block.id, state.next_round(block.id)) if rounds else []
            estimates += [
                (entry, block, rounds - (entry.name in done))
                for entry in live_entries(block, state)
            ]
        warmth = _warmth(state)
        seen = [(e, b) for e, b, _ in estimates if state.walls.get((b.id, e.name))]
        measured = sum(_expected(e, b, state, warmth) or 0.0 for e, b in seen)
        estimated = sum(entry.estimate_s for entry, _ in seen)
        if estimates and not state.walls and not any(e.estimate_s for e, *_ in estimates):
            return None
        scale = measured / estimated if measured and estimated else 1.0
        # The median: a table after the first round takes a second that does not come again.
        gap = statistics.median(self._gaps_s) if self._gaps_s else 0.0
        return sum(
            (
                (
                    _expected(entry, block, state, warmth)
                    or entry.estimate_s * scale
                    or _elsewhere(entry, state)
                )
                + gap
            )
            * rounds
            for entry, block, rounds in estimates
        )


def _warmth(state: State) -> float:
    """Later samples divided by first ones."""
    again = [walls for walls in state.walls.values() if len(walls) > 1]
    first = sum(walls[0] for walls in again)
    return sum(statistics.median(walls[1:]) for walls in again) / first if first else 1.0


def _expected(entry: Entry, block: Block, state: State, warmth: float) -> float | None:
    walls = state.walls.get((block.id, entry.name))
    if not walls:
        return None
    return statistics.median(walls[1:]) if len(walls) > 1 else walls[0] * warmth


def _elsewhere(entry: Entry, state: State) -> float:
    """What an entry without an estimate took in other blocks; what any did, if it never ran."""
    own = [wall for (_, name), walls in state.walls.items() if name == entry.name for wall in walls]
    walls = own or [wall for walls in state.walls.values() for wall in walls]
    return statistics.median(walls) if walls else 0.0


def _left_text(left_s: float | None) -> str:
    return (
        "how long it takes is not known yet"
        if left_s is None
        else f"about {format_duration(left_s)} left"
    )


class Reporter:
    """The runner's watcher for people: a bar on a terminal, plain lines elsewhere."""

    def __init__(
        self,
        stream: TextIO,
        blocks: Sequence[Block],
        rounds: int,
        after_round: Callable[[State, int], None],
        remaining: Remaining | None = None,
    ) -> None:
        self._stream = stream
        self._blocks = blocks
        self._rounds = rounds
        self._after_round = after_round
        self._pace = Pace(remaining or remaining_rounds(blocks, rounds))
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._last_line = 0.0
        self._shown = ("", -1)

    def start(self) -> None:
        """Show the bar, where there is a terminal."""
        if not self._stream.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._bar = Progress(
            TextColumn("{task.fields[where]}"),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:.0f}%  {task.fields[left]}"),
            TextColumn("{task.fields[case]}", style="dim"),
            console=Console(file=self._stream),
            auto_refresh=False,
            transient=True,
        )
        self._task = self._bar.add_task("", total=1.0, where="", left="", case="")
        self._bar.start()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def sample_starts(self, block: Block, entry: Entry, state: State) -> None:
        """Show what is about to run and the time left."""
        round_ = state.next_round(block.id)
        left_s = self._pace.left_s(state)
        # A schedule in stages has no number of rounds, and one block a stage.
        staged = not self._rounds
        where = (
            f"{block.id}, round {round_ + 1}" if staged else f"round {round_ + 1}/{self._rounds}"
        )
        if not staged and round_ >= self._rounds:
            where = f"extra round {round_ + 1 - self._rounds}"
        if self._bar is not None and self._task is not None:
            done = sum(sum(walls) for walls in state.walls.values())
            self._bar.update(
                self._task,
                completed=done,
                total=done + left_s if left_s is not None else None,
                where=where,
                left=_left_text(left_s),
                case=entry.name.replace("[", "\\["),
                refresh=True,
            )
            return
        now = time.monotonic()
        shown = (block.id if staged else "", round_)
        if shown != self._shown or now - self._last_line >= PLAIN_LINE_S:
            self._shown, self._last_line = shown, now
            if not staged:
                closed = sum(round_ < state.next_round(b.id) for b in self._blocks)
                where += f", block {closed + 1}/{len(self._blocks)}"
            self.message(f"{where}: {_left_text(left_s)}")

    def sample_ended(self, block: Block, entry: Entry, line: Line) -> None:
        """Learn from its time; say it where it does not count."""
        self._pace.add(line["wall_s"])
        if line.get("invalid"):
            self.message(f"rejected: {line['mix']}: {line['invalid']}")

    def round_ended(self, state: State) -> None:
        """Let the command save, and show a first table where no bar stands meanwhile."""
        if self._bar is not None:
            self._bar.stop()
        self._after_round(state, state.complete_rounds(b.id for b in self._blocks))
        if self._bar is not None:
            self._bar.start()

    def message(self, text: str) -> None:
        """Write one line, above the bar where there is one."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            self._stream.write(text + "\n")
            self._stream.flush()
