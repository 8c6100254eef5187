"""Certainty equivalence (Mandl 1974, "Estimation and control in Markov chains")."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from rbmle.control import finite
from rbmle.control.base import Transition
from rbmle.control.family import Family
from rbmle.control.finite import FiniteState
from rbmle.control.walk import Walk


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteCE:
    """θ_t = argmax_θ Π_i p(s_i, s_{i+1}, a_i; θ), and the action of an optimal policy for θ_t.

    It can end at a wrong θ whose policy never shows that it is wrong (Borkar and Varaiya 1979).
    """

    family: Family

    def init(
        self, rewards: Float[np.ndarray, "states actions"], rng: np.random.Generator
    ) -> FiniteState:
        """Return the state before any transition."""
        return finite.begin(self.family, rewards)

    def estimate(self, state: FiniteState) -> float:
        """Return θ_t, the first of equals."""
        return self.family.parameters[finite.place_of_estimate(self.family, state, 0.0)]

    def act(self, state: FiniteState, place: int, rng: np.random.Generator) -> int:
        """Return what is best for θ_t."""
        return int(self.family.policies[finite.place_of_estimate(self.family, state, 0.0), place])

    def update(self, state: FiniteState, seen: Transition, rng: np.random.Generator) -> None:
        """Learn from a transition."""
        finite.learn(self.family, state, seen)

    def advance(self, state: FiniteState, walk: Walk, end: int) -> None:
        """Act and learn until the walk has taken `end` steps."""
        finite.advance(self.family, state, walk, np.zeros(end - walk.steps))
