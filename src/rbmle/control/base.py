"""What a learner of MDPs promises, and the walk through an MDP on which it learns."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from jaxtyping import Float, Int

from rbmle.control.mdp import MDP, solve
from rbmle.core.randomness import Purpose, generator, key
from rbmle.engine.markov import STATE, TIME, step

State = TypeVar("State")


@dataclass(slots=True, kw_only=True)
class Walk:
    """A walk through an MDP, with its regret Σ_t J* + h(s_t) − R(s_t, a_t) − Σ_j P(j | s_t, a_t) h(j).

    Optimal actions add 0. Its mean is that of J* · t − Σ R(s_t, a_t), up to the span of h, without the noise of
    transitions. All randomness is a function of the seed and the number of steps taken.
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
        """Return the stream of random numbers of a purpose at the current step."""
        return generator(self.seed, purpose, self.steps)

    def take(self, action: int) -> int:
        """Take a step, and return the state that it leads to."""
        self.regret += float(self.gaps[self.state, action])
        self.place[STATE] = step(self.cumulative, self.state, action, self.key, self.steps)
        self.place[TIME] += 1
        return self.state


class Transition(NamedTuple):
    """One observed step: `action` in `state` led to `successor`."""

    state: int
    action: int
    successor: int


class Learner(Protocol[State]):
    """What a learner of an MDP implements, as a frozen dataclass of its settings.

    The rewards R(s, a) are known; the learner learns where actions lead. `act` only reads the state; `update`
    is the only method that changes it.
    """

    def init(self, rewards: Float[np.ndarray, "states actions"], rng: np.random.Generator) -> State:
        """Return the state before any transition was seen."""
        ...

    def act(self, state: State, place: int, rng: np.random.Generator) -> int:
        """Return the action in `place`, a state of the MDP."""
        ...

    def update(self, state: State, seen: Transition, rng: np.random.Generator) -> None:
        """Learn from a transition."""
        ...


class LearnsWalking(Protocol):
    """A learner that can take many steps at once, with the same result to the bit as one by one."""

    def advance(self, state: Any, walk: Walk, end: int) -> None:
        """Act and learn until the walk has taken `end` steps."""
        ...
