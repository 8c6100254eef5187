"""A service on a disk that fails while a file with the fault's name is there.

`python -m tests.reliability.faulty FOLDER serve …` looks for FOLDER/full, FOLDER/unsyncable and
FOLDER/stuck.
"""

import sys
import time
from pathlib import Path

import apsw

from rbmle.cli import main
from rbmle.service import supervisor

FULL, UNSYNCABLE, STUCK = "full", "unsyncable", "stuck"
LOOK_SECONDS = 0.01


class FaultyDisk(apsw.VFS):
    """The default disk with errors on demand; it becomes the default of SQLite."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.below = apsw.vfs_names()[0]
        apsw.VFS.__init__(self, "faulty", self.below, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return FaultyFile(self, name, flags)

    def has(self, fault: str) -> bool:
        return (self.folder / fault).exists()


class FaultyFile(apsw.VFSFile):
    """A file that fails with its disk."""

    def __init__(
        self, disk: FaultyDisk, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self.disk = disk
        apsw.VFSFile.__init__(self, disk.below, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        if self.disk.has(FULL):
            raise apsw.FullError("the disk is full")
        apsw.VFSFile.xWrite(self, data, offset)

    def xSync(self, flags: int) -> None:
        while self.disk.has(STUCK):
            time.sleep(LOOK_SECONDS)
        if self.disk.has(UNSYNCABLE):
            raise apsw.IOError("the disk does not sync")
        apsw.VFSFile.xSync(self, flags)


if __name__ == "__main__":
    folder = sys.argv.pop(1)
    disk = FaultyDisk(Path(folder))
    supervisor.PROGRAM = (sys.executable, "-m", "tests.reliability.faulty", folder)
    main()
