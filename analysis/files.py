"""Result files on disk: finding them, reading them plain or ``.gz``, naming what is damaged.

A result is an output directory, a journal (``.ndjson``) or a pyperf file (``.json``). What their
content means is in `analysis.rows` and `analysis.load`.
"""

import gzip
import json
import tomllib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.errors import PagestormError, UsageError
from bench.schema import HOST, JOURNAL, PYPERF, SCHEMA, upgrade_line, upgrade_metadata

Line = dict[str, Any]

PYPERF_FORMAT = "1.0"
_CAN_BE = "an output directory, a journal (.ndjson) or a pyperf file (.json), plain or .gz"


def find(path: str | Path) -> list[Path]:
    """Result files of a path, best first where a run left several of the same samples.

    An output directory is its journal, or its pyperf file where it has no journal. Another
    directory is every result in it, whatever the depth.

    Raises
    ------
    UsageError
        Nothing there, or nothing that is a result.
    """
    path = Path(path)
    if not path.exists():
        raise UsageError(f"{path} does not exist", f"give {_CAN_BE}")
    found = _results_in(path) if path.is_dir() else [path] if _is_result(path) else []
    if not found:
        raise UsageError(f"no results in {path}", f"give {_CAN_BE}")
    return found


def is_journal(path: Path) -> bool:
    """Whether a result file is a journal rather than a pyperf file, by its name."""
    return path.name.removesuffix(".gz").endswith(".ndjson")


def find_journal(path: str | Path) -> Path:
    """Journal of an output directory, or the path itself.

    Raises
    ------
    UsageError
        The directory has none.
    """
    path = Path(path)
    if not path.is_dir():
        return path
    for name in (JOURNAL, f"{JOURNAL}.gz"):
        if (path / name).exists():
            return path / name
    raise UsageError(f"no {JOURNAL} in {path}", "give the output directory of a run")


def journal_lines(path: Path) -> list[Line]:
    """Lines of a journal, brought up to this version.

    A torn last line is what a kill leaves, and is passed over.

    Raises
    ------
    UsageError
        No such file, or one of a newer version.
    PagestormError
        A damaged line or archive.
    """
    rows = _read(path).split(b"\n")
    lines: list[Line] = []
    torn = rows.pop()
    version = SCHEMA
    for number, row in enumerate(rows, start=1):
        try:
            line = json.loads(row)
            if line["kind"] == "start":
                version = _readable(path, line.get("schema", SCHEMA))
        except (ValueError, TypeError, KeyError):
            if number == len(rows) and not torn:
                return lines
            raise PagestormError(
                f"{path}, line {number}: not a journal line", "restore the file from a copy"
            ) from None
        upgrade_line(line, version)
        lines.append(line)
    return lines


class PyperfValue(NamedTuple):
    """One value of a pyperf file."""

    name: str
    value: float
    """Seconds."""
    metadata: dict[str, Any]


def pyperf_values(path: Path) -> Iterator[PyperfValue]:
    """Values of a pyperf file, with the metadata that belongs to each.

    The file is read as the JSON that it is: pyperf's own classes take ten times as long, which
    counts where there are thousands of values.

    Raises
    ------
    UsageError
        No such file, or one of a newer version.
    PagestormError
        Not a pyperf file.
    """
    damage = PagestormError(f"{path} is not a pyperf file", "restore it from a copy")
    try:
        suite = json.loads(_read(path))
        if suite["version"] != PYPERF_FORMAT:
            raise damage
        for benchmark in suite["benchmarks"]:
            shared = suite.get("metadata", {}) | benchmark.get("metadata", {})
            for run in benchmark["runs"]:
                metadata = shared | run.get("metadata", {})
                _readable(path, metadata.get("ps_schema", SCHEMA))
                upgrade_metadata(metadata)
                for value in run.get("values", ()):
                    yield PyperfValue(metadata["name"], float(value), metadata)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise damage from None


def read_toml(path: Path) -> dict[str, Any]:
    """Content of a TOML file; empty without one."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise PagestormError(f"cannot read {path}: {error}") from error


def read_json(path: Path) -> dict[str, Any]:
    """Content of a JSON file; empty without one."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise PagestormError(f"cannot read {path}: {error}") from error
    return content


def _results_in(folder: Path) -> list[Path]:
    for name in (JOURNAL, f"{JOURNAL}.gz", PYPERF, f"{PYPERF}.gz"):
        if (folder / name).exists():
            return [folder / name]
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            found += _results_in(path)
        elif path.name != HOST and _is_result(path):
            found.append(path)
    return found


def _is_result(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith((".ndjson", ".json"))


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist", f"give {_CAN_BE}") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise PagestormError(f"cannot read {path}: {reason}", "restore it from a copy") from error


def _readable(path: Path, version: int) -> int:
    if version > SCHEMA:
        raise UsageError(
            f"{path} has format {version}; this version reads up to {SCHEMA}",
            "use the version that wrote it",
        )
    return version
