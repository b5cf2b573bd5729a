"""Users' files as parameter values: named by a digest of their contents, opened as binary.

A kernel maps its file and reads it as it is. Files in a text format are converted once into a
cache folder, by the row of ``CONVERTERS`` for their suffix.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from bench.errors import PagestormError, UsageError
from bench.mix import FileRef, Mix

DIGEST_DIGITS = 16


@dataclass(frozen=True)
class Converter:
    """Text format -> the binary a kernel reads. A new ``version`` makes old cache files unused."""

    suffix: str
    version: int
    convert: Callable[[Path, BinaryIO], None]
    """Raises UsageError naming the line where the file is not what its suffix says."""


def _matrix_market(source: Path, target: BinaryIO) -> None:
    from bench import matrix_market  # brings numpy and scipy along

    matrix_market.convert(source, target)


CONVERTERS: dict[str, Converter] = {
    ".mtx": Converter(".mtx", 1, _matrix_market),
    ".gz": Converter(".mtx.gz", 1, _matrix_market),
}


def cache_folder() -> Path:
    """``pagestorm`` below ``XDG_CACHE_HOME`` (default ``~/.cache``)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The base directory specification: relative paths are to be ignored.
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return root / "pagestorm"


def read_input(path: str | Path) -> FileRef:
    """Digest of a user's file, and the path of the binary a worker opens.

    The digest is of the file as the user has it, so that a name does not depend on the converter.

    Raises
    ------
    UsageError
        Where the file is missing, unreadable, empty or not a file.
    PagestormError
        Where the cache cannot be written.
    """
    source = Path(path).expanduser()
    digest = digest_of(source)
    converter = CONVERTERS.get(source.suffix.lower())
    if converter is None:
        return FileRef(digest, str(source.resolve()))
    stem = f"{digest}{converter.suffix}.v{converter.version}.bin"
    target = cache_folder() / "inputs" / stem
    if not target.exists():
        _convert(converter, source, target)
    return FileRef(digest, str(target))


def digest_of(path: Path) -> str:
    """First digits of the SHA-256 of a file's contents; raises UsageError as ``read_input``."""
    try:
        if path.is_dir():
            raise UsageError(f"not a file but a folder: {path}")
        if path.stat().st_size == 0:
            raise UsageError(f"input file is empty: {path}")
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:DIGEST_DIGITS]
    except OSError as error:
        hint = "paths in a sweep file are relative to it" if not path.exists() else ""
        raise UsageError(f"cannot read input file {path}: {error.strerror}", hint) from None


def files_of(mixes: Iterable[Mix]) -> dict[str, str]:
    """Digest -> path of every file that these mixes use."""
    return {
        value.digest: value.path
        for mix in mixes
        for actor in mix.actors
        for _, value in actor.params
        if isinstance(value, FileRef)
    }


def check_unchanged(files: dict[str, str]) -> None:
    """Refuse files that are gone or have changed since they were named.

    Converted files are named after what they were made of and only need to be there.

    Raises
    ------
    UsageError
        Naming the file.
    """
    inputs = cache_folder() / "inputs"
    for digest, text in files.items():
        path = Path(text)
        if path.parent == inputs:
            if not path.exists():
                raise UsageError(f"converted input {path} is gone", "start a new run to convert it")
        elif digest_of(path) != digest:
            raise UsageError(
                f"input file {path} has changed since the run began",
                "restore it, or start a new run",
            )


def _convert(converter: Converter, source: Path, target: Path) -> None:
    """Write beside the target and rename: a kill leaves either no file or a whole one."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(".part", target.name, target.parent)
        part = Path(name)
        with os.fdopen(handle, "wb") as file:
            try:
                converter.convert(source, file)
                file.flush()
                os.fsync(file.fileno())
                part.replace(target)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise PagestormError(
            f"cannot convert {source} into {target.parent}: {error.strerror}",
            "set XDG_CACHE_HOME to a folder with enough room",
        ) from error
