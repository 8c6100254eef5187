"""RBMLE over unknown transition probabilities, by an optimistic MDP."""

from dataclasses import dataclass, field

import numpy as np

from rbmle.control import epochs
from rbmle.control.epochs import EpochLearner, EpochState
from rbmle.core.errors import SettingError
from rbmle.engine.relative_values import LIKELIHOOD
from rbmle.policies.schedules import Logarithm, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class TabularRBMLE(EpochLearner):
    """max_{π,P} Σ_s μ(s) { R(s, π(s)) − N(s, π(s)) · J₀/α(t) · KL(p̂(· | s, π(s)) ‖ P(· | s, π(s))) }.

    μ is how often the chain of π and P is in each state, J₀ and h₀ are gain and values of the plan before.
    Up to a constant, log { J^α L(P) } = α log J(π, P) − Σ_{s,a} N KL(p̂ ‖ P). Two things are changed: log J is
    its tangent at J₀, and the loss of a state counts by how often the chain is there, where the likelihood
    counts all states alike. What is left is an MDP, solved by the iteration
    h(s) ← max_a { R(s, a) + max_q { q·h − N J₀/α · KL(p̂ ‖ q) } }. docs/control.md has more.

    α(t) = ν · growth(t) · J₀/σ, with σ the span of h₀ but at most S times the range of rewards; so one ν serves
    rewards and chains of any scale. Unless it is scaled, α(t) = ν · growth(t).
    """

    bias: float = 2.0  # ν, tuned on seeds that are not reported
    growth: Schedule = field(default_factory=Logarithm)
    is_scaled: bool = True

    def __post_init__(self) -> None:
        """Raise SettingError unless the bias is a finite number above 0."""
        if not 0 < self.bias < float("inf"):
            raise SettingError(
                f"`bias` must be a finite number above 0, got {self.bias}; TabularCE has none"
            )

    def replan(self, state: EpochState, rng: np.random.Generator) -> None:
        """Write the policy of the next epoch."""
        growth = self.bias * self.growth(state.round + 1)
        epochs.plan(
            state, LIKELIHOOD, epochs.estimated(state), state.visits * self._unit(state) / growth
        )

    def _unit(self, state: EpochState) -> float:
        """Return J₀/α(t) · ν · growth(t): σ, or J₀ where α(t) is not scaled."""
        low, high = float(state.rewards.min()), float(state.rewards.max())
        if self.is_scaled:
            return float(min(np.ptp(state.values), len(state.values) * (high - low)))
        if not (low >= 0 and high > 0):
            raise ValueError(
                "unscaled RBMLE needs rewards of 0 or more, and one above 0, since it takes the logarithm "
                f"of J; got rewards from {low:g} to {high:g}; add a constant to all of them"
            )
        return max(state.gain, 0.0)
