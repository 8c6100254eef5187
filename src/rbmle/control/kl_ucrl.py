"""KL-UCRL, UCRL2 with Kullback and Leibler's divergence in the place of the L1 distance.

Filippi, Cappé, Garivier (2010), "Optimism in reinforcement learning and Kullback-Leibler divergence".
"""

import math
from dataclasses import dataclass

import numpy as np

from rbmle.control.confidence import check_confidence, plan_within
from rbmle.control.epochs import EpochLearner, EpochState
from rbmle.engine.relative_values import DIVERGENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class KLUCRL(EpochLearner):
    """An optimal policy for the best MDP with KL(p̂(· | s, a) ‖ p(· | s, a)) ≤ C/N(s, a).

    C = S {B + log(B + 1/log t) [1 + 1/(B + 1/log t)]} with B = log(2e S² A log t/δ), as in the theorem of the
    paper. There t is the horizon, which has to be known; here it is the step, and at least 2. Where nothing was
    seen, C/N is infinite and any p is possible. Rewards are known, so only transitions have a confidence set.
    With `width` w the bound is wC/N: the theorem has w = 1, which is far wider than what is needed.
    """

    failure: float = 0.05  # δ
    width: float = 1.0  # of the confidence set; below 1 no bound is claimed

    def __post_init__(self) -> None:
        """Raise SettingError unless 0 < δ < 1 and the width is a finite number above 0."""
        check_confidence(self.failure, self.width)

    def replan(self, state: EpochState, rng: np.random.Generator) -> None:
        """Write the policy of the next epoch."""
        states, actions = state.rewards.shape
        C = self.width * self.constant(states, actions, state.round + 1)
        radius = np.full(state.visits.shape, np.inf)
        np.divide(C, state.visits, out=radius, where=state.visits > 0)
        plan_within(state, DIVERGENCE, radius)

    def constant(self, states: int, actions: int, t: int) -> float:
        """Return C, by which N(s, a) KL is bounded.

        >>> round(KLUCRL().constant(states=6, actions=2, t=1000), 1)
        81.1
        """
        logarithm = math.log(max(t, 2))
        B = math.log(2 * math.e * states**2 * actions * logarithm / self.failure)
        x = B + 1 / logarithm
        return states * (B + math.log(x) * (1 + 1 / x))
