"""What all tests share."""

from hypothesis import settings

# No test asserts an absolute time, and that includes hypothesis' own deadline of 200 ms a case.
settings.register_profile("pagestorm", deadline=None)
settings.load_profile("pagestorm")
