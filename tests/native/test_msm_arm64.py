"""msm on arm64, under an emulator: the same inputs and the same sums as here."""

import shutil
import subprocess

import pytest
from driver_build import build_driver, cases, host_driver

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64-static"
missing = [tool for tool in (COMPILER, EMULATOR) if shutil.which(tool) is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@pytest.mark.slow
def test_results_are_the_same_bytes_as_on_this_cpu(tmp_path):
    def run(*command):
        arguments = ("131072", "2", "1", "none", "msm")
        done = subprocess.run([*command, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return {case: said for case, said in cases(done.stdout).items() if "/scalar" in case}

    there = run(EMULATOR, build_driver(tmp_path, COMPILER, "-static"))
    assert len(there) >= 12
    assert there == run(host_driver())
