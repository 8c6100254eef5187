"""One service for all clients."""

from collections.abc import Iterator

import pytest

from tests.sdk.serving import Served, serving


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("service")) as served:
        yield served
