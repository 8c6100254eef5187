"""What an executor promises: a map over trials, in any order, each run stored as it finishes."""

import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from rbmle.experiments.errors import TrialError
from rbmle.experiments.heartbeat import Heartbeat
from rbmle.experiments.store import Store
from rbmle.experiments.trial import Run, Trial, play


class Executor(Protocol):
    """Where trials are run."""

    def map(self, trials: Sequence[Trial], store: Store) -> Iterator[Run]:
        """Yield the run of every trial as it finishes; it is in the store by then."""
        ...


def finish(trial: Trial, store: Store) -> Run:
    """Play a trial, and store its run; what an executor does somewhere else."""
    heartbeat = Heartbeat.of(trial, store)
    try:
        run = played(trial, heartbeat.beat)
        store.put(run)
    finally:
        heartbeat.stop()
    return run


def played(trial: Trial, report: Callable[[int, float], None] | None = None) -> Run:
    """Play a trial; raise TrialError for whatever it fails with, in one line."""
    try:
        return play(trial, report)
    except Exception as error:
        *_, last = traceback.extract_tb(error.__traceback__)
        text = " ".join(str(error).split()) or "no message"
        where = f"{Path(last.filename).name}, line {last.lineno}"
        raise TrialError(f"{trial.title}: {type(error).__name__}: {text} ({where})") from error
