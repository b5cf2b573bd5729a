"""Split a result into files that pyperf can pair: one a value of a field, not in the names."""

import argparse
import re
import shlex
from collections.abc import Container, Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from bench.errors import PagestormError, UsageError
from bench.mix import Actor, actor_name, mix_name, name, parse
from bench.schema import PYPERF
from bench.units import format_size

SUMMARY = "write one pyperf file a value of a field, for pyperf compare_to"
EPILOG = """  {prog} export DIR --by pages
  {prog} export DIR --by threads -o by-threads
  {prog} export DIR --by op            (a kernel's parameter)"""

PARTS = ("kernel", "variant", "pages", "threads", "size")
OPTIONS = tuple(
    item.name
    for item in fields(Actor)
    if item.name not in ("kernel", "variant", "policy", "threads", "size", "params", "script")
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("directory", metavar="DIR", help="output directory of a run")
    parser.add_argument(
        "--by",
        required=True,
        metavar="FIELD",
        help=f"{', '.join(PARTS)}, an option ({', '.join(OPTIONS)}), or a kernel's parameter",
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="where to write (DIR/by-FIELD)")


def run(args: argparse.Namespace) -> int:
    """Write the files and print how to compare them."""
    folder = Path(args.directory)
    outputs = write_files(folder, args.by, Path(args.output) if args.output else None)
    for path in outputs:
        print(path)
    if len(outputs) > 1:
        print("compare them with:")
        from bench.cli import python_name

        print(f"  {python_name()} -m pyperf compare_to {shlex.join(map(str, outputs))} --table")
    return 0


def write_files(folder: Path, by: str, output: Path | None = None) -> list[Path]:
    """Write one file a value of ``by``; the first one is the baseline.

    Raises
    ------
    UsageError
        No results, or no case that has the field.
    """
    import io

    import pyperf  # type: ignore[import-untyped]  # it has no annotations

    from bench.journal import replace_file

    source = folder / PYPERF
    if not source.exists():
        raise UsageError(f"no {PYPERF} in {folder}", "give the output directory of a run")
    try:
        suite = pyperf.BenchmarkSuite.load(str(source))
    except (ValueError, OSError) as error:
        raise PagestormError(f"cannot read {source}: {error}") from error
    files: dict[str, list[pyperf.Benchmark]] = {}
    kernels = kernels_with(by, suite.get_benchmark_names())
    for benchmark in suite.get_benchmarks():
        value, rest = split_name(benchmark.get_name(), by, kernels)
        if value is None:
            continue
        runs = [
            pyperf.Run(
                a_run.values,
                metadata={"ps_case": benchmark.get_name()} | a_run.get_metadata() | {"name": rest},
                collect_metadata=False,
            )
            for a_run in benchmark.get_runs()
        ]
        files.setdefault(value, []).append(pyperf.Benchmark(runs))
    if not files:
        raise UsageError(f"no case of {source} has the field {by!r}", f"fields: {', '.join(PARTS)}")
    target = output or folder / f"by-{by}"
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for value in sorted(files, key=_natural):
        text = io.StringIO()
        pyperf.BenchmarkSuite(files[value]).dump(text)
        path = target / f"{_file_name(value)}.json"
        replace_file(path, text.getvalue().encode())
        written.append(path)
    return written


def kernels_with(param: str, names: Iterable[str]) -> set[str]:
    """Kernels that have a parameter: where a name leaves it out, it is at its default."""
    actors = (actor for text in names for actor in parse(text).mix.actors)
    return {actor.kernel for actor in actors if param in dict(actor.params)}


def split_name(text: str, by: str, kernels: Container[str] = ()) -> tuple[str | None, str]:
    """Value of a field in a benchmark's name, and the name without it; None where it has none.

    Actors of a mix that differ in it are told one by one: ``base+thp``. ``kernels``: see
    ``kernels_with``.
    """
    case = parse(text)
    values = [
        value for actor in case.mix.actors if (value := _value(actor, by, kernels)) is not None
    ]
    if not values:
        return None, text
    rest = "+".join([_without(a, by) for a in case.mix.actors] + [str(p) for p in case.mix.pools])
    told = values[:1] if len(set(values)) == 1 else values
    return "+".join(told), rest + name(case).removeprefix(mix_name(case.mix))


def _value(actor: Actor, by: str, kernels: Container[str]) -> str | None:
    if by in PARTS:
        return _parts(actor)[by]
    if by in OPTIONS:
        return str(getattr(actor, by)) or "none"
    if by in dict(actor.params):
        return str(dict(actor.params)[by])
    return "default" if actor.kernel in kernels else None


def _parts(actor: Actor) -> dict[str, str]:
    return {
        "kernel": actor.kernel,
        "variant": actor.variant,
        "pages": actor.policy,
        "threads": f"{actor.threads}t",
        "size": format_size(actor.size),
    }


def _without(actor: Actor, by: str) -> str:
    """Name of an actor without one of its fields."""
    if by in OPTIONS:
        default: Any = next(item.default for item in fields(Actor) if item.name == by)
        return actor_name(replace(actor, **{by: default}))
    if by not in PARTS:
        kept = tuple((key, value) for key, value in actor.params if key != by)
        return actor_name(replace(actor, params=kept))
    text = actor_name(actor)
    if by == "kernel":
        return text.removeprefix(actor.kernel)
    parts = [(key, part) for key, part in _parts(actor).items() if key != "kernel"]
    # The four together stand in one place only, whatever parameters and options say.
    whole = "".join(f"/{part}" for _, part in parts)
    return text.replace(whole, "".join(f"/{part}" for key, part in parts if key != by), 1)


def _natural(value: str) -> tuple[bool, list[tuple[int, str]]]:
    """Order for people: the baseline first, 2t before 10t."""
    pieces = re.findall(r"\d+|\D+", value)
    return value not in ("base", "default"), [
        (int(p), "") if p.isdigit() else (0, p) for p in pieces
    ]


def _file_name(value: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", value)
