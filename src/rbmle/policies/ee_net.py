"""EE-Net (Ban, Yan, Banerjee, He 2022, "Exploitation-exploration neural networks in contextual bandits")."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.numbers import check_not_negative
from rbmle.core.types import Contexts, Indices
from rbmle.models.explorer import Explorer, ExplorerState
from rbmle.models.regression import Regression
from rbmle.policies.base import ModelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class EENet(ModelPolicy[ExplorerState]):
    """Index f_1(x) + c f_2(z), with z = (∇_x f_1, x), both of norm √d.

    f_1 is fitted to rewards, and f_2 to what f_1 leaves of them, r − f_1(x): the potential gain of an arm is
    learned, and may be negative. The decision maker is linear, f_1 + f_2 for c = 1.
    """

    model: Regression = field(default_factory=Regression)
    exploration: float = 0.5  # c

    title: ClassVar[str] = "EE-Net"
    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise SettingError for an exploration below 0."""
        check_not_negative("exploration", self.exploration)

    @property
    def learner(self) -> Explorer:
        """Return both networks."""
        return Explorer(model=self.model)

    def index(self, state: ExplorerState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the expected reward and its potential gain."""
        expected, gain = self.learner.estimates(state, contexts)
        return expected + self.exploration * gain
