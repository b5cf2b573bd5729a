"""Rounds of blocks, a fresh worker for every sample, and what makes a sample invalid.

Which block is next is the caller's business: ``in_rounds`` is the usual schedule, and a command
that decides from results passes a function of its own. Nothing here prints; ``Watcher`` is told.
"""

import math
import os
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from bench.blocks import Block, Entry, Settings
from bench.errors import PagestormError
from bench.journal import Journal, Line, State
from bench.mix import FileRef, Mix, actor_name, mix_name, told_stuck
from bench.place import oversubscribed
from bench.schema import EXTRA_FIELDS, LEAST_KNOWN, LEAST_MATCHING, SAMPLE_FIELDS, SCHEMA
from bench.spawn import WORKER, run_worker
from bench.stop import Stop

NextBlock = Callable[[State], Block | None]

MOST_MISPLACED = 0.01
"""Share of the bytes that may lie on another memory node than asked."""
# A cold 4 KiB page costs 13.5 us in a virtual machine whose host took the memory back; four times
# that, and room for a slow start of Python on a busy host.
SETUP_S = 30.0
TOUCH_S_PER_BYTE = 4 * 13.5e-6 / 4096
ESTIMATES = 4.0


class Watcher(Protocol):
    """Whom the runner tells what it does."""

    def sample_starts(self, block: Block, entry: Entry, state: State) -> None:
        """Before a worker starts."""

    def sample_ended(self, block: Block, entry: Entry, line: Line) -> None:
        """After its line is on disk."""

    def round_ended(self, state: State) -> None:
        """Every live block has closed one more round."""

    def message(self, text: str) -> None:
        """Something the user should know, once."""


@dataclass
class Runner:
    """Runs blocks into a journal until nothing is left, the budget is spent, or a signal comes."""

    journal: Journal
    blocks: Sequence[Block]
    """All blocks that make up a round: what ``round_ended`` and the budget count."""
    seed: int
    watcher: Watcher
    stop: Stop
    command: Sequence[str] = WORKER
    budget_s: float = math.inf
    least_rounds: int = 6
    """Rounds that are run even where they exceed the budget."""
    planned_rounds: int | None = None
    """A block's rounds beyond these are run where the budget has room for them, block by block."""
    _began: float = field(default_factory=time.monotonic)
    _rounds_before: int = 0
    """Closed by earlier sittings of a resumed run."""
    _told: set[str] = field(default_factory=set)
    """Mixes of which it was said that their pages are not known."""

    def run(self, next_block: NextBlock) -> str:
        """Run blocks; returns ``done``, ``interrupted`` or ``budget``, also the journal's end."""
        state = self.journal.state
        rounds = self._rounds_before = self.rounds()
        status = "done"
        spent = False
        while (block := next_block(state)) is not None:
            extra = self._is_extra(block)
            if extra and (spent or not self._has_room(block)):
                break
            if spent:
                status = "budget"
                break
            if self.stop.requested or not self.run_block(block):
                status = "interrupted"
                break
            if self.rounds() > rounds:
                rounds = self.rounds()
                self.watcher.round_ended(state)
                spent = self._budget_is_spent(rounds)
        self.journal.append({"kind": "end", "status": status, "time": now()})
        return status

    def rounds(self) -> int:
        """Rounds that all blocks with anything left to measure have closed."""
        state = self.journal.state
        return state.complete_rounds(b.id for b in self.blocks if live_entries(b, state))

    def run_block(self, block: Block) -> bool:
        """Run a block's next round, repeating it after invalid samples; False where stopped."""
        state = self.journal.state
        round_ = state.next_round(block.id)
        while True:
            attempt = state.next_attempt(block.id, round_)
            entries = live_entries(block, state)
            random.Random(f"{self.seed} {block.id} {round_} {attempt}").shuffle(entries)
            reason = ""
            for entry in entries:
                line = self._run_sample(block, entry, round_, attempt)
                if line is None:
                    return False
                reason = line.get("invalid", "")
                if reason:
                    break
            if not reason:
                status = "ok" if live_entries(block, state) else "failed"
            else:
                status = "rejected" if state.may_retry(block.id, round_) else "failed"
            self.journal.append(
                {
                    "kind": "block",
                    "block": block.id,
                    "round": round_,
                    "attempt": attempt,
                    "status": status,
                    "reason": reason,
                }
            )
            if status != "rejected":
                return True

    def _run_sample(self, block: Block, entry: Entry, round_: int, attempt: int) -> Line | None:
        """One worker, and its line; None where a signal stopped it."""
        if self.stop.requested:
            return None
        mix = entry.name
        self.watcher.sample_starts(block, entry, self.journal.state)
        line: Line = {
            "kind": "sample",
            "block": block.id,
            "round": round_,
            "attempt": attempt,
            "mix": mix,
            "time": now(),
        }
        found = self.measure(block, entry)
        if found is None:
            return None
        line |= found
        dropped_before = mix in self.journal.state.dropped
        self.journal.append(line)
        self.watcher.sample_ended(block, entry, line)
        drop = self.journal.state.dropped.get(mix)
        if drop is not None and not dropped_before:
            self.watcher.message(f"left out from here on: {mix}: {drop.reason}")
        return line

    def measure(self, block: Block, entry: Entry) -> Line | None:
        """Fields of one sample, its ``wall_s`` among them; None where a signal stopped it."""
        line: Line = {}
        outcome = run_worker(
            make_request(entry, block.settings, self.seed),
            time_limit_s(entry, block.settings),
            self.command,
            self.stop.fd if self.stop.fd >= 0 else None,
        )
        if outcome is None:
            return None
        response = outcome.response
        if "error" in response:
            error = line["error"] = _plain_error(response["error"])
            invalid = "" if error["kind"] == "skip" else f"{error['stage']}: {error['message']}"
        else:
            invalid = why_invalid(entry.mix, response)
            wanted = (*SAMPLE_FIELDS, *EXTRA_FIELDS)
            line |= {key: response[key] for key in wanted if key in response}
        line["wall_s"] = round(outcome.wall_s, 6)
        if invalid:
            line["invalid"] = invalid
        if outcome.messages:
            line["messages"] = outcome.messages
        if not invalid and "actors" in line and (few := unknown_pages(entry.mix, response)):
            if entry.name not in self._told:
                self.watcher.message(f"{few}: kept, but in no verdict without --accept-unknown")
            self._told.add(entry.name)
        return line

    def _is_extra(self, block: Block) -> bool:
        planned = self.planned_rounds
        return planned is not None and self.journal.state.next_round(block.id) >= planned

    def _has_room(self, block: Block) -> bool:
        walls = self.journal.state.walls
        names = [entry.name for entry in live_entries(block, self.journal.state)]
        known = [walls[block.id, mix] for mix in names if walls.get((block.id, mix))]
        expected = sum(map(statistics.median, known))
        return time.monotonic() - self._began + expected <= self.budget_s

    def _budget_is_spent(self, rounds: int) -> bool:
        spent = time.monotonic() - self._began
        next_round_s = spent / (rounds - self._rounds_before)
        return rounds >= self.least_rounds and spent + next_round_s > self.budget_s


def live_entries(block: Block, state: State) -> list[Entry]:
    """Entries of a block that are still measured."""
    return [entry for entry in block.entries if entry.name not in state.dropped]


def in_rounds(blocks: Sequence[Block], rounds: int, seed: int) -> NextBlock:
    """Schedule every block once a round, in an order shuffled anew, until ``rounds`` are closed.

    The order is a function of seed and round, so a resumed run goes on where it was.
    """

    def next_block(state: State) -> Block | None:
        live = [block for block in blocks if live_entries(block, state)]
        round_ = state.complete_rounds(block.id for block in live)
        if not live or round_ >= rounds:
            return None
        order = list(blocks)
        random.Random(f"{seed} {round_}").shuffle(order)
        open_ids = {b.id for b in live if round_ not in state.closed.get(b.id, {})}
        return next(block for block in order if block.id in open_ids)

    return next_block


def make_request(entry: Entry, settings: Settings, seed: int) -> dict[str, Any]:
    """Build what a worker reads: see ``bench.schema``."""
    files = {
        value.digest: value.path
        for actor in entry.mix.actors
        for _, value in actor.params
        if isinstance(value, FileRef)
    }
    return {
        "schema": SCHEMA,
        "mix": mix_name(entry.mix),
        "files": files,
        "place": entry.cpus,
        "nodes": entry.nodes,
        "oversubscribed": oversubscribed(entry.cpus, len(os.sched_getaffinity(0))),
        "seed": seed,
        "window_s": settings.window_s,
        "warm_s": settings.warm_s,
        "min_passes": settings.min_passes,
        "warm_passes": settings.warm_passes,
        "log_events": settings.log_events,
        "fixed_passes": 0,
        "deadline_s": settings.deadline_s,
        "check": settings.check,
        "probes": True,
    }


def time_limit_s(entry: Entry, settings: Settings) -> float:
    """Seconds after which a worker is killed: setup, warm-up and the window's deadline."""
    touched = sum(
        actor.size * (actor.threads if actor.process == "each" else 1) for actor in entry.mix.actors
    )
    setup = SETUP_S + ESTIMATES * entry.estimate_s + TOUCH_S_PER_BYTE * touched
    # Waiting for the passes of a warm-up may take as long again.
    deadlines = 2 if settings.warm_passes else 1
    return setup + settings.warm_s + deadlines * settings.deadline_s


def why_invalid(mix: Mix, response: Mapping[str, Any]) -> str:
    """Reason why a sample must not count; empty where it may. Slowness is never one."""
    missing = [key for key in SAMPLE_FIELDS if key not in response]
    if missing:
        return f"answer: the worker's answer lacks {', '.join(missing)}"
    actors = response["actors"]
    if len(actors) != len(mix.actors):
        return f"answer: {len(actors)} actors answered for {len(mix.actors)}"
    if response["deadline_hit"]:
        stuck = {name: row.get("stuck", 0) for name, row in response["pools"].items()}
        return (
            "deadline: the window was closed before every measured actor had made its passes"
            + told_stuck(mix, stuck)
        )
    for i, actor in enumerate(actors):
        policy = mix.actors[i].policy
        for when in ("before", "after"):
            seen = (actor.get("evidence") or {}).get(when) or {}
            known, total = seen.get("known", 0), seen.get("total", 0)
            if known and seen["matching"] < LEAST_MATCHING * known:
                share = seen["matching"] / known
                return f"evidence: actor {i} has {share:.1%} of its bytes as {policy} {when} it ran"
            told = total - seen.get("unknown_node", 0)
            if told > 0 and seen.get("wrong_node", 0) > MOST_MISPLACED * told:
                share = seen["wrong_node"] / told
                return f"evidence: actor {i} has {share:.1%} of its bytes on another memory node"
        seconds = actor["seconds"]
        if not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds < 0:
            return f"answer: actor {i} reports {seconds!r} seconds"
    return ""


def unknown_pages(mix: Mix, response: Mapping[str, Any]) -> str:
    """Say of which actor too few pages are known for a verdict; empty where all are."""
    for i, actor in enumerate(response["actors"]):
        for seen in (actor.get("evidence") or {}).values():
            if seen and seen["known"] < LEAST_KNOWN * seen["total"]:
                share = f"{seen['known'] / seen['total']:.0%}"
                return f"{share} of the pages of {actor_name(mix.actors[i])} can be told"
    return ""


def _plain_error(error: Any) -> dict[str, str]:  # noqa: ANN401 - whatever a worker sent
    given = error if isinstance(error, dict) else {"message": str(error)}
    return {
        "kind": "skip" if given.get("kind") == "skip" else "fail",
        "stage": str(given.get("stage", "worker")),
        "message": str(given.get("message", "gave no reason")),
    }


def now() -> str:
    """Now, UTC, as the files hold it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def check_blocks(blocks: Sequence[Block]) -> None:
    """Refuse blocks that a journal could not tell apart."""
    seen: set[str] = set()
    for block in blocks:
        if block.id in seen:
            raise PagestormError(f"two blocks of the plan are called {block.id!r}")
        seen.add(block.id)
        names = [entry.name for entry in block.entries]
        if len(set(names)) < len(names):
            raise PagestormError(f"block {block.id!r} holds the same mix twice")
