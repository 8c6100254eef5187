"""What the learner publishes for front ends: the newest of each name, beside the log."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from rbmle.core.files import written_whole
from rbmle.service.log.errors import LeaseLost, LogUnavailable

PublicationVersion = object  # one that is equal is the same publication


class Publications(Protocol):
    """Contents by name, each replaced whole; one process puts, any number look, from any thread.

    They save time and nothing else: what is lost is published again.
    """

    def put(self, name: str, content: bytes, token: int | None = None) -> None:
        """Replace what has this name, as the learner with a fencing token; None: as the newest one.

        Raise LogUnavailable if that cannot be done, and LeaseLost if one with a larger token has put this
        name. Whatever happens, nobody finds this content while there is one of a larger token.
        """
        ...

    def newer(self, name: str, than: PublicationVersion) -> tuple[PublicationVersion, bytes] | None:
        """Return the version and the content of a name; None if there is none, or none that is new."""
        ...

    def close(self) -> None:
        """Let go."""
        ...


class FilePublications:
    """Publications in files beside the log, for the processes of one machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, content: bytes, token: int | None = None) -> None:
        """Replace a file in one step; it need not survive a power cut.

        Each token has files of its own, so one that was taken over cannot replace what came after it.
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
        """Return the content of the file of the largest token, if it is another one than the last."""
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
        """Do nothing."""

    def _path(self, name: str, token: int) -> Path:
        return self._folder / (f"published-{name}.{token}" if token else f"published-{name}")

    def _tokens(self, name: str) -> list[int]:
        """Return the tokens for which there is a file."""
        start = f"published-{name}."
        found = (file[len(start) :] for file in os.listdir(self._folder) if file.startswith(start))
        return [int(token) for token in found if token.isdecimal()]


def _version(status: os.stat_result) -> PublicationVersion:
    return status.st_ino, status.st_mtime_ns, status.st_size


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LogUnavailable(f"what is published cannot be read or written: {error}") from error
