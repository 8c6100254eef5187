"""Logs as stories: records one after the other, and what is learned from them."""

import io
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from rbmle import Bandit, LinUCB, Network, NeuralRBMLEPC, Regression, Ridge
from rbmle.core.encoding import per_arm
from rbmle.core.types import Contexts
from rbmle.service.learner.fold import Fold
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.records import (
    NO_FEATURES,
    Configured,
    Decided,
    Modelled,
    OfferedAction,
    Play,
    Record,
    row_of,
)
from rbmle.service.model.report import Counts
from rbmle.service.settings import ServiceConfiguration, Settle

WAIT = 600_000
USUAL = ServiceConfiguration(reward_wait_time=timedelta(milliseconds=WAIT), settle=Settle.ON_REWARD)


class Story:
    """A log that is written and folded record by record; each observation is what a LinUCB saw."""

    def __init__(
        self,
        configuration: ServiceConfiguration = USUAL,
        log: Any = None,
        make: Any = None,
        *,
        is_old: bool = False,  # as written before there was `settle`
    ) -> None:
        self.log = log or MemoryLog()
        self.notes = Notes()
        self.fold = Fold(log=self.log, make=make or Linear, watcher=self.notes)
        self.tell(0, "", Modelled(settings={"seed": 0}))
        kept = {n: v for n, v in configuration.to_json().items() if not (is_old and n == "settle")}
        self.tell(0, "", Configured(configuration=kept))

    def tell(self, time: int, event: str, record: Record) -> None:
        row = row_of(record, event, time)
        self.log.append([row])
        for stored in self.log.read(self.fold.seq):
            self.fold.apply(stored)

    @property
    def bandit(self) -> Bandit:
        assert self.fold.bandit is not None
        return self.fold.bandit

    @property
    def counts(self) -> Counts:
        return self.fold.joiner.counts

    @property
    def learned(self) -> int:
        return self.bandit.round

    @property
    def weight(self) -> float:
        """Return Σ reward of action 0 in its only feature: V⁻¹ b with V = 1 + n."""
        return float(self.bandit.decide([[1.0, 0.0]]).indices[0])


class Linear:
    """A model of two features, one for each action."""

    fits_per_second = 5

    def __init__(self, settings: dict[str, Any]) -> None:
        self.seed = settings["seed"]

    def start(self) -> Bandit:
        policy = LinUCB(exploration=0.0, model=Ridge(is_standardised=False))  # learns sums by hand
        return Bandit(policy, features=2, encoding="per-arm", seed=self.seed)

    def load(self, model: bytes) -> Bandit:
        return Bandit.load(io.BytesIO(model))

    def chosen_contexts(self, plays: Sequence[tuple[Decided, Play]], bandit: Bandit) -> Contexts:
        return per_arm(np.eye(2)[[play.chosen for _, play in plays]], 2)


class Notes:
    """What a watcher was told."""

    def __init__(self) -> None:
        self.lines: list[tuple[Any, ...]] = []

    def decide(self, time: int, decided: Decided) -> None:
        self.lines.append((time, decided.mode))

    def settle(
        self, time: int, decided: Decided, play: Play, reward: float, is_joined: bool
    ) -> None:
        self.lines.append((time, play.slot, reward, is_joined))

    def correct_clock(self, time: int) -> None:
        self.lines.append((time, "the clock was corrected"))


def decided(**changes: Any) -> Decided:
    play = Play(eligible=[0, 1], probabilities=[0.9, 0.1], chosen=0)
    usual = Decided(
        context=NO_FEATURES,
        actions=[OfferedAction(id="a"), OfferedAction(id="b")],
        plays=[play],
        digest="d",
        learned=0,
    )
    return Decided(**{f: getattr(usual, f) for f in usual.__struct_fields__} | changes)


def play(**changes: Any) -> Play:
    usual: dict[str, Any] = {"eligible": [0, 1], "probabilities": [0.9, 0.1], "chosen": 0}
    return Play(**usual | changes)


class Neural(Linear):
    """A network in the place of the linear model."""

    def start(self) -> Bandit:
        policy = NeuralRBMLEPC(model=Regression(network=Network(width=4), is_standardised=False))
        return Bandit(policy, features=2, encoding="per-arm", seed=self.seed)
