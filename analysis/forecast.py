"""What can be said of a scenario's remedies before any is measured.

From every actor alone: with its own threads, with one, and with all CPUs. The sharing law and the
fluid model then say what cap, lock, pause and affinity would do, and what a page policy's gain
alone is worth in the mix. The rest of what happens to memory they do not know.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from analysis.fluid import (
    Alone,
    at_threads,
    pass_rates,
    saturated_traffic,
    saturation,
    shares_a_cpu,
)
from analysis.load import Row
from analysis.paired import work_seconds
from bench.mix import Actor, Mix
from bench.scenario import Scenario

RETROGRADE = 0.05
"""Of bandwidth lost with more threads, beyond what few samples could show by accident."""

CACHED = 2.0
"""Of what the memory interface gives to readers of large arrays: who moves more never gets there.
Copies past the caches were seen to move half as much again."""

Placement = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Measured:
    """Mixes of one actor that were measured alone, by name; "" where one was not."""

    own: Sequence[str]
    one: Sequence[str]
    all: Sequence[str]
    changed: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Remedy -> position -> the actor as the remedy changes it."""
    streamer: str = ""
    """All CPUs reading memory: what the interface gives."""
    cpus: int = 1
    """Threads of ``all`` and ``streamer``."""


@dataclass(frozen=True)
class Prediction:
    """Gain in speed; NaN without one, and ``reason`` says why."""

    total: float = math.nan
    actors: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


class Forecast:
    """Predictions for one scenario on one host."""

    def __init__(
        self,
        scenario: Scenario,
        rows: Sequence[Row],
        measured: Measured,
        cpus: Placement,
        teams: Sequence[bool],
    ) -> None:
        self.scenario, self.measured, self.teams, self.cpus = scenario, measured, teams, cpus
        self._rows: dict[str, list[Row]] = {}
        for row in rows:
            if row["seconds"] > 0:
                self._rows.setdefault(row["mix"], []).append(row)
        self.alone: list[Alone] | None = None
        found = [self._alone(i) for i in range(len(scenario.mix.actors))]
        if all(found):
            self.alone = [a for a in found if a is not None]

    def _median(self, mix: str, key: str) -> float:
        values = [row[key] for row in self._rows.get(mix, []) if math.isfinite(row[key])]
        return statistics.median(values) if values else math.nan

    def _traffic(self, mix: str) -> float:
        """Between the least and the most that the memory bus may move, in GB/s."""
        low, high = self._median(mix, "bus_min_gbps"), self._median(mix, "bus_max_gbps")
        return math.sqrt(low * high) if low > 0 else 0.0 if math.isnan(low) else high

    def _alone(self, position: int) -> Alone | None:
        own, one, all_ = (
            names[position] for names in (self.measured.own, self.measured.one, self.measured.all)
        )
        pass_s = self._median(own, "seconds")
        if math.isnan(pass_s):
            return None
        # Where time was short, its own threads stand for one of them and for all CPUs.
        threads = self.scenario.mix.actors[position].threads
        b1 = self._traffic(one) if one in self._rows else self._traffic(own) / threads
        if b1 <= 0:
            return Alone(pass_s)
        many, n = all_, self.measured.cpus
        if many not in self._rows:
            many, n = own, threads
        known = [self._traffic(mix) for mix in (*self.measured.all, self.measured.streamer)]
        together, here = self._traffic(many), self._traffic(own)
        if 0 < CACHED * self._traffic(self.measured.streamer) < max(together, here):
            return Alone(pass_s)  # its lines come from caches
        bs = saturated_traffic(b1, together, n, max(known))
        return Alone(pass_s, b1, max(bs, here), max(together, here))

    # ---- predictions ----------------------------------------------------------------------------

    def speed_in_mix(self, speeds: Mapping[int, float]) -> dict[str, float]:
        """Speed of each measured actor in the mix over its speed alone, from measured medians.

        Alone it would rest as its script says, too.
        """
        found = {}
        for i in self.scenario.mix.measured:
            rows = self._rows.get(self.measured.own[i], [])
            if rows and i in speeds:
                alone = statistics.median(1 / work_seconds(row) for row in rows)
                pass_s = self._median(rows[0]["mix"], "seconds")
                busy = _busy_share(self.scenario.mix.actors[i], pass_s)
                found[self.scenario.names[i]] = speeds[i] / (alone * busy)
        return found

    def predict(self, remedy: str, mix: Mix, cpus: Placement) -> Prediction:
        """Gain of a treated mix over the scenario as it is."""
        if self.alone is None:
            return Prediction(reason="not every actor was measured alone")
        base = self.scenario.mix
        if any(a.courtesy == "yield" for a in mix.actors) and shares_a_cpu(mix.actors, cpus):
            return Prediction(reason="what yielding does among threads of one CPU is not modelled")
        alone = []
        changes = self.measured.changed.get(remedy, {})
        for i, (before, after) in enumerate(zip(base.actors, mix.actors, strict=True)):
            known = at_threads(self.alone[i], before.threads, after.threads)
            if self._differs(before, after):
                gain = self._gain_alone(i, changes.get(i, ""))
                if math.isnan(gain):
                    return Prediction(reason=f"{self.scenario.names[i]} was not measured that way")
                b1 = known.b1 * gain
                known = Alone(known.pass_s / gain, b1, max(known.bs, b1), known.most * gain)
            alone.append(known)
        now = pass_rates(base, self.alone, self.cpus, self.teams)
        then = pass_rates(mix, alone, cpus, self.teams)
        ratios = {self.scenario.names[i]: then[i] / now[i] for i in base.measured if now[i] > 0}
        weights = {name: w for name, w in self.scenario.weights.items() if name in ratios}
        if not weights:
            return Prediction(reason="in the model nothing moves")
        total = sum(w * ratios[n] for n, w in weights.items()) / sum(weights.values())
        return Prediction(total - 1, {n: r - 1 for n, r in ratios.items()})

    @staticmethod
    def _differs(before: Actor, after: Actor) -> bool:
        keys = ("kernel", "variant", "policy", "params", "size")
        return any(getattr(before, key) != getattr(after, key) for key in keys)

    def _gain_alone(self, position: int, changed: str) -> float:
        before, after = self._rows.get(self.measured.own[position]), self._rows.get(changed)
        if not before or not after:
            return math.nan
        old = statistics.median(work_seconds(row) for row in before)
        return old / statistics.median(work_seconds(row) for row in after)

    # ---- in words -------------------------------------------------------------------------------

    def before(self) -> list[str]:
        """What an interlock can be expected to do here, and why."""
        if self.alone is None:
            return ["not every actor could be measured alone: nothing is predicted"]
        asked = saturation(self.alone, self.cpus)
        lines = [self._retrograde(i) for i in range(len(self.alone))]
        lines = [line for line in lines if line]
        crowded = shares_a_cpu(self.scenario.mix.actors, self.cpus)
        if asked < 1:
            lines.append(
                f"with all phases at once the actors ask for {asked:.0%} of what the memory"
                " interface gives, so sharing it costs nobody anything: an interlock (cap, mutex,"
                " sem, yield, pause) cannot raise the total"
            )
        else:
            lines.append(
                f"with all phases at once the actors ask for {asked:.0%} of what the memory"
                " interface gives. Sharing it loses no work, so an interlock gains in total only"
                " where more threads move less, where it puts the critical actor first, or where"
                " it fills pauses of the bus"
            )
        if crowded:
            lines.append(
                "actors share CPUs here: who runs when also decides by scheduling, which the"
                " control among spinners tells apart"
            )
        return lines

    def _retrograde(self, position: int) -> str:
        own, all_ = self.measured.own[position], self.measured.all[position]
        served = self.alone is not None and not self.alone[position].has_memory
        if own == all_ or served or not {own, all_} <= self._rows.keys():
            return ""
        few, many = self._traffic(own), self._traffic(all_)
        if few > 0 and many < few * (1 - RETROGRADE):
            name = self.scenario.names[position]
            return (
                f"{name} moves {1 - many / few:.0%} less with all CPUs than with"
                f" {self.scenario.mix.actors[position].threads}: fewer threads may do more"
            )
        return ""


def _busy_share(actor: Actor, pass_s: float) -> float:
    """Part of a script's time that is not rest."""
    passes = sum(op.amount for op in actor.script if op.kind == "pass") * pass_s
    rests = sum(op.amount for op in actor.script if op.kind == "rest") * 1e-9
    return passes / (passes + rests) if passes else 1.0
