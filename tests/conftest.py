"""What all tests share."""

import pytest
from hypothesis import settings

# No test asserts an absolute time, and that includes hypothesis' own deadline of 200 ms a case.
settings.register_profile("pagestorm", deadline=None)
settings.load_profile("pagestorm")


def pytest_collection_modifyitems(config, items):
    """Timing claims need a quiet machine, so they run only where asked for: ``-m hw``."""
    if "hw" in (config.option.markexpr or ""):
        return
    for item in items:
        if item.get_closest_marker("hw"):
            item.add_marker(pytest.mark.skip(reason="a timing claim: run with -m hw when quiet"))
