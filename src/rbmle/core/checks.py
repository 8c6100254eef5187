"""What a user gives to a bandit, checked where it is given."""

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from rbmle.core.errors import RewardError, SettingError
from rbmle.core.policy import LARGEST_REWARD, Policy
from rbmle.core.types import Encoding


def policy_of(given: Any) -> Policy[Any]:
    """Return a policy; a name or a class is looked up where all policies are known."""
    if isinstance(given, str | type):
        given = import_module("rbmle.policies.specification").policy_from(given)
    if not isinstance(given, Policy):
        raise SettingError(
            "`policy` must be a policy, such as NeuralUCB(), or the name of one, such as 'neural-ucb', "
            f"got {given!r}"
        )
    return given


def encoding_of(given: str | Encoding) -> Encoding:
    """Return an encoding by its name."""
    try:
        return Encoding(given)
    except ValueError:
        raise SettingError(f"`encoding` must be 'disjoint' or 'per-arm', got {given!r}") from None


def whole_number(name: str, value: Any, least: float = -math.inf) -> int:
    """Return a whole number, or raise SettingError."""
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if is_number and float(value).is_integer() and value >= least:
        return int(value)
    limit = "" if least == -math.inf else f" of at least {least}"
    raise SettingError(f"`{name}` must be an integer{limit}, got {value!r}")


def probability(name: str, value: Any) -> float:
    """Return a probability, or raise SettingError."""
    if not (isinstance(value, int | float | np.number) and 0 <= value <= 1):
        raise SettingError(f"`{name}` must be a probability between 0 and 1, got {value!r}")
    return float(value)


def rewards_of(
    given: Sequence[float | None] | np.ndarray, limits: tuple[float, float]
) -> np.ndarray:
    """Return rewards as numbers, or raise RewardError; limits are the smallest and the largest there can be."""
    low, high = limits
    try:
        if len(given) == 1:
            only = float(given[0])  # type: ignore[arg-type]  # it may be None
            if low <= only <= high:
                return np.array([only])
        rewards = np.array(given, np.float64)
    except (TypeError, ValueError):
        rewards = np.array([_number(reward) for reward in given])
    if not np.isfinite(rewards).all():
        bad = given[int(np.flatnonzero(~np.isfinite(rewards))[0])]
        raise RewardError(
            f"a reward must be a finite number, got {bad!r}; leave it out, or replace it"
        )
    is_outside = (rewards < low) | (rewards > high)
    if is_outside.any():
        bad = rewards[is_outside][0]
        if abs(bad) > LARGEST_REWARD:
            raise RewardError(
                f"a reward must be at most {LARGEST_REWARD:g} in size, got {bad:g}; scale the rewards, "
                "all of them by the same factor"
            )
        raise RewardError(
            f"a reward must be between {low:g} and {high:g} for this policy's likelihood, got {bad:g}; "
            "scale the rewards, or use a likelihood that takes them, such as Gaussian()"
        )
    return rewards


def _number(reward: Any) -> float:
    """Return a reward as a number, NaN if it is none."""
    try:
        return float(reward)
    except (TypeError, ValueError):
        return math.nan
