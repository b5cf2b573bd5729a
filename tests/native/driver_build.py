"""Compiles kernel_driver.c with all of csrc, by any C compiler."""

import functools
import importlib.util
import subprocess
import tempfile
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
CSRC = ROOT / "csrc"
DRIVER = Path(__file__).with_name("kernel_driver.c")


def build_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_native", CSRC / "build_native.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_driver(folder: Path, compiler: str, *flags: str) -> Path:
    """The driver as a program in `folder`."""
    build = build_module()
    kernels = sorted((CSRC / "kernels").glob("*.c"))
    policies = sorted((CSRC / "pages").glob("*.c"))
    registry = folder / "registry_rows.c"
    registry.write_text(
        build.registry_source([p.stem for p in kernels], [p.stem for p in policies])
    )
    program = folder / "kernel_driver"
    sources = [registry, DRIVER, *sorted(CSRC.glob("*.c")), *kernels, *policies]
    command = [compiler, *build.CFLAGS, *flags, f"-I{CSRC}", *map(str, sources)]
    done = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    return program


@functools.cache
def host_driver() -> Path:
    """The driver for this CPU, built once a test session."""
    # An object of its own, so that the folder goes when the interpreter does.
    host_driver.folder = tempfile.TemporaryDirectory(prefix="kernel-driver-")
    return build_driver(Path(host_driver.folder.name), "gcc")


def cases(output: str) -> dict[str, str]:
    """What the driver said of each case it ran; refused ones left out."""
    lines = [line.split(":", 1) for line in output.splitlines() if " refused: " not in line]
    return {title: rest.strip() for title, rest in lines}
