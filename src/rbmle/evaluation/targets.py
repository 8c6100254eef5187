"""Targets of an evaluation, with the probabilities of their arms; and the model of rewards."""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec
import numpy as np
from jaxtyping import Bool, Float, Int

from rbmle.core.bandit import Bandit
from rbmle.core.choosing import shares
from rbmle.core.errors import SettingError
from rbmle.core.policy import LimitsRewards, Policy, has
from rbmle.core.types import Chosen, Contexts, Decision, Encoding
from rbmle.engine.linear import predict_then_learn
from rbmle.evaluation.features import BITS, Featuriser, Hashed, Vectors, vector_size
from rbmle.evaluation.rounds import Rounds
from rbmle.evaluation.sums import SMALLEST
from rbmle.features import Hashing
from rbmle.models.linear import Ridge
from rbmle.policies import Uniform

BASELINE = "baseline"  # the name of the target that plays `rounds.baselines`
BITS_OF_RIDGES = 10  # a round costs a pass over a matrix of slots × slots
DRAWS = 32  # to estimate the probabilities of a policy whose index is random

Chances = Float[np.ndarray, " arms"]
Accept = Callable[
    [int, float], bool
]  # whether round i is accepted, given the probability of its arm


class Target(Protocol):
    """A policy that is judged."""

    has_contexts: bool  # it looks at features
    is_learning: bool  # what it plays depends on the rounds before

    def chances(self, rounds: Rounds) -> Chances:
        """Return π of every arm of every round; a policy that learns does so on the way."""
        ...


class UniformTarget:
    """Plays all arms of a round equally often."""

    has_contexts = is_learning = False

    def chances(self, rounds: Rounds) -> Chances:
        return np.repeat(1 / rounds.sizes, rounds.sizes)


class BaselineTarget:
    """Plays the baseline action of each round, which would have been played without a model."""

    has_contexts = is_learning = False

    def chances(self, rounds: Rounds) -> Chances:
        assert rounds.baselines is not None
        chances = np.zeros(int(rounds.sizes.sum()))
        chances[rounds.starts + rounds.baselines] = 1.0
        return chances

    def find_judgeable(self, rounds: Rounds) -> Int[np.ndarray, " some"]:
        """Return the places of rounds whose baseline action could be played."""
        assert rounds.baselines is not None
        is_judgeable = rounds.baselines >= 0
        if rounds.logged is not None:
            places = rounds.starts + np.maximum(rounds.baselines, 0)
            is_judgeable &= ~(
                rounds.logged[places] < SMALLEST
            )  # NaN, not known, does not exclude it
        return np.flatnonzero(is_judgeable)


class FunctionTarget:
    """Plays with the probabilities that a user's function returns for all arms of some rounds."""

    has_contexts, is_learning = True, False

    def __init__(self, function: Callable[[Rounds], Chances]) -> None:
        self._function = function

    def chances(self, rounds: Rounds) -> Chances:
        chances = np.asarray(self._function(rounds), float)
        if chances.shape != (int(rounds.sizes.sum()),) or not np.allclose(
            rounds.totals(chances), 1
        ):
            raise SettingError(
                f"the probabilities have the shape {chances.shape}, but one for each of {rounds.sizes.sum()} "
                "arms is expected, which sum to 1 in each round"
            )
        return chances


class BanditTarget:
    """Plays as a bandit does, which does not learn."""

    has_contexts, is_learning = True, False

    def __init__(self, bandit: Bandit) -> None:
        if isinstance(bandit.encoder, Hashing) and bandit.encoder.is_scaled:
            raise SettingError(
                "a model of the service scales features by its own statistics, and cannot be judged here; give "
                "the name of its policy, which then learns from the log"
            )
        self._bandit = bandit

    def chances(self, rounds: Rounds) -> Chances:
        """Return its probabilities; if it has none, 1 for the arm that it would play."""
        assert rounds.contexts is not None
        texts, offered = rounds.contexts.to_pylist(), rounds.offered.tolist()
        chances = []
        for number, text, k in zip(rounds.numbers.tolist(), texts, offered, strict=True):
            offer = rounds.offers[k]
            x = msgspec.json.decode(text)
            if self._bandit.encoding is Encoding.PER_ARM:
                x = (x, [msgspec.json.decode(features) for features in offer.features])
            elif isinstance(x, list) and len(x) == 1 and isinstance(x[0], dict):
                (x,) = x
            decision = self._bandit.decide(x, eligible=offer.ids, id=f"evaluation-{number}")
            chances.append(_probabilities(decision))
        return np.concatenate(chances)


class PolicyTarget:
    """A policy that starts without data, and learns each round after saying what it would play.

    `is_frozen` ends learning. With `replay`, it learns only from the rounds that are accepted, as if it had
    played them.
    """

    has_contexts, is_learning = True, True

    def __init__(self, policy: Policy[Any], seed: int) -> None:
        self._policy, self._seed = policy, seed
        self._bandit: Bandit | None = None
        self._featuriser: Featuriser | None = None
        self.is_frozen = False

    def chances(self, rounds: Rounds) -> Chances:
        """Return π, and learn."""
        return self.replay(rounds, _every)[0]

    def replay(self, rounds: Rounds, accept: Accept) -> tuple[Chances, Bool[np.ndarray, " rounds"]]:
        """Return π, and which rounds were accepted; these are learned."""
        bandit, contexts = self._start(rounds)
        names = [f"evaluation-{number}" for number in rounds.numbers.tolist()]
        sizes, starts, at = rounds.sizes.tolist(), rounds.starts.tolist(), rounds.at.tolist()
        taken = np.zeros(len(rounds), bool)
        if self.is_frozen:
            chances = [
                _probabilities_of(choice)
                for choice in bandit.choose_many(contexts, sizes, names, 0.0)
            ]
            for i, probabilities in enumerate(chances):
                taken[i] = accept(i, float(probabilities[rounds.played[i]]))
            return np.concatenate(chances), taken
        chances = []
        for i, name in enumerate(names):
            part = contexts.part(slice(starts[i], starts[i] + sizes[i]))
            (chosen,) = bandit.choose_many(part, [sizes[i]], [name], 0.0)
            probabilities = _probabilities_of(chosen)
            chances.append(probabilities)
            if accept(i, float(probabilities[at[i] - starts[i]])):
                taken[i] = True
                bandit.learn_all(contexts.row(at[i]), rounds.rewards[i : i + 1])
        return np.concatenate(chances), taken

    def _start(self, rounds: Rounds) -> tuple[Bandit, Contexts]:
        """Return the bandit, which is made for the first rounds, and the contexts."""
        if self._bandit is None:
            size = vector_size(rounds)
            if size:
                ids = rounds.offers[rounds.offered[0]].ids
                bandit = Bandit(self._policy, arms=ids, features=size, seed=self._seed, draws=DRAWS)
                places = {id: place for place, id in enumerate(ids)}
                self._featuriser = Vectors(features=size, add_arm=bandit.add_arm, places=places)
            else:
                is_ridge = isinstance(getattr(self._policy, "model", None), Ridge)
                hashing = Hashing(bits=BITS_OF_RIDGES if is_ridge else BITS)
                bandit = Bandit(
                    self._policy, features=hashing, encoding="per-arm", seed=self._seed, draws=DRAWS
                )
                self._featuriser = Hashed(hashing=hashing)
            self._bandit = bandit
        assert self._featuriser is not None
        return self._bandit, self._featuriser.rows(rounds)


def target_of(policy: Any, seed: int, low: float, high: float) -> Target:
    """Return the target for a policy; `low` and `high` are the smallest and the largest reward of the log."""
    if isinstance(policy, Bandit):
        return BanditTarget(policy)
    if isinstance(policy, BaselineTarget):
        return policy
    if isinstance(policy, Uniform):
        return UniformTarget()
    if not isinstance(policy, Policy):
        if callable(policy):
            return FunctionTarget(policy)
        raise SettingError(f"{policy!r} cannot be judged; give a policy, a Bandit or a function")
    if has(policy, LimitsRewards):
        least, most = policy.rewards
        if low < least or high > most:
            raise SettingError(
                f"{type(policy).__name__} takes rewards from {least:g} to {most:g}, but those of the log are "
                f"from {low:g} to {high:g}; scale them, or use model.likelihood=gaussian"
            )
    return PolicyTarget(policy, seed)


def _every(i: int, chance: float) -> bool:
    return True


def _probabilities_of(chosen: Chosen) -> Chances:
    if chosen.probabilities is not None:
        return chosen.probabilities
    return shares(chosen.indices[None])[0]


def _probabilities(decision: Decision) -> Chances:
    if decision.probabilities is not None:
        return decision.probabilities
    return shares(decision.indices[None])[0]


RATE = 0.5


class RewardModel:
    """q̂(x, a), linear in the features; its prediction for a round is learned from the rounds before.

    So q̂ is independent of the reward that it is compared with, as doubly robust estimates require.
    """

    def __init__(self, featuriser: Featuriser, low: float, high: float) -> None:
        self._featuriser, self._low, self._high = featuriser, low, high
        self._theta, self._squares, self._scales = (self._zeros(0) for _ in range(3))

    def predict_then_learn(self, rounds: Rounds, contexts: Contexts) -> Float[np.ndarray, " arms"]:
        """Return q̂ of every arm, clipped to the bounds of rewards, and then learn the rewards."""
        if (missing := self._featuriser.blocks - len(self._theta)) > 0:
            more = self._zeros(missing)
            more[:, -1] = (self._low + self._high) / 2
            self._theta = np.concatenate([self._theta, more])
            self._squares = np.concatenate([self._squares, self._zeros(missing)])
            self._scales = np.concatenate([self._scales, self._zeros(missing)])
        predictions = np.empty(len(contexts))
        past = self._theta, self._squares, self._scales
        predict_then_learn(
            contexts.rows,
            rounds.sizes,
            rounds.played,
            rounds.rewards,
            RATE * (self._high - self._low),
            *past,
            predictions,
        )
        return np.clip(predictions, self._low, self._high)

    def _zeros(self, blocks: int) -> np.ndarray:
        return np.zeros((blocks, self._featuriser.features + 1))
