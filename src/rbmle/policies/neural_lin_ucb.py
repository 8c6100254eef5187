"""NeuralLinUCB (Xu, Wen, Zhao, Gu 2022, "… with deep representation and shallow exploration")."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.numbers import check_not_negative
from rbmle.core.types import Contexts, Indices
from rbmle.models.last_layer import LastLayer, LastLayerState
from rbmle.models.network import Network
from rbmle.models.regression import Regression
from rbmle.models.training import Replay
from rbmle.policies.base import ModelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralLinUCB(ModelPolicy[LastLayerState]):
    """Index θ̂ᵀφ(x) + γ ‖φ(x)‖_{V⁻¹}, with φ(x) the last hidden layer of the network.

    θ̂ and V = λI + Σ φ φᵀ are those of a ridge regression: the network represents, and its last layer explores.
    """

    # The zero start's units come in pairs: as features they would say everything twice.
    model: Regression = field(
        default_factory=lambda: Regression(
            network=Network(start="standard"), ridge=0.001, training=Replay(rate=0.2)
        )
    )
    exploration: float = 1.0  # γ
    ridge: float = 1.0  # λ of the last layer

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise SettingError for an exploration below 0, or a ridge that is not positive."""
        check_not_negative("exploration", self.exploration)
        self.learner.linear  # noqa: B018  # its constructor checks

    @property
    def learner(self) -> LastLayer:
        """Return the network with its linear head."""
        return LastLayer(model=self.model, ridge=self.ridge)

    def index(self, state: LastLayerState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the estimate of the head and its confidence width."""
        mean, width = self.learner.estimates(state, contexts)
        return mean + self.exploration * width
