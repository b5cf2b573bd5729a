"""What all tests share."""

import os
import signal

import pytest
from hypothesis import settings

# No test asserts an absolute time, and that includes hypothesis' own deadline of 200 ms a case. The
# same examples come each time, so that a failure is the change's; new ones are looked for with
# HYPOTHESIS_PROFILE=search.
settings.register_profile("pagestorm", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "pagestorm"))


def pytest_collection_modifyitems(config, items):
    """Timing claims need a quiet machine, so they run only where asked for: ``-m hw``."""
    if "hw" in (config.option.markexpr or ""):
        return
    for item in items:
        if item.get_closest_marker("hw"):
            item.add_marker(pytest.mark.skip(reason="a timing claim: run with -m hw when quiet"))


@pytest.fixture(scope="session", autouse=True)
def hangup_is_not_ignored():
    """Under nohup SIGHUP is ignored, here and in every child: tests are about what it does."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
