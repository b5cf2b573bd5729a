"""Plan of ``bench try``: blocks in which a command runs as it is, and under remedies."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from bench.blocks import BASELINE, Block, CommandEntry, Plan, Settings, Skip
from bench.change import GLIBC
from bench.remedyplan import PILOT, VERDICT
from bench.tryremedies import THREAD_VARIABLES

FIRST = "first"
"""The command as it is, once: does it work, and how long does it take."""
PILOT_ROUNDS = 6
_READ_BY_LOADERS = (
    GLIBC, "LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_CONF", "NUMPY_MADVISE_HUGEPAGE",
)  # fmt: skip


def make_plan(
    remedies: Iterable[str], seed: int, skips: Sequence[Skip] = (), notes: Sequence[str] = ()
) -> Plan:
    """Plan a first run, a pilot and the rounds that decide."""
    settings = Settings(0.0, 0.0)
    entries = (CommandEntry(), *(CommandEntry(remedy=name) for name in remedies))
    blocks = (
        Block(FIRST, "try", entries[:1], settings),
        Block(PILOT, "try", entries, settings),
        Block(VERDICT, "try", entries, settings),
    )
    return Plan("try", blocks, 0, seed, tuple(skips), notes=tuple(notes))


def environment_digest(environment: Mapping[str, str]) -> str:
    """Identity of the variables that decide how a program gets memory and threads.

    Not the variables themselves: result files are passed around.
    """
    names = (*_READ_BY_LOADERS, *THREAD_VARIABLES)
    text = "\0".join(f"{name}={environment.get(name)}" for name in names)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


__all__ = ["BASELINE", "FIRST", "PILOT", "PILOT_ROUNDS", "VERDICT"]
