"""How far a trial has got, told by small files beside the store: any process can read them."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from rbmle.experiments.store import Store
from rbmle.experiments.trial import Trial

ENDING = ".beat"
SECONDS = 0.5  # between two beats
STALE_SECONDS = 60.0  # after which a beat is one of a process that has died


@dataclass(slots=True, kw_only=True)
class Heartbeat:
    """The file of one trial that is being played."""

    path: Path
    last: float = 0.0

    @staticmethod
    def of(trial: Trial, store: Store) -> "Heartbeat":
        """Return the heartbeat of a trial."""
        store.folder.mkdir(parents=True, exist_ok=True)
        return Heartbeat(path=store.folder / f".{trial.id}{ENDING}")

    def beat(self, rounds: int, regret: float) -> None:
        """Tell how many rounds were played, at most twice a second."""
        now = time.monotonic()
        if now - self.last < SECONDS:
            return
        self.last = now
        scratch = self.path.with_suffix(f".{os.getpid()}")
        scratch.write_text(f"{rounds} {regret}")
        os.replace(scratch, self.path)

    def stop(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


def rounds_in_play(store: Store) -> int:
    """Return how many rounds were played of trials that are not finished."""
    total = 0
    for path in store.folder.glob(f".*{ENDING}"):
        try:
            if time.time() - path.stat().st_mtime < STALE_SECONDS:
                total += int(path.read_text().split()[0])
        except (OSError, ValueError, IndexError):
            continue  # it has just been replaced or removed
    return total
