"""Checkpoints: what the fold knew at some record, so that a start need not read the log from its beginning.

A checkpoint saves time and nothing else: it can be deleted, and one that is damaged, or of another
log, is passed over.
"""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from rbmle.core.bandit import Bandit
from rbmle.core.errors import RBMLEError
from rbmle.core.files import written_whole
from rbmle.service.configuration import ServiceConfiguration
from rbmle.service.learning.budget import Budget
from rbmle.service.learning.events import Joined, Pending
from rbmle.service.learning.fold import Fold
from rbmle.service.learning.model import ModelSettings, saved
from rbmle.service.log.base import Log
from rbmle.service.statistics import Statistics

FORMAT = "rbmle checkpoint"
VERSION = 5
KEPT = 2
_OWNER_ONLY = 0o600
CHUNK = 4096  # pending events in a line: while one is encoded, no other thread does anything
BUFFER = 2**20  # bytes
_STATE, _PENDING, _BANDIT = "state.json", "pending.jsonl", "bandit.rbmle"
_UNFIT = (RBMLEError, OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error)


class CheckpointState(msgspec.Struct, kw_only=True):
    """All but the bandit; in the file, what is pending stands beside it."""

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
        """Return the checkpoints, the newest first."""
        return sorted(self.folder.glob("checkpoint-*.rbmle"), reverse=True)

    @property
    def newest(self) -> int:
        """Return the record that the newest checkpoint knows last, by its name; 0 without one."""
        numbers = [path.stem.rpartition("-")[2] for path in self.paths()]
        return max((int(number) for number in numbers if number.isdecimal()), default=0)

    def save(self, fold: Fold, statistics: Statistics) -> Path:
        """Write what the fold knows, whole or not at all, and delete what is older than the last."""
        assert fold.bandit is not None
        assert fold.settings is not None
        state = CheckpointState(
            format=FORMAT,
            version=VERSION,
            origin=origin_of(fold.log),
            seq=fold.seq,
            settings=fold.settings,
            joined=msgspec.structs.replace(fold.joiner.joined, pending={}),
            budget=fold.budget,
            statistics=statistics,
        )
        path = self.folder / f"checkpoint-{fold.seq:016d}.rbmle"
        with written_whole(path, mode=_OWNER_ONLY) as file, zipfile.ZipFile(file, "w") as zipped:
            zipped.writestr(zipfile.ZipInfo(_STATE), msgspec.json.encode(state))
            with zipped.open(zipfile.ZipInfo(_PENDING), "w", force_zip64=True) as entry:
                for line in _lines(fold.joiner.pending):
                    entry.write(line)
            zipped.writestr(zipfile.ZipInfo(_BANDIT), saved(fold.bandit))
        for old in self.paths()[KEPT:]:
            old.unlink(missing_ok=True)
        return path

    def tidy(self) -> None:
        """Delete what a killed process had begun to write; nobody else may write here now, nor read."""
        for part in self.folder.glob(".checkpoint-*.part"):
            part.unlink(missing_ok=True)
        with suppress(PermissionError):  # they are another user's, who let this one read them
            for path in self.paths():
                path.chmod(_OWNER_ONLY)

    def restore(self, log: Log) -> Iterator["Restored"]:
        """Yield what fits the log, the newest first, and why others do not."""
        origin, last = origin_of(log), log.last()
        for path in self.paths():
            try:
                state, written = read(path)
                bandit = ModelSettings.from_json(state.settings).load(written)
            except _UNFIT as error:
                yield Restored(path, why=f"it cannot be read: {error}")
                continue
            if state.origin != origin or state.seq > last:
                yield Restored(path, why="it is of another log")
            else:
                yield Restored(path, state, bandit, written)


@dataclass(frozen=True, slots=True)
class Restored:
    """A checkpoint, or why it is of no use."""

    path: Path
    state: CheckpointState | None = None
    bandit: Bandit | None = None
    written: bytes = b""  # the bandit, as it is in the file
    why: str = ""


def read(path: Path) -> tuple[CheckpointState, bytes]:
    """Return what a checkpoint holds."""
    with zipfile.ZipFile(path) as zipped:
        state = msgspec.json.decode(zipped.read(_STATE), type=CheckpointState)
        if (state.format, state.version) != (FORMAT, VERSION):
            raise ValueError(f"it is {state.format} {state.version}, not {FORMAT} {VERSION}")
        known = ServiceConfiguration.from_record(state.joined.configuration)
        state.joined.configuration = known.to_json()  # which may have had fewer settings
        decoder = msgspec.json.Decoder(dict[str, Pending])
        raw: Any = zipped.open(_PENDING)  # lines are long, and its own way to read them is slow
        with BufferedReader(raw, BUFFER) as lines:
            for line in lines:
                state.joined.pending.update(decoder.decode(line))
        return state, zipped.read(_BANDIT)


def _lines(pending: dict[str, Pending]) -> Iterator[bytes]:
    """Yield some events at a time, in their order."""
    events = iter(pending.items())
    while some := dict(islice(events, CHUNK)):
        yield msgspec.json.encode(some) + b"\n"


def check_newest(log: Log, folder: Path | None) -> list[str]:
    """Return what is wrong with the newest checkpoint: the log, folded anew, must give the same bytes."""
    found = None if folder is None else next(Checkpoints(folder).restore(log), None)
    if found is None:
        return []
    if found.state is None:
        return [f"{found.path.name}: {found.why}"]
    statistics = Statistics()
    fold = Fold(log=log, make=ModelSettings.from_json, watcher=statistics)
    for stored in log.read(0, found.state.seq):
        fold.apply(stored)
    state = found.state
    given = msgspec.json.encode((fold.settings, fold.joiner.joined, fold.budget, statistics))
    if fold.bandit is None or saved(fold.bandit) != found.written:
        return [f"{found.path.name}: its model is not the one that the log gives"]
    if given != msgspec.json.encode((state.settings, state.joined, state.budget, state.statistics)):
        return [f"{found.path.name}: what it waits for is not what the log gives"]
    return []


def folded(log: Log, folder: Path) -> Fold:
    """Return what the whole log comes to: from the newest checkpoint on, if there is one that fits."""
    fold = Fold(log=log, make=ModelSettings.from_json)
    for found in Checkpoints(folder).restore(log):
        if found.state is not None and found.bandit is not None:
            state = found.state
            fold.resume(state.settings, found.bandit, state.joined, state.budget)
            break
    for stored in log.read(fold.seq):
        fold.take(stored)
    fold.learn()
    return fold


def origin_of(log: Log) -> str:
    """Return what tells a log from all others: its first record, which has the seed of its model."""
    first = next(iter(log.read(0, 1)), None)
    if first is None:
        return ""
    return blake2b(b"%d/" % first.row.time + first.row.payload, digest_size=16).hexdigest()
