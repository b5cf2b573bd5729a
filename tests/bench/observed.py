"""Observations made up for tests: a quiet program, with what a test is about put in."""

from dataclasses import replace

from bench.observe.figures import Cost, GroupFigures, MemoryFigures, Observation, ProcessFigures
from bench.observe.hostfiles import HostFigures
from bench.observe.known import Known
from bench.sizes import Probe

MIB = 1 << 20


def memory(resident=64 * MIB, huge=0, **changes):
    kinds = {"anonymous": (resident, huge or 0)}
    made = MemoryFigures(resident, resident, resident, 0, resident, huge, kinds, {}, {})
    return replace(made, **changes)


def process(**changes):
    made = ProcessFigures(
        pid=71,
        name="worker",
        seconds=10.0,
        ended=False,
        cpus_used=1.0,
        children_cpus=0.0,
        system_share=0.0,
        minor_per_s=0.0,
        major_per_s=0.0,
        untraced_per_s=0.0,
        released_per_s=0.0,
        mapped_per_s=0.0,
        unmapped_per_s=0.0,
        mappings=(30, 30),
        mapping_changes=0,
        moved_per_s=0.0,
        threads=1,
        threads_unseen=0,
        running=1.0,
        on_cpus={0: 50},
        allowed=(0, 1, 2, 3),
        moves_seen=0,
        switches_per_s=5.0,
        waiting=0.0,
        thp_allowed=True,
        uid=1000,
        memory=memory(),
    )
    return replace(made, **changes)


def host(**changes):
    made = HostFigures(
        10.0, 1.0, 0.0, 0.0, 0.0, {"numa_hints": 0, "huge_taken": 0}, {"memory": {"some": 0.0}}
    )
    return replace(made, **changes)


def group(**changes):
    made = GroupFigures(True, None, None, {}, {}, {}, 0, {"memory": {"some": 0.0}}, {}, True, True)
    return replace(made, **changes)


def observation(*processes, **changes):
    made = Observation(
        "process 71 (worker)",
        10.0,
        "",
        processes or (process(),),
        group(),
        host(),
        None,
        Cost(0.05, 0.005, 0.001, 0.0, 0.2, 0.2, 50),
    )
    return replace(made, **changes)


def known(**changes):
    made = Known(
        page_bytes=4096,
        huge_bytes=2 * MIB,
        thp="madvise",
        nodes=1,
        cpus=4,
        node_of=dict.fromkeys(range(4), 0),
        invlpgb=False,
        available_bytes=16 << 30,
        small_cache_bytes=MIB,
        probe=Probe(reach_bytes={4096: 8 * MIB}, costs={"fault_s": 2e-6}),
        shootdown_s=10e-6,
    )
    return replace(made, **changes)
