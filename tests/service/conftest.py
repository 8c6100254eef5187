"""A PostgreSQL server for the tests of a file, where its programs are installed."""

from collections.abc import Iterator

import pytest

from tests.contract.log_server import OnServer, Server, Wire, programs


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    bin = programs()
    if bin is None:
        pytest.skip("no PostgreSQL here: initdb is neither on PATH nor in /usr/lib/postgresql")
    server = Server(bin)
    yield server
    server.remove()


@pytest.fixture
def on_server(server: Server) -> Iterator[OnServer]:
    wire = Wire(server.folder)
    yield OnServer(server=server, wire=wire)
    wire.close()
