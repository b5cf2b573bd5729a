"""The extension's builder, for tests that build the engine another way."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def load_builder():
    spec = importlib.util.spec_from_file_location("build_native", ROOT / "csrc" / "build_native.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
