"""Settings of all tests: examples are the same in each run, and none is timed."""

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.load_profile("fixed")
