"""How to get every figure again."""

from analysis.page.model import Block, Cell, Commands, Section, columns, table
from analysis.page.source import Host
from analysis.report import Note

LEAD = (
    "The plan's digest is of blocks, CPUs, windows and options: two runs with equal digests"
    " measured the same things in the same way."
)


def section(host: Host) -> Section | None:
    """Command and digest of every run, and how to read it in other ways."""
    rows = []
    commands = []
    for run in host.runs:
        if not run.results.rows and not run.command:
            continue
        times = sorted(row["time"] for row in run.results.rows if row["time"])
        rows.append(
            (
                Cell(run.name),
                Cell(run.digest or "unknown: no plan"),
                Cell(times[0].replace("T", " ")[:16] if times else "unknown"),
                Cell(str(run.results.plan.get("seed", "unknown"))),
                Cell(str(run.results.folder)),
            )
        )
        if run.command:
            commands.append((run.command, f"measures {run.name} again"))
    blocks: list[Block] = [
        *table(
            "Runs behind this page",
            columns("run", "plan digest", "begun, UTC", "#seed", "results"),
            rows,
        )
    ]
    if commands:
        blocks.append(Commands("Again", tuple(commands)))
    proposed = {
        command: f"after {run.name}"
        for run in host.runs
        for command in getattr(run.report, "next_commands", ())
        if host.open_ended([Note("", "", command)])
    }
    if proposed:
        blocks.append(Commands("Next", tuple(proposed.items())))
    if not rows:
        return None
    return Section("reproduce", "How to reproduce", LEAD, tuple(blocks))
