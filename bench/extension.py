"""The only importer of the extension."""

import functools
import importlib
import importlib.util
import os
from types import ModuleType
from typing import Any

from bench.errors import HostError

MODULE = "bench._native"
_chosen = MODULE


class NotBuiltError(HostError):
    """The compiled module is missing."""


def module() -> ModuleType:
    """The extension, loaded at first use: ``.ffi`` and ``.lib`` as cffi has them.

    Raises
    ------
    NotBuiltError
        Where it is missing or does not load.
    """
    return _load(_chosen)


@functools.cache
def _load(name: str) -> ModuleType:
    try:
        # Another build of the same extension, such as one with sanitizers.
        path = os.environ.get("PAGESTORM_EXTENSION")
        if path and name == MODULE:
            return _load_file(name, path)
        return importlib.import_module(name)
    except ImportError as error:
        raise NotBuiltError(
            f"the compiled module {name} is missing or does not load ({error})",
            "run `make build` in the checkout, or `pip install -e .`; it needs Linux, gcc and "
            "Python's headers (Debian: apt install gcc python3-dev)",
        ) from None


def _load_file(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"not an extension: {path}")
    extension = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(extension)
    return extension


def use_module(name: str) -> None:
    """Load another build of the engine, for tests with kernels of their own."""
    global _chosen
    _chosen = name
    _load.cache_clear()


def load() -> None:
    """Load the extension now rather than at first use."""
    module()


def text(pointer: Any) -> str:
    """Decode a C string or char array; empty for NULL."""
    ffi = module().ffi
    return ffi.string(pointer).decode() if pointer else ""
