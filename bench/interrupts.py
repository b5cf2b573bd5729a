"""Signals around work that must be finished or undone: held back, or turned into an exit."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Keep ^C, SIGTERM and SIGHUP back while the block runs; raise those that came after it."""
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    try:
        with _handlers(note, only_default=False):
            yield
    finally:
        for number in came:
            signal.raise_signal(number)


@contextlib.contextmanager
def as_exit() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exit that unwinds, unless someone handles them already."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    with _handlers(leave, only_default=True):
        yield


@contextlib.contextmanager
def _handlers(handler: Any, *, only_default: bool) -> Iterator[None]:  # noqa: ANN401 - signal's own handler type is private
    replaced: dict[signal.Signals, Any] = {}
    try:
        # Outside the main thread Python neither delivers signals nor lets handlers be set.
        with contextlib.suppress(ValueError):
            for number in _SIGNALS:
                if not only_default or signal.getsignal(number) is signal.SIG_DFL:
                    replaced[number] = signal.signal(number, handler)
        yield
    finally:
        for number, previous in replaced.items():
            # None: the handler was set outside Python and cannot be put back from here.
            signal.signal(number, previous if previous is not None else signal.SIG_DFL)
