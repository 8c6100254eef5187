"""What can be saved of a damaged log: all records before the first one that is damaged."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile, rmtree

from rbmle.core.errors import SettingError
from rbmle.service.access.keys import KEYS_FILE
from rbmle.service.exports.backup import OWNER_ONLY, SESSIONS_FILE
from rbmle.service.exports.rows import Step, unseen
from rbmle.service.learning.checkpoints import Checkpoints
from rbmle.service.log.base import Log, Stored
from rbmle.service.log.errors import LogDamaged, LogError
from rbmle.service.log.opening import LOG_FILE, open_log

TOGETHER = 500  # rows in a transaction
NEAR = 64  # rows that are read one by one where many at once cannot be read


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvaged:
    """What was kept of a log, and what was lost."""

    kept: int  # records, from the first on
    kept_until: int | None  # the time of the last of them, in milliseconds; None: there is none
    problem: str  # why it ended there; empty: it is the whole log
    last: int | None  # the number of the last record of the damaged log; None: it cannot be read
    sound: int | None  # records after the damage that can be read, and are lost all the same

    @property
    def lost(self) -> int | None:
        """Return how many records are lost; None if that cannot be known."""
        return None if self.last is None else max(0, self.last - self.kept)


class _Reader:
    """Reads up to the first record that is damaged, and remembers why it ended."""

    def __init__(self, log: Log) -> None:
        self.log, self.problem = log, ""
        self.damaged: int | None = None  # the number of that record, where it is known

    def rows(self) -> Iterator[Stored]:
        """Yield records without a gap, from the first on."""
        after, alone = 0, 0
        while True:
            begun = after
            try:
                for stored in self.log.read(after, 1 if alone else None):
                    if stored.seq != after + 1:
                        self.problem = (
                            f"row {after + 1} is missing: row {stored.seq} follows row {after}"
                        )
                        return
                    yield stored
                    after = stored.seq
            except LogError as error:
                self.damaged = error.seq if isinstance(error, LogDamaged) else None
                if self.damaged is not None or alone:
                    self.problem = str(error)
                    return
                alone = NEAR  # some of the rows that were read at once may be sound
                continue
            if not alone or after == begun:
                return
            alone -= 1


def salvage(log: Log, data: Path | None, out: Path, step: Step = unseen) -> Salvaged:
    """Make a folder with the records before the first damaged one, keys, and checkpoints that know no more.

    It is there when all of it is, or not at all; nothing is made of a log that is sound. The damaged log stays
    as it is.
    """
    if out.exists():
        raise SettingError(f"{out} is there already; give the name of a new folder")
    out = out.absolute()
    making = out.with_name(f".{out.name}.salvaging")
    rmtree(making, ignore_errors=True)
    making.mkdir(parents=True, mode=0o700)
    try:
        found = _copied(log, making / LOG_FILE, step)
        if found.problem and found.kept:
            _copy_files(data, making, found.kept)
            making.rename(out)
    finally:
        rmtree(making, ignore_errors=True)
    return found


def _copied(log: Log, path: Path, step: Step) -> Salvaged:
    reader, kept, until = _Reader(log), 0, None
    with closing(open_log(str(path))) as copy:
        rows = []
        for stored in reader.rows():
            rows.append(stored.row)
            kept, until = stored.seq, stored.row.time
            if len(rows) == TOGETHER:
                copy.append(rows)
                rows = []
            step(stored.seq)
        if rows:
            copy.append(rows)
    last = _last(log)
    return Salvaged(
        kept=kept,
        kept_until=until,
        problem=reader.problem,
        last=last,
        sound=_sound_after(log, reader.damaged) if reader.damaged is not None else None,
    )


def _last(log: Log) -> int | None:
    try:
        return log.last()
    except LogError:
        return None


def _sound_after(log: Log, damaged: int) -> int:
    """Return how many records can be read after a damaged one."""
    count, after = 0, damaged
    while True:
        try:
            for stored in log.read(after):
                count += 1
                after = stored.seq
        except LogDamaged as error:
            if error.seq is None or error.seq <= after:
                return count
            after = error.seq
        except LogError:
            return count
        else:
            return count


def _copy_files(data: Path | None, making: Path, kept: int) -> None:
    """Copy what stands beside a log, if it knows no record that is lost."""
    if data is None:
        return
    files = [data / KEYS_FILE, data / SESSIONS_FILE]
    for path in Checkpoints(data).paths():
        number = path.stem.rpartition("-")[2]
        if number.isdecimal() and int(number) <= kept:
            files.append(path)
    for path in files:
        if path.is_file():
            copyfile(path, making / path.name)
            (making / path.name).chmod(OWNER_ONLY)
