"""Runs on disk, the progress of trials, and which runs may be compared."""

import json
import os
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rbmle.core.files import written_whole
from rbmle.experiments.code import Code
from rbmle.experiments.trial import Run, Trial, parse_description

ENDING = ".run"
DAMAGED = (zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, EOFError, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A folder of runs. Several processes may write to it, because each file appears in one step."""

    folder: Path

    def path(self, id: str) -> Path:
        return self.folder / f"{id}{ENDING}"

    def get(self, trial: Trial) -> Run | None:
        """Return the run of a trial; None if it is missing or damaged."""
        return self.find(trial.id)

    def find(self, id: str) -> Run | None:
        """Return the run of a trial by its id; None if it is missing or damaged."""
        return self._read(self.path(id))

    def put(self, run: Run) -> None:
        """Write a run, whole or not at all."""
        record = {
            "id": run.id,
            "settings": run.settings,
            "cpu_seconds": run.cpu_seconds,
            "wall_seconds": run.wall_seconds,
            "versions": run.versions,
            "finished": run.finished,
        }
        with (
            written_whole(self.path(run.id)) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped,
        ):
            zipped.writestr("run.json", json.dumps(record, indent=1))
            with zipped.open("regrets.npy", "w") as entry:
                np.lib.format.write_array(entry, run.regrets, allow_pickle=False)

    def all(self) -> Iterator[Run]:
        for path in sorted(self.folder.glob(f"*{ENDING}")):
            run = self._read(path)
            if run is not None:
                yield run

    def codes(self) -> Iterator[Code]:
        for path in sorted(self.folder.glob(f"*{ENDING}")):
            try:
                with zipfile.ZipFile(path) as zipped:
                    record = json.loads(zipped.read("run.json"))
                stated = record["settings"].get("code")
                yield Code.of(stated, record["versions"].get("rbmle", "unknown"))
            except DAMAGED:
                continue

    def _read(self, path: Path) -> Run | None:
        try:
            with zipfile.ZipFile(path) as zipped:
                record = json.loads(zipped.read("run.json"))
                with zipped.open("regrets.npy") as entry:
                    regrets = np.lib.format.read_array(entry, allow_pickle=False)
                    entry.read()  # zipfile compares the checksum at the end
            settings = record["settings"]
            if isinstance(described := settings.get("settings"), str):  # from an earlier version
                settings["settings"] = parse_description(described)
            return Run(regrets=regrets, **record)
        except DAMAGED:
            return None


BEAT_ENDING = ".beat"
BEAT_SECONDS = 0.5  # between two beats
STALE_SECONDS = 60.0  # an older file was left by a process that died


@dataclass(slots=True, kw_only=True)
class TrialProgress:
    """The progress of a trial that is being played, in a file that other processes read."""

    path: Path
    last: float = 0.0

    @staticmethod
    def of(trial: Trial, store: Store) -> "TrialProgress":
        store.folder.mkdir(parents=True, exist_ok=True)
        return TrialProgress(path=store.folder / f".{trial.id}{BEAT_ENDING}")

    def beat(self, rounds: int, regret: float) -> None:
        """Write how many rounds were played, at most twice a second."""
        now = time.monotonic()
        if now - self.last < BEAT_SECONDS:
            return
        self.last = now
        scratch = self.path.with_suffix(f".{os.getpid()}")
        scratch.write_text(f"{rounds} {regret}")
        os.replace(scratch, self.path)

    def stop(self) -> None:
        self.path.unlink(missing_ok=True)


def rounds_in_play(store: Store) -> int:
    """Return the number of rounds played in unfinished trials."""
    total = 0
    for path in store.folder.glob(f".*{BEAT_ENDING}"):
        try:
            if time.time() - path.stat().st_mtime < STALE_SECONDS:
                total += int(path.read_text().split()[0])
        except (OSError, ValueError, IndexError):
            continue  # it has just been replaced or removed
    return total


NAMED = 3  # codes in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The runs that are used, and those that are left out because other code made them."""

    used: tuple[Run, ...]
    left: tuple[Run, ...]
    is_current: bool  # whether the current code made those that are used


def of_one_code(runs: Iterable[Run], current: Code) -> Selection:
    """Return the runs of the current code; if there are none, those of the newest code.

    For a module outside rbmle, the newest code in the runs counts; this process may not have loaded it.
    """
    finished = sorted(runs, key=lambda run: run.finished)
    if not finished:
        return Selection(used=(), left=(), is_current=True)
    is_current = any(_rbmle_part(run.code) == _rbmle_part(current) for run in finished)
    wanted = _rbmle_part(current if is_current else finished[-1].code)
    ours = [run for run in finished if _rbmle_part(run.code) == wanted]
    newest = {name: digest for run in ours for name, digest in run.code.outside}
    used = tuple(run for run in ours if _agrees(run.code, newest))
    taken = {run.id for run in used}
    left = tuple(run for run in finished if run.id not in taken)
    return Selection(used=used, left=left, is_current=is_current)


def note_on(selection: Selection, folder: Path) -> str:
    """Return a note on the runs of a folder that are not shown, or not of the current code; else nothing."""
    sentences = []
    if not selection.is_current:
        code = list_codes(run.code for run in selection.used)
        sentences.append(
            f"No run in {folder} is of the current code; these are of the newest code there ({code})."
        )
    if selection.left:
        sentences.append(left_out([run.code for run in selection.left], folder))
    return " ".join(sentences)


def left_out(codes: Sequence[Code], folder: Path) -> str:
    """Return the message that runs of other code are not used, and how to see them."""
    runs = "1 run" if len(codes) == 1 else f"{len(codes)} runs"
    are, them = ("is", "it") if len(codes) == 1 else ("are", "them")
    return (
        f"{runs} in {folder} {are} of other code ({list_codes(codes)}) and {are} not used; "
        f"rbmle report --all-code shows {them}."
    )


def is_other(code: Code, current: Code, outside: Mapping[str, str]) -> bool:
    """Return whether a run has other code than the current one, of rbmle or of modules outside."""
    return _rbmle_part(code) != _rbmle_part(current) or not _agrees(code, outside)


def list_codes(codes: Iterable[Code]) -> str:
    """Return codes for a message, such as: version 0.1.0, code 3fa91c2b."""
    names = list(dict.fromkeys(f"version {code.version}, code {code.title}" for code in codes))
    more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
    return "; ".join([*names[:NAMED], *more])


def _rbmle_part(code: Code) -> tuple[str, str]:
    return code.version, code.digest


def _agrees(code: Code, outside: Mapping[str, str]) -> bool:
    return all(outside.get(name, digest) == digest for name, digest in code.outside)
