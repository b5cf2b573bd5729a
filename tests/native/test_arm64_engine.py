"""The whole engine, from the same sources, runs mixes on arm64 under an emulator."""

import shutil
import subprocess
from pathlib import Path

import pytest
from engine_build import ROOT, load_builder

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64-static"
missing = [tool for tool in (COMPILER, EMULATOR) if shutil.which(tool) is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engine")
    builder, csrc = load_builder(), ROOT / "csrc"
    kernels, pages = (sorted((csrc / name).glob("*.c")) for name in ("kernels", "pages"))
    registry = folder / "registries.c"
    registry.write_text(builder.registry_source([p.stem for p in kernels], [p.stem for p in pages]))
    sources = [Path(__file__).with_name("engine_main.c"), *csrc.glob("*.c"), *kernels, *pages]
    target = folder / "engine"
    flags = [flag for flag in builder.CFLAGS if flag != "-g"]
    subprocess.run(
        [COMPILER, *flags, "-static", f"-I{csrc}", registry, *sources, "-o", target], check=True
    )
    return target


@pytest.mark.parametrize("arguments", [(), ("processes",)])
def test_a_mix_runs_with_neon_in_one_and_in_two_address_spaces(program, arguments):
    done = subprocess.run(
        [EMULATOR, program, *arguments], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "scan neon passes>=3 1 matching 1",
        "chase scalar passes>=3 1 matching 1",
    ]
