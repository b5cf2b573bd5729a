"""Evidence of whole samples: what the engine reports of every policy this host can give."""

import json
import os
import subprocess
import sys

import pytest
from pages_module import (
    PMD,
    ROOT,
    as_nobody,
    load,
    only_64k_pages,
    pool_folder,
    reserve,
)

from bench import native
from bench.mix import Actor, Mix, mix_name

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
# Odd on purpose: the last page of every policy is used in part.
SIZE = 24 * 1024**2 + 12345


def mix(policy, threads=2, process=""):
    actor = Actor("scan", "scalar", policy, threads, SIZE, (("op", "copy"),), process=process)
    return Mix((actor,))


def sample(asked, before_exec=None):
    """The response of a fresh process, as every real sample has one."""
    request = {
        "mix": mix_name(asked),
        "place": [[-1] * actor.threads for actor in asked.actors],
        "window_s": 0.02,
        "warm_s": 0.0,
        "min_passes": 1,
        "deadline_s": 30,
        "probes": False,
    }
    done = subprocess.run(
        [sys.executable, "-m", "bench.worker"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
        preexec_fn=before_exec,
    )
    return json.loads(done.stdout)


def evidence(response):
    """(matching, known, total, source), equal before and after the window."""
    assert "error" not in response, response
    seen = response["actors"][0]["evidence"]
    assert seen["before"] == seen["after"]
    return tuple(seen["after"][key] for key in ("matching", "known", "total", "source"))


def assert_all_as_promised(policy, threads=2, process=""):
    response = sample(mix(policy, threads, process))
    matching, known, total, source = evidence(response)
    assert total == response["actors"][0]["mapped_bytes"]
    assert total % native.policy(policy).page_bytes == 0
    assert total >= response["actors"][0]["used_bytes"] > SIZE // 2
    assert (matching, known) == (total, total)
    assert source


@pytest.mark.parametrize("policy", ["base", "thp"])
@pytest.mark.parametrize(("threads", "process"), [(1, ""), (2, ""), (2, "each")])
def test_transparent_pages_are_as_promised(policy, threads, process):
    why = native.policy_available(policy)
    if why:
        pytest.skip(why)
    assert_all_as_promised(policy, threads, process)


@needs_root
@pytest.mark.root
def test_mthp_is_as_promised_to_root():
    with only_64k_pages():
        assert native.policy_available("mthp64k") == ""
        assert_all_as_promised("mthp64k")


@needs_root
@pytest.mark.root
def test_mthp_is_unknown_to_anyone_else():
    settings = native.RunSettings(window_s=0.02, warm_s=0, min_passes=1)

    def claim():
        raw = native.run(mix("mthp64k"), settings)  # rows die with it
        row = raw.actors[0].after
        assert (row.matching_bytes, row.known_bytes) == (0, 0)
        assert row.total_bytes > SIZE // 2
        assert native.text(row.source) == ""

    with only_64k_pages():
        as_nobody(load(), claim)


@needs_root
@pytest.mark.root
@pytest.mark.hugetlb
@pytest.mark.parametrize(("policy", "n_pages", "process"), [("2m", 14, "each"), ("1g", 1, "")])
def test_hugetlb_pages_are_as_promised(policy, n_pages, process):
    with reserve(policy, n_pages):
        assert native.policy_available(policy) == ""
        assert_all_as_promised(policy, process=process)


@needs_root
@pytest.mark.root
@pytest.mark.hugetlb
@pytest.mark.parametrize("policy", ["2m", "1g"])
def test_too_small_a_pool_is_a_skip_and_no_number(policy):
    folder = pool_folder(policy)
    if folder.exists() and int((folder / "free_hugepages").read_text()):
        pytest.skip("this pool has free pages")
    response = sample(mix(policy))
    assert response["error"]["kind"] == "skip"
    assert response["error"]["stage"] == "map"
    assert f"page policy {policy}" in response["error"]["message"]


def test_huge_pages_that_did_not_come_show_in_the_sample():
    """THP forbidden behind the policy's back: the run goes on, its evidence contradicts."""

    def forbid():
        load().lib.prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE outlives exec

    load()
    matching, known, total, _ = evidence(sample(mix("thp"), forbid))
    assert matching == 0
    # The mapping ends at a huge page that the arrays use in part.
    assert total - PMD < known <= total


@needs_root
@pytest.mark.root
def test_smaller_transparent_pages_than_promised_show_in_the_sample():
    with only_64k_pages():
        assert native.policy_available("thp") != ""
        matching, known, total, _ = evidence(sample(mix("thp")))
    assert matching == 0
    assert known > total - PMD
