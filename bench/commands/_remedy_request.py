"""What ``bench remedy`` was asked for, from flags and scenario, and back from a plan."""

import argparse
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from bench.blocks import Settings
from bench.commands._session import parse_share
from bench.errors import unknown_name
from bench.mix import Mix
from bench.mixplan import MixPlanner
from bench.remedies import Choices, Setting, Treated, parse
from bench.remedyplan import candidates
from bench.scenario import Scenario, from_plain, to_plain
from bench.units import parse_duration, parse_size

DEADLINE_S = 5.0
"""A lock that starves an actor shows so within this; three such samples end its trial."""


@dataclass
class Request:
    """What was asked for, as far as it decides what is measured."""

    scenario: Scenario
    source: str
    """File or name it was read from."""
    policies: tuple[str, ...]
    settings: Settings
    budget_s: float
    dead_band: float
    seed: int
    remedies: tuple[str, ...] = ()
    """Only these; none given: all."""
    max_memory: int | None = None
    samples: int | None = None
    accept_unknown: bool = False
    reserve: bool = False
    """Huge pages that are missing are added while it runs."""
    FLAGS: ClassVar = (
        *("pages", "remedies", "max_memory", "samples", "dead_band"),
        *("accept_unknown", "reserve_hugepages"),
    )

    @classmethod
    def of(cls, args: argparse.Namespace, budget: str = "0s") -> "Request":
        """Request of the command line; flags that a command does not have are not given."""
        args = argparse.Namespace(**(dict.fromkeys(cls.FLAGS) | vars(args)))
        from bench import native
        from bench.commands.run import _probe
        from bench.resources import read_resources
        from bench.scenariofile import DEFAULT, load, resolve

        name = args.scenario or DEFAULT
        read = load(name, native)
        probe = _probe(argparse.Namespace(topology="", dry_run=args.dry_run))
        pages = args.pages.split(",") if args.pages else list(read.pages)
        known = list(native.policies())
        wrong = [page for page in pages if page not in (*known, "all")]
        if wrong:
            raise unknown_name("page policy", wrong[0], known)
        return cls(
            resolve(read, name, native, read_resources(), probe),
            name,
            tuple(known if "all" in pages else pages),
            Settings(
                parse_duration(args.window) if args.window else read.window,
                read.warm,
                read.min_passes,
                deadline_s=DEADLINE_S,
            ),
            parse_duration(budget),
            parse_share(args.dead_band) or read.dead_band,
            args.seed or 1,
            tuple(args.remedies.split(",")) if args.remedies else (),
            parse_size(args.max_memory) if args.max_memory else None,
            args.samples,
            bool(args.accept_unknown),
            bool(args.reserve_hugepages),
        )

    def plain(self) -> dict[str, Any]:
        """For the first plan's options."""
        return {
            "scenario": to_plain(self.scenario),
            "source": self.source,
            "policies": list(self.policies),
            "settings": asdict(self.settings),
            "budget_s": self.budget_s,
            "dead_band": self.dead_band,
            "seed": self.seed,
            "remedies": list(self.remedies),
            "max_memory": self.max_memory or 0,
            "samples": self.samples or 0,
            "accept_unknown": self.accept_unknown,
            "reserve": self.reserve,
        }

    @classmethod
    def from_plain(cls, data: dict[str, Any], mix: Mix) -> "Request":
        """Read back; ``mix`` is the scenario's, with the paths of input files."""
        return cls(
            replace(from_plain(data["scenario"]), mix=mix),
            data["source"],
            tuple(data["policies"]),
            Settings(**data["settings"]),
            data["budget_s"],
            data["dead_band"],
            data["seed"],
            tuple(data["remedies"]),
            data["max_memory"] or None,
            data["samples"] or None,
            data["accept_unknown"],
            data["reserve"],
        )

    # ---- what it comes to -----------------------------------------------------------------------

    def planner(self) -> tuple[MixPlanner, Setting]:
        """For this host, now."""
        from bench import native
        from bench.probe import known_probe
        from bench.resources import read_resources

        resources = read_resources()
        planner = MixPlanner(native, resources, known_probe(), self.max_memory, self.reserve)
        return planner, Setting(native, planner.resources, self.policies, planner.unavailable)

    def singles(self, setting: Setting) -> dict[str, tuple[Choices, Treated]]:
        """Remedies to try, and what they make of the mix."""
        wanted: dict[str, Choices] | None = None
        if self.remedies:
            policies = list(setting.registry.policies())
            wanted = {text: parse(text, policies) for text in self.remedies}
        return candidates(self.scenario, setting, wanted)
