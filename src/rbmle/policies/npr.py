"""NPR (Jia, Zhang, Zhou, Gu, Wang 2022, "Learning neural contextual bandits through perturbed rewards")."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from rbmle.core.checks import check_not_negative
from rbmle.core.errors import SettingError
from rbmle.core.randomness import key
from rbmle.core.types import Batch, Contexts, Indices
from rbmle.engine.posterior import redraw
from rbmle.models.drift import spread
from rbmle.models.regression import AroundRegressionState, Regression, RegressionState, Replay
from rbmle.policies.base import ModelPolicy


@dataclass(slots=True, kw_only=True)
class HeldNoiseState(AroundRegressionState):
    """A network with a history of perturbed rewards, and the rewards as they came."""

    regression: RegressionState
    rewards: Float[np.ndarray, " slots"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NPR(ModelPolicy[HeldNoiseState]):
    """Index f(x; θ) of a network fitted to r_s + ν ε_s, with ε_s ~ N(0, 1).

    The paper draws every ε_s again in each round and solves for θ again. Here θ is warm started, and only
    `redraws` of the n noises are drawn again in a round: one is held for n/redraws rounds, so that training has
    time to follow it. Where rewards are standardised, the noise is in units of their deviation.
    """

    exploration: float = 0.3  # ν
    redraws: int = 100
    # More and shorter steps than others take: 40 of 0.2 had 1.07 times the regret.
    model: Regression = field(
        default_factory=lambda: Regression(training=Replay(steps=100, rate=0.1))
    )

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_not_negative("exploration", self.exploration)
        if self.redraws < 0:
            raise SettingError(f"`redraws` must be 0 or more, got {self.redraws}")

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> HeldNoiseState:
        regression = self.model.init(blocks, features, rng)
        return HeldNoiseState(regression=regression, rewards=_no_rewards(regression))

    def index(self, state: HeldNoiseState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        return self.model.scores(state.regression, contexts)

    def predict(self, state: HeldNoiseState, contexts: Contexts) -> Indices:
        return self.model.predict(state.regression, contexts)

    def update_all(self, state: HeldNoiseState, batch: Batch) -> None:
        for single, rng in batch.singles():
            perturbed = single.rewards + self._noise(state) * rng.normal(size=1)
            single_perturbed = replace(single, rewards=perturbed)
            if self.model.update_all(state.regression, single_perturbed):
                state.rewards = _no_rewards(state.regression)
                continue
            history = state.regression.history
            more = len(history.rewards) - len(state.rewards)
            if more:
                state.rewards = np.concatenate([state.rewards, np.zeros(more)])
            state.rewards[history.newest] = single.rewards[0]
            if single.is_fitted[0]:
                past = (state.rewards, history.count, self.redraws, self._noise(state))
                redraw(*past, key(rng), history.rewards)

    def grow(self, state: HeldNoiseState, blocks: int, rng: np.random.Generator) -> None:
        self.model.grow(state.regression, blocks, rng)

    def frozen(self, state: HeldNoiseState) -> HeldNoiseState:
        regression = self.model.frozen(state.regression)
        return HeldNoiseState(regression=regression, rewards=_no_rewards(regression))

    def _noise(self, state: HeldNoiseState) -> float:
        """Return the deviation of ε in the units of rewards; 0 while all rewards are equal."""
        if not self.standardises:
            return float(self.exploration)
        return self.exploration * spread(state.regression.watch)


def _no_rewards(regression: RegressionState) -> np.ndarray:
    return np.zeros_like(regression.history.rewards)
