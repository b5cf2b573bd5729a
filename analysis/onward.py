"""Commands that a report proposes: of the run itself with other flags, or of one comparison.

They are printed to be pasted, so each is whole: no word stands for a value to be filled in.
"""

import math
import shlex
from collections.abc import Mapping

from analysis.load import Results
from analysis.rows import Row
from bench.units import format_size

_OUTPUT = ("-o", "--output", "--resume")
_BARE = ("--json", "--dry-run")
_REPEATABLE = ("run", "aa")
_MARGIN = 1.15
"""A budget that is not shed into takes a little more than the estimate."""


def again(results: Results, program: str, changes: Mapping[str, str]) -> str:
    """Return the command of a run with some flags changed, and into another folder."""
    argv = results.argv if results.argv[:1] and results.argv[0] in _REPEATABLE else []
    kept: list[str] = []
    words = iter(argv or ["run", *_sweep(results)])
    for word in words:
        flag, equals, _ = word.partition("=")
        if flag in _OUTPUT or flag in changes:
            if not equals:
                next(words, None)
        elif not (word in _BARE or (word.startswith("-o") and word != "-o")):
            kept.append(word)
    return f"{program} {shlex.join(kept + [word for pair in changes.items() for word in pair])}"


def _sweep(results: Results) -> list[str]:
    """Flags that name what was run: a preset, or a file."""
    name = results.plan.get("preset") or "quick"
    return ["--sweep" if name.endswith(".toml") or "/" in name else "--preset", name]


def resume(results: Results, program: str) -> str:
    """Return the command that goes on with a run."""
    name = results.argv[0] if results.argv[:1] and not results.argv[0].startswith("-") else "run"
    name = name if "/" not in name else "run"
    reserve = results.plan.get("options", {}).get("reserve_hugepages")
    flag = " --reserve-hugepages" if reserve else ""
    return f"{program} {name} --resume {shlex.quote(str(results.folder))}{flag}"


def more_samples(results: Results, program: str, rounds: int) -> str:
    """Return the command of the run with so many rounds, and the time they take."""
    changes = {"--samples": str(rounds)}
    if (results.argv[:1] or ["run"])[0] == "run":
        blocks = results.plan.get("blocks", [])
        one = math.fsum(entry["estimate_s"] for block in blocks for entry in block["entries"])
        minutes = math.ceil(_MARGIN * one * rounds / 60)
        # Without it a preset's own budget would shed cases to pay for the rounds.
        changes |= {"--budget": f"{minutes}m"} if minutes else {}
    return again(results, program, changes)


def larger_pages(program: str, baseline: Row, treated: Row, size: int) -> str:
    """Return the command that compares two page policies at a size; empty for users' files."""
    params = baseline["params"]
    if "file:" in params:
        return ""
    kernel = f"{baseline['kernel']}[{params}]" if params else baseline["kernel"]
    words = ["run", "--kernel", f"{kernel}/{baseline['variant']}"]
    words += ["--pages", f"{baseline['pages']},{treated['pages']}"]
    words += ["--threads", str(baseline["threads"]), "--size", format_size(size)]
    if baseline["pin"] != "compact":
        words += ["--pin", baseline["pin"]]
    return f"{program} {shlex.join(words)}"
