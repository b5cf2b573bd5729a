"""storm gives back what it takes, finds what each method promises, and counts what it touches."""

import ctypes
import json
import mmap
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from churn_runs import (
    LAZY_MADVISE,
    MIB,
    PAGE,
    QUICK,
    ROOT,
    held,
    lazy_library,
    left_behind,
    sample,
)
from pages_module import THP as THP_SETTINGS
from pages_module import choose, reserve

from bench import native
from bench.errors import UsageError
from bench.mix import Actor, Mix, Pool, mix_name, parse_script
from bench.worker import ANEW

METHODS = native.kernel("storm").param("method").choices
IN_REGION = tuple(method for method in METHODS if method != "heap")
KEEP_PAGES = ("free", "pool")
THP = pytest.mark.skipif(
    bool(native.policy_available("thp")), reason="this host gives no transparent huge pages"
)
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
one_preload = pytest.mark.skipif(SANITIZED, reason="one preload at a time")
# The 22 sizes of a prover's partition in MB, largest first.
PROVER = (4295, *[4170] * 5, 278, 167, 167, 139, 56, 56, 46, 46, *[16] * 4, 12, 12, 12, 4)


def storm(policy="base", threads=1, size=8 * MIB, process="", **params):
    return Actor("storm", "scalar", policy, threads, size, tuple(params.items()), process=process)


def pattern(chunks_made):
    return (chunks_made - 1) % 251 + 1


# ---- leaving things as they were -----------------------------------------------------------------


def test_mappings_and_resident_memory_are_as_before():
    """The heap keeps what malloc keeps, and is left out."""
    names = [
        mix_name(Mix((storm(policy, 2, method=method, sizes=sizes),)))
        for method in IN_REGION
        for sizes in ("fixed", "prover")
        for policy in ("base", "thp")
        if not native.policy_available(policy)
        and not native.accepts(storm(policy, 2, method=method, sizes=sizes))
    ]
    assert len(names) >= 7
    for name, (mappings, resident_kib) in left_behind(names).items():
        assert mappings <= 0, name
        assert resident_kib < 1024, name


def test_nobody_else_maps_where_a_chunk_has_been():
    """A gap among other mappings would be where the kernel puts the next one."""
    with held(storm(threads=3, size=64 * MIB, chunk=4 * MIB)) as rows:
        regions = [range(row.start - 2 * MIB, row.start + 8 * MIB) for row in rows]
        strangers = [mmap.mmap(-1, n * MIB) for n in range(1, 5) for _ in range(8)]
        views = [ctypes.c_char.from_buffer(stranger) for stranger in strangers]
        starts = [ctypes.addressof(view) for view in views]
    assert not [start for start in starts if any(start in region for region in regions)]
    for stranger in strangers:
        stranger[0] = 1


@pytest.mark.parametrize("tables", ["kept", "freed"])
@pytest.mark.parametrize("chunk", [PAGE, 64 * PAGE, 2 * MIB - PAGE, 2 * MIB, 3 * MIB])
def test_any_size_of_chunk_comes_and_goes(chunk, tables):
    """The check after the window maps the whole region, which must be free again."""
    raw = native.run(Mix((storm(chunk=chunk, tables=tables, threads=2),)), QUICK)
    assert raw.actors[0].passes >= 2


# ---- contents ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("threads", [1, 3])
def test_the_last_chunk_is_full_of_its_number(method, threads):
    with held(storm(threads=threads, size=24 * MIB, method=method, chunk=256 << 10), 3) as rows:
        for row in rows:
            # The heap's first chunk is older than its first step.
            made = 3 * row.work["n_steps"] + (method == "heap")
            assert set(row.contents) == {pattern(made)}
            assert len(row.contents) >= 252 << 10


@pytest.mark.parametrize("touched", [1, 30, 99, 100])
def test_only_the_touched_front_of_a_chunk_is_present(touched):
    chunk = 1 * MIB
    filled = -(-chunk * touched // 100 // PAGE) * PAGE
    with held(storm(chunk=chunk, touched=touched), 2) as (row,):
        assert row.present(chunk) == filled == len(row.contents)
        assert row.work["written_bytes"] == filled * row.work["n_steps"]


@one_preload
@pytest.mark.parametrize(
    ("params", "lazy"),
    [
        ({"method": "dontneed"}, "MADV_DONTNEED"),
        ({"method": "dontneed", "chunk": PAGE}, "MADV_DONTNEED"),
    ],
)
def test_memory_that_is_not_zero_after_its_release_fails_the_run(tmp_path, params, lazy):
    library = lazy_library(tmp_path, f"#define LAZY {lazy}\n{LAZY_MADVISE}")
    response = sample(Mix((storm(**params),)), {"LD_PRELOAD": library})
    assert response["error"]["stage"] == "check"
    assert "does not promise" in response["error"]["message"]


@one_preload
def test_memory_that_a_pool_lost_fails_the_run(tmp_path):
    """Here a pool's memory is dropped whenever a clock is read between two chunks."""
    library = lazy_library(
        tmp_path,
        "#include <sys/mman.h>\n#include <sys/syscall.h>\n#include <time.h>\n#include <unistd.h>\n"
        "static void *chunk;\nstatic size_t bytes;\n"
        "int madvise(void *start, size_t n, int advice)\n"
        "{ chunk = start, bytes = n; return (int)syscall(SYS_madvise, start, n, advice); }\n"
        "int clock_gettime(clockid_t id, struct timespec *now)\n"
        "{ if (chunk) syscall(SYS_madvise, chunk, bytes, MADV_DONTNEED);\n"
        "  return (int)syscall(SYS_clock_gettime, id, now); }\n",
    )
    response = sample(Mix((storm(method="pool"),)), {"LD_PRELOAD": library})
    assert response["error"]["stage"] == "check"
    assert "method=pool" in response["error"]["message"]


@one_preload
def test_a_release_that_leaves_the_mapping_fails_the_run(tmp_path):
    library = lazy_library(
        tmp_path,
        "#include <sys/mman.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n"
        f"int munmap(void *start, size_t n) {{ return n == {3 * MIB} ? 0 : "
        "(int)syscall(SYS_munmap, start, n); }\n",
    )
    response = sample(Mix((storm(chunk=3 * MIB),)), {"LD_PRELOAD": library})
    assert "exists" in response["error"]["message"]


# ---- counts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["base", pytest.param("thp", marks=THP)])
@pytest.mark.parametrize("method", ["munmap", "dontneed", "mremap"])
def test_bytes_touched_are_pages_faulted_in(method, policy):
    page = native.policy(policy).page_bytes
    with held(storm(policy, method=method, chunk=8 * MIB, releases=4), 2) as (row,):
        # The first step is before the count begins.
        each = 8 * MIB - (page if method == "mremap" else 0)
        assert row.touched == 7 * each
        assert row.touched / page <= row.faults <= row.touched / page + 16


@pytest.mark.parametrize("method", KEEP_PAGES)
def test_kept_pages_are_not_faulted_in_again(method):
    with held(storm(method=method, chunk=MIB), 3) as (row,):
        assert row.touched == 0
        assert row.faults < 16


def test_bus_bytes_add_reading_the_lines_and_zeroing_the_pages():
    for method in METHODS:
        with held(storm(method=method, chunk=MIB)) as (row,):
            written = row.work["written_bytes"]
            most = 2 if method in KEEP_PAGES else 4
            assert row.work["read_bytes"] == row.work["updated_bytes"] == 0
            assert row.work["bus_max_bytes"] == most * written
            assert row.work["bus_min_bytes"] == (2 if method in KEEP_PAGES else 1) * written


def test_a_pass_is_as_many_releases_as_it_says():
    for params, releases in (
        ({"chunk": PAGE}, 256),
        ({"chunk": 8 * MIB}, 1),
        ({"chunk": MIB, "releases": 3}, 3),
        ({"sizes": "prover"}, 22),
    ):
        with held(storm(**params)) as (row,):
            assert row.work["ops"] == row.work["n_steps"] == releases


@pytest.mark.parametrize("size", [MIB, 64 * MIB])
def test_the_provers_chunks_keep_their_proportions(size):
    with held(storm(size=size, sizes="prover")) as (row,):
        grain = max(PAGE, size // 32)
        exact = sum(size * mb / PROVER[0] for mb in PROVER)
        # Rounded up, each by less than a grain.
        assert exact <= row.work["written_bytes"] < exact + 22 * grain
        assert row.work["chunk_bytes"] == size


def test_live_memory_is_the_largest_chunk_of_every_thread():
    for policy in ("base", "thp", "2m"):
        assert native.footprint(storm(policy, 3, 64 * MIB, chunk=4 * MIB)).mapped_bytes == 12 * MIB
    footprint = native.footprint(storm(threads=2, size=64 * MIB, sizes="prover"))
    assert footprint.mapped_bytes == 64 * MIB


def test_phases_are_parts_of_the_steps():
    actor = storm(threads=2, chunk=64 << 10)
    raw = native.run(Mix((actor,)), native.RunSettings(fixed_passes=3))
    for thread in range(2):
        row = raw.threads[thread]
        spent = [row.phase_ns[i] for i in range(3)]
        assert min(spent) > 0
        assert sum(spent) <= row.step_ns


# ---- evidence ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("policy", ["base", pytest.param("thp", marks=THP)])
def test_evidence_is_of_what_the_threads_hold_and_of_the_windows_faults(method, policy):
    if method == "heap" and SANITIZED:
        pytest.skip("a sanitizer brings a malloc of its own")
    actor = storm(policy, 2, 128 * MIB, method=method, chunk=32 * MIB)
    response = sample(Mix((actor,)), native.environment(Mix((actor,))))
    assert "error" not in response, response
    (row,) = response["actors"]
    before, after = row["evidence"]["before"], row["evidence"]["after"]
    assert before["matching"] == before["known"] == before["total"] > 0
    assert after["matching"] >= 0.99 * after["known"]
    assert after["known"] == after["total"]
    page = native.policy(policy).page_bytes
    whole = 64 * MIB - (4 * page if method == "heap" else 0)
    assert after["total"] - row["touched_bytes"] >= whole


@THP
def test_huge_pages_that_did_not_come_contradict():
    """Transparent huge pages are forbidden behind the policy's back."""
    program = (
        "import ctypes, json\n"
        "ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)\n"
        "from bench import native\n"
        "from bench.mix import parse_mix\n"
        "mix = parse_mix('storm/scalar/thp/1t/8MiB')\n"
        "raw = native.run(mix, native.RunSettings(window_s=0.01, warm_s=0))\n"
        "row = raw.actors[0].after\n"
        "print(json.dumps([row.matching_bytes, row.known_bytes]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    matching, known = json.loads(done.stdout)
    assert matching < 0.01 * known


# ---- the heap's pages ----------------------------------------------------------------------------


def heap(policy, size=64 * MIB, chunk=48 * MIB):
    return Mix((storm(policy, size=size, method="heap", chunk=chunk),))


def test_only_the_heap_needs_a_process_of_its_own_kind():
    for policy in ("base", "thp", "2m"):
        assert native.environment(Mix((storm(policy),))) == {}
    assert native.environment(heap("base")) == {"GLIBC_TUNABLES": ""}
    assert native.environment(heap("thp")) == {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    assert native.environment(heap("2m")) == {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=2097152"}


def test_what_the_user_set_stays_but_for_the_pages(monkeypatch):
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.check=0:glibc.malloc.hugetlb=2:glibc.a=b")
    others = "glibc.malloc.check=0:glibc.a=b"
    assert native.environment(heap("base")) == {"GLIBC_TUNABLES": others}
    thp = f"{others}:glibc.malloc.hugetlb=1"
    assert native.environment(heap("thp")) == {"GLIBC_TUNABLES": thp}
    monkeypatch.setenv("GLIBC_TUNABLES", thp)
    assert native.environment(heap("thp")) == {"GLIBC_TUNABLES": thp}, "started so: nothing to do"
    monkeypatch.setenv("GLIBC_TUNABLES", f"glibc.x={'y' * 300}")
    assert "too long" in native.accepts(heap("thp").actors[0])


def test_actors_that_need_different_environments_cannot_meet():
    mix = Mix((*heap("base").actors, storm("thp"), *heap("thp").actors))
    with pytest.raises(UsageError, match="GLIBC_TUNABLES"):
        native.environment(mix)
    assert native.environment(Mix((*heap("thp").actors, storm("base"))))


@THP
def test_a_process_started_otherwise_refuses_to_run():
    for started_for, asked in (("base", "thp"), ("thp", "base")):
        # As a worker that has started itself anew once and may not again.
        environment = {**native.environment(heap(started_for)), ANEW: "1"}
        response = sample(heap(asked), environment)
        assert response["error"]["kind"] == "skip"
        assert "GLIBC_TUNABLES=" in response["error"]["message"]


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_heap_that_gets_huge_pages_unasked_is_no_baseline():
    with choose(THP_SETTINGS / "enabled", "always"):
        assert "enabled is always" in native.accepts(*heap("base").actors)
        assert native.accepts(storm("base")) == ""
    assert native.accepts(*heap("base").actors) == ""


@pytest.mark.root
@pytest.mark.hugetlb
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.skipif(SANITIZED, reason="a sanitizer brings a malloc of its own")
def test_the_heap_takes_pages_from_the_pool():
    with reserve("2m", 80):
        response = sample(heap("2m"), native.environment(heap("2m")))
    assert "error" not in response, response
    (row,) = response["actors"]
    for evidence in row["evidence"].values():
        assert evidence["matching"] == evidence["total"] >= 44 * MIB
        assert evidence["source"] == "smaps"


@pytest.mark.root
@pytest.mark.hugetlb
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("method", ["munmap", "dontneed", "pool"])
def test_hugetlb_chunks_come_and_go(method):
    with reserve("2m", 8):
        actor = storm("2m", 2, 16 * MIB, method=method, chunk=4 * MIB)
        response = sample(Mix((actor,)))
    assert "error" not in response, response
    after = response["actors"][0]["evidence"]["after"]
    assert after["matching"] == after["total"] >= 8 * MIB


# ---- what cannot be ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"chunk": PAGE + 1}, "multiple of"),
        ({"chunk": 16 * MIB}, "at least 16777216 B"),
        ({"sizes": "prover", "chunk": MIB}, "sizes=fixed"),
        ({"method": "dontneed", "tables": "freed"}, "method=munmap"),
        ({"method": "heap", "tables": "freed"}, "method=munmap"),
        ({"touched": 101}, "1 to 100"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(params, reason):
    with pytest.raises(UsageError, match=reason):
        native.footprint(storm(**params))


@pytest.mark.parametrize(
    ("policy", "params", "reason"),
    [
        ("thp", {"chunk": PAGE}, "no multiple of the 2097152 B pages of thp"),
        ("2m", {"chunk": 3 * MIB}, "pages of 2m"),
        ("1g", {}, "pages of 1g"),
        ("thp", {"sizes": "prover"}, "pages of thp"),
        ("2m", {"method": "free"}, "no MADV_FREE"),
        ("2m", {"method": "mremap"}, "no mremap"),
        ("base", {"method": "mremap", "chunk": PAGE}, "chunks need two"),
        ("thp", {"method": "heap"}, "33554432 B on"),
        ("mthp64k", {"method": "heap"}, "no setting"),
    ],
)
def test_a_policy_that_makes_no_sense_is_a_skip_with_its_reason(policy, params, reason):
    assert reason in native.accepts(storm(policy, **params))


def test_chunks_that_fit_the_policy_are_accepted():
    for policy in ("base", "thp", "2m"):
        assert native.accepts(storm(policy)) == ""
    assert native.accepts(storm("thp", size=64 * MIB, sizes="prover")) == ""


# ---- in mixes ------------------------------------------------------------------------------------


def test_storms_and_a_reader_share_an_address_space_or_have_their_own():
    reader = Actor("scan", "scalar", "base", 1, MIB)
    for process in ("", "each"):
        mix = Mix((storm(threads=2, chunk=PAGE, process=process), reader, storm(method="pool")))
        raw = native.run(mix, QUICK)
        assert all(raw.actors[i].passes >= 2 for i in range(3))


def test_a_mutex_keeps_releases_apart():
    script = parse_script("take(m).pass.put(m)")
    actor = replace(storm(threads=2, chunk=PAGE, releases=8), script=script)
    raw = native.run(Mix((actor,), (Pool("m", 1),)), QUICK)
    busy = sum(raw.threads[i].step_ns for i in range(2)) * 1e-9
    assert busy <= raw.window_s * 1.02


@pytest.mark.hw
@pytest.mark.multicore
@pytest.mark.isolated
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_processes_scale_where_threads_of_one_hold_each_other_up():
    """One-page chunks on two CPUs. Each release of a thread interrupts the other's CPU."""
    place = [sorted(os.sched_getaffinity(0))[:2]]

    def rate(process):
        mix = Mix((storm(threads=2, chunk=PAGE, process=process),))
        response = sample(mix, place=place, window_s=0.2, probes=True)
        seconds = response["actors"][0]["seconds"]
        shot = response["disturbed"].get("tlb_received", 0) / response["actors"][0]["steps"]
        return 1 / seconds, shot

    pairs = [(rate(""), rate("each")) for _ in range(7)]
    ratios = sorted(own[0] / shared[0] for shared, own in pairs)
    assert ratios[3] > 1.5
    assert sorted(shared[1] - own[1] for shared, own in pairs)[3] > 0.1
