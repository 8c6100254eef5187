"""NPR (Jia, Zhang, Zhou, Gu, Wang 2022, "Learning neural contextual bandits through perturbed rewards")."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.numbers import check_not_negative
from rbmle.core.types import Contexts, Indices
from rbmle.models.held_noise import HeldNoise, HeldNoiseState
from rbmle.models.regression import Regression
from rbmle.models.training import Replay
from rbmle.policies.base import ModelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class NPR(ModelPolicy[HeldNoiseState]):
    """Index f(x; θ) of a network fitted to r_s + ν ε_s, with ε_s ~ N(0, 1).

    The paper draws every ε_s anew in each round and solves for θ again. Here θ is warm started, and only
    `redraws` of them are drawn anew in a round, so that training has time to follow the others.
    """

    exploration: float = 0.3  # ν
    redraws: int = 100
    # More and shorter steps than others take: 40 of 0.2 had 1.07 times the regret.
    model: Regression = field(
        default_factory=lambda: Regression(training=Replay(steps=100, rate=0.1))
    )

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise SettingError for an exploration or redraws below 0."""
        check_not_negative("exploration", self.exploration)
        self.learner  # noqa: B018  # its constructor checks

    @property
    def learner(self) -> HeldNoise:
        """Return the network on perturbed rewards."""
        return HeldNoise(model=self.model, noise=self.exploration, redraws=self.redraws)

    def index(self, state: HeldNoiseState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the estimates."""
        return self.model.scores(state.regression, contexts)
