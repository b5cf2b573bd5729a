"""Counters of /proc become deltas over the window, for the CPUs used."""

import pytest

from bench import disturbance

STAT = """cpu  100 0 50 9000 0 0 0 7
cpu0 60 0 30 4500 0 0 0 {steal0}
cpu2 40 0 20 4500 0 0 0 {steal2}
intr 12345
"""
INTERRUPTS = """           CPU0       CPU2
  0:         31          0   IO-APIC   2-edge      timer
CAL:        {cal0}        9   Function call interrupts
TLB:        {tlb0}        {tlb2}   TLB shootdowns
"""


def probes(**after):
    return {
        "/proc/stat": (STAT.format(steal0=5, steal2=2), STAT.format(steal0=25, steal2=2)),
        "/proc/interrupts": (
            INTERRUPTS.format(cal0=1, tlb0=10, tlb2=20),
            INTERRUPTS.format(cal0=4, tlb0=17, tlb2=1020),
        ),
        "/proc/vmstat": ("thp_split_page 3\npswpin 0\n", "thp_split_page 5\npswpin 0\n"),
    }


def test_only_the_cpus_used_are_counted():
    found = disturbance.deltas(probes(), 0.5, [0])
    assert found["tlb_received"] == 7
    assert found["function_calls"] == 3
    assert found["steal_s"] == pytest.approx(0.2)


def test_cpu_numbers_with_gaps_are_matched_by_number():
    assert disturbance.deltas(probes(), 0.5, [2])["tlb_received"] == 1000


def test_unpinned_threads_may_have_used_any_cpu():
    assert disturbance.deltas(probes(), 0.5, [-1])["steal_s"] == pytest.approx(0.2)


def test_a_counter_the_host_does_not_have_is_left_out_not_zero():
    texts = probes()
    texts["/proc/interrupts"] = ("       CPU0\nIPI0:  5  Rescheduling\n",) * 2
    found = disturbance.deltas(texts, 0.5, [0])
    assert "tlb_received" not in found
    assert "numa_hints" not in found
    assert found["thp_splits"] == 2


def test_unreadable_files_leave_nothing():
    assert disturbance.deltas({}, 0.5, [0]) == {"probed_s": 0.5}


def test_rows_longer_than_any_buffer_are_read():
    n = 2000
    head = "      " + " ".join(f"CPU{i}" for i in range(n))
    rows = [head + "\nTLB: " + " ".join(str(k) for _ in range(n)) + " x\n" for k in (1, 3)]
    found = disturbance.deltas({"/proc/interrupts": tuple(rows)}, 1, range(n))
    assert found["tlb_received"] == 2 * n
