"""An environment of coba as one of ours, so that `rbmle` trials can be played on it."""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from coba.environments import Finalize
from jaxtyping import Float

from rbmle.core.errors import SettingError
from rbmle.core.randomness import Purpose, generator
from rbmle.core.types import Encoding
from rbmle.environments.base import Round
from rbmle.interop.coba_learner import numbers

DIGEST_BYTES = 8


class Interactions(NamedTuple):
    """All interactions of an environment, as arrays."""

    X: Float[np.ndarray, "n features"] | Float[np.ndarray, "n arms features"]
    rewards: Float[np.ndarray, "n arms"]


@dataclass(frozen=True, kw_only=True)
class CobaEnvironment:
    """The interactions of a simulated environment of coba, in an order that the seed decides.

    If all offer the same actions, these are the arms, and see the context; else each arm sees the context
    and the features of its action. All interactions must offer equally many.
    """

    source: Any = field(repr=False)  # a coba environment, or an iterable of interactions
    name: str = "coba"

    @cached_property
    def data(self) -> Interactions:
        """Return the interactions, read once."""
        read = self.source.read() if hasattr(self.source, "read") else self.source
        found = list(Finalize().filter(read))
        if not found or "rewards" not in found[0]:
            raise SettingError(
                f"the environment {self.name!r} has no interactions with rewards for every action; give a "
                "simulated one, as of coba.Environments.from_supervised"
            )
        counts = {len(each["actions"]) for each in found}
        if len(counts) > 1:
            raise SettingError(
                f"the interactions of {self.name!r} offer between {min(counts)} and {max(counts)} actions; "
                "equally many are needed"
            )
        offered = [list(each["actions"]) for each in found]
        rewards = np.array([[each["rewards"](a) for a in each["actions"]] for each in found], float)
        if all(actions == offered[0] for actions in offered):
            X = np.array([numbers(each["context"]) for each in found])
        else:
            X = np.array(
                [
                    [numbers(each["context"], action) for action in actions]
                    for each, actions in zip(found, offered, strict=True)
                ]
            )
        return Interactions(X, rewards)

    @property
    def arms(self) -> int:
        """Return the number of actions."""
        return int(self.data.rewards.shape[1])

    @property
    def features(self) -> int:
        """Return the number of features, a constant among them."""
        return int(self.data.X.shape[-1])

    @property
    def encoding(self) -> Encoding:
        """Return DISJOINT if all interactions offer the same actions."""
        return Encoding.DISJOINT if self.data.X.ndim == 2 else Encoding.PER_ARM

    @property
    def rows(self) -> int:
        """Return how many rounds there are before an interaction comes again."""
        return len(self.data.rewards)

    @cached_property
    def digest(self) -> str:
        """Return a hash of all contexts and rewards."""
        total = hashlib.blake2b(digest_size=DIGEST_BYTES)
        for part in self.data:
            total.update(repr(part.shape).encode() + part.tobytes())
        return total.hexdigest()

    @property
    def settings(self) -> dict[str, Any]:
        """Return the name, and what is in the interactions."""
        return {"name": self.name, "digest": self.digest}

    def round(self, t: int, seed: int) -> Round:
        """Return the interaction of round t."""
        X, rewards = self.data
        row = _order(len(rewards), seed)[t % len(rewards)]
        paid = rewards[row].copy()
        return Round(x=X[row].copy(), rewards=paid, means=paid)


@lru_cache(maxsize=8)
def _order(rows: int, seed: int) -> np.ndarray:
    """Return the order of the interactions."""
    return generator(seed, Purpose.ENVIRONMENT, 0).permutation(rows)
