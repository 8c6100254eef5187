"""The protocol of environments, whose rounds can be read in any order."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.types import Encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The features of a round, and the reward and the mean reward of each arm.

    The environment's encoding says whether arms share x, or have a row each. Means serve to compute regret; a
    policy never sees them.
    """

    x: Float[np.ndarray, " features"] | Float[np.ndarray, "arms features"]
    rewards: Float[np.ndarray, " arms"]
    means: Float[np.ndarray, " arms"]


class LoggedRounds(NamedTuple):
    """Rounds that another policy has played: their contexts, arms and rewards."""

    X: Float[np.ndarray, "rounds features"]
    arms: Int[np.ndarray, " rounds"]
    rewards: Float[np.ndarray, " rounds"]


class Environment(Protocol):
    """A problem: its rounds are a function of (t, seed).

    Some members are optional. `delay` is the number of rounds that are decided before the reward of a round
    is known. `shown` is how many arms are played in a round, as a list, each with a reward of its own.
    `log(seed)` returns the `LoggedRounds` that are learned before the first round, or None. `load_data()`
    returns the same problem with its data in memory; a trial calls it once, before its first round. `notice` is
    a line on how a user's file was read.
    """

    @property
    def arms(self) -> int:
        """Return K."""
        ...

    @property
    def features(self) -> int:
        """Return d."""
        ...

    @property
    def encoding(self) -> Encoding:
        """Return how arms see features."""
        ...

    @property
    def rows(self) -> int | None:
        """Return the number of rounds before they repeat; None if they never do."""
        ...

    @property
    def settings(self) -> dict[str, Any]:
        """Return everything that determines the problem, as JSON, including its `name`."""
        ...

    def round(self, t: int, seed: int) -> Round:
        """Return round t = 0, 1, … of the run with this seed."""
        ...


def delay_of(world: Environment) -> int:
    """Return the `delay` of an environment; 0 by default."""
    return int(getattr(world, "delay", 0))


def shown_of(world: Environment) -> int:
    """Return how many arms an environment shows in a round; 1 by default."""
    return int(getattr(world, "shown", 1))


def notice_of(world: Environment) -> str:
    """Return how a user's file was read, in one line; empty for other problems."""
    return str(getattr(world, "notice", ""))


def load_data(world: Environment) -> Environment:
    """Return a problem with its data in memory, if it has any to load."""
    return world.load_data() if hasattr(world, "load_data") else world


def log_of(world: Environment, seed: int) -> LoggedRounds | None:
    """Return the rounds that are learned before the first; None if there are none."""
    return world.log(seed) if hasattr(world, "log") else None
