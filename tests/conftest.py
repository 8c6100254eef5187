"""Settings of all tests: examples are the same in each run, none is timed, and compiling is not mentioned."""

import os

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.load_profile("fixed")

os.environ.setdefault("RBMLE_QUIET", "1")  # of the processes that tests start, too
