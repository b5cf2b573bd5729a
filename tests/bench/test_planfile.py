"""A plan on disk is the plan."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_mix import mixes

from bench.blocks import Block, Entry, Plan, Settings, Skip
from bench.errors import PagestormError, UsageError
from bench.inputs import files_of
from bench.planfile import read_plan, write_plan
from bench.schema import PLAN

times = st.floats(0, 1e6, allow_nan=False)
texts = st.text(max_size=20)
skips = st.lists(st.builds(Skip, texts, texts, texts), max_size=2).map(tuple)
settings_of = st.builds(Settings, times, times, st.integers(1, 9), times, st.booleans())


@st.composite
def entries(draw):
    mix = draw(mixes())
    cpus = tuple(
        tuple(draw(st.sampled_from([range(a.threads), [-1] * a.threads]))) for a in mix.actors
    )
    nodes = draw(st.sampled_from([None, tuple((0,) * a.threads for a in mix.actors)]))
    return Entry(mix, cpus, nodes, draw(times))


blocks = st.builds(
    Block, texts, texts, st.lists(entries(), min_size=1, max_size=2).map(tuple), settings_of
)
plans = st.builds(
    Plan,
    texts,
    st.lists(blocks, min_size=1, max_size=2).map(tuple),
    st.integers(6, 99),
    st.integers(0, (1 << 63) - 1),
    skips,
    skips,
    st.integers(0, 1 << 45),
    st.lists(texts, max_size=2).map(tuple),
)


@given(plans)
@settings(max_examples=30, deadline=None)
def test_a_plan_is_read_back_exactly(tmp_path_factory, plan):
    folder = tmp_path_factory.mktemp("plan")
    write_plan(folder, plan, {"accept_unknown": True})
    found, options = read_plan(folder)
    assert found == plan
    assert found.digest() == plan.digest()
    assert options == {"accept_unknown": True}


@given(plans)
@settings(max_examples=10, deadline=None)
def test_files_keep_their_paths(tmp_path_factory, plan):
    folder = tmp_path_factory.mktemp("plan")
    write_plan(folder, plan, {})
    found, _ = read_plan(folder)

    def files(some):
        return files_of(entry.mix for block in some.blocks for entry in block.entries)

    assert files(found) == files(plan)


def test_an_edited_plan_is_refused(tmp_path):
    block = Block("a", "pages", (), Settings(1.0, 0.1))
    write_plan(tmp_path, Plan("quick", (block,), 6, 1), {})
    path = tmp_path / PLAN
    path.write_text(path.read_text().replace("rounds = 6", "rounds = 3"))
    with pytest.raises(UsageError, match="changed"):
        read_plan(tmp_path)


@pytest.mark.parametrize("text", ["", "rounds = ", "rounds = 6\n", "schema = 99\n"])
def test_what_is_no_plan_is_refused(tmp_path, text):
    (tmp_path / PLAN).write_text(text)
    with pytest.raises(PagestormError, match=r"plan\.toml"):
        read_plan(tmp_path)
    with pytest.raises(UsageError, match=r"plan\.toml"):
        read_plan(tmp_path / "none")
