"""What differs from running a user's command as it is: data that ``bench.launch`` applies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.sysfs import format_cpulist

GLIBC = "GLIBC_TUNABLES"


@dataclass(frozen=True)
class Change:
    """What differs from running the command as it is."""

    tunables: Mapping[str, str] = field(default_factory=dict)
    """Of glibc, without ``glibc.``; others that the user has set stay."""
    env: Mapping[str, str] = field(default_factory=dict)
    no_thp: bool = False
    cpus: tuple[int, ...] = ()
    memory: tuple[str, tuple[int, ...]] | None = None
    """Memory policy (``bind``, ``interleave``) and nodes."""

    def __str__(self) -> str:
        parts = [f"{GLIBC}={tunables_text(self.tunables)}"] if self.tunables else []
        values = sorted(set(self.env.values()))
        shown = [f"{name}={value}" for name, value in self.env.items()]
        if len(values) == 1 and len(self.env) > 2:
            shown = [f"{shown[0]} and {len(self.env) - 1} more variables"]
        parts += shown
        if self.no_thp:
            parts.append("prctl(PR_SET_THP_DISABLE)")
        if self.cpus:
            parts.append(f"CPUs {format_cpulist(self.cpus)}")
        if self.memory:
            parts.append(f"memory {self.memory[0]} nodes {format_cpulist(self.memory[1])}")
        return ", ".join(parts) or "nothing"

    def plain(self) -> dict[str, Any]:
        """For ``plan.toml``, which has no null."""
        return {
            "tunables": dict(self.tunables),
            "env": dict(self.env),
            "no_thp": self.no_thp,
            "cpus": list(self.cpus),
            "memory": [self.memory[0], list(self.memory[1])] if self.memory else [],
        }

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> "Change":
        """Read back."""
        memory = (data["memory"][0], tuple(data["memory"][1])) if data["memory"] else None
        return cls(data["tunables"], data["env"], data["no_thp"], tuple(data["cpus"]), memory)


def parse_tunables(text: str) -> dict[str, str]:
    """``glibc.malloc.hugetlb=1:glibc.…`` by name, without ``glibc.``; what cannot be read is lost.

    glibc drops it, too.
    """
    pairs = (item.partition("=") for item in text.split(":"))
    return {name.removeprefix("glibc."): value for name, equals, value in pairs if equals}


def tunables_text(tunables: Mapping[str, str]) -> str:
    """As glibc reads them."""
    return ":".join(f"glibc.{name}={value}" for name, value in tunables.items())


def environment(change: Change, own: Mapping[str, str]) -> dict[str, str]:
    """Environment of the command: the user's, with the tunables and variables of the remedy."""
    made = {**own, **change.env}
    if change.tunables:
        given = parse_tunables(own.get(GLIBC, ""))
        made[GLIBC] = tunables_text({**given, **change.tunables})
    return made


def replaced(change: Change, own: Mapping[str, str]) -> list[str]:
    """Settings of the user's that a remedy replaces."""
    given = parse_tunables(own.get(GLIBC, ""))
    told = [
        f"glibc.{name}={given[name]}"
        for name, value in change.tunables.items()
        if given.get(name, value) != value
    ]
    told += [f"{k}={own[k]}" for k, v in change.env.items() if own.get(k, v) != v]
    return told
