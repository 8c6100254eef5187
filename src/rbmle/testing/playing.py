"""What the promises have in common: a small problem, bandits that played it, and all that a state holds."""

from typing import Any

import numpy as np

from rbmle.core.bandit import Bandit
from rbmle.core.contexts import disjoint, stacked
from rbmle.core.policy import Policy
from rbmle.core.randomness import Purpose, generator
from rbmle.core.trees import leaves
from rbmle.core.types import Contexts, Indices

FEATURES = 4
ROUNDS = 60
ARMS = 4


def require(claim: Any, otherwise: str) -> None:
    """Raise AssertionError unless a claim holds; unlike `assert`, with -O too."""
    if not claim:
        raise AssertionError(otherwise)


def vectors(t: int, n: int = 1) -> np.ndarray:
    """Return n contexts of round t."""
    return generator(5, Purpose.ENVIRONMENT, t).normal(size=(n, FEATURES))


def some_contexts() -> Contexts:
    """Return a context for each of four arms."""
    return disjoint(vectors(9)[0], np.arange(ARMS), FEATURES)


def index_of(policy: Policy[Any], state: Any, contexts: Contexts | None = None) -> Indices:
    """Return the index with a fresh stream, always the same."""
    offered = some_contexts() if contexts is None else contexts
    return policy.index(state, offered, generator(0, Purpose.INDEX, 0))


def play(bandit: Bandit, rounds: range) -> None:
    """Let the bandit decide and learn; arm 0 is right where the first feature is positive, else 1."""
    for t in rounds:
        if bandit.encoding == "per-arm":
            X = vectors(t, ARMS)
            decision = bandit.decide(X)
            reward = float(X[bandit.arms.block(decision.arm) if bandit.arms else 0, 0] > 0)
        else:
            (x,) = vectors(t)
            decision = bandit.decide(x)
            reward = float(decision.arm == int(x[0] <= 0))
        bandit.learn(decision, reward)


def trained(
    policy: Policy[Any], make: type[Bandit], rounds: int = ROUNDS, encoding: str = "disjoint"
) -> Bandit:
    """Return a bandit that has played some rounds."""
    bandit = make(policy, arms=ARMS, features=FEATURES, seed=3, encoding=encoding)
    play(bandit, range(rounds))
    return bandit


def learn_in_batches(
    bandit: Bandit, seen: list[Contexts], rewards: np.ndarray, is_fitted: np.ndarray | None
) -> None:
    """Let the bandit learn in batches of 1, 10, 100 and what is left."""
    for start, end in ((0, 1), (1, 11), (11, 111), (111, len(seen))):
        flags = None if is_fitted is None else is_fitted[start:end]
        bandit.learn_all(stacked(seen[start:end]), rewards[start:end], is_fitted=flags)


def regret_of(policy: Policy[Any], make: type[Bandit], rounds: int = 400) -> float:
    """Return the regret on two arms, of which the sign of a feature says which is right."""
    bandit = make(policy, arms=2, features=FEATURES, seed=1)
    regret = 0.0
    for t in range(rounds):
        (x,) = vectors(t)
        decision = bandit.decide(x)
        reward = float(decision.arm == int(x[0] <= 0))
        regret += 1 - reward
        bandit.learn(decision, reward)
    return regret


def content(tree: Any) -> list[tuple[str, bytes]]:
    """Return all that a state holds, byte for byte."""
    arrays, numbers = leaves(tree)
    return [(name, array.tobytes()) for name, array in arrays.items()] + [
        (name, repr(number).encode()) for name, number in numbers.items()
    ]
