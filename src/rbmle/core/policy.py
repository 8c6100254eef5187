"""What a policy promises, and how an arm is chosen from its indices."""

from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float

from rbmle.core.types import Batch, Contexts, Indices, Observation, Probabilities

State = TypeVar("State")


@runtime_checkable
class Policy(Protocol[State]):
    """Hyperparameters and the functions of a fold: a frozen dataclass whose `repr` rebuilds it.

    `index` reads and never learns: asked twice with equal `rng`, it answers twice the same.
    `update` is the only writer of a state, apart from `grow`.

    A policy whose index for an arm depends on that arm's context alone, and on no random numbers, may
    say so by `is_separate = True`; then many rounds are asked for at once.
    """

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> State:
        """Return the state before any data; blocks are the arms, or 1 if contexts are per arm."""
        ...

    def index(self, state: State, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return one number for each arm; the largest is played."""
        ...

    def update(self, state: State, seen: Observation, rng: np.random.Generator) -> None:
        """Learn from the context that was played and its reward."""
        ...

    def grow(self, state: State, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks; what was learned stays."""
        ...

    def probabilities(
        self, state: State, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> Probabilities | None:
        """Return each arm's chance of the largest index, or None if the index is not random.

        A policy that knows the chances returns them; others count them in `draws` draws, or return
        None if `draws` is 0.
        """
        ...


@runtime_checkable
class LearnsBatches(Protocol):
    """A policy that learns many observations at once, and need not fit to each of them."""

    def update_all(self, state: Any, batch: Batch) -> None:
        """Learn a batch, to the bit as if its observations came one by one."""
        ...


@runtime_checkable
class DecidesWithLess(Protocol):
    """A policy whose `index` does not read all of its state."""

    def essentials(self, state: Any) -> Any:
        """Return a state with the same index, without what is needed to learn only."""
        ...


def unknown(
    policy: object, state: Any, contexts: Contexts, draws: int, rng: np.random.Generator
) -> Probabilities | None:
    """Return None: the `probabilities` of a policy whose index is not random."""
    return None


def largest(indices: Indices) -> int | None:
    """Return the arm with the largest index, or None if several arms have it."""
    best = int(indices.argmax())
    return best if np.count_nonzero(indices == indices[best]) == 1 else None


def choose(indices: Indices, rng: np.random.Generator) -> int:
    """Return the arm with the largest index; ties are broken uniformly at random.

    >>> choose(np.array([0.1, 0.7, 0.3]), np.random.default_rng(0))
    1
    """
    best = largest(indices)
    return int(rng.choice(np.flatnonzero(indices == indices.max()))) if best is None else best


def frequencies(draws: Float[np.ndarray, "draws arms"]) -> Probabilities:
    """Return how often each arm has the largest index, in a matrix with a row for each draw."""
    shares: Probabilities
    if len(draws) == 1 and (best := largest(draws[0])) is not None:
        shares = np.zeros(draws.shape[1])
        shares[best] = 1.0
        return shares
    wins = draws == draws.max(axis=1, keepdims=True)
    shares = (wins / wins.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares
