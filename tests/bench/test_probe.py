"""What ladders say about caches and TLBs, from measured and planted ones; no hardware needed."""

import json
import subprocess
import sys

import pytest

from bench import probe
from bench.probe import KIB, LINE, MIB, Measured

# Measured on a 2-CPU EPYC (Zen 3) virtual machine that claims 32 MiB of L3.
CACHES = {
    64 * KIB: 3.0, 512 * KIB: 12.0, MIB: 15.0, 2 * MIB: 16.0, 4 * MIB: 18.0,
    8 * MIB: 100.0, 16 * MIB: 133.0, 32 * MIB: 144.0, 64 * MIB: 146.0,
}  # fmt: skip
PAGES = {"base": 4096, "mthp16k": 16384, "thp": 2 * MIB, "2m": 2 * MIB, "1g": 1 << 30}


def pages_with_break(at, cost, counts=probe.PAGE_COUNTS):
    """One line a page on the machine above, with a miss that costs so much beyond ``at`` pages."""
    packed = {count: probe._interpolate(CACHES, count * LINE) for count in counts}
    return {count: packed[count] + (cost if count > at else 1.0) for count in counts}


def measured(**page_ns):
    return Measured(1.0, CACHES, page_ns, 30, {}, {}, 2e-6, 0.1)


def test_the_last_level_is_what_is_served_at_cache_speed_not_what_sysfs_claims():
    assert probe.effective_llc(CACHES) == 4 * MIB


def test_a_ladder_that_never_leaves_the_caches_says_nothing():
    assert probe.effective_llc(dict.fromkeys(CACHES, 3.0)) is None


@pytest.mark.parametrize("entries", [1536, 2048, 4096])
def test_reach_is_where_misses_begin(entries):
    assert probe.tlb_reach(pages_with_break(entries, 30.0), CACHES) == entries


def test_a_spike_of_noise_is_not_a_break():
    ladder = pages_with_break(2048, 30.0)
    ladder[512] += 50
    assert probe.tlb_reach(ladder, CACHES) == 2048


def test_a_spike_is_not_a_cache_either():
    assert probe.effective_llc({**CACHES, 2 * MIB: 400.0}) == 4 * MIB


def test_a_miss_too_cheap_to_be_one_leaves_the_reach_open():
    assert probe.tlb_reach(pages_with_break(2048, 2.0), CACHES) is None


def test_small_host_pages_show_as_a_thp_reach_of_a_few_huge_pages():
    found = probe.conclude(
        measured(base=pages_with_break(2048, 60.0), thp=pages_with_break(2048, 30.0)), PAGES
    )
    assert found.small_host_pages is True
    assert found.reach_bytes == {4096: 2048 * 4096, 2 * MIB: 2048 * 4096}
    assert found.llc_bytes == 4 * MIB


def test_large_host_pages_show_as_no_break_under_thp():
    found = probe.conclude(
        measured(base=pages_with_break(2048, 60.0), thp=pages_with_break(1 << 20, 30.0)), PAGES
    )
    assert found.small_host_pages is False
    assert found.reach_bytes == {4096: 2048 * 4096}


def test_a_cost_far_below_a_walk_is_not_taken_for_small_host_pages():
    found = probe.conclude(
        measured(base=pages_with_break(2048, 60.0), thp=pages_with_break(16384, 7.0)), PAGES
    )
    assert found.small_host_pages is False


def test_without_a_large_policy_nothing_is_said_about_the_host():
    found = probe.conclude(measured(base=pages_with_break(2048, 60.0)), PAGES)
    assert found.small_host_pages is None


def test_results_of_a_boot_are_kept_and_read_back(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert probe.read_cache() is None
    kept = measured(base=pages_with_break(2048, 60.0))
    probe._save(kept)
    assert probe.read_cache() == kept
    probe.cache_path().write_text("{")
    assert probe.read_cache() is None


def test_a_cache_folder_that_cannot_be_made_is_no_failure(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    probe._save(measured())
    assert probe.known_probe() == probe.conclude.__globals__["Probe"]()


def test_the_probe_measures_this_host():
    done = subprocess.run(
        [sys.executable, "-m", "bench.probe"], capture_output=True, text=True, check=True
    )
    found = probe._from_json(json.loads(done.stdout))
    assert set(found.cache_ns) == set(probe.CACHE_SIZES)
    assert all(ns > 0 for ladder in found.page_ns.values() for ns in ladder.values())
    assert found.fault_s > 0
