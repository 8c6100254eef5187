"""Checks of what a user gives to a bandit: numbers, lists, ids of arms, rewards.

Conversions that Python and NumPy make silently are refused, because they hide mistakes: "1" and 1 + 0j as
numbers, True and 4.0 as counts, 1.0 and True as the arm 1, a string as the list of its letters.
"""

from importlib import import_module
from numbers import Integral, Real
from typing import Any

import numpy as np

from rbmle.core.errors import ArmError, RBMLEError, RewardError, SettingError
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


_FLOAT64 = np.dtype(np.float64)


def is_real(value: Any) -> bool:
    """Return whether this is a real number: neither True, nor a string, nor a complex number."""
    return isinstance(value, Real) and not isinstance(value, bool)


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """Return an integer, or raise SettingError."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if is_whole and (least is None or value >= least):
        return int(value)
    limit = "" if least is None else f" of at least {least}"
    advice = f"; write {int(value)}" if isinstance(value, float) and value.is_integer() else ""
    raise SettingError(f"`{name}` must be an integer{limit}, got {value!r}{advice}")


def probability(name: str, value: Any) -> float:
    """Return a probability, or raise SettingError."""
    if not (is_real(value) and 0 <= value <= 1):
        raise SettingError(f"`{name}` must be a probability between 0 and 1, got {value!r}")
    return float(value)


def listed(name: str, value: Any, error: type[RBMLEError] = SettingError) -> list[Any]:
    """Return what a user listed; raise an error for a string, a set, or what is no list."""
    if type(value) is list:
        return value
    if isinstance(value, str | bytes):
        raise error(
            f"`{name}` must be a list, got the string {value!r}; for a single one, write {name}=[{value!r}]"
        )
    if isinstance(value, set | frozenset):
        raise error(
            f"`{name}` must be a list, got the set {shortened(value)}; a set has no order of its own, so the "
            "same seed could give other choices; give a list, such as sorted(…)"
        )
    try:
        return list(value)
    except TypeError:
        raise error(f"`{name}` must be a list, got {shortened(value)}") from None


def check_arm_id(id: Any) -> None:
    """Raise ArmError for what is neither a string nor an integer; True and 1.0 are not the arm 1."""
    if isinstance(id, str | int | np.integer) and not isinstance(id, bool):
        return
    advice = f"; write {int(id)}" if isinstance(id, float) and id.is_integer() else ""
    raise ArmError(
        f"arm ids must be strings or integers, got {shortened(id)}, a {type(id).__name__}{advice}"
    )


def real_array(x: Any, is_copied: bool = True) -> np.ndarray:
    """Return a contiguous array of float64: a copy, or the user's own if that will do.

    Raises TypeError or ValueError for strings, complex numbers, dates, and rows of different lengths.
    """
    if type(x) is np.ndarray and x.dtype is _FLOAT64 and is_copied:
        return np.array(x, order="C")
    array = np.asarray(x)
    kind = array.dtype.kind
    if kind not in "fiub":
        _check_real(array)
    if is_copied and not (type(x) is list and kind == "f" and array.dtype == np.float64):
        return np.array(array, np.float64, order="C")
    array = np.asarray(array, np.float64, order="C")
    return array if array.flags.writeable else array.copy()  # kernels are compiled for such


def _check_real(array: np.ndarray) -> None:
    """Raise TypeError for what NumPy would turn into numbers, though it is none."""
    kinds = {"U": "strings", "S": "bytes", "c": "complex numbers", "M": "dates", "m": "durations"}
    if array.dtype.kind in kinds:
        example = f", such as {array.flat[0].item()!r}" if array.size else ""
        raise TypeError(f"it has {kinds[array.dtype.kind]}{example}")
    for value in array.flat:
        if isinstance(value, str | bytes | complex | np.complexfloating):
            raise TypeError(f"it has {shortened(value)}, a {type(value).__name__}")


def rewards_of(given: Any, limits: tuple[float, float]) -> np.ndarray:
    """Return rewards as numbers, or raise RewardError; limits are the smallest and the largest there can be."""
    low, high = limits
    if type(given) is list and len(given) == 1:
        only = given[0]
        if type(only) in (float, int, bool) and low <= only <= high:
            return np.array([only], np.float64)
    try:
        rewards = real_array(given)
    except (TypeError, ValueError):
        rewards = np.array([_number(reward) for reward in given])
    if rewards.ndim != 1:
        raise RewardError(
            f"rewards must be a list of numbers, one for each round, but their shape is {rewards.shape}"
        )
    if not np.isfinite(rewards).all():
        bad = list(given)[int(np.flatnonzero(~np.isfinite(rewards))[0])]
        advice = (
            "convert it with float()" if isinstance(bad, str) else "leave it out, or replace it"
        )
        raise RewardError(f"a reward must be a finite number, got {shortened(bad)}; {advice}")
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
        number = real_array(reward)
    except (TypeError, ValueError):
        return np.nan
    return float(number) if number.ndim == 0 else np.nan


def shortened(value: Any) -> str:
    """Return a value for a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
