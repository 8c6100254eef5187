"""Places for logs: a disk, a server, and what can fail there."""

from pathlib import Path

import pytest

from tests.contract.log_disk import OnDisk
from tests.contract.log_liars import InMemory
from tests.contract.log_promises import Place
from tests.contract.log_server import OnServer


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
