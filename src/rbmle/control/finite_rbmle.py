"""RBMLE over a finite set (Kumar and Becker 1982, "A new family of optimal adaptive controllers for Markov
chains"), as in section 3 of the NeuralRBMLE paper.
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from rbmle.control import finite
from rbmle.control.base import Transition
from rbmle.control.family import Family
from rbmle.control.finite import FiniteState
from rbmle.control.walk import Walk
from rbmle.core.numbers import check_not_negative
from rbmle.policies.schedules import Power, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteRBMLE:
    """θ_t = argmax_θ J*(θ)^α(t) Π_i p(s_i, s_{i+1}, a_i; θ), with α(t) = ν · growth(t).

    The action is that of an optimal policy for θ_t. Nothing is approximated: all of Θ is tried in each step.
    """

    family: Family
    bias: float = 1.0  # ν
    growth: Schedule = field(default_factory=Power)  # α(t) → ∞ and α(t) = o(t)

    def __post_init__(self) -> None:
        """Raise SettingError for a bias below 0."""
        check_not_negative("bias", self.bias)

    def init(
        self, rewards: Float[np.ndarray, "states actions"], rng: np.random.Generator
    ) -> FiniteState:
        """Return the state before any transition."""
        return finite.begin(self.family, rewards)

    def estimate(self, state: FiniteState) -> float:
        """Return θ_t, the first of equals."""
        return self.family.parameters[self._place(state)]

    def act(self, state: FiniteState, place: int, rng: np.random.Generator) -> int:
        """Return what is best for θ_t."""
        return int(self.family.policies[self._place(state), place])

    def update(self, state: FiniteState, seen: Transition, rng: np.random.Generator) -> None:
        """Learn from a transition."""
        finite.learn(self.family, state, seen)

    def advance(self, state: FiniteState, walk: Walk, end: int) -> None:
        """Act and learn until the walk has taken `end` steps."""
        first = state.round + 1
        alphas = finite.alphas(self.bias, self.growth, first, first + end - walk.steps)
        finite.advance(self.family, state, walk, alphas)

    def _place(self, state: FiniteState) -> int:
        """Return the place of θ_t in Θ."""
        alpha = self.bias * self.growth(state.round + 1)
        return finite.place_of_estimate(self.family, state, alpha)
