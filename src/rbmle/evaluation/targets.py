"""What is judged: the probability with which a policy would have played each arm; and the model of rewards."""

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

BASELINE = "baseline"  # the name by which the actions of `rounds.baselines` are judged
BITS_OF_RIDGES = 10  # a matrix of slots × slots is passed over for each round
DRAWS = 32  # that estimate the probabilities of a policy whose index is random

Chances = Float[np.ndarray, " arms"]
Accept = Callable[[int, float], bool]  # whether round i, whose arm has this chance, is taken


class Target(Protocol):
    """A policy that is judged."""

    has_contexts: bool  # it looks at features
    is_learning: bool  # what it plays depends on the rounds before

    def chances(self, rounds: Rounds) -> Chances:
        """Return π of every arm of every round; a policy that learns does so on the way."""
        ...


class UniformTarget:
    """Every arm of a round alike."""

    has_contexts = is_learning = False

    def chances(self, rounds: Rounds) -> Chances:
        return np.repeat(1 / rounds.sizes, rounds.sizes)


class BaselineTarget:
    """The baseline action of each round: what would have been played without a model."""

    has_contexts = is_learning = False

    def chances(self, rounds: Rounds) -> Chances:
        assert rounds.baselines is not None
        chances = np.zeros(int(rounds.sizes.sum()))
        chances[rounds.starts + rounds.baselines] = 1.0
        return chances

    def find_judgeable(self, rounds: Rounds) -> Int[np.ndarray, " some"]:
        """Return the places of rounds whose baseline action could be played."""
        assert rounds.baselines is not None
        is_told = rounds.baselines >= 0
        if rounds.logged is not None:
            places = rounds.starts + np.maximum(rounds.baselines, 0)
            is_told &= ~(rounds.logged[places] < SMALLEST)  # NaN: not known, and so not excluded
        return np.flatnonzero(is_told)


class GivenTarget:
    """Probabilities that a function of yours returns, for all arms of some rounds."""

    has_contexts, is_learning = True, False

    def __init__(self, function: Callable[[Rounds], Chances]) -> None:
        self._function = function

    def chances(self, rounds: Rounds) -> Chances:
        """Return what the function says, checked."""
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
    """A bandit as it was saved, which learns nothing more."""

    has_contexts, is_learning = True, False

    def __init__(self, bandit: Bandit) -> None:
        if isinstance(bandit.encoder, Hashing) and bandit.encoder.is_scaled:
            raise SettingError(
                "a model of the service scales features by what it has seen, and cannot be judged here; "
                "give the name of its policy, which learns from the log"
            )
        self._bandit = bandit

    def chances(self, rounds: Rounds) -> Chances:
        """Return its probabilities; 1 for the arm that it would play if it knows none."""
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
    """A policy that begins with the log, and learns from each round after it has said what it would play.

    `freeze` ends learning. With `accept`, it learns from the rounds that are taken alone, as if it
    had played them.
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
        """Return π, and which rounds were taken; these are learned."""
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
        """Return the bandit, which begins with the first rounds, and their contexts."""
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
    """Return what is judged; `low` and `high` are the smallest and the largest reward of the log."""
    if isinstance(policy, Bandit):
        return BanditTarget(policy)
    if isinstance(policy, BaselineTarget):
        return policy
    if isinstance(policy, Uniform):
        return UniformTarget()
    if not isinstance(policy, Policy):
        if callable(policy):
            return GivenTarget(policy)
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
    """q̂(x, a), linear in the features; what it says of a round was learned from the rounds before it.

    So q̂ is independent of the reward that it is compared with, as doubly robust estimates need it.
    """

    def __init__(self, featuriser: Featuriser, low: float, high: float) -> None:
        self._featuriser, self._low, self._high = featuriser, low, high
        self._theta, self._squares, self._scales = (self._zeros(0) for _ in range(3))

    def predict_then_learn(self, rounds: Rounds, contexts: Contexts) -> Float[np.ndarray, " arms"]:
        """Return q̂ of every arm, within what rewards can be, and learn what was paid."""
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
