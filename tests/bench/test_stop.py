"""A wish to stop is a flag first, an exception when repeated."""

import select
import signal
import threading

import pytest

from bench.stop import Stop


def ready(fd):
    return bool(select.select([fd], [], [], 0)[0])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_sets_the_flag_and_the_second_raises(number):
    with Stop() as stop:
        assert not stop.requested
        assert not ready(stop.fd)
        signal.raise_signal(number)
        assert stop.requested
        assert ready(stop.fd)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)


def test_handlers_are_put_back():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with Stop():
        pass
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert signal.set_wakeup_fd(-1) == -1


def test_ignored_signals_stay_ignored():
    before = {n: signal.signal(n, signal.SIG_IGN) for n in (signal.SIGINT, signal.SIGHUP)}
    try:
        with Stop() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop.requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_outside_the_main_thread_there_is_nothing_to_catch():
    seen = []

    def use():
        with Stop() as stop:
            seen.append(stop.requested)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert seen == [False]
