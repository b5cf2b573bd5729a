"""A wish to stop (^C, SIGTERM, SIGHUP) as a flag and a file to wait on.

An exception out of a signal handler could strike between two steps that belong together; a flag is
looked at where stopping is safe. A second signal is an exception: the user has waited long enough.
"""

import contextlib
import os
import signal
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """Within ``with Stop() as stop``, signals set ``stop.requested`` and make ``stop.fd`` ready."""

    def __init__(self) -> None:
        self.requested = False
        self.fd = -1
        self._write_fd = -1
        self._replaced: dict[signal.Signals, Any] = {}
        self._old_wakeup: int | None = None

    def __enter__(self) -> Self:
        self.fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        # Outside the main thread Python lets nobody handle signals: there is nothing to catch then.
        with contextlib.suppress(ValueError):
            self._old_wakeup = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
            for number in _SIGNALS:
                # Ignored signals stay ignored: nohup means it.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._replaced[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, previous in self._replaced.items():
            # None: the handler was set outside Python and cannot be put back from here.
            signal.signal(number, previous if previous is not None else signal.SIG_DFL)
        if self._old_wakeup is not None:
            signal.set_wakeup_fd(self._old_wakeup)
        self._replaced.clear()
        os.close(self.fd)
        os.close(self._write_fd)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
