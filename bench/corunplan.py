"""Plan of ``bench corun``: every kernel beside every other, with both baselines, in one block.

Both values of a pair come from one mix. Alone, beside ``spin``, and the pairs stand in the same
block, in random order, so that every ratio is formed within one round.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bench.blocks import Block, Plan, Settings, Skip
from bench.errors import UsageError
from bench.mix import Actor, Mix, mix_name
from bench.mixplan import MixPlanner
from bench.spinners import KERNEL, plain

SHARED, OWN = "shared", "own"
"""Address space of the second actor: with the first, or a process of its own."""


@dataclass(frozen=True)
class Subject:
    """One kernel of the matrix."""

    label: str
    actor: Actor
    """At one thread."""

    def at(self, threads: int) -> Actor:
        """With that many threads."""
        return replace(self.actor, threads=threads)


@dataclass(frozen=True)
class Case:
    """What one mix of the matrix is for."""

    kind: str
    """``one``, ``alone``, ``spin`` or ``pair``."""
    first: str
    second: str
    threads: tuple[int, int]
    space: str
    mix: Mix

    def plain(self) -> dict[str, Any]:
        """For the plan's options."""
        return {
            "kind": self.kind,
            "first": self.first,
            "second": self.second,
            "threads": list(self.threads),
            "space": self.space,
            "mix": mix_name(self.mix),
        }


@dataclass
class Matrix:
    """Plan, and what its mixes are for."""

    plan: Plan
    cases: list[Case] = field(default_factory=list)
    shed: list[Skip] = field(default_factory=list)


def parse_split(text: str, cpus: int) -> tuple[int, int]:
    """Threads of ``1:3`` or ``half``, all of which need a CPU each."""
    if text == "half":
        return max(1, cpus // 2), max(1, cpus - cpus // 2)
    first, colon, second = text.partition(":")
    if not (colon and first.isdigit() and second.isdigit() and int(first) and int(second)):
        raise UsageError(f"not a split: {text!r}", "write half, 1:1 or 2:6 (victim:aggressor)")
    if int(first) + int(second) > cpus:
        raise UsageError(
            f"split {text} needs {int(first) + int(second)} CPUs, and {cpus} may be used",
            f"half is {max(1, cpus // 2)}:{max(1, cpus - cpus // 2)} here",
        )
    return int(first), int(second)


def make(
    subjects: Sequence[Subject],
    splits: Sequence[tuple[int, int]],
    twins: str,
    planner: MixPlanner,
    settings: Settings,
    rounds: int,
    least_rounds: int,
    budget_s: float,
    seed: int,
    skips: Sequence[Skip] = (),
) -> Matrix:
    """Plan the matrix within a time: first address spaces of their own go, then the last kernels.

    ``twins`` is ``churn`` (pairs in which somebody maps and releases memory), ``all`` or ``none``.
    """
    kept, shed, refused = list(subjects), [], list(skips)
    while True:
        made = Matrix(Plan("corun", (), rounds, seed))
        blocks: list[Block] = []
        refused = list(skips)
        for split in splits:
            cases = _cases(kept, split, twins, planner)
            name = f"corun {split[0]}:{split[1]}"
            block, missing = planner.block(name, "corun", [c.mix for c in cases], settings)
            refused += missing
            if block is not None:
                there = {mix_name(entry.mix) for entry in block.entries}
                made.cases += [case for case in cases if mix_name(case.mix) in there]
                blocks.append(block)
        seconds = least_rounds * sum(block.estimate_s for block in blocks)
        if seconds <= budget_s or (len(kept) <= 2 and twins == "none"):
            break
        more = f"--budget {int(seconds * 1.1 / 60) + 1}m"
        if twins != "none":
            what = "address spaces of their own"
            twins = "none"
        else:
            what = kept.pop().label
        shed.append(Skip(what, "over the budget", more))
    if not blocks:
        raise UsageError("nothing of the matrix can be measured here", _first(refused))
    made.shed = shed
    made.plan = Plan(
        "corun",
        tuple(blocks),
        rounds,
        seed,
        tuple(refused),
        tuple(shed),
        planner.memory_bytes(blocks),
    )
    return made


def _first(skips: Sequence[Skip]) -> str:
    return f"{skips[0].what}: {skips[0].reason}" if skips else ""


def _cases(
    subjects: Sequence[Subject], split: tuple[int, int], twins: str, planner: MixPlanner
) -> list[Case]:
    """Baselines first, then pairs, those in one address space before the others."""
    kernels = planner.registry.kernels()
    counts = list(dict.fromkeys(split))
    cases: dict[str, Case] = {}
    # Measured too: what spinners lose beside a kernel can only be interrupts.
    spinner = Subject(KERNEL, plain(planner.registry))

    def add(kind: str, first: Subject, second: Subject | None, n: int, m: int, space: str) -> None:
        actors = [first.at(n)]
        if kind == "spin":
            actors.append(spinner.at(m))
        elif second is not None:
            actors.append(replace(second.at(m), process="own" if space == OWN else ""))
        case = Case(
            kind, first.label, second.label if second else "", (n, m), space, Mix(tuple(actors))
        )
        cases.setdefault(mix_name(case.mix), case)

    for subject in (*subjects, spinner):
        for n in counts:
            add("alone", subject, None, n, 0, SHARED)
        if subject is not spinner:
            add("one", subject, None, 1, 0, SHARED)
        for n, m in sorted({split, split[::-1]}):
            add("spin", subject, None, n, m, SHARED)
    for space in (SHARED, OWN):
        for i, first in enumerate(subjects):
            for second in subjects[i:]:
                churn = "churn" in (
                    kernels[first.actor.kernel].memory,
                    kernels[second.actor.kernel].memory,
                )
                if space == OWN and (twins == "none" or (twins == "churn" and not churn)):
                    continue
                for n, m in sorted({split, split[::-1]}):
                    if first is second and (n, m) != min(split, split[::-1]):
                        continue
                    add("pair", first, second, n, m, space)
    return list(cases.values())
