"""A PostgreSQL server for the tests of a file, where its programs are installed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.log_disk import OnDisk
from tests.contract.log_liars import InMemory
from tests.contract.log_promises import Place
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


@pytest.fixture
def on_disk(tmp_path: Path) -> OnDisk:
    return OnDisk(path=tmp_path / "new" / "folder" / "log.db")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def place(request: pytest.FixtureRequest, on_disk: OnDisk) -> Place:
    match request.param:
        case "memory":
            return InMemory()
        case "sqlite":
            return on_disk
        case _:
            on_server: OnServer = request.getfixturevalue("on_server")
            return on_server
