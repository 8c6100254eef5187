"""Checkpoints: what the fold knew at some record, so that a start need not read the log from its beginning.

A checkpoint saves time and nothing else: it can be deleted, and one that is damaged, or of another log, is
ignored. Only the `Base` of a log, which is a checkpoint in the log itself, cannot be made again: the records
before it are deleted.
"""

import shutil
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import msgspec

from rbmle.core.bandit import Bandit
from rbmle.core.errors import RBMLEError
from rbmle.core.files import written_whole
from rbmle.core.saving import write
from rbmle.service.learner.fold import Budget, Fold
from rbmle.service.learner.joining import Joined, Pending
from rbmle.service.log.base import Base, Log, LogRefused, is_same_log, origin_of
from rbmle.service.model.published import initial_model
from rbmle.service.model.settings import ModelSettings, save_bytes
from rbmle.service.settings import ServiceConfiguration
from rbmle.service.statistics.summary import Statistics

FORMAT = "rbmle checkpoint"
VERSION = 5  # the base of a log has it too, and later versions have to read that
KEPT = 2
_OWNER_ONLY = 0o600
CHUNK = 4096  # pending events in a line; encoding a line blocks all other threads
BUFFER = 2**20  # bytes
_STATE, _PENDING, _BANDIT = "state.json", "pending.jsonl", "bandit.rbmle"
_UNFIT = (RBMLEError, OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error)


class CheckpointState(msgspec.Struct, kw_only=True):
    """Everything but the bandit, and the pending events, which are in another entry of the file."""

    format: str
    version: int
    origin: str  # of the log
    seq: int
    settings: dict[str, Any]
    joined: Joined
    budget: Budget
    statistics: Statistics


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of a log, in a folder."""

    folder: Path

    def paths(self) -> list[Path]:
        return sorted(self.folder.glob("checkpoint-*.rbmle"), reverse=True)

    @property
    def newest(self) -> int:
        """Return the last record that the newest checkpoint knows; 0 if there is no checkpoint."""
        return max(map(last_record, self.paths()), default=0)

    def save(self, fold: Fold, statistics: Statistics, origin: str | None = None) -> Path:
        """Write what the fold knows, whole or not at all, and delete all but the last checkpoints.

        `origin` is that of the log when the fold began, if records may have been erased since.
        """
        origin = origin_of(fold.log) if origin is None else origin
        path = self.folder / f"checkpoint-{fold.seq:016d}.rbmle"
        with written_whole(path, mode=_OWNER_ONLY) as file:
            write_checkpoint(file, fold, statistics, origin, self.folder)
        for old in self.paths()[KEPT:]:
            old.unlink(missing_ok=True)
        return path

    def tidy(self) -> None:
        """Delete what a killed process had begun to write, and make checkpoints readable to the owner only."""
        for part in self.folder.glob(".checkpoint-*.part"):
            part.unlink(missing_ok=True)
        with suppress(PermissionError):  # they belong to another user
            for path in self.paths():
                path.chmod(_OWNER_ONLY)

    def restore(
        self, log: Log, notify: Callable[[str], None], most: int | None = None
    ) -> "Restored | None":
        """Return the newest checkpoint that fits the log, or else its base; None if there is neither.

        `notify` is told why newer checkpoints are not used. `most` is the last record that it may know.
        """
        for path in self.paths():
            if most is not None and last_record(path) > most:
                continue
            try:
                return restore(path, log)
            except StaleCheckpointError as error:
                path.unlink(missing_ok=True)
                notify(f"{path.name} is deleted: {error}")
            except CheckpointError as error:
                notify(f"{path.name} is not used: {error}")
        return restore_base(log)


def write_checkpoint(
    file: IO[bytes], fold: Fold, statistics: Statistics, origin: str, folder: Path | None = None
) -> None:
    """Write what the fold knows; large parts go through a temporary file in the folder."""
    assert fold.bandit is not None
    assert fold.settings is not None
    before = initial_model(fold.model).bandit if isinstance(fold.model, ModelSettings) else None
    state = CheckpointState(
        format=FORMAT,
        version=VERSION,
        origin=origin,
        seq=fold.seq,
        settings=fold.settings,
        joined=msgspec.structs.replace(fold.joiner.joined, pending={}),
        budget=fold.budget,
        statistics=statistics,
    )
    with zipfile.ZipFile(file, "w") as zipped:
        _write_waiting(zipped, state, fold.joiner.pending)
        with (
            TemporaryFile(dir=folder) as scratch,  # a copy in memory would take megabytes
            zipped.open(zipfile.ZipInfo(_BANDIT), "w", force_zip64=True) as entry,
        ):
            write(fold.bandit, scratch, before)
            scratch.seek(0)
            shutil.copyfileobj(scratch, entry, BUFFER)


def _write_waiting(
    zipped: zipfile.ZipFile, state: CheckpointState, pending: dict[str, Pending]
) -> None:
    zipped.writestr(zipfile.ZipInfo(_STATE), msgspec.json.encode(state))
    with zipped.open(zipfile.ZipInfo(_PENDING), "w", force_zip64=True) as entry:
        for line in _lines(pending):
            entry.write(line)


def base_of(fold: Fold, statistics: Statistics) -> Base:
    """Return what the fold knows now as the base of its log."""
    content = BytesIO()
    write_checkpoint(content, fold, statistics, origin_of(fold.log))
    return Base(fold.seq, _needed(fold.joiner.joined), content.getvalue())


def base_without(base: Base, events: Collection[str]) -> Base:
    """Return a base that does not wait for some events; what its model has learned of them stays."""
    if not base.content:
        return base
    state, bandit = read(BytesIO(base.content))
    joined = state.joined
    seqs = {joined.pending[event].seq for event in events if event in joined.pending}
    joined.turns.waiting = [seq for seq in joined.turns.waiting if seq not in seqs]
    for event in events:
        joined.pending.pop(event, None)
        joined.early.pop(event, None)
    needed, pending, joined.pending = _needed(joined), joined.pending, {}
    content = BytesIO()
    with zipfile.ZipFile(content, "w") as zipped:
        _write_waiting(zipped, state, pending)
        zipped.writestr(zipfile.ZipInfo(_BANDIT), bandit)
    return Base(base.seq, needed, content.getvalue())


def _needed(joined: Joined) -> tuple[int, ...]:
    """Return the decisions that are read again: those that wait for a reward, or to be learned."""
    return tuple(sorted({p.seq for p in joined.pending.values()} | set(joined.turns.waiting)))


class CheckpointError(RBMLEError):
    """A checkpoint that is damaged, or of another log."""


class StaleCheckpointError(CheckpointError):
    """A checkpoint from before an erasure."""


@dataclass(frozen=True, slots=True)
class Restored:
    """A checkpoint that fits its log."""

    state: CheckpointState
    bandit: Bandit


def restore(path: Path, log: Log) -> Restored:
    """Return what a checkpoint holds; raise CheckpointError if it cannot be read, or is of another log."""
    try:
        state, written = read(path)
        bandit = ModelSettings.from_json(state.settings).load(written)
    except _UNFIT as error:
        raise CheckpointError(f"it cannot be read: {error}") from error
    origin = origin_of(log)
    if not is_same_log(state.origin, origin) or state.seq > log.last():
        raise CheckpointError("it is of another log")
    if state.origin != origin:
        raise StaleCheckpointError("records were erased since")
    if state.seq < (deleted := log.extent().deleted):
        raise CheckpointError(f"records {state.seq + 1} to {deleted} after it are deleted")
    return Restored(state, bandit)


def restore_base(log: Log) -> Restored | None:
    """Return the base of a log; None if it has none, or one that forgets all earlier records."""
    base = log.base()
    if base is None or not base.content:
        return None
    try:
        state, written = read(BytesIO(base.content))
        return Restored(state, ModelSettings.from_json(state.settings).load(written))
    except _UNFIT as error:
        raise LogRefused(
            f"the base of the log cannot be read: {error}; install the version of rbmle that wrote it, or "
            "restore a backup"
        ) from error


def begin_fold(
    log: Log, restored: Restored | None, *, is_counting: bool = True
) -> tuple[Fold, Statistics]:
    """Return a fold of a log that goes on from a checkpoint, or else from nothing, and its statistics."""
    statistics = Statistics() if restored is None else restored.state.statistics
    skips = log.extent().deleted if restored is None else 0
    fold = Fold(
        log=log,
        make=ModelSettings.from_json,
        watcher=statistics if is_counting else None,
        skips=skips,
    )
    if restored is not None:
        state = restored.state
        fold.resume(state.settings, restored.bandit, state.joined, state.budget)
    return fold, statistics


def last_record(path: Path) -> int:
    """Return the last record that a checkpoint knows, by the name of its file; 0 if that does not tell."""
    number = path.stem.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def read(path: Path | IO[bytes]) -> tuple[CheckpointState, bytes]:
    with zipfile.ZipFile(path) as zipped:
        state = msgspec.json.decode(zipped.read(_STATE), type=CheckpointState)
        if (state.format, state.version) != (FORMAT, VERSION):
            raise ValueError(f"it is {state.format} {state.version}, not {FORMAT} {VERSION}")
        known = ServiceConfiguration.from_record(state.joined.configuration)
        state.joined.configuration = known.to_json()  # an older version may have had fewer settings
        decoder = msgspec.json.Decoder(dict[str, Pending])
        raw: Any = zipped.open(_PENDING)  # whose own readline is slow on long lines
        with BufferedReader(raw, BUFFER) as lines:
            for line in lines:
                state.joined.pending.update(decoder.decode(line))
        return state, zipped.read(_BANDIT)


def _lines(pending: dict[str, Pending]) -> Iterator[bytes]:
    events = iter(pending.items())
    while some := dict(islice(events, CHUNK)):
        yield msgspec.json.encode(some) + b"\n"


def check_newest(log: Log, folder: Path | None) -> list[str]:
    """Return what is wrong with the newest checkpoint: folding the log must give the same, bit for bit."""
    paths = [] if folder is None else Checkpoints(folder).paths()
    if not paths:
        return []
    name = paths[0].name
    try:
        restored = restore(paths[0], log)
    except CheckpointError as error:
        return [f"{name}: {error}"]
    state = restored.state
    fold, statistics = begin_fold(log, restore_base(log))
    for stored in log.read(fold.seq):
        if stored.seq > state.seq:
            break
        fold.apply(stored)
    # A file of an earlier version may have other names of classes, so its bytes are not compared.
    if fold.bandit is None or save_bytes(fold.bandit) != save_bytes(restored.bandit):
        return [f"{name}: its model is not the one that the log gives"]
    known = fold.joiner.joined
    if (
        log.extent().deleted
    ):  # how a reward was counted whose decision is deleted depends on when it was
        for joined in (known, state.joined):
            joined.early = {}
            joined.counts.late = joined.counts.duplicate = joined.counts.orphan = 0
    folded = msgspec.json.encode((fold.settings, known, fold.budget, statistics))
    kept = msgspec.json.encode((state.settings, state.joined, state.budget, state.statistics))
    return [] if folded == kept else [f"{name}: what it waits for is not what the log gives"]


def fold_log(log: Log, folder: Path) -> Fold:
    """Return what the whole log comes to: from the newest checkpoint on, if there is one that fits."""
    restored = Checkpoints(folder).restore(log, lambda _: None)
    fold, _ = begin_fold(log, restored, is_counting=False)
    for stored in log.read(fold.seq):
        fold.take(stored)
    fold.learn()
    return fold
