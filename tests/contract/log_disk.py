"""A disk that can be full, or fail to sync, and a place on it for a SQLite log."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from rbmle.service.log import Log
from rbmle.service.log.sqlite import SQLiteLog

NUMBERS = itertools.count()


class FailingDisk(apsw.VFS):
    """The disk there is, with errors on demand."""

    def __init__(self) -> None:
        self.name = f"failing-{next(NUMBERS)}"
        self.is_full = False
        self.is_unsyncable = False
        self.is_unreadable = False
        apsw.VFS.__init__(self, self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return FailingFile(self, name, flags)


class FailingFile(apsw.VFSFile):
    def __init__(
        self, disk: FailingDisk, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self.disk = disk
        apsw.VFSFile.__init__(self, "", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        if self.disk.is_unreadable:
            raise apsw.IOError("the disk does not read")
        return apsw.VFSFile.xRead(self, amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        if self.disk.is_full:
            raise apsw.FullError("the disk is full")
        apsw.VFSFile.xWrite(self, data, offset)

    def xSync(self, flags: int) -> None:
        if self.disk.is_unsyncable:
            raise apsw.IOError("the disk does not sync")
        apsw.VFSFile.xSync(self, flags)


@dataclass(kw_only=True)
class OnDisk:
    """A place for a SQLite log, in a folder that need not exist."""

    path: Path
    disk: FailingDisk = field(default_factory=FailingDisk)

    def open(self) -> Log:
        return SQLiteLog(self.path, vfs=self.disk.name)

    def damage(self, seq: int) -> None:
        connection = apsw.Connection(str(self.path))
        ((payload,),) = connection.execute("SELECT payload FROM log WHERE seq = ?", (seq,))
        flipped = bytes([payload[0] ^ 1]) + payload[1:]
        connection.execute("UPDATE log SET payload = ? WHERE seq = ?", (flipped, seq))
        connection.close()

    @contextmanager
    def failing(self) -> Iterator[None]:
        self.disk.is_full = True
        yield
        self.disk.is_full = False
