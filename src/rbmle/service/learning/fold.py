"""The model as the sum of the log: the same records in the same order give the same model, bit for bit."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from rbmle.core.bandit import Bandit
from rbmle.core.errors import FileError
from rbmle.core.events import unlogged
from rbmle.core.types import Contexts
from rbmle.service.configuration import LearningMode
from rbmle.service.learning.budget import Budget
from rbmle.service.learning.events import Joined, Pending, Settled
from rbmle.service.learning.joining import Joiner
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

BATCH = 256  # observations that are learned at once


class FoldedModel(Protocol):
    """A kind of model: what a Modelled record's settings say."""

    @property
    def fits_per_second(self) -> int:
        """Return how many observations a second are fitted at once; others are only remembered."""
        ...

    def start(self) -> Bandit:
        """Return a bandit before any data."""
        ...

    def load(self, model: bytes) -> Bandit:
        """Return the bandit of an Imported record."""
        ...

    def played(self, plays: Sequence[tuple[Decided, Play]], bandit: Bandit) -> Contexts:
        """Return the contexts of what was chosen in some slots, which a bandit learns next."""
        ...


class Watcher(Protocol):
    """Who keeps statistics of what happens; it never changes the model."""

    def decide(self, time: int, decided: Decided) -> None:
        """Take a decision."""
        ...

    def settle(
        self, time: int, decided: Decided, play: Play, reward: float, is_joined: bool
    ) -> None:
        """Take the final reward of a slot; the default one if it was not joined."""
        ...

    def correct_clock(self, time: int) -> None:
        """Hear that the log's clock was set back to a time."""
        ...


class Nobody:
    """A watcher who looks away."""

    def decide(self, time: int, decided: Decided) -> None:
        """Do nothing."""

    def settle(
        self, time: int, decided: Decided, play: Play, reward: float, is_joined: bool
    ) -> None:
        """Do nothing."""

    def correct_clock(self, time: int) -> None:
        """Do nothing."""


@dataclass(slots=True, kw_only=True)
class Fold:
    """What the service knows after the records up to `seq`."""

    log: Log
    make: Callable[[dict[str, Any]], FoldedModel]  # of the settings of a Modelled record
    watcher: Watcher = field(default_factory=Nobody)
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
        """Start before the first record."""
        self.joiner = Joiner(log=self.log, listener=self)

    def resume(
        self, settings: dict[str, Any], bandit: Bandit, joined: Joined, budget: Budget
    ) -> None:
        """Go on from a checkpoint, as if never stopped."""
        self.settings, self.model, self.bandit = settings, self.make(settings), bandit
        self.budget = budget
        self.joiner = Joiner.resume(joined, self.log, self)
        self.seq = self.joiner.seq

    def apply(self, stored: Stored) -> None:
        """Take in the next record, and learn what it settles."""
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
            case ClockCorrected():
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
        """Go on with an imported bandit; if another kind of model was begun before it came, with that."""
        with suppress(FileError):
            self.bandit = model.load(record.model)

    def settle_all(self, settled: Sequence[Settled]) -> None:
        """Take final rewards, which are counted, and learned if they are not yet."""
        time = self.joiner.time
        for one in settled:
            self.watcher.settle(time, one.decided, one.play, one.reward, one.is_joined)
        self.learn_all([one for one in settled if not one.is_learned])

    def learn_all(self, observed: Sequence[Settled]) -> None:
        """Take rewards to be learned, unless their event was to be logged only."""
        learned = [one for one in observed if one.decided.mode != LearningMode.LOGGING_ONLY]
        if self.model is None or not learned:
            return
        is_joined, per_second = [one.is_joined for one in learned], self.model.fits_per_second
        self._is_fitted += self.budget.fitted(is_joined, self.joiner.time, per_second)
        self._settled += learned
        self._times += [self.joiner.time] * len(learned)
        if len(self._settled) >= BATCH:
            self._learn_settled()

    def _learn_settled(self) -> None:
        """Learn what was settled, in its order."""
        settled, is_fitted = self._settled, np.array(self._is_fitted, np.bool_)
        times = self._times
        self._settled, self._is_fitted, self._times = [], [], []
        if self.model is None or self.bandit is None or not settled:
            return
        contexts = self.model.played([(one.decided, one.play) for one in settled], self.bandit)
        rewards = np.array([one.reward for one in settled])
        # A late reward corrects what was learned before it came, and may be outside what one reward can be.
        with unlogged():  # the learner tells of them, and once only
            self.bandit.learner.learn(lambda _: contexts, rewards, is_fitted, times=times)

    def leave(self, event: str, pending: Pending) -> None:
        """Learn nothing from what was not shown or is waited for no more."""
