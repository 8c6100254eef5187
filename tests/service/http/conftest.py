"""A server that echoes, for tests of HTTP."""

from collections.abc import Iterator

import pytest

from tests.service.http.samples import QUICK, running


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    with running(QUICK) as port:
        yield port
