"""A user's workload as named actors, pools and weights: what a mix becomes when people talk of it.

Frozen and free of files and hosts, so that analysis can read a scenario back from its plain form.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.errors import UsageError
from bench.mix import Mix, mix_name, parse_mix


@dataclass(frozen=True)
class Scenario:
    """A mix whose actors have names; positions in ``names`` are positions in the mix."""

    name: str
    mix: Mix
    names: tuple[str, ...]
    critical: str = ""
    """The actor others wait for; empty: none is."""
    summary: str = ""

    def __post_init__(self) -> None:
        if len(self.names) != len(self.mix.actors):
            raise UsageError(f"{len(self.names)} names for {len(self.mix.actors)} actors")
        if len(set(self.names)) < len(self.names):
            raise UsageError(f"two actors of {self.name} have the same name")
        if self.critical and self.critical not in self.measured_names:
            raise UsageError(
                f"critical actor {self.critical!r} is not measured in {self.name}",
                f"measured: {', '.join(self.measured_names)}",
            )

    @property
    def measured_names(self) -> tuple[str, ...]:
        """Names of the measured actors, in the mix's order."""
        return tuple(self.names[i] for i in self.mix.measured)

    @property
    def weights(self) -> dict[str, float]:
        """Share of each measured actor in the total useful work; they add up to 1."""
        raw = {self.names[i]: self.mix.actors[i].weight for i in self.mix.measured}
        total = sum(raw.values())
        if total <= 0:
            raise UsageError(f"the weights of {self.name} add up to nothing")
        return {name: weight / total for name, weight in raw.items()}

    def position(self, name: str) -> int:
        """Position of an actor in the mix."""
        if name not in self.names:
            raise UsageError(
                f"no actor {name!r} in {self.name}", f"actors: {', '.join(self.names)}"
            )
        return self.names.index(name)


def to_plain(scenario: Scenario) -> dict[str, Any]:
    """Scenario as data that JSON and TOML hold; ``from_plain`` reads it back."""
    return {
        "name": scenario.name,
        "summary": scenario.summary,
        "mix": mix_name(scenario.mix),
        "names": list(scenario.names),
        "critical": scenario.critical,
    }


def from_plain(data: Mapping[str, Any]) -> Scenario:
    """Scenario of ``to_plain``; file parameters come back by digest, without their paths."""
    return Scenario(
        data["name"],
        parse_mix(data["mix"]),
        tuple(data["names"]),
        data.get("critical", ""),
        data.get("summary", ""),
    )
