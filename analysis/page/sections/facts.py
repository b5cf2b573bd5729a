"""What the host is."""

from analysis.page import host_facts
from analysis.page.model import Facts, Section
from analysis.page.source import Host


def section(host: Host) -> Section | None:
    """Facts that bear on memory, of the last run."""
    listed = host_facts.listed(host.facts)
    if not listed:
        return None
    lead = "As the system reported it when the last of the runs began."
    return Section("host", "The host", lead, (Facts(listed),))
