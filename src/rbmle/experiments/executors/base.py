"""What an executor promises: a map over trials, in any order, each run stored as it finishes."""

from collections.abc import Iterator, Sequence
from typing import Protocol

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
        run = play(trial, heartbeat.beat)
        store.put(run)
    finally:
        heartbeat.stop()
    return run
