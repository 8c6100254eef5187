"""Backups: one file with all that a service is made of, taken while it runs, and checked when it is restored.

A backup is a ZIP archive. It has the rows of the log, in their order and from whichever database, the
files of the folder (keys, checkpoints, ended sessions), what is published, and at its end a manifest with
the size and SHA-256 of each of these. A file without a manifest was not written to its end, and is refused.
"""

import hashlib
import os
import struct
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import IO

import msgspec

import rbmle
from rbmle.core.errors import RBMLEError, SettingError
from rbmle.core.files import written_whole
from rbmle.service.access.keys import KEYS_FILE
from rbmle.service.exports.rows import Step, unseen
from rbmle.service.learning.checkpoints import Checkpoints, origin_of
from rbmle.service.learning.learner import MODEL
from rbmle.service.learning.report import DAYS
from rbmle.service.learning.standing_by import REPORT
from rbmle.service.log.base import Log, Row
from rbmle.service.log.errors import masked
from rbmle.service.log.opening import LOG_FILE, is_postgres, open_log, open_publications
from rbmle.service.log.publications import Publications

FORMAT = "rbmle backup"
VERSION = 1
TOGETHER = 500  # rows in a block of the archive, and in a transaction when they are restored
BLOCK = 2**20  # bytes that are copied at a time
OWNER_ONLY = 0o600
SESSIONS_FILE = "sessions-ended"
PUBLISHED = (MODEL, REPORT, DAYS)

_ROWS, _MANIFEST = "log.rows", "manifest.json"
_FILES, _PUBLISHED = "files/", "published/"
_LENGTH = struct.Struct(">Q")
# What zipfile and the decoders raise when any byte of an archive is another one.
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
    """A backup that is damaged, or none."""


class Entry(msgspec.Struct, frozen=True):
    """The content of one entry of a backup."""

    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup has, and how it can be checked."""

    format: str = FORMAT
    version: int = VERSION
    rbmle: str
    time: int  # when it was taken, in milliseconds since the epoch
    origin: str  # of the log
    rows: int
    entries: dict[str, Entry]

    @property
    def files(self) -> list[str]:
        """Return the names of the files of the folder."""
        return [name.removeprefix(_FILES) for name in self.entries if name.startswith(_FILES)]


def back_up(
    log: Log,
    publications: Publications,
    data: Path | None,
    path: Path,
    *,
    settings: Path | None = None,
    step: Step = unseen,
) -> Manifest:
    """Write a backup, whole or not at all, for its owner's eyes; the service may run meanwhile.

    Checkpoints and publications are taken first, so that the log has every record that they know.
    Raise LogDamaged at a row that is not what was stored.
    """
    entries: dict[str, Entry] = {}
    with (
        written_whole(path, mode=OWNER_ONLY) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        for found in _files_of(data, settings):
            with (
                suppress(FileNotFoundError),
                found.open("rb") as source,
            ):  # it may just be tidied up
                name = _FILES + found.name
                entries[name] = _written(archive, name, iter(lambda: source.read(BLOCK), b""))
        for name in PUBLISHED:
            if (newest := publications.newer(name, None)) is not None:
                entries[_PUBLISHED + name] = _written(archive, _PUBLISHED + name, [newest[1]])
        rows = log.last()
        entries[_ROWS] = _written(archive, _ROWS, _blocks(log, rows, step))
        manifest = Manifest(
            rbmle=rbmle.__version__,
            time=time.time_ns() // 1_000_000,
            origin=origin_of(log),
            rows=rows,
            entries=entries,
        )
        archive.writestr(zipfile.ZipInfo(_MANIFEST), msgspec.json.encode(manifest))
    return manifest


def check(path: Path, step: Step = unseen) -> Manifest:
    """Read all of a backup, and return its manifest; raise BackupError if it is not what was written."""
    with _opened(path) as backup:
        for name in backup.manifest.entries:
            if name != _ROWS:
                for _ in backup.content(name):
                    pass
        for _ in backup.rows(step):
            pass
        return backup.manifest


def restore(
    path: Path, data: Path, url: str | None = None, *, overwrites: bool = False, step: Step = unseen
) -> tuple[Manifest, Path | None]:
    """Make the folder of a service, and its log; return the manifest, and where a former folder went.

    Everything is checked before it takes its place: the folder is there when all of it is, or not at all,
    and in PostgreSQL the rows come in one transaction.
    """
    if url is not None and not is_postgres(url):
        raise SettingError(
            "--log is for postgresql://…; without it the log is restored to the folder"
        )
    with _opened(path) as backup, _place_for(data, url, overwrites=overwrites) as making:
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
    """A backup that is read."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path, self._archive = path, archive
        if _MANIFEST not in archive.namelist():
            raise BackupError(f"{path} is no backup of rbmle: it has no {_MANIFEST}")
        self.manifest = msgspec.json.decode(archive.read(_MANIFEST), type=Manifest)
        found = (self.manifest.format, self.manifest.version)
        if found != (FORMAT, VERSION):
            raise BackupError(
                f"{path} is {found[0]} {found[1]}, but this rbmle knows {FORMAT} {VERSION}; install the "
                f"version that wrote it, {self.manifest.rbmle}, or a later one"
            )
        if any("/" in name or name.startswith(".") for name in self.manifest.files):
            raise BackupError(f"{path} has a file that would be outside of the folder")

    def content(self, name: str) -> Iterator[bytes]:
        """Yield the blocks of an entry; raise BackupError at its end if they are not what was written."""
        with _readable(self.path), self._archive.open(name) as source:
            yield from _checked(source, self.manifest.entries[name], name, self.path)

    def rows(self, step: Step) -> Iterator[list[Row]]:
        """Yield the rows of the log in their order, some at a time; raise BackupError as `content` does."""
        decoder = msgspec.msgpack.Decoder(list[tuple[str, str, str | None, int, bytes]])
        count, buffer = 0, bytearray()
        for block in self.content(_ROWS):
            buffer += block
            while len(buffer) >= _LENGTH.size:
                (size,) = _LENGTH.unpack_from(buffer)
                end = _LENGTH.size + size
                if len(buffer) < end:
                    break
                rows = [
                    Row(*values) for values in decoder.decode(bytes(buffer[_LENGTH.size : end]))
                ]
                del buffer[:end]
                yield rows
                count += len(rows)
                step(count)
        if buffer or count != self.manifest.rows:
            raise BackupError(
                f"{self.path} has {count:,} rows of the log, but was written with {self.manifest.rows:,}"
            )


@contextmanager
def _opened(path: Path) -> Iterator[_Backup]:
    """Yield a backup; raise BackupError if it is none."""
    with path.open("rb") as file, ExitStack() as held:
        with _readable(path):
            backup = _Backup(path, held.enter_context(zipfile.ZipFile(file)))
        yield backup


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Raise BackupError for whatever damage leads to while a backup is read."""
    try:
        yield
    except _DAMAGE as error:
        raise BackupError(
            f"{path} is damaged, or not a backup that was written to its end: {error}; use another backup"
        ) from None


def _files_of(data: Path | None, settings: Path | None) -> Iterator[Path]:
    """Yield the files of a folder that belong to a backup."""
    if settings is not None:
        yield settings
    if data is not None:
        for name in (KEYS_FILE, SESSIONS_FILE):
            if (data / name).is_file():
                yield data / name
        yield from Checkpoints(data).paths()


def _blocks(log: Log, last: int, step: Step) -> Iterator[bytes]:
    """Yield the rows of a log, each block with its length before it."""
    rows: list[tuple[str, str, str | None, int, bytes]] = []
    for stored in log.read(0, last):
        row = stored.row
        rows.append((row.kind, row.event, row.request, row.time, row.payload))
        if len(rows) == TOGETHER or stored.seq == last:
            block = msgspec.msgpack.encode(rows)
            yield _LENGTH.pack(len(block)) + block
            rows = []
        step(stored.seq)


def _written(archive: zipfile.ZipFile, name: str, blocks: Iterable[bytes]) -> Entry:
    size, digest = 0, hashlib.sha256()
    with archive.open(name, "w", force_zip64=True) as entry:
        for block in blocks:
            entry.write(block)
            digest.update(block)
            size += len(block)
    return Entry(size, digest.hexdigest())


def _checked(source: IO[bytes], entry: Entry, name: str, path: Path) -> Iterator[bytes]:
    size, digest = 0, hashlib.sha256()
    while block := source.read(BLOCK):
        size += len(block)
        digest.update(block)
        yield block
    if Entry(size, digest.hexdigest()) != entry:
        raise BackupError(f"{path} is damaged: {name} is not what was written; use another backup")


@contextmanager
def _place_for(data: Path, url: str | None, *, overwrites: bool) -> Iterator[Path]:
    """Yield a folder to make the new one in; raise SettingError where something would be lost, or is in use."""
    aside = _aside(data)
    if data.exists() and any(data.iterdir()):
        if not overwrites:
            raise SettingError(
                f"{data} is not empty; give another folder, or --overwrite, which moves it to {aside}"
            )
        if aside.exists():
            raise SettingError(f"{aside} is from a restore before; delete it, or move it away")
    making = data.absolute().with_name(f".{data.absolute().name}.restoring")
    with _unused(data, url):
        rmtree(making, ignore_errors=True)
        making.mkdir(parents=True, mode=0o700)
        try:
            yield making
        finally:
            rmtree(making, ignore_errors=True)


@contextmanager
def _unused(data: Path, url: str | None) -> Iterator[None]:
    """Hold the lease of the log that is there, so that no learner begins; raise SettingError if one runs."""
    if url is None and not (data / LOG_FILE).exists():
        yield
        return
    with closing(open_log(url or str((data / LOG_FILE).absolute()))) as log:
        lease = log.lease()
        try:
            if not lease.take():
                raise SettingError(
                    f"a service uses the log in {masked(url) if url else data}; stop it first"
                )
            yield
        finally:
            lease.release()


def _fill_file(path: Path, backup: _Backup, step: Step) -> None:
    """Make a log of the rows of a backup, and read it again."""
    with closing(open_log(str(path))) as log:
        for rows in backup.rows(step):
            log.append(rows)
    with closing(open_log(str(path), is_read_only=True)) as log:
        problems, rows_there, origin = log.verify(), log.last(), origin_of(log)
    if problems or (rows_there, origin) != (backup.manifest.rows, backup.manifest.origin):
        said = problems[0] if problems else f"it has {rows_there:,} rows"
        raise BackupError(f"the restored log is not the one that was backed up: {said}")


def _fill_server(url: str, backup: _Backup, step: Step, *, overwrites: bool) -> None:
    """Fill the tables of a database in one transaction."""
    from rbmle.service.log.postgres_server import replace_rows

    replace_rows(url, backup.rows(step), overwrites=overwrites)
    with closing(open_log(url, is_read_only=True)) as log:
        rows_there, origin = log.last(), origin_of(log)
    if (rows_there, origin) != (backup.manifest.rows, backup.manifest.origin):
        raise BackupError(f"the restored log has {rows_there:,} rows, not {backup.manifest.rows:,}")


def _aside(data: Path) -> Path:
    """Return where a folder goes that is replaced."""
    return data.absolute().with_name(f"{data.absolute().name}.before-restore")


def _swap(making: Path, data: Path) -> Path | None:
    """Put a folder in its place; return where the one went that was there."""
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
