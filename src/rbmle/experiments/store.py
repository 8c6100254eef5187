"""Runs on disk, one file each, named by their trial's content: a finished trial is never repeated."""

import json
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rbmle.core.files import written_whole
from rbmle.experiments.code import Code
from rbmle.experiments.trial import Run, Trial

ENDING = ".run"
DAMAGED = (zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, EOFError, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A folder of runs. Writers need no coordinator: a file is put in its place whole."""

    folder: Path

    def path(self, id: str) -> Path:
        """Return where the run of a trial is, or would be."""
        return self.folder / f"{id}{ENDING}"

    def get(self, trial: Trial) -> Run | None:
        """Return the run of a trial, or None if there is none that is whole."""
        return self.find(trial.id)

    def find(self, id: str) -> Run | None:
        """Return the run of a trial by its id, or None if there is none that is whole."""
        return self._read(self.path(id))

    def put(self, run: Run) -> None:
        """Write a run beside its place, to disk, and then put it there in one step."""
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
        """Yield every whole run, in the order of their ids."""
        for path in sorted(self.folder.glob(f"*{ENDING}")):
            run = self._read(path)
            if run is not None:
                yield run

    def codes(self) -> Iterator[Code]:
        """Yield the code of every run, without reading its regrets."""
        for path in sorted(self.folder.glob(f"*{ENDING}")):
            try:
                with zipfile.ZipFile(path) as zipped:
                    record = json.loads(zipped.read("run.json"))
                stated = record["settings"].get("code")
                yield Code.of(stated, record["versions"].get("rbmle", "unknown"))
            except DAMAGED:
                continue

    def _read(self, path: Path) -> Run | None:
        """Return the run in a file; a damaged one counts as missing, and is run again."""
        try:
            with zipfile.ZipFile(path) as zipped:
                record = json.loads(zipped.read("run.json"))
                with zipped.open("regrets.npy") as entry:
                    regrets = np.lib.format.read_array(entry, allow_pickle=False)
                    entry.read()  # to its end, where the checksum is compared
            return Run(regrets=regrets, **record)
        except DAMAGED:
            return None
