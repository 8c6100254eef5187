"""NeuralRBMLE-GA: reward-biased maximum likelihood by gradient ascent, Algorithm 1 of the paper."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts, Indices
from rbmle.models.arm_ascent import ArmAscent, Biased
from rbmle.models.printed import printed_model
from rbmle.models.regression import Regression
from rbmle.models.regression_state import RegressionState
from rbmle.models.watch import deviation, least_reward
from rbmle.policies.base import ModelPolicy
from rbmle.policies.schedules import Logarithm, Power, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralRBMLEGA(ModelPolicy[RegressionState]):
    """Index ℓ_λ(F_t; θ̃_a) + α(t) ζ(t) f(x_a; θ̃_a), or f(x_a; θ̃_a) alone.

    θ̃_a is the output of gradient ascent on ℓ_λ(F_t; θ) + α(t) f(x_a; θ), Eq. (12), from the shared
    estimator θ̂, and α(t) = ν δ(t) growth(t), with δ(t) the mean absolute deviation of the rewards so far: one
    ν serves rewards of any size, and where nearly all are alike there is little to find. Both indices are
    divided by what all arms share. An arm that cannot win has an upper bound of its index instead. Where θ̂
    promises less than the smallest reward so far, which no reward can have taught it, it counts as that reward.
    """

    model: Regression = field(default_factory=Regression)
    bias: float = 0.03  # ν
    growth: Schedule = field(default_factory=Power)
    is_scaled: bool = True  # by δ(t), which is 1 in the paper
    is_bounded: bool = True  # by the smallest reward so far; not in the paper
    zeta: Schedule = field(default_factory=Logarithm)  # ζ(t)
    rule: Literal["likelihood", "estimate"] = "likelihood"
    ascent: ArmAscent = field(default_factory=lambda: ArmAscent(steps=12, rate=1 / 3))

    title: ClassVar[str] = "NeuralRBMLE-GA"

    def __post_init__(self) -> None:
        """Raise SettingError for a bias below 0 or an unknown rule."""
        if not 0 <= self.bias < float("inf"):
            raise SettingError(
                f"`bias` must be a finite number, 0 or more, got {self.bias}; NeuralRBMLEPC takes one below 0"
            )
        if self.rule not in ("likelihood", "estimate"):
            raise SettingError(f"`rule` must be 'likelihood' or 'estimate', got {self.rule!r}")

    @staticmethod
    def as_printed(
        *, bias: float = 0.1, objective: Literal["sum", "mean"] = "sum", warm: bool = False
    ) -> "NeuralRBMLEGA":
        """Return Algorithm 1 with the constants of the appendix; ν is one of its grid.

        The defaults read the paper literally: steps on ℓ_λ, from θ₀. See `printed_model` for the other reading.
        """
        model = printed_model(objective=objective, warm=warm)
        return NeuralRBMLEGA(model=model, bias=bias, is_scaled=False, is_bounded=False)

    @property
    def learner(self) -> Biased:
        """Return the network with the ascent of each arm."""
        return Biased(model=self.model, ascent=self.ascent)

    def index(
        self, state: RegressionState, contexts: Contexts, rng: np.random.Generator
    ) -> Indices:
        """Return the index of each arm's own biased estimator."""
        t = state.round + 1
        delta = deviation(state.watch) if self.is_scaled else 1.0
        alpha = self.bias * delta * self.growth(t)
        by_likelihood = self.rule == "likelihood" and alpha > 0
        scale = alpha * self.zeta(t)
        worth = 1 / scale if by_likelihood else 0.0
        # One draw of samples for a round: at a given state the index is a function of the contexts.
        least = self._least(state)
        f, gain = self.learner.estimates(state, contexts, alpha, np.uint64(t), worth, least)
        # Line 8 of Algorithm 1, less ℓ_λ(F_t; θ̂) and divided by α ζ: the same order of the arms.
        return f + gain / scale if by_likelihood else f

    def _least(self, state: RegressionState) -> float:
        """Return what θ̂ promises at least; −∞ where the likelihood sees to it that it promises no less."""
        low, high = self.rewards
        least = least_reward(state.watch)
        return least if self.is_bounded and low < least < high else -np.inf
