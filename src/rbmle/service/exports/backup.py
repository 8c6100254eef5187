"""Backups: one file with the whole state of a service, taken while it runs, and checked when it is restored.

A backup is a ZIP archive. It has the rows of the log, in their order and from either database, the files of the
folder (keys, checkpoints, ended sessions), the publications, and at its end a manifest with the size and
SHA-256 of each of these. A file without a manifest is incomplete, and is refused.
"""

import errno
import hashlib
import os
import struct
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copyfile, rmtree
from typing import IO, Any

import msgspec

import rbmle
from rbmle.core.errors import RBMLEError, SettingError
from rbmle.core.files import written_whole
from rbmle.service.access.keys import KEYS_FILE
from rbmle.service.exports.rows import Step, ignore_step
from rbmle.service.learner.checkpoints import Checkpoints, last_record
from rbmle.service.log import LOG_FILE, is_postgres, open_log, open_publications
from rbmle.service.log.backend import DatabaseLog
from rbmle.service.log.base import (
    Base,
    Extent,
    Log,
    LogChanged,
    LogDamaged,
    LogError,
    Row,
    Stored,
    mask_passwords,
    origin_of,
)
from rbmle.service.log.publications import DAYS, MODEL, REPORT, Publications
from rbmle.service.model.private import KEY_FILE

FORMAT = "rbmle backup"
VERSION, NUMBERED = 1, 2  # the second if records have left the log: rows then have their numbers
TOGETHER = 500  # rows in a block of the archive, and in a transaction when they are restored
BLOCK = 2**20  # bytes that are copied at a time
OWNER_ONLY = 0o600
SESSIONS_FILE = "sessions-ended"
PUBLISHED = (MODEL, REPORT, DAYS)
_ROWS, _MANIFEST = "log.rows", "manifest.json"
_FILES, _PUBLISHED = "files/", "published/"
_BASE = "log.base"
_LENGTH = struct.Struct(">Q")
_PlainRow = tuple[str, str, str | None, int, bytes]
_NumberedRow = tuple[int, str, str, str | None, int, bytes]
# Errors of zipfile and the decoders when bytes of an archive are damaged.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ValueError,
    EOFError,
    KeyError,
    RuntimeError,
)


class BackupError(RBMLEError):
    """A file that is damaged, or not a backup."""


class ArchiveEntry(msgspec.Struct, frozen=True):
    """The content of one entry of a backup."""

    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a backup, with their checksums."""

    format: str = FORMAT
    version: int = VERSION
    rbmle: str
    time: int  # when it was taken, in milliseconds since the epoch
    origin: str  # of the log
    rows: int
    last: int = 0  # the number of the last row, where rows have numbers
    erasures: int = 0
    base: int = (
        0  # the number of the last row that is covered by the base of the log; 0: it has none
    )
    needed: tuple[int, ...] = ()  # of the base
    entries: dict[str, ArchiveEntry]

    @property
    def files(self) -> list[str]:
        return [name.removeprefix(_FILES) for name in self.entries if name.startswith(_FILES)]


def back_up(
    log: Log,
    publications: Publications,
    data: Path | None,
    path: Path,
    *,
    settings: Path | None = None,
    step: Step = ignore_step,
) -> Manifest:
    """Write a backup, whole or not at all, readable to its owner only; the service may run meanwhile.

    Checkpoints and publications are copied first, so that the log has every record that they know. Raise
    LogDamaged at a damaged row, and LogChanged if records are erased or deleted meanwhile.
    """
    entries: dict[str, ArchiveEntry] = {}
    with (
        written_whole(path, mode=OWNER_ONLY) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        for file_path in _files_of(data, settings):
            with suppress(FileNotFoundError), file_path.open("rb") as source:  # one may be deleted
                name = _FILES + file_path.name
                entries[name] = _write_entry(archive, name, iter(lambda: source.read(BLOCK), b""))
        for name in PUBLISHED:
            if (newest := publications.newer(name, None)) is not None:
                entries[_PUBLISHED + name] = _write_entry(archive, _PUBLISHED + name, [newest[1]])
        extent, base, last = log.extent(), log.base(), log.last()
        if base is not None:
            entries[_BASE] = _write_entry(archive, _BASE, [base.content])
        reader = _RowBlocks(log, last, step, is_numbered=extent != Extent())
        entries[_ROWS] = _write_entry(archive, _ROWS, reader.blocks())
        if log.extent() != extent:
            raise LogChanged("records were erased or deleted meanwhile; take the backup again")
        manifest = Manifest(
            version=NUMBERED if reader.is_numbered else VERSION,
            rbmle=rbmle.__version__,
            time=time.time_ns() // 1_000_000,
            origin=origin_of(log),
            rows=reader.count,
            last=last,
            erasures=extent.erasures,
            base=0 if base is None else base.seq,
            needed=() if base is None else base.needed,
            entries=entries,
        )
        archive.writestr(zipfile.ZipInfo(_MANIFEST), msgspec.json.encode(manifest))
    return manifest


def check(path: Path, step: Step = ignore_step) -> Manifest:
    """Read a whole backup, and return its manifest; raise BackupError if it is damaged."""
    with _open(path) as backup:
        for name in backup.manifest.entries:
            if name != _ROWS:
                for _ in backup.content(name):
                    pass
        for _ in backup.rows(step):
            pass
        return backup.manifest


def restore(
    path: Path,
    data: Path,
    url: str | None = None,
    *,
    overwrites: bool = False,
    step: Step = ignore_step,
) -> tuple[Manifest, Path | None]:
    """Restore the folder of a service, and its log; return the manifest, and the new path of an old folder.

    Everything is checked before it takes its place: the folder appears whole or not at all, and rows in
    PostgreSQL come in one transaction.
    """
    if url is not None and not is_postgres(url):
        raise SettingError(
            "--log is for postgresql://…; without it the log is restored to the folder"
        )
    with _open(path) as backup, _place_for(data, url, overwrites=overwrites) as making:
        for name in backup.manifest.files:
            with written_whole(making / name, mode=OWNER_ONLY) as file:
                for block in backup.content(_FILES + name):
                    file.write(block)
        published = {
            name: b"".join(backup.content(_PUBLISHED + name))
            for name in PUBLISHED
            if _PUBLISHED + name in backup.manifest.entries
        }
        if url is None:
            _fill_file(making / LOG_FILE, backup, step)
        else:
            _fill_server(url, backup, step, overwrites=overwrites)
        with closing(open_publications(url or str(making / LOG_FILE))) as publications:
            for name, content in published.items():
                publications.put(name, content)
        aside = _swap(making, data)
        return backup.manifest, aside


class _Backup:
    """An open backup."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path, self._archive = path, archive
        if _MANIFEST not in archive.namelist():
            raise BackupError(f"{path} is not a backup of rbmle: it has no {_MANIFEST}")
        self.manifest = msgspec.json.decode(archive.read(_MANIFEST), type=Manifest)
        format, version = self.manifest.format, self.manifest.version
        if format != FORMAT or version not in (VERSION, NUMBERED):
            raise BackupError(
                f"{path} is {format} {version}, but this rbmle knows {FORMAT} {NUMBERED}; install the version "
                f"that wrote it, {self.manifest.rbmle}, or a later one"
            )
        if any("/" in name or name.startswith(".") for name in self.manifest.files):
            raise BackupError(f"{path} has a file whose path leaves the folder")

    def content(self, name: str) -> Iterator[bytes]:
        """Yield the blocks of an entry; raise BackupError at its end if they are damaged."""
        with _readable(self.path), self._archive.open(name) as source:
            yield from _check_blocks(source, self.manifest.entries[name], name, self.path)

    def base(self) -> Base | None:
        """Return the base of the log; None if it has none."""
        manifest = self.manifest
        if not manifest.base:
            return None
        return Base(manifest.base, manifest.needed, b"".join(self.content(_BASE)))

    def rows(self, step: Step) -> Iterator[list[Stored]]:
        """Yield the rows of the log in their order, in batches; raise BackupError as `content` does."""
        is_numbered = self.manifest.version == NUMBERED
        decoder = msgspec.msgpack.Decoder(list[_NumberedRow] if is_numbered else list[_PlainRow])
        count, buffer = 0, bytearray()
        for block in self.content(_ROWS):
            buffer += block
            while len(buffer) >= _LENGTH.size:
                (size,) = _LENGTH.unpack_from(buffer)
                end = _LENGTH.size + size
                if len(buffer) < end:
                    break
                encoded = bytes(buffer[_LENGTH.size : end])
                values: Any = decoder.decode(encoded)
                if not is_numbered:
                    values = [(seq, *row) for seq, row in enumerate(values, count + 1)]
                rows = [Stored(seq, Row(*row)) for seq, *row in values]
                del buffer[:end]
                yield rows
                count += len(rows)
                step(count)
        if buffer or count != self.manifest.rows:
            raise BackupError(
                f"{self.path} has {count:,} rows of the log, but was written with {self.manifest.rows:,}"
            )


@contextmanager
def _open(path: Path) -> Iterator[_Backup]:
    with path.open("rb") as file, ExitStack() as held:
        with _readable(path):
            backup = _Backup(path, held.enter_context(zipfile.ZipFile(file)))
        yield backup


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn the errors of a damaged archive into BackupError."""
    try:
        yield
    except (*_DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # else a damaged offset
            raise
        raise BackupError(
            f"{path} is damaged, or incomplete, or not a backup: {error}; use another backup"
        ) from None


def _files_of(data: Path | None, settings: Path | None) -> Iterator[Path]:
    if settings is not None:
        yield settings
    if data is not None:
        for name in (KEYS_FILE, SESSIONS_FILE, KEY_FILE):
            if (data / name).is_file():
                yield data / name
        yield from Checkpoints(data).paths()


class _RowBlocks:
    """The rows of a log in blocks, each after its length."""

    def __init__(self, log: Log, last: int, step: Step, *, is_numbered: bool) -> None:
        self.count, self.is_numbered = 0, is_numbered
        self._log, self._last, self._step = log, last, step

    def blocks(self) -> Iterator[bytes]:
        """Yield the blocks of the rows up to the last."""
        rows: list[_PlainRow | _NumberedRow] = []
        for stored in self._log.read():
            if stored.seq > self._last:
                break
            row = stored.row
            plain = (row.kind, row.event, row.request, row.time, row.payload)
            rows.append((stored.seq, *plain) if self.is_numbered else plain)
            if len(rows) == TOGETHER:
                yield self._encode(rows)
                rows = []
            self._step(stored.seq)
        if rows:
            yield self._encode(rows)

    def _encode(self, rows: Sequence[_PlainRow | _NumberedRow]) -> bytes:
        self.count += len(rows)
        block = msgspec.msgpack.encode(rows)
        return _LENGTH.pack(len(block)) + block


def _write_entry(archive: zipfile.ZipFile, name: str, blocks: Iterable[bytes]) -> ArchiveEntry:
    size, digest = 0, hashlib.sha256()
    with archive.open(name, "w", force_zip64=True) as entry:
        for block in blocks:
            entry.write(block)
            digest.update(block)
            size += len(block)
    return ArchiveEntry(size, digest.hexdigest())


def _check_blocks(source: IO[bytes], entry: ArchiveEntry, name: str, path: Path) -> Iterator[bytes]:
    size, digest = 0, hashlib.sha256()
    while block := source.read(BLOCK):
        size += len(block)
        digest.update(block)
        yield block
    if ArchiveEntry(size, digest.hexdigest()) != entry:
        raise BackupError(f"{path} is damaged: {name} has a wrong checksum; use another backup")


@contextmanager
def _place_for(data: Path, url: str | None, *, overwrites: bool) -> Iterator[Path]:
    """Yield a temporary folder for the new one; raise SettingError if data would be lost, or are in use."""
    aside = _aside(data)
    if data.exists() and any(data.iterdir()):
        if not overwrites:
            raise SettingError(
                f"{data} is not empty; give another folder, or --overwrite, which moves it to {aside}"
            )
        if aside.exists():
            raise SettingError(f"{aside} is from an earlier restore; delete it, or move it away")
    making = data.absolute().with_name(f".{data.absolute().name}.restoring")
    with _hold_lease(data, url):
        rmtree(making, ignore_errors=True)
        making.mkdir(parents=True, mode=0o700)
        try:
            yield making
        finally:
            rmtree(making, ignore_errors=True)


@contextmanager
def _hold_lease(data: Path, url: str | None) -> Iterator[None]:
    """Hold the lease of an existing log, so that no learner starts; raise SettingError if one runs."""
    if url is None and not (data / LOG_FILE).exists():
        yield
        return
    with closing(open_log(url or str((data / LOG_FILE).absolute()))) as log:
        lease = log.lease()
        try:
            if not lease.take():
                raise SettingError(
                    f"a service uses the log in {mask_passwords(url) if url else data}; stop it first"
                )
            yield
        finally:
            lease.release()


def _fill_file(path: Path, backup: _Backup, step: Step) -> None:
    from rbmle.service.log.sqlite import SQLiteLog

    with closing(SQLiteLog(path)) as log:
        for rows in backup.rows(step):
            log.fill(rows)
        _restore_base(log, backup)
    with closing(open_log(str(path), is_read_only=True)) as restored:
        problems = restored.verify()
        if problems:
            raise BackupError(f"the restored log differs from the one in the backup: {problems[0]}")
        _check_restored(restored, backup.manifest)


def _fill_server(url: str, backup: _Backup, step: Step, *, overwrites: bool) -> None:
    from rbmle.service.log.postgres import PostgresLog, replace_rows

    replace_rows(url, backup.rows(step), overwrites=overwrites)
    with closing(PostgresLog(url)) as log:
        _restore_base(log, backup)
        _check_restored(log, backup.manifest)


def _restore_base(log: DatabaseLog, backup: _Backup) -> None:
    base, erasures = backup.base(), backup.manifest.erasures
    if base is not None or erasures:
        log.restore_base(base, erasures)


def _check_restored(log: Log, manifest: Manifest) -> None:
    last, origin = log.last(), origin_of(log)
    if (last, origin) != (manifest.last or manifest.rows, manifest.origin):
        raise BackupError(
            f"the restored log differs from the one in the backup: it ends at row {last:,}"
        )


def _aside(data: Path) -> Path:
    return data.absolute().with_name(f"{data.absolute().name}.before-restore")


def _swap(making: Path, data: Path) -> Path | None:
    """Put a folder in its place; return the new path of the old one."""
    data, aside, moved = data.absolute(), _aside(data), None
    if data.exists() and any(data.iterdir()):
        data.rename(aside)
        moved = aside
    elif data.exists():
        data.rmdir()
    try:
        making.rename(data)
    except OSError:
        if moved is not None:
            moved.rename(data)
        raise
    folder = os.open(data.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return moved


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvaged:
    """What was salvaged of a log, and what was lost."""

    kept: int  # records, from the first on
    kept_until: int | None  # the time of the last of them, in milliseconds; None: there is none
    problem: str  # of the first record that is lost, or of an index; empty: the log is sound
    last: int | None  # the number of the last record of the log; None: it cannot be read
    sound: int | None  # records that can be read but are lost, as they follow a damaged one

    @property
    def lost(self) -> int | None:
        """Return how many records are lost; None if that is unknown."""
        return None if self.last is None else max(0, self.last - self.kept)


class _SoundRows:
    """Reads up to the first damaged record, and remembers what is wrong with it."""

    def __init__(self, log: Log) -> None:
        self.log, self.problem = log, ""
        self._deleted = log.extent().deleted
        self.damaged: int | None = None  # the number of that record, if it is known

    def rows(self) -> Iterator[Stored]:
        """Yield records without a gap, from the first on."""
        after = 0
        limit: int | None = None
        while True:
            begun = after
            try:
                for stored in self.log.read(after, limit):
                    if stored.seq > max(after, self._deleted) + 1:
                        self.problem = (
                            f"row {after + 1} is missing: row {stored.seq} follows row {after}"
                        )
                        return
                    yield stored
                    after = stored.seq
            except LogError as error:
                self.damaged = error.seq if isinstance(error, LogDamaged) else None
                if self.damaged is not None or limit is not None:
                    self.problem = str(error)
                    return
                limit = 1  # some of the rows that were read at once may be sound
            else:
                if limit is None or after == begun:
                    return


def salvage(log: Log, data: Path | None, out: Path, step: Step = ignore_step) -> Salvaged:
    """Make a folder with the records before the first damaged one, the keys, and checkpoints of these records.

    The folder appears whole or not at all, and not if the log is sound. The damaged log stays as it is. Where
    only an index is damaged, every record is kept, with a new index.
    """
    if out.exists():
        raise SettingError(f"{out} exists; give the name of a new folder")
    out = out.absolute()
    making = out.with_name(f".{out.name}.salvaging")
    rmtree(making, ignore_errors=True)
    making.mkdir(parents=True, mode=0o700)
    try:
        salvaged = _copy_log(log, making / LOG_FILE, step)
        if not salvaged.problem:
            salvaged = replace(salvaged, problem=next(iter(log.verify()), ""))
        if salvaged.problem and salvaged.kept:
            _copy_files(data, making, salvaged.kept)
            making.rename(out)
    finally:
        rmtree(making, ignore_errors=True)
    return salvaged


def _copy_log(log: Log, path: Path, step: Step) -> Salvaged:
    from rbmle.service.log.sqlite import SQLiteLog

    reader, kept, until = _SoundRows(log), 0, None
    with closing(SQLiteLog(path)) as copy:
        rows = []
        for stored in reader.rows():
            rows.append(stored)
            kept, until = stored.seq, stored.row.time
            if len(rows) == TOGETHER:
                copy.fill(rows)
                rows = []
            step(stored.seq)
        if rows:
            copy.fill(rows)
        if (extent := log.extent()) != Extent():
            copy.restore_base(log.base(), extent.erasures)
    last = None
    with suppress(LogError):
        last = log.last()
    return Salvaged(
        kept=kept,
        kept_until=until,
        problem=reader.problem,
        last=last,
        sound=_sound_after(log, reader.damaged) if reader.damaged is not None else None,
    )


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
    if data is None:
        return
    files = [data / KEYS_FILE, data / SESSIONS_FILE, data / KEY_FILE]
    files += [path for path in Checkpoints(data).paths() if 0 < last_record(path) <= kept]
    for path in files:
        if path.is_file():
            copyfile(path, making / path.name)
            (making / path.name).chmod(OWNER_ONLY)
