"""Which remedies get fresh samples, and how many: decided from the pilot, before the verdict.

How many depends on the pilot's spread and on the time, never on where an effect seems to lie; only
which remedies are tried first does, and the pilot's samples do not enter the verdict.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from analysis import totals
from analysis.intervals import LEVEL, Floats, pairs_needed
from analysis.load import Row
from analysis.stats import DEAD_BAND, PairedByState, decide
from analysis.verdict import pairs_for_width
from bench.scenario import Scenario, from_plain

PILOT, PAIRS, VERDICT, SPIN = "pilot", "pairs", "verdict", "spin"
MOST_ROUNDS = 60
"""More samples of one comparison are not worth a user's time by default."""
FEW_ROUNDS = 12
"""Where time is short, fewer remedies are tried rather than all with less than this."""
GAP_S = 0.1
"""Between two workers."""


@dataclass(frozen=True)
class Spec:
    """What a run of remedies was set up to do: the options in its plan."""

    scenario: Scenario
    mixes: Mapping[str, str]
    """Remedy -> mix, singles first."""
    parts: Mapping[str, tuple[str, ...]]
    """Remedy -> the singles it is made of."""
    spin: Mapping[str, str] = field(default_factory=dict)
    """Remedy -> its mix of spinners, "" for the baseline's; none where that changes nothing."""
    dead_band: float = DEAD_BAND
    accept_unknown: bool = False
    budget_s: float = math.inf
    """For what is measured under this plan."""
    planned_band: float = DEAD_BAND
    """Dead band the schedule was made with: what was run does not depend on how it is read."""
    pilot_rounds: int = 6
    most_rounds: int = MOST_ROUNDS

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Spec":
        """Spec in the options of a plan."""
        given = options["remedy"]
        return cls(
            from_plain(given["scenario"]),
            given["mixes"],
            {name: tuple(parts) for name, parts in given["parts"].items()},
            given["spin"],
            options.get("dead_band", DEAD_BAND),
            options.get("accept_unknown", False),
            given.get("budget_s", math.inf),
            given["dead_band"],
            given["pilot_rounds"],
            given["most_rounds"],
        )

    @property
    def baseline(self) -> str:
        """Mix that every remedy is compared with."""
        from bench.mix import mix_name

        return mix_name(self.scenario.mix)

    @property
    def weights(self) -> dict[int, float]:
        """Weight by position in the mix."""
        return {self.scenario.position(n): w for n, w in self.scenario.weights.items()}

    @property
    def singles(self) -> list[str]:
        """Remedies that are one thing."""
        return [name for name in self.mixes if len(self.parts[name]) == 1]

    @property
    def combinations(self) -> list[str]:
        """Remedies that are two things."""
        return [name for name in self.mixes if len(self.parts[name]) > 1]


def total_pairs(
    rows: Sequence[Row], spec: Spec, block: str, remedy: str, over: str = ""
) -> PairedByState:
    """Paired log ratios of the time for the scenario's total work.

    ``over`` is the remedy to compare with; none is the scenario as it is.
    """
    usual = totals.usual_speeds(totals.samples(rows, PILOT), spec.baseline)
    found = totals.samples(rows, block)
    baseline = spec.mixes[over] if over else spec.baseline
    return totals.pairs(
        found, baseline, spec.mixes[remedy], lambda s: totals.total(s, usual, spec.weights)
    )


def worth_pairing(rows: Sequence[Row], spec: Spec, most: int) -> list[str]:
    """Pairs of singles that the pilot has not shown to hurt, the most promising first."""
    seen = {name: total_pairs(rows, spec, PILOT, name).log_ratios for name in spec.singles}
    hurting = {
        name
        for name, ratios in seen.items()
        if not ratios.size or decide(ratios, spec.planned_band).verdict == "hurts"
    }
    middle = {name: float(np.median(r)) for name, r in seen.items() if name not in hurting}
    open_ = [n for n in spec.combinations if not hurting & set(spec.parts[n])]
    open_.sort(key=lambda n: sum(middle[part] for part in spec.parts[n]))
    return open_[:most]


@dataclass(frozen=True)
class Choice:
    """The verdict stage."""

    remedies: tuple[str, ...]
    """Most promising first."""
    rounds: int
    needed: int
    """That the pilot's spread asks for; more than ``rounds`` where time or a limit forbids it."""
    left_out: tuple[str, ...] = ()


def choose(rows: Sequence[Row], spec: Spec) -> Choice:
    """Choose remedies and sample count from the pilot and the time left."""
    blocks = {name: totals.samples(rows, name) for name in (PILOT, PAIRS)}
    ratios: dict[str, Floats] = {}
    for name in spec.mixes:
        for block in blocks:
            found = total_pairs(rows, spec, block, name).log_ratios
            if found.size:
                ratios[name] = found
    spent = sum(
        sample.wall_s + GAP_S
        for block in blocks.values()
        for by_round in block.values()
        for sample in by_round.values()
    )
    # Spinners have their turn after the verdict, for the few remedies that help.
    left = (spec.budget_s - spent) * (0.85 if spec.spin else 1.0)
    return pick(
        ratios,
        {name: totals.wall_s(blocks.values(), spec.mixes[name]) for name in ratios},
        totals.wall_s(blocks.values(), spec.baseline),
        left,
        spec.planned_band,
        spec.most_rounds,
        _usable_share(rows, spec, [name for name in ratios if name in spec.singles]),
    )


def pick(
    ratios: Mapping[str, Floats],
    walls_s: Mapping[str, float],
    baseline_s: float,
    left_s: float,
    band: float,
    most_rounds: int,
    usable: float = 1.0,
) -> Choice:
    """Pick remedies and sample count from the pilot's log ratios and the time left.

    Parameters
    ----------
    ratios : mapping of name to ndarray
        Of remedy over baseline; none may be empty.
    walls_s : mapping of name to float
        Seconds that one sample takes; ``baseline_s``: one of the baseline.
    usable : float
        Part of the pairs that ran in equal placements.
    """
    order = sorted(ratios, key=lambda name: float(np.median(ratios[name])))
    if not order:
        return Choice((), 0, 0)

    def affordable(k: int) -> float:
        return left_s / (baseline_s + GAP_S + sum(walls_s[name] + GAP_S for name in order[:k]))

    def needed(k: int) -> int:
        return max(_rounds_needed(ratios[name], band, most_rounds, k) for name in order[:k])

    for k in range(len(order), 0, -1):
        most = int(min(affordable(k), most_rounds))
        least = math.ceil(pairs_needed(1 - (1 - LEVEL) / k) / usable)
        # Who asks for fewer gets them, for all remedies.
        few = max(min(FEW_ROUNDS, most_rounds), least)
        if most >= min(needed(k), few) and most >= least:
            rounds = min(most, needed(k))
            return Choice(tuple(order[:k]), rounds, needed(k), tuple(order[k:]))
    return Choice(tuple(order[:1]), pairs_needed(LEVEL), needed(1), tuple(order[1:]))


def _usable_share(rows: Sequence[Row], spec: Spec, names: Sequence[str]) -> float:
    """Part of the pilot's pairs that ran in equal placements; only those count later, too."""
    found = [total_pairs(rows, spec, PILOT, name) for name in names]
    formed = sum(pairs.log_ratios.size for pairs in found)
    whole = formed + sum(pairs.n_unequal for pairs in found)
    return max(0.2, formed / whole) if whole else 1.0


def _rounds_needed(ratios: Floats, band: float, most_rounds: int, remedies: int) -> int:
    if ratios.size < pairs_needed(LEVEL):
        return most_rounds
    return pairs_for_width(ratios, band, LEVEL, remedies)
