"""A service with keys behind HTTP, in a thread of its own, that never tires of wrong keys."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from rbmle.service.access.keys import KeyRing
from rbmle.service.access.throttle import Throttle
from rbmle.service.http.app import Application
from rbmle.service.http.binding import Binding
from rbmle.service.http.server import Server
from rbmle.service.service import Service
from tests.services import PATIENCE, small_start, wait_until

ENDLESS = 10**9  # attempts with a wrong key


@dataclass(frozen=True, slots=True)
class Site:
    """Where a service is, and what is needed to ask it."""

    address: str
    service: Service
    key: str

    @property
    def port(self) -> int:
        """Return where it listens."""
        return int(self.address.rpartition(":")[2])


@contextmanager
def served(folder: Path) -> Iterator[Site]:
    """Yield a small service that answers; a disk that is slow on a busy machine is waited for."""
    with patch("rbmle.service.http.app.STORE_SECONDS", PATIENCE):
        yield from _served(folder)


def _served(folder: Path) -> Iterator[Site]:
    service = Service(small_start(folder), told=lambda message: None)
    keys = KeyRing(folder / "keys.json")
    app = Application(service, keys)
    app.admission.throttle = Throttle(attempts=ENDLESS)
    addresses: list[str] = []
    server = Server(app, Binding(port=0), addresses.append, lambda: app.turns)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: addresses and service.problem is None)
    try:
        yield Site(addresses[0], service, keys.keys.admin.primary)
    finally:
        server.stop()
        thread.join(PATIENCE)
    assert not thread.is_alive()
