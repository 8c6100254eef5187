"""A disk whose power can be cut, and what a SQLite log has lost afterwards.

`python -m tests.contract.log_power_cut 1000` cuts a thousand times, and a thousand times with the
control, which syncs too rarely and must lose rows.
"""

import random
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import apsw

from rbmle.service.log import LogDamaged, LogRefused, LogUnavailable, Row, Stored
from rbmle.service.log.sqlite import SQLiteLog

SECTOR = 512
CHANGES = (5, 50, 1000)  # that a process makes at most: it dies while opening, soon, or later
NAME = "power-cut"
MEMORY = Path("/dev/shm")  # the real disk below is of no interest
JOURNAL = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
Synchronous = Literal["FULL", "NORMAL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one power cut did: rows acknowledged, rows of these lost, and anything unsound."""

    acknowledged: int
    lost: int
    problems: tuple[str, ...]


@dataclass(kw_only=True)
class Content:
    """What a file holds on the platter, and the changes since its last sync, in their order."""

    synced: bytearray = field(default_factory=bytearray)
    changes: list[tuple[int, bytes | None]] = field(default_factory=list)  # None truncates there

    def sync(self) -> None:
        for offset, data in self.changes:
            change(self.synced, offset, data)
        self.changes.clear()

    def left(self, rng: random.Random) -> bytes:
        """Return what a power cut leaves: any of the changes, each in sectors, some of them torn."""
        platter = bytearray(self.synced)
        fate = rng.choice(((1, 0, 0), (0, 1, 0), (6, 3, 1), (3, 6, 1)))  # kept, lost, torn
        for offset, data in self.changes:
            if data is None:
                if rng.random() < 0.5:
                    change(platter, offset, None)
                continue
            for start, sector in sectors(offset, data):
                (end,) = rng.choices((len(sector), 0, rng.randrange(len(sector))), fate)
                change(platter, start, sector[:end])
        return bytes(platter)


class Disk(apsw.VFS):
    """The disk there is, and beside it what of it is on the platter: contents, and names.

    A name is there to stay when its folder is synced, which SQLite's own files do with the first
    sync of a journal that was opened to be made. After so many changes the process that uses it
    is dead: nothing is done.
    """

    def __init__(self) -> None:
        self.allowed = 0
        self.is_patient = False
        self.names: dict[str, Content] = {}
        self.synced_names: dict[str, Content] = {}
        self.renamed: list[tuple[str, Content | None]] = []  # since then; None is a deletion
        apsw.VFS.__init__(self, NAME, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        assert name is not None, "the log has no temporary files"
        path = name if isinstance(name, str) else name.filename()
        if path not in self.names:
            self.names[path] = Content()
            if Path(path).exists():  # made and synced by the log itself
                self.synced_names[path] = self.names[path]
            else:
                self.renamed.append((path, self.names[path]))
        return DiskFile(self, path, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.spend()
        apsw.VFS.xDelete(self, filename, syncdir)
        self.renamed.append((filename, None))
        del self.names[filename]
        if syncdir:
            self.sync_names()

    def allow(self, changes: int, is_patient: bool) -> None:
        """Let a process live for so many changes, or from then on until it syncs."""
        self.allowed, self.is_patient = changes, is_patient

    def spend(self, is_sync: bool = False) -> None:
        """Count a change, if the process is still alive."""
        self.allowed -= 1
        if self.allowed < 0 and (is_sync or not self.is_patient):
            self.is_patient = False
            raise apsw.IOError("the process is dead")

    def sync_names(self) -> None:
        self.synced_names = dict(self.names)
        self.renamed.clear()

    def left(self, rng: random.Random) -> dict[str, bytes]:
        """Return the files that a power cut leaves, with the names that made it to the platter."""
        names: dict[str, Content | None] = dict(self.synced_names)
        names |= dict(entry for entry in self.renamed if rng.random() < 0.5)
        return {path: content.left(rng) for path, content in names.items() if content is not None}


class DiskFile(apsw.VFSFile):
    """A file that changes at once for the process, and on the platter when it is synced."""

    def __init__(
        self, disk: Disk, path: str, name: str | apsw.URIFilename, flags: list[int]
    ) -> None:
        self.disk = disk
        self.content = disk.names[path]
        self.is_new_journal = bool(flags[0] & JOURNAL and flags[0] & apsw.SQLITE_OPEN_CREATE)
        apsw.VFSFile.__init__(self, "", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self.disk.spend()
        apsw.VFSFile.xWrite(self, data, offset)
        self.content.changes.append((offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        self.disk.spend()
        apsw.VFSFile.xTruncate(self, newsize)
        self.content.changes.append((newsize, None))

    def xSync(self, flags: int) -> None:
        self.disk.spend(is_sync=True)
        self.content.sync()
        if self.is_new_journal:
            self.disk.sync_names()
            self.is_new_journal = False


def power_cut(seed: int, synchronous: Synchronous) -> Outcome:
    """Append to a log until its power is cut, at any moment, and open what is left.

    Before that, in every second run, the process is killed and another takes over. What that one
    reads counts as acknowledged, for it will answer by it.
    """
    rng = random.Random(seed)
    disk = Disk()
    pages = rng.choice((4, 20, 1000))
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        path = Path(folder) / "log.db"
        acknowledged: list[Row] = []
        attempted: list[Row] = []
        for _ in range(rng.choice((1, 2))):
            disk.allow(int(rng.choice(CHANGES) * rng.random()), is_patient=rng.random() < 0.5)
            append_until_it_fails(path, synchronous, pages, acknowledged, attempted, rng)
        survivor = Path(folder) / "after"
        survivor.mkdir()
        for name, content in disk.left(rng).items():
            (survivor / Path(name).name).write_bytes(content)
        disk.unregister()
        return compare(survivor / path.name, acknowledged, attempted)


def append_until_it_fails(
    path: Path,
    synchronous: Synchronous,
    pages: int,
    acknowledged: list[Row],
    attempted: list[Row],
    rng: random.Random,
) -> None:
    """Fill up what is acknowledged, as the process that uses the log would, and what is in flight."""
    try:
        log = SQLiteLog(path, vfs=NAME, synchronous=synchronous, checkpoint_pages=pages)
    except LogUnavailable:
        return
    with closing(log), suppress(LogUnavailable):
        seen = [stored.row for stored in log.read()]
        assert seen[: len(acknowledged)] == acknowledged, "a killed process has lost rows"
        acknowledged[:] = seen
        while True:
            number = len(acknowledged)
            attempted[:] = [random_row(number + i, rng) for i in range(rng.randint(1, 6))]
            log.append(attempted)
            acknowledged += attempted


def compare(path: Path, acknowledged: Sequence[Row], attempted: Sequence[Row]) -> Outcome:
    """Open a log and say what it lost; a batch in flight may be in it as a whole, or not at all."""
    try:
        with closing(SQLiteLog(path)) as log:
            problems = log.verify()
            rows = [stored.row for stored in log.read()]
            expected = [*acknowledged, *attempted]
            lost = max(len(acknowledged) - len(rows), 0)
            if rows != expected[: len(rows)]:
                problems.append("rows are not those that were appended")
            if len(acknowledged) < len(rows) < len(expected):
                problems.append("half of a batch was stored")
            row = random_row(10**6, random.Random(0))
            log.append([row])
            if list(log.read(len(rows))) != [Stored(len(rows) + 1, row)]:
                problems.append("it does not go on where it was")
    except (LogDamaged, LogRefused) as error:
        lost, problems = len(acknowledged), [str(error)]
    return Outcome(acknowledged=len(acknowledged), lost=lost, problems=tuple(problems))


def random_row(number: int, rng: random.Random) -> Row:
    """Return a row of a few bytes to a few pages."""
    payload = rng.randbytes(rng.choice((0, 40, 400, 9000)))
    return Row("kind", f"event {number // 3}", f"request {number}", number, payload)


def sectors(offset: int, data: bytes) -> list[tuple[int, bytes]]:
    """Return a write as writes of one sector each."""
    ends = range(offset - offset % SECTOR + SECTOR, offset + len(data) + SECTOR, SECTOR)
    parts = [(max(end - SECTOR, offset), min(end, offset + len(data))) for end in ends]
    return [(start, data[start - offset : end - offset]) for start, end in parts if start < end]


def change(platter: bytearray, offset: int, data: bytes | None) -> None:
    """Write at an offset, or truncate there; what lies between the end and the offset is zero."""
    if data is None:
        del platter[offset:]
    if len(platter) < offset:
        platter.extend(bytes(offset - len(platter)))
    if data:
        platter[offset : offset + len(data)] = data


def total(seeds: Sequence[int], synchronous: Synchronous) -> Outcome:
    """Return the outcomes of all seeds, added up."""
    outcomes = [power_cut(seed, synchronous) for seed in seeds]
    return Outcome(
        acknowledged=sum(outcome.acknowledged for outcome in outcomes),
        lost=sum(outcome.lost for outcome in outcomes),
        problems=tuple(problem for outcome in outcomes for problem in outcome.problems),
    )


def main(seeds: int) -> int:
    """Print both totals; return 0 if only the control lost rows."""
    full, control = (total(range(seeds), synchronous) for synchronous in ("FULL", "NORMAL"))
    for name, outcome in (("FULL", full), ("NORMAL, the control", control)):
        print(
            f"{seeds} power cuts, synchronous={name}: {outcome.lost} lost of "
            f"{outcome.acknowledged} acknowledged rows, {len(outcome.problems)} problems"
        )
    return int(full.lost > 0 or bool(full.problems) or control.lost == 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
