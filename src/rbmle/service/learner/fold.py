"""The model as the sum of the log: the same records in the same order give the same model, bit for bit."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
import numpy as np

from rbmle.core.bandit import Bandit
from rbmle.core.errors import FileError
from rbmle.core.events import without_logging
from rbmle.core.types import Contexts
from rbmle.service.learner.joining import Joined, Joiner, Listener, Settled
from rbmle.service.log.base import Log, Stored
from rbmle.service.log.records import (
    ClockCorrected,
    Configured,
    Decided,
    Imported,
    Modelled,
    Play,
    Reset,
)
from rbmle.service.settings import LearningMode

BATCH = 256  # observations that are learned at once


class Budget(msgspec.Struct):
    """A bucket of fits that fills evenly and holds those of a second; it starts full.

    >>> budget = Budget()
    >>> budget.take(7, time=60_000, per_second=5)
    5
    >>> budget.take(7, time=60_400, per_second=5)
    2
    """

    time: int = 0  # milliseconds, when it was looked into last
    spent: int = 0  # thousandths of a fit that it lacked then
    prefers_joined: bool = True  # as in logs from before there was `settle`: a bias towards rewards

    def take(self, wanted: int, time: int, per_second: int) -> int:
        """Return how many of the wanted fits there are at a time."""
        elapsed = max(0, time - self.time)  # below 0 where the log's clock was corrected
        spent = max(0, self.spent - elapsed * per_second)
        taken = min(wanted, max(0, per_second - -(-spent // 1_000)))
        self.time, self.spent = time, spent + 1_000 * taken
        return taken

    def select(self, is_joined: Sequence[bool], time: int, per_second: int) -> list[bool]:
        """Return which of some observations are fitted at a time: the first, whatever they paid.

        >>> Budget(prefers_joined=False).select([False, False, True], time=0, per_second=2)
        [True, True, False]
        >>> Budget(prefers_joined=True).select([False, False, True], time=0, per_second=2)
        [True, False, True]
        """
        count, places = self.take(len(is_joined), time, per_second), range(len(is_joined))
        if not self.prefers_joined:
            return [place < count for place in places]
        first = set(sorted(places, key=lambda place: not is_joined[place])[:count])
        return [place in first for place in places]


class FoldedModel(Protocol):
    """A kind of model, which the settings of a Modelled record describe: `ModelSettings`."""

    @property
    def fits_per_second(self) -> int: ...

    def start(self) -> Bandit: ...

    def load(self, model: bytes) -> Bandit: ...

    def chosen_contexts(
        self, plays: Sequence[tuple[Decided, Play]], bandit: Bandit
    ) -> Contexts: ...


class Watcher(Protocol):
    """Keeps statistics of what happens, and never changes the model: `Statistics`."""

    def decide(self, time: int, decided: Decided) -> None: ...

    def settle(
        self, time: int, decided: Decided, play: Play, reward: float, is_joined: bool
    ) -> None: ...

    def correct_clock(self, time: int) -> None: ...


@dataclass(slots=True, kw_only=True)
class Fold(Listener):
    """What the service knows after the records up to `seq`."""

    log: Log
    make: Callable[[dict[str, Any]], FoldedModel]  # of the settings of a Modelled record
    watcher: Watcher | None = None
    skips: int = 0  # records up to this one may be missing: they are to be forgotten
    joiner: Joiner = field(init=False)
    settings: dict[str, Any] | None = field(init=False, default=None)  # None: no model was made
    model: FoldedModel | None = field(init=False, default=None)  # None: no model was made
    bandit: Bandit | None = field(init=False, default=None)  # None: no model was made
    budget: Budget = field(init=False, default_factory=Budget)
    seq: int = field(init=False, default=0)  # of the last record that was taken in and learned
    has_slots: bool = field(init=False, default=False)  # one of the events taken in has
    _settled: list[Settled] = field(init=False, default_factory=list)  # to be learned
    _is_fitted: list[bool] = field(init=False, default_factory=list)  # of each of them
    _times: list[int] = field(init=False, default_factory=list)  # when each of them was settled

    def __post_init__(self) -> None:
        self.joiner = Joiner(log=self.log, listener=self, skips=self.skips)

    def resume(
        self, settings: dict[str, Any], bandit: Bandit, joined: Joined, budget: Budget
    ) -> None:
        """Go on from a checkpoint, as if never stopped."""
        self.settings, self.model, self.bandit = settings, self.make(settings), bandit
        self.budget = budget
        self.joiner = Joiner.resume(joined, self.log, self)
        self.seq = self.joiner.seq

    def apply(self, stored: Stored) -> None:
        try:
            self.take(stored)
        finally:
            self.learn()

    def take(self, stored: Stored) -> None:
        """Take in the next record; `learn` has to follow, after some records more if you like.

        What several records settle is the same to the bit if it is learned at once, and sooner done.
        """
        record = self.joiner.advance(stored)
        match record:
            case Decided():
                self.has_slots = self.has_slots or any(play.slot for play in record.plays)
                if self.watcher is not None:
                    self.watcher.decide(self.joiner.time, record)
            case Modelled():
                self._learn_settled()
                model = self.make(record.settings)
                self.settings, self.model, self.bandit = record.settings, model, model.start()
            case Imported() if self.model is not None:
                self._learn_settled()
                self._import(self.model, record)
            case Reset() if self.model is not None:
                self._learn_settled()
                self.bandit = self.model.start()
            case ClockCorrected() if self.watcher is not None:
                self.watcher.correct_clock(stored.row.time)
            case Configured():
                self.budget.prefers_joined = "settle" not in record.configuration
            case _:
                pass
        self.joiner.join(stored, record)

    def learn(self) -> None:
        """Learn what was settled by the records that were taken in."""
        self._learn_settled()
        self.seq = self.joiner.seq

    def _import(self, model: FoldedModel, record: Imported) -> None:
        """Continue with an imported bandit, unless it does not fit the settings of the model."""
        with suppress(FileError):
            self.bandit = model.load(record.model)

    def settle_all(self, settled: Sequence[Settled]) -> None:
        """Take final rewards, which are counted, and learned if they are not yet."""
        time = self.joiner.time
        if self.watcher is not None:
            for slot in settled:
                self.watcher.settle(time, slot.decided, slot.play, slot.reward, slot.is_joined)
        self.learn_all([slot for slot in settled if not slot.is_learned])

    def learn_all(self, observed: Sequence[Settled]) -> None:
        """Take rewards to be learned, unless their event was to be logged only, or is in the holdout."""
        learned = [
            slot
            for slot in observed
            if slot.decided.mode != LearningMode.LOGGING_ONLY and not slot.decided.is_held
        ]
        if self.model is None or not learned:
            return
        is_joined, per_second = [slot.is_joined for slot in learned], self.model.fits_per_second
        self._is_fitted += self.budget.select(is_joined, self.joiner.time, per_second)
        self._settled += learned
        self._times += [self.joiner.time] * len(learned)
        if len(self._settled) >= BATCH:
            self._learn_settled()

    def _learn_settled(self) -> None:
        settled, is_fitted = self._settled, np.array(self._is_fitted, np.bool_)
        times = self._times
        self._settled, self._is_fitted, self._times = [], [], []
        if self.model is None or self.bandit is None or not settled:
            return
        plays = [(slot.decided, slot.play) for slot in settled]
        contexts = self.model.chosen_contexts(plays, self.bandit)
        rewards = np.array([slot.reward for slot in settled])
        with without_logging():  # of drift alarms, which the learner itself reports, and only once
            self.bandit.learn_all(
                contexts,
                rewards,
                is_fitted=is_fitted,
                times=times,
                allow_any_reward=True,  # a late reward corrects an earlier observation, see `Turns`
            )
