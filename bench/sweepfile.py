"""Sweeps from files, presets and flags."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from bench.errors import UsageError, unknown_name
from bench.registry import Registry
from bench.sweep import (
    MIN_ROUNDS,
    Config,
    Duration,
    Exclude,
    Extra,
    KernelChoice,
    NodeChoice,
    Pages,
    Pin,
    Range,
    Share,
    Size,
    SizeChoice,
    Sweep,
    Table,
    Threads,
    Tokens,
    Within,
)

# ---- faults -------------------------------------------------------------------------------------

_TABLES = (Config, Sweep, Extra, KernelChoice, Exclude, Range, Within, Tokens)
# Pydantic names the members of a union in a fault's path; they are no part of the user's file.
_MEMBERS = re.compile(r"(Range|Within|int|float|str|bool|literal\[.*|constrained-.*|function-.*)$")


def faults(error: ValidationError, tables: Sequence[type[Table]] = _TABLES) -> list[str]:
    """Every fault as ``path: what is wrong``, one line a place; ``tables`` have the known keys."""
    told: dict[str, list[str]] = {}
    for item in error.errors(include_url=False):
        message = item["msg"].removeprefix("Value error, ").replace("Input should be", "should be")
        if item["type"] == "extra_forbidden":
            known = sorted({f.alias or n for t in tables for n, f in t.model_fields.items()})
            close = difflib.get_close_matches(str(item["loc"][-1]), known, n=2)
            message = "unknown key" + (f"; did you mean {' or '.join(close)}?" if close else "")
        told.setdefault(_dotted(item["loc"]), []).append(message)
    # A union complains once a member: one line holds them all.
    return [f"{path}: {' | '.join(dict.fromkeys(messages))}" for path, messages in told.items()]


def _dotted(location: Iterable[int | str]) -> str:
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif not _MEMBERS.match(step):
            path += f".{step}" if path else step
    return path or "(file)"


def refusal(
    source: str, error: ValidationError, tables: Sequence[type[Table]] = _TABLES
) -> UsageError:
    """One error with every fault of a file."""
    found = faults(error, tables)
    count = "1 fault" if len(found) == 1 else f"{len(found)} faults"
    return UsageError(f"{source}: {count}\n" + "\n".join(f"  {line}" for line in found))


# ---- files and presets --------------------------------------------------------------------------

PRESETS = "bench.presets"


def preset_names() -> list[str]:
    """Names of the sweeps that come with the package: the folder is the registry."""
    return packaged_names(PRESETS)


def packaged_names(package: str) -> list[str]:
    """Names of the TOML files in a folder of the package."""
    files = (item.name for item in resources.files(package).iterdir())
    return sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml"))


def load(name: str, registry: Registry | None = None) -> Config:
    """Sweep of a preset's name, or of a file: a path with a folder, or ending in ``.toml``.

    Raises
    ------
    UsageError
        With every fault of the file, one a line, each with its dotted path.
    """
    data, source, folder = read_named(PRESETS, "preset", name)
    return validate(data, source, registry, folder)


def read_named(package: str, noun: str, name: str) -> tuple[dict[str, Any], str, Path | None]:
    """Content of a packaged file by name, or of a user's: a path with a folder or ``.toml``.

    Returns
    -------
    tuple
        Content, what errors call it, and the folder that its paths are relative to.
    """
    known = packaged_names(package)
    if not name.endswith(".toml") and "/" not in name:
        if name not in known:
            raise unknown_name(noun, name, known)
        text = (resources.files(package) / f"{name}.toml").read_text("utf-8")
        return tomllib.loads(text), f"{noun} {name}", None
    path = Path(name)
    return read_toml(path, f"{noun}s: {', '.join(known)}"), str(path), path.parent


def read_toml(path: Path, way_out: str) -> dict[str, Any]:
    """Content of a user's TOML file; ``way_out`` is what to do where it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UsageError(f"cannot read {path}: {reason}", way_out) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}") from None


def validate(
    data: Mapping[str, object],
    source: str,
    registry: Registry | None = None,
    folder: Path | None = None,
) -> Config:
    """Check plain data; without a registry, names of kernels and policies are taken as they are.

    ``source`` is named in the error, ``folder`` is what paths of input files are relative to.
    """
    try:
        return Config.model_validate(data, context={"registry": registry, "folder": folder})
    except ValidationError as error:
        raise refusal(source, error) from None


# ---- flags --------------------------------------------------------------------------------------


def _split(value: object) -> object:
    """``--threads 1,2 all``: words, each perhaps a comma-separated list outside brackets."""
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list | tuple):
        return words
    parts: list[object] = []
    for word in words:
        # cpus:0,2 has commas of its own.
        whole = not isinstance(word, str) or word.startswith("cpus:")
        parts.extend([word] if whole else re.split(r",(?![^\[]*\])", word))
    return tuple(parts)


_Words = BeforeValidator(_split)
_Some = Field(min_length=1)


class Flags(Table):
    """What the command line changes in a sweep; what is not given stays as the file has it."""

    kernels: Annotated[tuple[KernelChoice, ...], _Words, _Some] | None = None
    pages: Annotated[Pages, _Words] | None = None
    threads: Annotated[tuple[Threads, ...], _Words, _Some] | None = None
    sizes: Annotated[tuple[SizeChoice, ...], _Words, _Some] | None = None
    pin: Annotated[tuple[Pin, ...], _Words, _Some] | None = None
    node: Annotated[tuple[NodeChoice, ...], _Words, _Some] | None = None
    window: Duration | None = None
    warm: Duration | None = None
    min_passes: int | None = Field(default=None, ge=1)
    rounds: int | None = Field(default=None, ge=MIN_ROUNDS)
    seed: int | None = Field(default=None, ge=0, lt=1 << 63)
    budget: Duration | None = None
    dead_band: Share | None = None
    working_set: Size | None = Field(default=None, gt=0)
    longest_sample: Duration | None = None
    max_memory: Size | None = Field(default=None, gt=0)


def kernel_choices(words: Sequence[str], registry: Registry) -> tuple[KernelChoice, ...]:
    """Kernels of ``--kernels scan[op=read],chase``; raises UsageError with all that is wrong."""
    try:
        flags = Flags.model_validate(
            {"kernels": list(words)}, context={"registry": registry, "folder": None}
        )
    except ValidationError as error:
        raise UsageError("\n  ".join(["wrong kernels", *faults(error)])) from None
    return flags.kernels or ()


def with_file(
    words: Sequence[str], flag: str, file: str, registry: Registry
) -> list[dict[str, object]]:
    """Kernels of ``--kernel`` with a user's file for those that read one; none given: all of those.

    Raises
    ------
    UsageError
        Where no kernel reads a file, naming ``flag``.
    """
    readers = {
        name: param.name
        for name, kernel in registry.kernels().items()
        for param in kernel.params
        if param.kind == "file"
    }
    chosen = kernel_choices(words or sorted(readers), registry)
    if not any(choice.name in readers for choice in chosen):
        known = ", ".join(sorted(readers))
        raise UsageError(
            f"{flag} {file}: no kernel of this run reads a file",
            f"leave out --kernel, or add one of {known}" if known else "leave it out",
        )
    return [
        {
            "name": choice.name,
            "params": choice.params
            | ({readers[choice.name]: (file,)} if choice.name in readers else {}),
            "variant": choice.variant,
        }
        for choice in chosen
    ]


_AXES = ("pages", "threads", "sizes", "pin", "node", "window", "warm", "min_passes")
_WHOLE = ("rounds", "seed", "budget", "dead_band", "working_set", "longest_sample", "max_memory")


def override(
    config: Config, values: Mapping[str, object], registry: Registry | None = None
) -> Config:
    """Sweep with command-line values in place of the file's; values that are None are not given.

    ``kernels`` keeps to the sweeps that have the kernel, so that it brings the file's axes with it;
    a kernel that no sweep has becomes a sweep of its own.

    Raises
    ------
    UsageError
        With every fault, one a line, each named by its flag.
    """
    given = {key: value for key, value in values.items() if value is not None}
    try:
        flags = Flags.model_validate(given, context={"registry": registry, "folder": None})
    except ValidationError as error:
        found = [_by_flag(line, given) for line in faults(error)]
        raise UsageError("\n  ".join(["wrong flags", *found])) from None
    changed = {key: getattr(flags, key) for key in given}
    sweeps = config.sweep if flags.kernels is None else _with_kernels(config.sweep, flags.kernels)
    axes: dict[str, Any] = {key: changed[key] for key in _AXES if key in changed}
    if "window" in axes:
        axes["shortest_window"] = None  # a window asked for by hand is not shortened
    if "node" in axes and "pin" not in axes:
        axes["pin"] = ("compact",)
    elif "pin" in axes and "node" not in axes:
        axes["node"] = ()
    update: dict[str, Any] = {key: changed[key] for key in _WHOLE if key in changed}
    if "window" in axes:
        update["shortest_window"] = None
    if "budget" in update:
        update["stretch"] = None
    update["sweep"] = tuple(sweep.model_copy(update=axes) for sweep in sweeps)
    return config.model_copy(update=update)


# Flags that have another name than the key they change.
_FLAGS = {"kernels": "kernel", "sizes": "size", "rounds": "samples"}


def _by_flag(fault: str, given: Mapping[str, object]) -> str:
    """Fault of a flag with the word that the user wrote: ``--kernel scam: unknown kernel ...``."""
    match = re.match(r"(\w+)(?:\[(\d+)\][^:]*)?", fault)
    if match is None:
        return fault
    key, position = match[1], match[2]
    flag = "--" + _FLAGS.get(key, key).replace("_", "-")
    words = _split(given.get(key, ()))
    if position and isinstance(words, tuple) and int(position) < len(words):
        flag += f" {words[int(position)]}"
    return flag + fault[match.end() :]


def _with_kernels(sweeps: tuple[Sweep, ...], wanted: tuple[KernelChoice, ...]) -> tuple[Sweep, ...]:
    kept = []
    names = {choice.name for sweep in sweeps for choice in sweep.kernels}
    for sweep in sweeps:
        chosen: list[KernelChoice] = []
        for choice in wanted:
            own = [mine for mine in sweep.kernels if mine.name == choice.name]
            if own and not choice.params and choice.variant == KernelChoice(name=".").variant:
                chosen += own
            elif own:
                chosen.append(choice)
        if chosen:
            kept.append(sweep.model_copy(update={"kernels": tuple(chosen)}))
    new = tuple(choice for choice in wanted if choice.name not in names)
    if new:
        kept.append(Sweep(kernels=new))
    return tuple(kept)
