"""What a learner of MDPs promises."""

from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from jaxtyping import Float

from rbmle.control.walk import Walk

State = TypeVar("State")


class Transition(NamedTuple):
    """What was seen in a step: `action` in `state` led to `successor`."""

    state: int
    action: int
    successor: int


class Learner(Protocol[State]):
    """Settings and the functions of a fold: a frozen dataclass.

    The rewards R(s, a) are known; what is learned is where actions lead. `act` reads and never learns, `update`
    is the only writer of a state.
    """

    def init(self, rewards: Float[np.ndarray, "states actions"], rng: np.random.Generator) -> State:
        """Return the state before any transition was seen."""
        ...

    def act(self, state: State, place: int, rng: np.random.Generator) -> int:
        """Return what to do at a place, a state of the MDP."""
        ...

    def update(self, state: State, seen: Transition, rng: np.random.Generator) -> None:
        """Learn from a transition."""
        ...


class LearnsWalking(Protocol):
    """A learner that walks many steps at once, to the bit as if they were taken one by one."""

    def advance(self, state: Any, walk: Walk, end: int) -> None:
        """Act and learn until the walk has taken `end` steps."""
        ...
