"""Field arithmetic is exactly that of whole numbers, in plain C and with both carry chains."""

import importlib.util
import itertools
import random

import pytest
from cffi import FFI
from engine_build import ROOT, load_builder

from bench import native

ORDER = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
R = 2**256
EDGES = [
    0,
    1,
    2,
    ORDER - 1,
    ORDER - 2,
    (ORDER - 1) // 2,
    R % ORDER,
    2**64 - 1,
    2**64,
    2**128 - 1,
    2**192 - 1,
    2**254 - 1,
    2**254,
    ORDER & ~(2**64 - 1),
    *(2**bit for bit in range(0, 255, 17)),
]


@pytest.fixture(scope="module")
def fr(tmp_path_factory):
    ffi = FFI()
    ffi.cdef(
        """
        void multiply(uint64_t *out, const uint64_t *a, const uint64_t *b, bool adx);
        void add(uint64_t *out, const uint64_t *a, const uint64_t *b, bool adx);
        void from_whole(uint64_t *out, int64_t number);
        """
    )
    ffi.set_source(
        "_fr",
        """
        #include "fr.h"
        #if !FR_HAS_ADX
        #define fr_mul_adx fr_mul
        #define fr_add_adx fr_add
        #endif
        static void multiply(uint64_t *out, const uint64_t *a, const uint64_t *b, bool adx)
        {
            (adx ? fr_mul_adx : fr_mul)((fr *)out, (const fr *)a, (const fr *)b);
        }
        static void add(uint64_t *out, const uint64_t *a, const uint64_t *b, bool adx)
        {
            (adx ? fr_add_adx : fr_add)((fr *)out, (const fr *)a, (const fr *)b);
        }
        static void from_whole(uint64_t *out, int64_t number)
        {
            fr_from_whole((fr *)out, number);
        }
        """,
        include_dirs=[str(ROOT / "csrc" / "kernels")],
        extra_compile_args=load_builder().CFLAGS,
    )
    folder = tmp_path_factory.mktemp("fr")
    spec = importlib.util.spec_from_file_location("_fr", ffi.compile(tmpdir=str(folder)))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=["plain", "adx"])
def adx(request):
    variants = {variant.name: variant for variant in native.kernel("spmv").variants}
    if request.param == "adx" and not ("adx" in variants and variants["adx"].available):
        pytest.skip("the CPU lacks BMI2 or ADX")
    return request.param == "adx"


def call(fr, function, *numbers, **options):
    """Result as a whole number; operands lie in arrays that may be the result's own."""
    out = fr.ffi.new("uint64_t[4]")
    operands = [
        fr.ffi.new("uint64_t[4]", [number >> 64 * i & (2**64 - 1) for i in range(4)])
        for number in numbers
    ]
    getattr(fr.lib, function)(out, *operands, *options.values())
    return sum(limb << 64 * i for i, limb in enumerate(out))


def operands():
    rng = random.Random(5)
    yield from itertools.product(EDGES, EDGES)
    for _ in range(2000):
        yield rng.randrange(ORDER), rng.randrange(ORDER)


def test_products_are_montgomery_products_below_the_order(fr, adx):
    inverse = pow(R, -1, ORDER)
    for a, b in operands():
        assert call(fr, "multiply", a, b, adx=adx) == a * b * inverse % ORDER, (a, b)


def test_sums_are_below_the_order(fr, adx):
    for a, b in operands():
        assert call(fr, "add", a, b, adx=adx) == (a + b) % ORDER, (a, b)


def test_the_result_may_be_an_operand(fr, adx):
    a, b = ORDER - 5, 2**200 + 7
    for function in ("multiply", "add"):
        want = call(fr, function, a, b, adx=adx)
        for own in (0, 1):
            pair = [
                fr.ffi.new("uint64_t[4]", [n >> 64 * i & (2**64 - 1) for i in range(4)])
                for n in (a, b)
            ]
            getattr(fr.lib, function)(pair[own], *pair, adx)
            assert sum(limb << 64 * i for i, limb in enumerate(pair[own])) == want


@pytest.mark.parametrize("number", [0, 1, -1, 7, -(2**53), 2**53, 2**63 - 1, -(2**63)])
def test_whole_numbers_get_their_montgomery_form(fr, number):
    out = fr.ffi.new("uint64_t[4]")
    fr.lib.from_whole(out, number)
    assert sum(limb << 64 * i for i, limb in enumerate(out)) == number * R % ORDER
