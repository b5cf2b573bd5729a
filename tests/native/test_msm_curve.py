"""Additions on both curves agree with chords and tangents, also where a formula divides by zero."""

import random
import sys
from pathlib import Path

import pytest
from msm_module import driver, isas

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))
from curve import GROUPS, R

py_ecc = pytest.importorskip("py_ecc.bls12_381", reason="not installed: py_ecc")


def from_library(point):
    """A point of py_ecc as the reference has it."""
    if point is None:
        return None
    return tuple(int(c) if not hasattr(c, "coeffs") else tuple(map(int, c.coeffs)) for c in point)


@pytest.mark.parametrize("name", GROUPS)
def test_the_reference_agrees_with_a_library(name):
    group, generator = GROUPS[name], getattr(py_ecc, name.upper())
    assert from_library(generator) == group.generator
    for scalar in (1, 2, 3, R - 1, 0xDEADBEEF << 100):
        expected = from_library(py_ecc.multiply(generator, scalar))
        assert group.multiply(scalar, group.generator) == expected
    assert group.multiply(R, group.generator) is None


def some_points(group):
    p, q = (group.multiply(k, group.generator) for k in (5, 0x1234567 << 70))
    return {"p": p, "q": q, "-p": group.negative(p), "infinity": None}


def scales(group):
    draw = random.Random(1)
    whole = [draw.randrange(1, R) for _ in range(2)]
    return [group.field.one, whole[0] if group.name == "g1" else tuple(whole)]


CASES = [(a, b) for a in ("p", "-p", "infinity") for b in ("p", "q", "-p", "infinity")]


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize(("a", "b"), CASES)
def test_bucket_plus_point(name, a, b):
    group = GROUPS[name]
    points = some_points(group)
    for isa in isas():
        for z in scales(group):
            bucket, point = group.write_bucket(points[a], z), group.write_points([points[b]])
            found = driver().group(name, isa, "add_point", bucket, point)
            assert group.read_bucket(found) == group.add(points[a], points[b]), (isa, z)


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize(("a", "b"), CASES)
def test_bucket_plus_bucket(name, a, b):
    group = GROUPS[name]
    points, (one, z) = some_points(group), scales(group)
    for isa in isas():
        for z_a, z_b in ((one, one), (z, one), (one, z), (z, z)):
            left, right = group.write_bucket(points[a], z_a), group.write_bucket(points[b], z_b)
            found = driver().group(name, isa, "add_bucket", left, right)
            assert group.read_bucket(found) == group.add(points[a], points[b]), (isa, z_a, z_b)


@pytest.mark.parametrize("name", GROUPS)
def test_doubling(name):
    group = GROUPS[name]
    for isa in isas():
        for point in some_points(group).values():
            for z in scales(group):
                found = driver().group(name, isa, "double", group.write_bucket(point, z))
                assert group.read_bucket(found) == group.add(point, point)


@pytest.mark.parametrize("name", GROUPS)
def test_a_first_use_copies_the_point(name):
    group = GROUPS[name]
    point = group.generator
    empty = group.write_bucket(None, group.field.one)
    for isa in isas():
        found = driver().group(name, isa, "add_point", empty, group.write_points([point]))
        assert found == group.write_bucket(point, group.field.one)
