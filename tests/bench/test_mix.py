"""A name holds everything that a case is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.errors import UsageError
from bench.mix import Actor, Case, FileRef, Mix, Op, Pool, cases, mix_name, name, parse

words = st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True)
digests = st.from_regex(r"[0-9a-f]{16}", fullmatch=True)
values = st.one_of(st.integers(0, (1 << 64) - 1), words, digests.map(FileRef))
positive = st.floats(1e-6, 1e18, exclude_min=True)
pins = st.sampled_from(["compact", "scatter", "none", "compact:1", "cpus:0-3,8", "cpus:7"])


@st.composite
def actors(draw, role=None, pools=()):
    waits = [
        st.builds(Op, st.sampled_from(["take", "put"]), st.integers(1, 9), st.sampled_from(pools))
    ] * bool(pools)
    ops = st.one_of(st.builds(Op, st.sampled_from(["pass", "rest"]), st.integers(1, 10**9)), *waits)
    params = draw(st.dictionaries(words, values, max_size=3))
    return Actor(
        draw(words),
        draw(words),
        draw(st.sampled_from(["base", "thp", "2m", "1g", "mthp64k"])),
        draw(st.integers(1, 512)),
        draw(st.integers(0, 1 << 45)),
        tuple(params.items()),
        role=role or draw(st.sampled_from(["measured", "background"])),
        process=draw(st.sampled_from(["", "each", "a", "victim_2"])),
        priority=draw(st.integers(0, 7)),
        courtesy=draw(st.sampled_from(["proceed", "yield", "pause"])),
        pace=draw(st.one_of(st.just(0.0), positive)),
        weight=draw(positive),
        joined=draw(st.booleans()),
        aligned=draw(st.booleans()),
        pin=draw(pins),
        script=tuple(draw(st.lists(ops, max_size=4))),
    )


@st.composite
def mixes(draw):
    names = draw(st.lists(words, max_size=2, unique=True))
    pools = tuple(Pool(pool, draw(st.integers(0, 99)), draw(st.integers(0, 99))) for pool in names)
    measured = draw(actors("measured", tuple(names)))
    others = draw(st.lists(actors(None, tuple(names)), max_size=2))
    return Mix(tuple(draw(st.permutations([measured, *others]))), pools)


@given(mixes())
@settings(max_examples=60)
def test_every_case_of_a_mix_is_read_back_from_its_name(mix):
    for case in cases(mix):
        assert parse(name(case)) == case


@given(mixes(), mixes())
@settings(max_examples=60)
def test_different_mixes_have_different_names(one, other):
    assert (mix_name(one) == mix_name(other)) == (one == other)


def test_the_order_of_parameters_does_not_make_another_case():
    one = Actor("scan", "avx2", "base", 1, 64, (("op", "read"), ("streams", 4)))
    other = Actor("scan", "avx2", "base", 1, 64, (("streams", 4), ("op", "read")))
    assert name(Case(Mix((one,)))) == name(Case(Mix((other,))))


def test_a_file_is_the_same_wherever_it_lies():
    assert FileRef("0123456789abcdef", "/a") == FileRef("0123456789abcdef", "/b")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "scan",
        "scan/avx2/base/4t",
        "scan/avx2/base/0t/1GiB",
        "scan/avx2/base/4t/1GB",
        "scan[op]/avx2/base/4t/1GiB",
        "scan/avx2/base/4t/1GiB{hue=3}",
        "scan/avx2/base/4t/1GiB{priority=x}",
        "scan/avx2/base/4t/1GiB{role=background}",
        "scan/avx2/base/4t/1GiB@1",
        "scan/avx2/base/4t/1GiB@x",
        "scan/avx2/base/4t/1GiB{script=take(m,1)}",
        "scan/avx2/base/4t/1GiB+pool(m,1)",
    ],
)
def test_what_is_no_name_is_refused(text):
    with pytest.raises(UsageError):
        parse(text)
