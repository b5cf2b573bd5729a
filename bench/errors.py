"""Exceptions every layer raises. Each names the thing that failed and the way out.

``exit_code`` is what the console returns: 1 a measurement failed, 2 usage or configuration,
3 the host cannot give what was required.
"""


class PagestormError(Exception):
    """A measurement failed, or a file could not be read or written."""

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class NoSpaceError(PagestormError):
    """A disk is full. What was written before is whole."""


class UsageError(PagestormError):
    """A wrong name, value, flag or configuration file."""

    exit_code = 2


class HostError(PagestormError):
    """The host cannot give what was required."""

    exit_code = 3


def unknown_name(kind: str, name: str, known: list[str]) -> UsageError:
    """Make the error for a name that is not in a registry, listing the close ones."""
    import difflib

    close = difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(known)}"
    return UsageError(f"unknown {kind} {name!r}", hint)
