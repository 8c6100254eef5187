"""What the learner publishes for front ends: the newest of each name, beside the log."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from rbmle.core.files import written_whole
from rbmle.service.log.errors import LogUnavailable

PublicationVersion = object  # one that is equal is the same publication


class Publications(Protocol):
    """Contents by name, each replaced whole; one process puts, any number look.

    They save time and nothing else: what is lost is published again.
    """

    def put(self, name: str, content: bytes) -> None:
        """Replace what has this name; raise LogUnavailable if that cannot be done."""
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

    def put(self, name: str, content: bytes) -> None:
        """Replace a file in one step; it need not survive a power cut."""
        with _failures(), written_whole(self._path(name), is_synced=False, mode=0o600) as file:
            file.write(content)

    def newer(self, name: str, than: PublicationVersion) -> tuple[PublicationVersion, bytes] | None:
        """Return the content of a file, if it is another one than the last."""
        path = self._path(name)
        with _failures():
            try:
                if _version(path.stat()) == than:
                    return None
                with path.open("rb") as file:  # the file of this moment, whatever replaces it
                    return _version(os.fstat(file.fileno())), file.read()
            except FileNotFoundError:
                return None

    def close(self) -> None:
        """Do nothing."""

    def _path(self, name: str) -> Path:
        return self._folder / f"published-{name}"


def _version(status: os.stat_result) -> PublicationVersion:
    return status.st_ino, status.st_mtime_ns, status.st_size


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LogUnavailable(f"what is published cannot be read or written: {error}") from error
