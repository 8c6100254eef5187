"""Publications: what the learner tells front ends, the newest content of each name, beside the log."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from rbmle.core.files import written_whole
from rbmle.service.log.base import LeaseLost, LogUnavailable

MODEL = "model"
REPORT = "report"
DAYS = "days"  # statistics day by day
HEARTBEAT = "heartbeat"

PublicationVersion = object  # equal versions mean the same publication


class Publications(Protocol):
    """Contents by name, each replaced as a whole; one process writes, any thread of any process reads.

    They can be lost: the learner publishes everything again.
    """

    def put(self, name: str, content: bytes, token: int | None = None) -> None:
        """Replace the content of a name, as the learner with a fencing token; None: with the newest token.

        Raise LogUnavailable if it cannot be written, and LeaseLost if a learner with a larger token has
        written this name. Nobody reads this content while there is one of a larger token.
        """
        ...

    def newer(self, name: str, than: PublicationVersion) -> tuple[PublicationVersion, bytes] | None:
        """Return the version and the content of a name; None if there is no version other than `than`."""
        ...

    def close(self) -> None: ...


class FilePublications:
    """Publications in files beside the log, for the processes of one machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, content: bytes, token: int | None = None) -> None:
        """Replace a file in one step; it need not survive a power cut.

        Each token has its own files, so a learner that was taken over cannot replace newer ones.
        """
        with _failures():
            known = self._tokens(name)
            newest = max(known, default=0)
            token = newest if token is None else token
            if newest > token:
                raise LeaseLost(token, newest)
            with written_whole(self._path(name, token), is_synced=False, mode=0o600) as file:
                file.write(content)
            for earlier in known:
                if earlier < token:
                    self._path(name, earlier).unlink(missing_ok=True)

    def newer(self, name: str, than: PublicationVersion) -> tuple[PublicationVersion, bytes] | None:
        with _failures():
            path = self._path(name, max(self._tokens(name), default=0))
            try:
                if _version(path.stat()) == than:
                    return None
                with path.open("rb") as file:  # the file of this moment, whatever replaces it
                    return _version(os.fstat(file.fileno())), file.read()
            except FileNotFoundError:
                return None

    def close(self) -> None:
        pass

    def _path(self, name: str, token: int) -> Path:
        return self._folder / (f"published-{name}.{token}" if token else f"published-{name}")

    def _tokens(self, name: str) -> list[int]:
        start = f"published-{name}."
        ends = (file[len(start) :] for file in os.listdir(self._folder) if file.startswith(start))
        return [int(token) for token in ends if token.isdecimal()]


def _version(status: os.stat_result) -> PublicationVersion:
    return status.st_ino, status.st_mtime_ns, status.st_size


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LogUnavailable(f"publications cannot be read or written: {error}") from error
