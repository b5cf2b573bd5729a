"""Builds the engine once more with the toy kernel in it."""

import os
import sys

import pytest
from engine_build import ROOT, load_builder

from bench import native

MODULE = "_toy_native"


@pytest.fixture(scope="session")
def toy_build(tmp_path_factory):
    """Folder with the extension that has the toy kernel."""
    folder = tmp_path_factory.mktemp("toy")
    flags = tuple(os.environ.get("CFLAGS", "").split())
    toy = ROOT / "tests" / "native" / "toy" / "toy.c"
    ffi = load_builder().make_ffi(MODULE, extra_kernels=(toy,), extra_cflags=flags, absolute=True)
    ffi.compile(tmpdir=str(folder))
    return folder


@pytest.fixture
def toy(toy_build, monkeypatch):
    """The engine with the toy kernel, in place of the plain one for one test."""
    monkeypatch.syspath_prepend(str(toy_build))
    native.use_module(MODULE)
    yield native
    native.use_module("bench._native")
    sys.modules.pop(MODULE, None)
