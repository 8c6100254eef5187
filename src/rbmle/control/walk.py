"""A walk through an MDP: where it is, how many steps it has taken, and its regret so far."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from rbmle.control.mdp import MDP
from rbmle.control.planning import solve
from rbmle.core.randomness import Purpose, generator, key
from rbmle.engine.markov_chain import STATE, TIME, step


@dataclass(slots=True, kw_only=True)
class Walk:
    """Regret Σ_t J* + h(s_t) − R(s_t, a_t) − Σ_j P(j | s_t, a_t) h(j), of optimal actions 0.

    Its mean is that of J* · t − Σ R(s_t, a_t), up to the span of h; the noise of chance is left out.
    All randomness is a function of the seed and of how many steps were taken.
    """

    mdp: MDP
    seed: int
    cumulative: Float[np.ndarray, "states actions states"]
    key: np.uint64
    place: Int[np.ndarray, "2"]  # the state, and the steps taken
    gaps: Float[np.ndarray, "states actions"]  # what a step adds to the regret
    regret: float = 0.0

    @staticmethod
    def begin(mdp: MDP, seed: int, start: int = 0) -> "Walk":
        """Return a walk that has taken no step."""
        if not 0 <= start < mdp.states:
            raise ValueError(f"`start` must be a state from 0 to {mdp.states - 1}, got {start}")
        cumulative = np.cumsum(mdp.transitions, axis=2)
        last = mdp.states - 1 - np.argmax(mdp.transitions[:, :, ::-1] > 0, axis=2)
        # From the last possible state on, whatever rounding makes of 1.
        cumulative[np.arange(mdp.states) >= last[:, :, None]] = np.inf
        best = solve(mdp)
        ahead = mdp.rewards + mdp.transitions @ best.values
        return Walk(
            mdp=mdp,
            seed=seed,
            cumulative=cumulative,
            key=key(generator(seed, Purpose.ENVIRONMENT, 0)),
            place=np.array([start, 0]),
            gaps=np.maximum(best.gain + best.values[:, None] - ahead, 0.0),
        )

    @property
    def state(self) -> int:
        """Return the state of the MDP."""
        return int(self.place[STATE])

    @property
    def steps(self) -> int:
        """Return how many steps were taken."""
        return int(self.place[TIME])

    def stream(self, purpose: Purpose) -> np.random.Generator:
        """Return the random numbers of a purpose, after as many steps as were taken."""
        return generator(self.seed, purpose, self.steps)

    def take(self, action: int) -> int:
        """Take a step, and return the state that it leads to."""
        self.regret += float(self.gaps[self.state, action])
        self.place[STATE] = step(self.cumulative, self.state, action, self.key, self.steps)
        self.place[TIME] += 1
        return self.state
