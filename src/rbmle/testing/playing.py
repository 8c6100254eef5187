"""Helpers of the contracts: problems to play, and checks that name the broken promise."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from rbmle.core.bandit import Bandit
from rbmle.core.encoding import disjoint, stack
from rbmle.core.errors import RBMLEError
from rbmle.core.policy import Policy
from rbmle.core.randomness import Purpose, generator
from rbmle.core.trees import leaves
from rbmle.core.types import Contexts, Indices

FEATURES = 4
ROUNDS = 60
ARMS = 4


def require(claim: Any, otherwise: str) -> None:
    """Raise AssertionError unless a claim holds; unlike `assert`, also under -O."""
    if not claim:
        raise AssertionError(otherwise)


def vectors(t: int, n: int = 1) -> np.ndarray:
    """Return n contexts of round t."""
    return generator(5, Purpose.ENVIRONMENT, t).normal(size=(n, FEATURES))


def some_contexts() -> Contexts:
    """Return a context for each of four arms."""
    return disjoint(vectors(9)[0], np.arange(ARMS), FEATURES)


def index_of(policy: Policy[Any], state: Any, contexts: Contexts | None = None) -> Indices:
    """Return the index, with the same stream in every call."""
    offered = some_contexts() if contexts is None else contexts
    return policy.index(state, offered, generator(0, Purpose.INDEX, 0))


def play(bandit: Bandit, rounds: range) -> None:
    """Let the bandit decide and learn; arm 0 is right if the first feature is positive, else arm 1."""
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


def train_bandit(
    policy: Policy[Any], make: type[Bandit], rounds: int = ROUNDS, encoding: str = "disjoint"
) -> Bandit:
    """Return a bandit that has played some rounds."""
    bandit = make(policy, arms=ARMS, features=FEATURES, seed=3, encoding=encoding)
    play(bandit, range(rounds))
    return bandit


def learn_in_batches(
    bandit: Bandit, seen: list[Contexts], rewards: np.ndarray, is_fitted: np.ndarray | None
) -> None:
    """Let the bandit learn in batches of 1, 10, 100 and the rest."""
    for start, end in ((0, 1), (1, 11), (11, 111), (111, len(seen))):
        flags = None if is_fitted is None else is_fitted[start:end]
        bandit.learn_all(stack(seen[start:end]), rewards[start:end], is_fitted=flags)


def regret_of(policy: Policy[Any], make: type[Bandit], rounds: int = 400) -> float:
    """Return the regret on two arms; the sign of a feature says which is right."""
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
    """Return the content of a state, byte for byte."""
    arrays, numbers = leaves(tree)
    return [(name, array.tobytes()) for name, array in arrays.items()] + [
        (name, repr(number).encode()) for name, number in numbers.items()
    ]


Check = tuple[str, Callable[[], None]]


def checks_of(
    promises: Sequence[Callable[..., None]],
    keeper: Any,
    *arguments: Any,
    expected_failures: Mapping[str, str] | None = None,
) -> list[Check]:
    """Return each promise by name, with a function that checks it for the keeper and the other arguments."""
    expected = dict(expected_failures or {})
    names = [promise.__name__ for promise in promises]
    for name, reason in expected.items():
        if name not in names:
            raise ValueError(f"there is no promise {name!r}; there are {', '.join(names)}")
        if not reason.strip():
            raise ValueError(f"{name} is expected to fail, but no reason is given; give one")
    return [
        (name, partial(_check, promise, keeper, arguments, expected.get(name)))
        for name, promise in zip(names, promises, strict=True)
    ]


def _check(
    promise: Callable[..., None], keeper: Any, arguments: tuple[Any, ...], excuse: str | None
) -> None:
    """Raise AssertionError unless a keeper keeps a promise, or breaks it as expected."""
    try:
        promise(keeper, *arguments)
    except Exception as error:  # whatever a keeper fails with
        if excuse is not None and isinstance(error, AssertionError | RBMLEError):
            return
        message = str(error).strip() or "no message"
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        raise AssertionError(
            f"{type(keeper).__name__} breaks the promise {promise.__name__} "
            f"({(promise.__doc__ or '').strip()}): {kind}{message}"
        ) from error
    if excuse is not None:
        raise AssertionError(
            f"{type(keeper).__name__} keeps the promise {promise.__name__}, which was expected to fail "
            f"({excuse}); take it out of expected_failures"
        )
