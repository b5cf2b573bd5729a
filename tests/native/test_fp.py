"""The base field and its extension compute what Python's integers do, on every instruction set."""

import importlib
import platform
import random
import re
import shutil
import sys
from pathlib import Path

import pytest
from disassembly import functions
from msm_module import ISAS, driver, isas

from bench import native

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))
from curve import FR_SHIFT, Fp, Fp2, P, R

FIELDS = {1: Fp, 2: Fp2}
# Limbs of all ones and of all zeros, both ends of the range, and p's own upper limbs: where carries
# run far, and where the last subtraction is or is not due.
EDGES = [
    *(0, 1, 2, P - 1, P - 2, P // 2, P // 2 + 1),
    *(2**64 - 1, 2**64, 2**320 - 1, 2**320, 2**380, P - 2**64, P - 2**320),
    *(pow(1 << 384, -1, P), (1 << 384) % P, P & ~(2**64 - 1), P >> 320 << 320),
]


def elements(degree, count):
    draw = random.Random(degree)
    values = [Fp.read(edge.to_bytes(48, "little")) for edge in EDGES]
    values += [draw.randrange(P) for _ in range(count)]
    if degree == 1:
        return values
    return [(a, draw.choice(values)) for a in values] + [(a, 0) for a in values[:5]]


def pairs(degree):
    values = elements(degree, 40)
    return [(a, b) for a in values for b in values[:: 1 if degree == 1 else 3]]


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_operations_with_two_operands(op, degree):
    field = FIELDS[degree]
    for isa in isas():
        for a, b in pairs(degree):
            found = driver().field(degree, isa, op, field.write(a), field.write(b))
            assert found == field.write(getattr(field, op)(a, b)), (isa, op, a, b)


@pytest.mark.parametrize("degree", [1, 2])
def test_squares_and_inverses(degree):
    field = FIELDS[degree]
    for isa in isas():
        for a in elements(degree, 20):
            square = driver().field(degree, isa, "square", field.write(a))
            assert square == field.write(field.mul(a, a)), (isa, a)
            inverse = driver().field(degree, isa, "inverse", field.write(a))
            assert inverse == field.write(field.inverse(a)), (isa, a)


def test_scalars_leave_montgomery_form():
    draw = random.Random(3)
    scalars = [0, 1, 2, R - 1, R - 2, 2**254, 2**64 - 1, FR_SHIFT % R]
    scalars += [draw.randrange(R) for _ in range(200)]
    for scalar in scalars:
        form = (scalar * FR_SHIFT % R).to_bytes(32, "little")
        assert driver().plain(form) == scalar.to_bytes(32, "little")


@pytest.fixture(scope="module")
def code():
    if platform.machine() != "x86_64" or shutil.which("objdump") is None:
        pytest.skip("needs objdump and x86-64")
    found = functions(importlib.import_module(native.MODULE).__file__)
    if "fp_mul_scalar" not in found or any("asan" in name for name in found):
        pytest.skip("the extension is stripped of its symbols, or built with a sanitiser")
    return found


def test_the_instructions_are_those_of_the_variant(code):
    scalar, adx = (code[f"fp_mul_{isa}"].text for isa in ISAS)
    # 6 x 6 products of the operands, 6 x 6 with the modulus; one of two carry chains each.
    assert len(re.findall(r"\tmulx\s", adx)) == 72
    assert len(re.findall(r"\tadcx\s", adx)) > 50
    assert len(re.findall(r"\tadox\s", adx)) > 50
    assert not re.search(r"\t(mulx|adcx|adox)\s|[xyz]mm", scalar)


@pytest.mark.parametrize("group", ["lanes1", "lanes2"])
def test_lanes_are_added_without_a_call(code, group):
    """A copy that became a call of memcpy would cost more than the accesses it stands for."""
    text = code[f"{group}_gather_plain"].text
    assert "call" not in text
    assert "paddq" in text
