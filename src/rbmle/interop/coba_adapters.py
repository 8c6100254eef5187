"""Adapters to coba: a bandit as one of its learners, its environments as problems of rbmle."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from coba.environments import Finalize
from coba.primitives import Learner
from jaxtyping import Float

from rbmle.core.bandit import Bandit
from rbmle.core.checks import encoding_of, policy_of
from rbmle.core.errors import ContextError, SettingError
from rbmle.core.policy import Policy
from rbmle.core.randomness import Purpose, generator
from rbmle.core.types import Decision, Encoding
from rbmle.environments.base import Round
from rbmle.policies.registry import name_of, settings_of

CONSTANT = 1.0  # after the features, so that a linear policy has an intercept


class CobaLearner(Learner):
    """A bandit as a learner of coba; the first interaction determines the number of features.

    Parameters
    ----------
    policy
        A policy, its class, or its name, such as "neural-ucb".
    seed
        Of the bandit.
    encoding
        "disjoint": each action, by its value, is an arm with its own parameters, and sees the context.
        "per-arm": an arm sees the context and the features of its action.
    floor
        The probability with which an action is drawn at random, see `Bandit`.
    draws
        How many draws estimate propensities, see `Bandit`.

    """

    def __init__(
        self,
        policy: Policy[Any] | type[Policy[Any]] | str = "neural-rbmle-ga",
        *,
        seed: int = 0,
        encoding: str | Encoding = Encoding.DISJOINT,
        floor: float = 0.0,
        draws: int = 0,
    ) -> None:
        self.policy, self.encoding = policy_of(policy), encoding_of(encoding)
        self.seed, self.floor, self.draws = seed, floor, draws
        self.bandit: Bandit | None = None

    @property
    def params(self) -> dict[str, Any]:
        """Return the name of the policy and its settings, for coba's tables."""
        settings = settings_of(self.policy)
        more = {"settings": settings} if settings else {}
        return {"family": f"rbmle {name_of(self.policy)}", **more, "seed": self.seed}

    def predict(self, context: Any, actions: Sequence[Any]) -> dict[str, Any]:
        """Return an action, with its probability if the policy knows it."""
        decision = self._decide(context, actions)
        action = actions[decision.arms.index(decision.arm)]
        if decision.propensity is None:
            return {"action": action}
        return {"action_prob": (action, decision.propensity)}

    def score(self, context: Any, actions: Sequence[Any], action: Any) -> float:
        """Return the probability of an action."""
        chances = self._decide(context, actions).probabilities
        if chances is None:
            raise SettingError(
                f"{type(self.policy).__name__} knows no probabilities, so it has no score; make the learner "
                "with draws=100, or with a floor"
            )
        return float(chances[list(actions).index(action)])

    def learn(
        self, context: Any, action: Any, reward: float, probability: Any, **kwargs: Any
    ) -> None:
        """Learn the reward of an action."""
        bandit = self._begin(context, [action])
        if self.encoding is Encoding.PER_ARM:
            bandit.learn(numbers(context, action), reward=reward)
        else:
            bandit.learn(numbers(context), arm=self._arm(bandit, action), reward=reward)

    def _decide(self, context: Any, actions: Sequence[Any]) -> Decision:
        bandit = self._begin(context, actions)
        if self.encoding is Encoding.PER_ARM:
            return bandit.decide([numbers(context, action) for action in actions])
        arms = [self._arm(bandit, action) for action in actions]
        return bandit.decide(numbers(context), eligible=arms)

    def _begin(self, context: Any, actions: Sequence[Any]) -> Bandit:
        """Return the bandit, made at the first interaction."""
        if self.bandit is None:
            is_shared = self.encoding is Encoding.DISJOINT
            x = numbers(context) if is_shared else numbers(context, actions[0])
            self.bandit = Bandit(
                self.policy,
                arms=[_id(action) for action in actions] if is_shared else None,
                features=len(x),
                seed=self.seed,
                encoding=self.encoding,
                floor=self.floor,
                draws=self.draws,
            )
        return self.bandit

    def _arm(self, bandit: Bandit, action: Any) -> str:
        """Return the arm of an action; add it if it is new."""
        arm = _id(action)
        if bandit.arms is not None and arm not in bandit.arms.ids:
            bandit.add_arm(arm)
        return arm


def numbers(*parts: Any) -> list[float]:
    """Return the features of coba's contexts and actions in one list, and a constant.

    >>> numbers(None), numbers(2), numbers([0.5, 1], (0, 1))
    ([1.0], [2.0, 1.0], [0.5, 1.0, 0.0, 1.0, 1.0])
    """
    values_of_parts: list[float] = []
    for part in parts:
        if part is None:
            continue
        if isinstance(part, Mapping) or hasattr(part, "keys"):
            raise ContextError(
                f"the features {dict(part)!r} are sparse; add .dense(n, method='hashing') to coba's "
                "environments"
            )
        values: list[Any] = [part] if isinstance(part, Number | str) else list(part)
        if not all(isinstance(value, Number) for value in values):
            raise ContextError(
                f"the features {values!r} are not all numbers; make them coba.Categorical, or use "
                "encoding='disjoint' if these are the actions"
            )
        values_of_parts += map(float, values)
    return [*values_of_parts, CONSTANT]


def _id(action: Any) -> str:
    """Return the id of the arm of an action, by its value."""
    is_value = isinstance(action, Number | str)
    return str(action) if is_value else str(tuple(action))


DIGEST_BYTES = 8


class InteractionArrays(NamedTuple):
    """All interactions of an environment, as arrays."""

    X: Float[np.ndarray, "n features"] | Float[np.ndarray, "n arms features"]
    rewards: Float[np.ndarray, "n arms"]


@dataclass(frozen=True, kw_only=True)
class CobaEnvironment:
    """The interactions of a simulated environment of coba, in an order that the seed decides.

    If all interactions offer the same actions, these are the arms, and see the context; otherwise each arm sees
    the context and the features of its action. All interactions must offer equally many actions.
    """

    source: Any = field(repr=False)  # a coba environment, or an iterable of interactions
    name: str = "coba"

    @cached_property
    def data(self) -> InteractionArrays:
        """Return the interactions, read once."""
        read = self.source.read() if hasattr(self.source, "read") else self.source
        interactions = list(Finalize().filter(read))
        if not interactions or "rewards" not in interactions[0]:
            raise SettingError(
                f"the environment {self.name!r} has no interactions with rewards for every action; give a "
                "simulated one, as of coba.Environments.from_supervised"
            )
        counts = {len(row["actions"]) for row in interactions}
        if len(counts) > 1:
            raise SettingError(
                f"the interactions of {self.name!r} offer between {min(counts)} and {max(counts)} actions; "
                "equally many are needed"
            )
        offered = [list(row["actions"]) for row in interactions]
        rewards = np.array(
            [[row["rewards"](a) for a in row["actions"]] for row in interactions], float
        )
        if all(actions == offered[0] for actions in offered):
            X = np.array([numbers(row["context"]) for row in interactions])
        else:
            X = np.array(
                [
                    [numbers(row["context"], action) for action in actions]
                    for row, actions in zip(interactions, offered, strict=True)
                ]
            )
        return InteractionArrays(X, rewards)

    @property
    def arms(self) -> int:
        return int(self.data.rewards.shape[1])

    @property
    def features(self) -> int:
        """The number of features, including a constant."""
        return int(self.data.X.shape[-1])

    @property
    def encoding(self) -> Encoding:
        """Return DISJOINT if all interactions offer the same actions."""
        return Encoding.DISJOINT if self.data.X.ndim == 2 else Encoding.PER_ARM

    @property
    def rows(self) -> int:
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
        return {"name": self.name, "digest": self.digest}

    def round(self, t: int, seed: int) -> Round:
        X, rewards = self.data
        row = _order(len(rewards), seed)[t % len(rewards)]
        paid = rewards[row].copy()
        return Round(x=X[row].copy(), rewards=paid, means=paid)


@lru_cache(maxsize=8)
def _order(rows: int, seed: int) -> np.ndarray:
    return generator(seed, Purpose.ENVIRONMENT, 0).permutation(rows)
