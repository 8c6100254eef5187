"""The model as the sum of the log: the same records in the same order give the same model, bit for bit."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from rbmle.core.bandit import Bandit
from rbmle.core.errors import FileError
from rbmle.core.types import Contexts, Decision
from rbmle.service.configuration import LearningMode
from rbmle.service.events import Joined, Pending, Settled
from rbmle.service.joining import Joiner
from rbmle.service.logs.base import Log, Stored
from rbmle.service.records import Decided, Imported, Modelled, Play, Reset


class Model(Protocol):
    """A kind of model: what a Modelled record's settings say."""

    def start(self) -> Bandit:
        """Return a bandit before any data."""
        ...

    def load(self, model: bytes) -> Bandit:
        """Return the bandit of an Imported record."""
        ...

    def context(self, decided: Decided, play: Play) -> Contexts:
        """Return the context of what was chosen in a slot."""
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


class Nobody:
    """A watcher who looks away."""

    def decide(self, time: int, decided: Decided) -> None:
        """Do nothing."""

    def settle(
        self, time: int, decided: Decided, play: Play, reward: float, is_joined: bool
    ) -> None:
        """Do nothing."""


@dataclass(slots=True, kw_only=True)
class Fold:
    """What the service knows after the records up to `seq`."""

    log: Log
    make: Callable[[dict[str, Any]], Model]  # of the settings of a Modelled record
    watcher: Watcher = field(default_factory=Nobody)
    joiner: Joiner = field(init=False)
    settings: dict[str, Any] | None = field(init=False, default=None)  # None: no model was made
    model: Model | None = field(init=False, default=None)  # None: no model was made
    bandit: Bandit | None = field(init=False, default=None)  # None: no model was made

    def __post_init__(self) -> None:
        """Start before the first record."""
        self.joiner = Joiner(log=self.log, listener=self)

    @property
    def seq(self) -> int:
        """Return the number of the last record that was taken in."""
        return self.joiner.seq

    def resume(self, settings: dict[str, Any], bandit: Bandit, joined: Joined) -> None:
        """Go on from a checkpoint, as if never stopped."""
        self.settings, self.model, self.bandit = settings, self.make(settings), bandit
        self.joiner = Joiner.resume(joined, self.log, self)

    def apply(self, stored: Stored) -> None:
        """Take in the next record."""
        record = self.joiner.advance(stored)
        match record:
            case Decided():
                self.watcher.decide(self.joiner.time, record)
            case Modelled():
                model = self.make(record.settings)
                self.settings, self.model, self.bandit = record.settings, model, model.start()
            case Imported() if self.model is not None:
                self._import(self.model, record)
            case Reset() if self.model is not None:
                self.bandit = self.model.start()
            case _:
                pass
        self.joiner.join(stored, record)

    def _import(self, model: Model, record: Imported) -> None:
        """Go on with an imported bandit; if another kind of model was begun before it came, with that."""
        with suppress(FileError):
            self.bandit = model.load(record.model)

    def settle(self, settled: Settled) -> None:
        """Learn the final reward of a slot, unless its event was to be logged only."""
        decided, play = settled.decided, settled.play
        time = self.joiner.time
        self.watcher.settle(time, decided, play, settled.reward, settled.is_joined)
        if self.model is None or self.bandit is None or decided.mode == LearningMode.LOGGING_ONLY:
            return
        context = self.model.context(decided, play)
        self.bandit.learn(_decision(settled.stored.row.event, play, context), settled.reward)

    def leave(self, event: str, pending: Pending) -> None:
        """Learn nothing from what was not shown or is waited for no more."""


def _decision(event: str, play: Play, context: Contexts) -> Decision:
    """Return what the bandit needs to learn from a reward."""
    return Decision(
        id=event,
        arm=play.chosen,
        arms=tuple(play.eligible),
        indices=np.zeros(0),
        propensity=None,
        probabilities=None,
        context=context,
    )
