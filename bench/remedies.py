"""Remedies: named pure functions from a mix to a mix, one row each; they compose.

A remedy that makes no sense for a mix, or that this host cannot give, says why instead. Nothing is
replaced by something else: an actor that cannot take part stays as it is, and a note says so.

``thp`` (any page policy), ``cap:2``, ``mutex``, ``sem:2``, ``yield``, ``pause``, ``pool`` and
``apart``; ``thp+mutex`` is both, in the order of ``REMEDIES``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from bench.errors import UsageError, unknown_name
from bench.mix import Actor, Mix, Op, Pool
from bench.place import place
from bench.registry import BASE, Registry
from bench.remedy_places import already_apart, pinned, rank, split
from bench.resources import Resources

TOKEN = "interlock"
"""Name of the pool that ``mutex`` and ``sem:k`` add."""


@dataclass(frozen=True)
class Setting:
    """What remedies may ask of a host."""

    registry: Registry
    resources: Resources
    policies: tuple[str, ...] = ()
    """Page policies to try."""
    unavailable: Callable[[str], str] | None = None
    """Why the host cannot give a page policy; default: what the registry says."""

    def why_not(self, policy: str) -> str:
        """Reason why the host cannot give a page policy; empty where it can."""
        return (self.unavailable or self.registry.policy_available)(policy)

    def has_memory(self, actor: Actor) -> bool:
        """Whether the actor touches memory at all: only then is there something to keep apart."""
        return bool(self.registry.kernels()[actor.kernel].arrays)

    def phases(self, actor: Actor) -> int:
        """Phases of an actor that can run at once: a team's pass is one, else one a thread."""
        team = self.registry.kernels()[actor.kernel].sharing == "team"
        return 1 if actor.joined or team else actor.threads


@dataclass(frozen=True)
class Treated:
    """What a remedy makes of a mix, or why it makes nothing of it."""

    mix: Mix | None
    reason: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Remedy:
    """One row: what it does, and which arguments are worth trying."""

    name: str
    summary: str
    apply: Callable[[Mix, str, Setting], Treated]
    arguments: Callable[[Mix, Setting], Sequence[str]]
    """Tried by default; ``("",)`` for a remedy without an argument."""
    group: str = ""
    """Of each group, a combination has at most one; default: the name."""


@dataclass(frozen=True)
class Choice:
    """A remedy with its argument."""

    remedy: str
    argument: str = ""

    def __str__(self) -> str:
        if self.remedy == "pages":
            return self.argument
        return f"{self.remedy}:{self.argument}" if self.argument else self.remedy


Choices = tuple[Choice, ...]


# ---- what each does ------------------------------------------------------------------------------


def _pages(mix: Mix, policy: str, setting: Setting) -> Treated:
    reason = setting.why_not(policy)
    if reason:
        return Treated(None, reason)
    notes: list[str] = []
    actors = list(mix.actors)
    for i, actor in enumerate(mix.actors):
        if not setting.has_memory(actor) or actor.policy == policy:
            continue
        changed = replace(actor, policy=policy)
        refusal = setting.registry.accepts(changed)
        if refusal:
            notes.append(f"{actor.kernel} stays on {actor.policy}: {refusal}")
        else:
            actors[i] = changed
    if tuple(actors) == mix.actors:
        return Treated(None, "; ".join(notes) or f"all memory is on {policy} already")
    return Treated(replace(mix, actors=tuple(actors)), notes=tuple(notes))


def _cap(mix: Mix, argument: str, setting: Setting) -> Treated:
    most = int(argument)
    capped = tuple(
        replace(actor, threads=most) if _yields(mix, actor, setting, most) else actor
        for actor in mix.actors
    )
    if capped == mix.actors:
        return Treated(None, f"no actor that gives way has more than {_count(most, 'thread')}")
    return Treated(replace(mix, actors=capped))


def _yields(mix: Mix, actor: Actor, setting: Setting, most: int) -> bool:
    return actor.threads > most and setting.has_memory(actor) and not _is_first(mix, actor)


def _is_first(mix: Mix, actor: Actor) -> bool:
    """Whether others give way to the actor; nobody is first where all are equal."""
    ranks = {other.priority for other in mix.actors}
    return len(ranks) > 1 and actor.priority == max(ranks)


def _mutex(mix: Mix, argument: str, setting: Setting) -> Treated:
    return _interlock(mix, 1, setting)


def _sem(mix: Mix, argument: str, setting: Setting) -> Treated:
    return _interlock(mix, int(argument), setting)


def _interlock(mix: Mix, tokens: int, setting: Setting) -> Treated:
    phases = _contenders(mix, setting)
    if phases <= tokens:
        told = _count(phases, "memory-heavy phase")
        return Treated(None, f"{told} at once at most: there is nothing to keep apart")
    taken = {pool.name for pool in mix.pools}
    name = next(n for n in (TOKEN, *(f"{TOKEN}{i}" for i in range(2, 99))) if n not in taken)
    actors = tuple(
        replace(actor, script=_guarded(actor.script, name)) if setting.has_memory(actor) else actor
        for actor in mix.actors
    )
    return Treated(replace(mix, actors=actors, pools=(*mix.pools, Pool(name, tokens, tokens))))


def _guarded(script: tuple[Op, ...], pool: str) -> tuple[Op, ...]:
    """Every pass, and nothing else, under one token: what a phase lock in a program does."""
    ops: list[Op] = []
    for op in script or (Op("pass"),):
        if op.kind == "pass":
            ops += [Op("take", 1, pool), op, Op("put", 1, pool)]
        else:
            ops.append(op)
    return tuple(ops)


def _contenders(mix: Mix, setting: Setting) -> int:
    return sum(setting.phases(actor) for actor in mix.actors if setting.has_memory(actor))


def _yield(mix: Mix, argument: str, setting: Setting) -> Treated:
    return _courtesy(mix, "yield", setting)


def _pause(mix: Mix, argument: str, setting: Setting) -> Treated:
    tireless = [
        actor.kernel
        for actor in mix.actors
        if _is_first(mix, actor) and not any(op.kind in ("rest", "take") for op in actor.script)
    ]
    if tireless:
        return Treated(None, f"{', '.join(tireless)} never rests: all others would stand still")
    return _courtesy(mix, "pause", setting)


def _courtesy(mix: Mix, how: str, setting: Setting) -> Treated:
    if len({actor.priority for actor in mix.actors}) == 1:
        return Treated(None, "no actor has a higher priority than another")
    actors = tuple(
        replace(actor, courtesy=how)
        if setting.has_memory(actor) and not _is_first(mix, actor)
        else actor
        for actor in mix.actors
    )
    if actors == mix.actors:
        return Treated(None, f"all of lower priority {how} already")
    return Treated(replace(mix, actors=actors))


def _pool(mix: Mix, argument: str, setting: Setting) -> Treated:
    actors = list(mix.actors)
    notes: list[str] = []
    for i, actor in enumerate(mix.actors):
        methods = [p for p in setting.registry.kernels()[actor.kernel].params if p.name == "method"]
        if not methods or "pool" not in methods[0].choices:
            continue
        params = (*(item for item in actor.params if item[0] != "method"), ("method", "pool"))
        changed = setting.registry.canonical(replace(actor, params=params))
        refusal = setting.registry.accepts(changed)
        if refusal:
            notes.append(refusal)
        else:
            actors[i] = changed
    if tuple(actors) == mix.actors:
        return Treated(None, "; ".join(notes) or "no actor releases memory")
    return Treated(replace(mix, actors=tuple(actors)), notes=tuple(notes))


def _apart(mix: Mix, argument: str, setting: Setting) -> Treated:
    firsts = [i for i, actor in enumerate(mix.actors) if _is_first(mix, actor)]
    if not firsts:
        return Treated(None, "no actor has a higher priority than another")
    topology, allowed = setting.resources.topology, setting.resources.allowed
    found = split(mix, firsts, topology, allowed)
    if found is None:
        return Treated(None, "there are not CPUs enough to set any apart")
    level, own, rest = found
    now = already_apart(mix, firsts, place(mix, topology, allowed), topology)
    if rank(now) <= rank(level):
        told = ", ".join(mix.actors[i].kernel for i in firsts)
        return Treated(None, f"{told} has {now} of its own already")
    return Treated(pinned(mix, firsts, own, rest))


# ---- what is worth trying ------------------------------------------------------------------------


def _none_needed(mix: Mix, setting: Setting) -> Sequence[str]:
    return ("",)


def _policies(mix: Mix, setting: Setting) -> Sequence[str]:
    used = {actor.policy for actor in mix.actors if setting.has_memory(actor)}
    return [p for p in setting.policies if used != {p}]


def _caps(mix: Mix, setting: Setting) -> Sequence[str]:
    most = max((a.threads for a in mix.actors if _yields(mix, a, setting, 1)), default=0)
    return [str(k) for k in dict.fromkeys((most // 2, most // 4, 1)) if 0 < k < most] or ["1"]


def _tokens(mix: Mix, setting: Setting) -> Sequence[str]:
    phases = _contenders(mix, setting)
    return [str(k) for k in dict.fromkeys((2, phases // 2)) if 1 < k < phases] or ["2"]


REMEDIES = {
    row.name: row
    for row in (
        Remedy("pages", "back all memory by another page policy", _pages, _policies),
        Remedy("cap", "the same passes by k threads an actor at most", _cap, _caps),
        Remedy("mutex", "one memory-heavy phase at a time", _mutex, _none_needed, "interlock"),
        Remedy("sem", "k memory-heavy phases at a time", _sem, _tokens, "interlock"),
        Remedy(
            "yield",
            "give up the CPU after a step while a higher priority is active",
            _yield,
            _none_needed,
            "courtesy",
        ),
        Remedy(
            "pause",
            "stand still while a higher priority is active",
            _pause,
            _none_needed,
            "courtesy",
        ),
        Remedy("pool", "keep memory for reuse instead of releasing it", _pool, _none_needed),
        Remedy("apart", "CPUs of its own for the highest priority", _apart, _none_needed),
    )
}
"""Every remedy, in the order in which they are applied and tried."""

INTERLOCKS = ("cap", "mutex", "sem", "yield", "pause")
"""Remedies that only change who runs when."""


# ---- names, and putting together -----------------------------------------------------------------


def parse(text: str, policies: Sequence[str]) -> Choices:
    """Choices of ``thp+sem:2``; ``name`` writes it."""
    chosen = tuple(_parse_one(word.strip(), policies) for word in text.split("+"))
    return combined(chosen)


def _parse_one(word: str, policies: Sequence[str]) -> Choice:
    key, colon, argument = word.partition(":")
    if key in policies or key == "4k":
        return Choice("pages", BASE if key == "4k" else key)
    known = [*policies, *(row for row in REMEDIES if row != "pages")]
    if key not in known:
        raise unknown_name("remedy", word, known)
    counted = key in ("cap", "sem")
    if counted != bool(colon) or (counted and not (argument.isdigit() and int(argument) > 0)):
        raise UsageError(f"not a remedy: {word!r}", f"write {key}:2" if counted else f"write {key}")
    return Choice(key, argument)


def name(choices: Sequence[Choice]) -> str:
    """``thp+sem:2``; ``parse`` reads it back."""
    return "+".join(map(str, choices))


def combined(choices: Sequence[Choice]) -> Choices:
    """Choices in the order in which they apply; raises UsageError where two exclude each other."""
    groups = [group(choice) for choice in choices]
    if len(set(groups)) < len(groups):
        raise UsageError(f"{name(choices)}: two of them exclude each other")
    order = list(REMEDIES)
    return tuple(sorted(choices, key=lambda choice: order.index(choice.remedy)))


def group(choice: Choice) -> str:
    """Of each group a combination has at most one."""
    row = REMEDIES[choice.remedy]
    return row.group or row.name


def treat(mix: Mix, choices: Sequence[Choice], setting: Setting) -> Treated:
    """Apply remedies one after another; the first that does not apply gives the reason."""
    notes: tuple[str, ...] = ()
    for choice in choices:
        made = REMEDIES[choice.remedy].apply(mix, choice.argument, setting)
        if made.mix is None:
            return Treated(None, made.reason)
        mix, notes = made.mix, (*notes, *made.notes)
    return Treated(mix, notes=notes)


def singles(mix: Mix, setting: Setting) -> dict[str, tuple[Choices, Treated]]:
    """Every remedy on its own, by name, those that do not apply with their reason."""
    found: dict[str, tuple[Choices, Treated]] = {}
    for row in REMEDIES.values():
        for argument in row.arguments(mix, setting):
            choices = (Choice(row.name, argument),)
            found[name(choices)] = (choices, treat(mix, choices, setting))
    return found


def pairs(
    mix: Mix, kept: Sequence[Choices], setting: Setting
) -> dict[str, tuple[tuple[str, str], Treated]]:
    """Two remedies at a time that do not exclude each other: name -> (names of both, outcome)."""
    found: dict[str, tuple[tuple[str, str], Treated]] = {}
    for one, other in combinations(kept, 2):
        if {group(c) for c in one} & {group(c) for c in other}:
            continue
        both = combined((*one, *other))
        found[name(both)] = (name(one), name(other)), treat(mix, both, setting)
    return found


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
