"""NeuralRBMLE-GA: reward-biased maximum likelihood by gradient ascent, Algorithm 1 of the paper."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.types import Batch, Contexts, Indices
from rbmle.models.arm_ascent import ArmAscent
from rbmle.models.blend import BlendState, LinearPart
from rbmle.models.drift import deviation, least_reward
from rbmle.models.regression import Regression, RegressionState, printed_model
from rbmle.policies.base import ModelPolicy
from rbmle.policies.schedules import Logarithm, Power, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralRBMLEGA(ModelPolicy[Any]):  # its state is a BlendState, or that of the network alone
    """Index ℓ_λ(F_t; θ̃_a) + α(t) ζ(t) f(x_a; θ̃_a), or f(x_a; θ̃_a) alone.

    θ̃_a is the output of gradient ascent on ℓ_λ(F_t; θ) + α(t) f(x_a; θ), Eq. (12), from the shared
    estimator θ̂, and α(t) = ν σ(t) growth(t). Both indices are divided by what all arms share.

    In the paper f is a network, and σ(t) = 1. By default f = w₁ · line + w₂ · network, with weights by how well
    both have predicted (see `LinearPart`). For the line, with V = λI + Σ x xᵀ, Eq. (12) has the solution
    f(x_a; θ̃_a) = θ̂ᵀx_a + α ‖x_a‖²_{V⁻¹}, which lowers the likelihood by α² ‖x_a‖²_{V⁻¹}/2, and σ(t) is the
    deviation of rewards from what was predicted, in units of that of all rewards. θ̃_a stays in the ellipsoid
    ‖θ − θ̂‖_V ≤ ρ σ(t): where α ‖x_a‖_{V⁻¹} is larger, that takes its place. For the network σ(t) is the
    share of their variance that was predicted: a bias that grew with the noise would play bad arms for
    thousands of rounds. Its index is f(x_a; θ̃_a) alone. With `linear=None`, f is the network alone, and σ(t) is
    the mean absolute deviation of the rewards so far.

    An arm that cannot win has an upper bound of its index instead. Where θ̂ promises less than the smallest
    reward so far, which no reward can have taught it, it counts as that reward.

    Hung and Hsieh, "Reward-Biased Maximum Likelihood Estimation for Neural Contextual Bandits".
    """

    model: Regression = field(default_factory=Regression)
    bias: float = 0.03  # ν
    growth: Schedule = field(default_factory=Power)
    is_scaled: bool = True  # by σ(t), which is 1 in the paper
    is_bounded: bool = True  # by the smallest reward so far; not in the paper
    zeta: Schedule = field(default_factory=Logarithm)  # ζ(t)
    rule: Literal["likelihood", "estimate"] = "likelihood"
    ascent: ArmAscent = field(default_factory=lambda: ArmAscent(steps=12, rate=1 / 3))
    linear: LinearPart | None = field(default_factory=LinearPart)  # not in the paper

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
        return NeuralRBMLEGA(model=model, bias=bias, is_scaled=False, is_bounded=False, linear=None)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> Any:
        """Return the network at θ₀, and a line that is 0 everywhere.

        There is no line if `linear` is None, or if rewards are learned as they are: f is not their mean then.
        """
        regression = self.model.init(blocks, features, rng)
        if self.linear is None or not self.standardises:
            return regression
        return self.linear.start(regression, blocks, features)

    def predict(self, state: Any, contexts: Contexts) -> Indices:
        if not isinstance(state, BlendState):
            return self.model.predict(state, contexts)
        (w1, w2), means, _ = self._line.values(state, contexts)
        f = w1 * means + w2 * self.model.scores(state.regression, contexts)
        return self.model.in_rewards(state.regression.watch, f)

    def update_all(self, state: Any, batch: Batch) -> None:
        if isinstance(state, BlendState):
            self._line.update_all(state, batch, self.model)
        else:
            self.model.update_all(state, batch)

    def grow(self, state: Any, blocks: int, rng: np.random.Generator) -> None:
        if isinstance(state, BlendState):
            self._line.grow(state, blocks)
            self.model.grow(state.regression, blocks, rng)
        else:
            self.model.grow(state, blocks, rng)

    def frozen(self, state: Any) -> Any:
        if not isinstance(state, BlendState):
            return self.model.frozen_with_history(state)
        return self._line.frozen(state, self.model.frozen_with_history(state.regression))

    @property
    def _line(self) -> LinearPart:
        if self.linear is None:
            raise SettingError(
                "this state has a linear part; give the policy one, as in linear=LinearPart()"
            )
        return self.linear

    def index(self, state: Any, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the index of each arm's own biased estimator."""
        t, nowhere = state.round + 1, np.zeros(len(contexts))
        alpha = self.bias * self.growth(t)
        if not isinstance(state, BlendState):
            alpha *= deviation(state.watch) if self.is_scaled else 1.0
            return self._network_index(state, contexts, alpha, self._zeta(t), 1.0, nowhere)
        line = self._line
        (w1, w2), means, norms = line.values(state, contexts)
        of_line, of_network = alpha * line.bias_factor, alpha
        if self.is_scaled:
            of_line *= line.deviation(state)
            of_network *= line.explained_share(state)
        if of_line > 0:
            # The maximiser within the ellipsoid is θ̂ + step · V⁻¹x.
            step = np.minimum(of_line, line.radius * line.deviation(state) / np.sqrt(norms))
            means += step * norms * (1 - step / (2 * of_line * self._zeta(t)))
        # An ascent from a network that has not converged raises ℓ_λ as well. If little is explained, α is
        # small, and that gain divided by α would outweigh what arms differ by. Hence ζ = ∞: f(x; θ̃_a) alone.
        return self._network_index(state.regression, contexts, of_network, np.inf, w2, w1 * means)

    def _network_index(
        self,
        state: RegressionState,
        contexts: Contexts,
        alpha: float,
        zeta: float,
        weight: float,
        rest: Indices,
    ) -> Indices:
        """Return the index of Algorithm 1 for the network, times its weight in f, plus the rest."""
        if weight == 0.0:
            return rest
        scale = alpha * zeta if alpha > 0 else np.inf
        worth = 1 / scale
        # One draw of samples for a round: at a given state the index is a function of the contexts.
        least = self._least(state)
        rules = (alpha, np.uint64(state.round + 1), worth, least, rest / weight)
        f, gain = self.ascent.estimates(self.model, state, contexts, *rules)
        # Line 8 of Algorithm 1, less ℓ_λ(F_t; θ̂) and divided by α ζ: the same order of the arms.
        return weight * (f + gain / scale) + rest

    def _zeta(self, t: int) -> float:
        """Return ζ(t); ∞ where the likelihood is no part of the index."""
        return self.zeta(t) if self.rule == "likelihood" else np.inf

    def _least(self, state: RegressionState) -> float:
        """Return what θ̂ promises at least; −∞ where the likelihood sees to it that it promises no less."""
        low, high = self.rewards
        least = least_reward(state.watch)
        return least if self.is_bounded and low < least < high else -np.inf
