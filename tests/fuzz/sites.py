"""A service with keys behind HTTP, in a thread of its own, that never tires of wrong keys."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rbmle.service.access.limits import Throttle
from tests.service.serving import serving
from tests.services import Service

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
    with serving(folder, has_keys=True) as site:
        site.app.admission.throttle = Throttle(attempts=ENDLESS)
        yield Site(site.address, site.service, site.keys.admin.primary)
