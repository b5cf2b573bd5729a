"""Several hosts side by side: the first thing on a page about more than one."""

from analysis.page import host_facts
from analysis.page.model import Answer, Block, Cell, HostPage, columns, table
from analysis.page.source import Host
from analysis.report import CaseResult
from analysis.wording import number


def overview(hosts: list[tuple[Host, HostPage]]) -> tuple[Block, ...]:
    """Compare hosts: what they are, the most they moved, and the verdicts on each."""
    rows = []
    for host, page in hosts:
        cases = [case for _, report in host.reports for case in report.cases]
        fastest = max(
            (c for c in cases if c.gbps.n), key=lambda c: _known(c.gbps.value), default=None
        )
        cpus = host_facts.cpu_count(host.facts)
        rows.append(
            (
                Cell(host.name),
                Cell(host_facts.processor(host.facts)),
                Cell(str(cpus or "unknown"), cpus or None),
                *_most(fastest),
                *(_answer(answer) for answer in page.answers[:3]),
            )
        )
    return table(
        "Hosts",
        columns(
            "host", "processor", "#CPUs", "#most GB/s", "measured with",
            "page size", "threads", "interlock",
        ),
        rows,
        ("Hosts were measured at other times and sizes: figures side by side are no comparison"
         " with an interval. bench compare A B makes one.",),
    )  # fmt: skip


def _most(case: CaseResult | None) -> tuple[Cell, ...]:
    if case is None:
        return Cell("-"), Cell("")
    what = f"{case.label} {case.pages} {case.threads}t"
    return Cell(number(case.gbps.value), case.gbps.value), Cell(what)


def _answer(answer: Answer) -> Cell:
    return Cell(answer.short, look=answer.look)


def _known(value: float) -> float:
    return value if value == value else 0.0
