"""Settings of all tests: examples are the same in each run, none is timed, and compiling is not mentioned."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.browser import Browser

settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.load_profile("fixed")

os.environ.setdefault("RBMLE_QUIET", "1")  # of the processes that tests start, too


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Yield a browser, started once for a file of tests."""
    started = Browser(tmp_path_factory.mktemp("chromium"))
    yield started
    started.close()


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    """Return the browser with a page of its own."""
    chromium.open()
    return chromium
