"""Which of the suite's mechanisms could matter to what was observed, and which cannot.

``cannot`` stands on a bound: what would be the most of it is below the smallest effect that counts.
``could matter`` stands on something seen that this mechanism needs. The rest is ``unknown``.
"""

from collections.abc import Callable

from bench.observe import interface, processors, translation
from bench.observe.figures import Observation
from bench.observe.finding import CANNOT, IDLE_CPUS, Finding, share
from bench.observe.known import Known

Cause = Callable[[Observation, Known], Finding]

# The first five cost CPU time: an idle program has none to lose. The others can be why it idles.
OF_WORK: dict[str, Cause] = {
    translation.TLB: translation.tlb,
    translation.SHOOTDOWNS: translation.shootdowns,
    translation.FAULTS: translation.faults,
    interface.BANDWIDTH: interface.bandwidth,
    interface.NUMA: interface.numa,
}
OF_WAITING: dict[str, Cause] = {
    processors.THROTTLING: processors.throttling,
    processors.RECLAIM: processors.reclaim,
    processors.OVERSUBSCRIPTION: processors.oversubscription,
    processors.OTHERS: processors.others,
}


def findings(seen: Observation, known: Known) -> tuple[Finding, ...]:
    """Judge every mechanism."""
    idle = seen.cpus_used < IDLE_CPUS
    why = f"it used {share(seen.cpus_used)} of a CPU"
    work = [
        Finding(name, CANNOT, (why,)) if idle else cause(seen, known)
        for name, cause in OF_WORK.items()
    ]
    return (*work, *(cause(seen, known) for cause in OF_WAITING.values()))
