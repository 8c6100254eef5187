"""Several processes on this machine, one thread each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rbmle.experiments.executors.base import finish
from rbmle.experiments.store import Store
from rbmle.experiments.trial import Run, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """Trials in `jobs` processes at a time; −1 for one on each core."""

    jobs: int = -1

    def map(self, trials: Sequence[Trial], store: Store) -> Iterator[Run]:
        """Yield the runs as they finish."""
        from joblib import Parallel, delayed, parallel_config  # it takes a moment to import

        with parallel_config(backend="loky", inner_max_num_threads=1):
            workers = Parallel(n_jobs=self.jobs, return_as="generator_unordered", batch_size=1)
            yield from workers(delayed(finish)(trial, store) for trial in trials)
