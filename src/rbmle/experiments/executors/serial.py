"""One trial after another, in this process."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rbmle.experiments.executors.base import finish
from rbmle.experiments.store import Store
from rbmle.experiments.trial import Run, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Serial:
    """The executor that the others are held against."""

    def map(self, trials: Sequence[Trial], store: Store) -> Iterator[Run]:
        """Yield the runs in the order of their trials."""
        for trial in trials:
            yield finish(trial, store)
