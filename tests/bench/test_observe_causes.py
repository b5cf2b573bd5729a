"""What is said of a program's mechanisms, from figures made up so that the answer is known."""

import pytest
from observed import MIB, group, host, known, memory, observation, process

from bench.observe.causes import OF_WAITING, OF_WORK, findings
from bench.sizes import Probe


def verdicts(seen, host_known=None):
    return {f.mechanism: f.verdict for f in findings(seen, host_known or known())}


def could(seen, host_known=None):
    found = verdicts(seen, host_known)
    return {name for name, verdict in found.items() if verdict == "could matter"}


def finding(seen, mechanism, host_known=None):
    return next(f for f in findings(seen, host_known or known()) if f.mechanism == mechanism)


def test_every_mechanism_has_a_verdict_with_a_reason():
    found = findings(observation(), known())
    assert [f.mechanism for f in found] == [*OF_WORK, *OF_WAITING]
    assert all(f.because for f in found)


def test_an_idle_program_loses_nothing_to_memory_however_large_it_is():
    seen = observation(
        process(cpus_used=0.001, running=0.0, on_cpus={}, memory=memory(200 << 30), threads=40)
    )
    assert set(verdicts(seen).values()) == {"cannot"}


def test_what_a_hypervisor_takes_is_not_taken_from_an_idle_program():
    idle = process(cpus_used=0.001, running=0.0, on_cpus={})
    assert verdicts(observation(idle, host=host(steal=0.3)))["CPUs taken by others"] == "cannot"
    busy = process(cpus_used=1.0)
    assert verdicts(observation(busy, host=host(steal=0.3)))["CPUs taken by others"] != "cannot"


# ---- pages --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resident", "huge", "verdict"),
    [
        (8 * MIB, 0, "cannot"),  # within the reach
        (31 * MIB, 0, "unknown"),  # beyond it, but too little for a verdict on pages
        (32 * MIB, 0, "could matter"),
        (4096 * MIB, 4090 * MIB, "cannot"),  # what is left is within the reach
        (4096 * MIB, 3900 * MIB, "cannot"),  # 95 %
        (4096 * MIB, 3800 * MIB, "could matter"),
        (4096 * MIB, None, "unknown"),
        (8 * MIB, None, "cannot"),  # wherever it is
    ],
)
def test_tlb_reach_is_judged_by_what_is_on_small_pages(resident, huge, verdict):
    assert verdicts(observation(process(memory=memory(resident, huge))))["TLB reach"] == verdict


@pytest.mark.parametrize(
    ("resident", "huge", "most", "verdict"),
    [
        (2 * MIB, 0, 7 * MIB, "cannot"),  # never beyond the reach
        (2 * MIB, 0, 4096 * MIB, "unknown"),
        (4096 * MIB, 4096 * MIB, 4100 * MIB, "cannot"),
        (64 * MIB, 64 * MIB, 4096 * MIB, "unknown"),
    ],
)
def test_memory_that_was_there_at_another_time_is_not_left_out(resident, huge, most, verdict):
    seen = observation(process(memory=memory(resident, huge, resident_max=most)))
    assert verdicts(seen)["TLB reach"] == verdict


@pytest.mark.parametrize(
    ("changes", "host_changes", "why"),
    [
        ({"thp_allowed": False}, {}, "prctl"),
        ({}, {"thp": "never"}, "`never`"),
        ({}, {"thp": None}, "no transparent huge pages"),
        ({"memory": memory(256 * MIB, hints={"short": 250 * MIB})}, {}, "no page of 2MiB fits"),
        ({"memory": memory(256 * MIB, hints={"silent": 250 * MIB})}, {}, "did not ask"),
        ({"memory": memory(256 * MIB, hints={"refused": 250 * MIB})}, {}, "MADV_NOHUGEPAGE"),
    ],
)
def test_what_keeps_memory_on_small_pages_is_named(changes, host_changes, why):
    seen = observation(process(**{"memory": memory(256 * MIB), **changes}))
    found = finding(seen, "TLB reach", known(**host_changes))
    assert found.verdict == "could matter"
    assert any(why in line for line in found.because)
    assert any(line.startswith("try ") for line in found.proposed)


def test_an_assumed_reach_is_called_assumed_and_the_command_is_named():
    seen = observation(process(memory=memory(256 * MIB)))
    text = " ".join(finding(seen, "TLB reach", known(probe=Probe())).because)
    assert "assumed" in text
    assert "host --probe" in text
    assert "assumed" not in " ".join(finding(seen, "TLB reach").because)


def churning(**changes):
    return process(
        **{"threads": 2, "minor_per_s": 1e5, "untraced_per_s": 1e5, "system_share": 0.5, **changes}
    )


def test_a_storm_of_unmapping_beside_a_running_thread_is_shootdowns_and_faults():
    seen = observation(churning(), host=host(shootdowns=20_000.0))
    assert could(seen) == {"TLB shootdowns", "first-touch faults", "TLB reach"}
    assert "20,000 TLB interrupts/s" in " ".join(finding(seen, "TLB shootdowns").because)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"threads": 1}, "cannot"),  # nobody else has its translations
        ({"allowed": (2,)}, "cannot"),  # all on one CPU
        ({"minor_per_s": 0.0, "untraced_per_s": 0.0}, "unknown"),  # somebody else's, perhaps
        ({"minor_per_s": 0.0, "untraced_per_s": 0.0, "released_per_s": 1e9}, "could matter"),
    ],
)
def test_shootdowns_need_threads_on_several_cpus_and_memory_given_back(changes, verdict):
    seen = observation(churning(**changes), host=host(shootdowns=20_000.0))
    assert verdicts(seen)["TLB shootdowns"] == verdict


def test_the_host_wide_count_bounds_what_the_program_can_have_had():
    """1,000 interrupts at 10 us are 1 % of one CPU; without a count nothing is excluded."""

    def verdict(count, **changes):
        seen = observation(churning(), host=host(shootdowns=count))
        return verdicts(seen, known(**changes))["TLB shootdowns"]

    assert verdict(1000.0) == "cannot"
    assert verdict(None) == "unknown"
    assert verdict(10.0, invlpgb=True) == "could matter"


def test_numa_hints_are_not_taken_for_memory_given_back():
    hints = host(shootdowns=20_000.0, counts={"numa_hints": 1e6})
    assert verdicts(observation(churning(), host=hints))["TLB shootdowns"] == "unknown"


@pytest.mark.parametrize(
    ("minor", "system", "verdict"),
    [
        (1e5, 0.3, "could matter"),  # 2 us each: 20 %
        (1e5, 0.01, "cannot"),  # they are in the kernel's share, which is 1 %
        (100.0, 0.5, "cannot"),  # 15 us each at most: 0.15 %
        (5000.0, 0.5, "unknown"),  # 1 % likely, 7.5 % at most
    ],
)
def test_faults_are_bounded_by_kernel_time_and_by_the_worst_cost(minor, system, verdict):
    seen = observation(process(minor_per_s=minor, system_share=system))
    assert verdicts(seen)["first-touch faults"] == verdict


def test_few_faults_may_still_bring_huge_pages():
    """40 faults a second of 2 MiB each are 80 MiB to clear, unless the host took none such."""
    taking = process(minor_per_s=40.0, system_share=0.5)
    huge = host(counts={"huge_taken": 4000.0})
    assert verdicts(observation(taking, host=huge))["first-touch faults"] == "unknown"
    assert verdicts(observation(taking))["first-touch faults"] == "cannot"


# ---- the way to memory --------------------------------------------------------------------------


def test_bandwidth_is_unknown_without_a_counter_and_never_more():
    seen = observation(process(cpus_used=4.0), host=host(busy_cpus=4.0))
    assert verdicts(seen)["memory bandwidth"] == "unknown"
    assert verdicts(observation(host=host(busy_cpus=1.0)))["memory bandwidth"] == "cannot"
    small = process(cpus_used=4.0, memory=memory(MIB))
    assert verdicts(observation(small, host=host(busy_cpus=4.0)))["memory bandwidth"] == "cannot"
    piping = process(cpus_used=4.0, memory=memory(MIB), moved_per_s=5e9)
    assert verdicts(observation(piping, host=host(busy_cpus=4.0)))["memory bandwidth"] == "unknown"


def test_counted_bandwidth_decides():
    from bench.observe.figures import Bandwidth

    def verdict(own, rate):
        return verdicts(observation(bandwidth=Bandwidth("/sys/fs/resctrl/a", own, rate)))[
            "memory bandwidth"
        ]

    assert verdict(True, 2e10) == "could matter"
    assert verdict(True, 1e7) == "cannot"
    assert verdict(False, 1e7) == "cannot"
    assert verdict(False, 2e10) == "unknown"


TWO_NODES = {"nodes": 2, "node_of": {0: 0, 1: 0, 2: 1, 3: 1}}


@pytest.mark.parametrize(
    ("nodes", "on_cpus", "verdict"),
    [
        ({0: 100}, {0: 9}, "cannot"),
        ({0: 100}, {0: 5, 2: 5}, "could matter"),
        ({0: 50, 1: 50}, {0: 5, 2: 5}, "could matter"),  # which thread uses which is not seen
        ({1: 100}, {0: 9}, "could matter"),
        ({}, {0: 9}, "unknown"),
    ],
)
def test_numa_compares_where_memory_is_with_where_threads_run(nodes, on_cpus, verdict):
    seen = observation(process(on_cpus=on_cpus, memory=memory(nodes=nodes)))
    assert verdicts(seen, known(**TWO_NODES))["NUMA distance"] == verdict
    assert verdicts(seen)["NUMA distance"] == "cannot"


# ---- waiting ------------------------------------------------------------------------------------


def throttled(periods, stopped, seconds):
    counts = {"periods": periods, "throttled": stopped, "throttled_s": seconds}
    return group(quota=0.5, throttled={"/sys/fs/cgroup/a": counts})


def test_throttling_is_what_the_group_counts():
    assert verdicts(observation(group=throttled(100, 60, 4.0)))["CPU throttling"] == "could matter"
    assert verdicts(observation(group=throttled(100, 1, 0.01)))["CPU throttling"] == "cannot"
    assert verdicts(observation(group=throttled(100, 0, 0.0)))["CPU throttling"] == "cannot"
    blind = observation(group=group(cpu_readable=False))
    assert verdicts(blind)["CPU throttling"] == "unknown"


def test_waiting_while_throttled_is_not_blamed_on_others():
    seen = observation(process(waiting=0.8, cpus_used=0.2), group=throttled(100, 90, 8.0))
    assert could(seen) == {"CPU throttling", "TLB reach"}
    assert verdicts(seen)["CPUs taken by others"] == "unknown"


def test_more_runnable_threads_than_cpus_is_the_programs_own_doing():
    crowd = process(running=3.0, threads=3, waiting=2.0, allowed=(1,), memory=memory(MIB))
    assert could(observation(crowd)) == {"more threads than CPUs"}
    spread = process(running=3.0, threads=3, waiting=2.0, memory=memory(MIB))
    assert could(observation(spread)) == {"CPUs taken by others"}


def test_reclaim_needs_signs_of_the_programs_own():
    def verdict(*processes, **changes):
        return verdicts(observation(*processes, **changes))["reclaim and swap"]

    short = host(pressure={"memory": {"some": 0.3}})
    shared = group(own=False, pressure={"memory": {"some": 0.3}})
    assert verdict(process(major_per_s=500.0)) == "could matter"
    assert verdict(group=group(events={"high": 12})) == "could matter"
    assert verdict(group=group(pressure={"memory": {"some": 0.3}})) == "could matter"
    assert verdict(host=short, group=shared) == "cannot"  # it takes no memory
    assert verdict(process(minor_per_s=1e4), host=short, group=shared) == "unknown"


def test_the_process_that_claims_most_speaks_for_all():
    seen = observation(process(memory=memory(MIB)), process(pid=72, memory=memory(256 * MIB)))
    found = finding(seen, "TLB reach")
    assert found.verdict == "could matter"
    assert "(72)" in found.because[0]
