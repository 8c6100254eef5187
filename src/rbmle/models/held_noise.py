"""A regression on perturbed rewards, each of which is held long enough for the network to follow it."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from rbmle.core.errors import SettingError
from rbmle.core.randomness import key
from rbmle.core.types import Batch, Contexts, Indices
from rbmle.engine.redrawing import redraw
from rbmle.models.regression import Regression
from rbmle.models.regression_state import RegressionState
from rbmle.models.watch import spread


@dataclass(slots=True, kw_only=True)
class HeldNoiseState:
    """A network with a history of perturbed rewards, and the rewards as they came."""

    regression: RegressionState
    rewards: Float[np.ndarray, " slots"]

    @property
    def round(self) -> int:
        """Return how many rounds were learned; the paper's t is one more."""
        return self.regression.round


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldNoise:
    """A regression that is fitted to r_s + noise · ε_s, with ε_s ~ N(0, 1) drawn anew now and then.

    Where rewards are standardised, the noise is in units of their deviation.

    In a round, `redraws` of the n samples get a new ε, so that one is held for n/redraws rounds.
    """

    model: Regression
    noise: float
    redraws: int

    def __post_init__(self) -> None:
        """Raise SettingError for redraws below 0."""
        if self.redraws < 0:
            raise SettingError(f"`redraws` must be 0 or more, got {self.redraws}")

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return self.model.rewards

    @property
    def standardises(self) -> bool:
        """Whether rewards are learned in other units than they come."""
        return self.model.standardises

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> HeldNoiseState:
        """Return the network at θ₀ and an empty history."""
        regression = self.model.init(blocks, features, rng)
        return HeldNoiseState(regression=regression, rewards=_none(regression))

    def predict(self, state: HeldNoiseState, contexts: Contexts) -> Indices:
        """Return f(x; θ̂) for every context."""
        return self.model.predict(state.regression, contexts)

    def update_all(self, state: HeldNoiseState, batch: Batch) -> None:
        """Remember each observation perturbed, fit to the history if it is to be fitted, and draw anew."""
        for one, rng in batch.singles():
            noise = self._noise(state)
            perturbed = one.rewards + noise * rng.normal(size=1)
            if self.model.learn(state.regression, replace(one, rewards=perturbed), self.model.fit):
                state.rewards = _none(state.regression)
                continue
            history = state.regression.history
            more = len(history.rewards) - len(state.rewards)
            if more:
                state.rewards = np.concatenate([state.rewards, np.zeros(more)])
            state.rewards[history.newest] = one.rewards[0]
            if one.is_fitted[0]:
                past = (state.rewards, history.count, self.redraws, self._noise(state))
                redraw(*past, key(rng), history.rewards)

    def _noise(self, state: HeldNoiseState) -> float:
        """Return the deviation of ε in the units of rewards; none while all rewards are alike."""
        if not self.model.standardises:
            return float(self.noise)
        return self.noise * spread(state.regression.watch)

    def grow(self, state: HeldNoiseState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        self.model.grow(state.regression, blocks, rng)

    def frozen(self, state: HeldNoiseState) -> HeldNoiseState:
        """Return the network and its round."""
        regression = self.model.frozen(state.regression)
        return HeldNoiseState(regression=regression, rewards=_none(regression))


def _none(regression: RegressionState) -> np.ndarray:
    """Return a place for each reward of an empty history."""
    return np.zeros_like(regression.history.rewards)
