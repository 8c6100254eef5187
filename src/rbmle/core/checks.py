"""Check arguments: numbers, lists, ids of arms, rewards, and the names of settings.

Conversions that Python and NumPy make silently are refused, because they hide mistakes: "1" and 1 + 0j as
numbers, True and 4.0 as counts, 1.0 and True as the arm 1, a string as the list of its letters.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, Self

import numpy as np

from rbmle.core import MAKERS
from rbmle.core.errors import ArmError, RBMLEError, RewardError, SettingError
from rbmle.core.policy import LARGEST_REWARD, Policy
from rbmle.core.types import Encoding


def policy_of(policy: Any) -> Policy[Any]:
    """Return a policy; a name or a class is looked up where all policies are known."""
    if isinstance(policy, str | type):
        policy = MAKERS["policy"](policy)
    if not isinstance(policy, Policy):
        raise SettingError(
            "`policy` must be a policy, such as NeuralUCB(), or the name of one, such as 'neural-ucb', "
            f"got {policy!r}"
        )
    return policy


def encoding_of(encoding: str | Encoding) -> Encoding:
    """Return an encoding by its name."""
    try:
        return Encoding(encoding)
    except ValueError:
        raise SettingError(
            f"`encoding` must be 'disjoint' or 'per-arm', got {encoding!r}"
        ) from None


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


def as_list(name: str, value: Any, error: type[RBMLEError] = SettingError) -> list[Any]:
    """Return a user's list; raise an error for a string, a set, or anything that is not a list."""
    if type(value) is list:
        return value
    if isinstance(value, str | bytes):
        raise error(
            f"`{name}` must be a list, got the string {value!r}; for a single one, write {name}=[{value!r}]"
        )
    if isinstance(value, set | frozenset):
        raise error(
            f"`{name}` must be a list, got the set {shorten(value)}; a set has no defined order, so the "
            "same seed could give other choices; give a list, such as sorted(…)"
        )
    try:
        return list(value)
    except TypeError:
        raise error(f"`{name}` must be a list, got {shorten(value)}") from None


def check_arm_id(id: Any) -> None:
    """Raise ArmError unless this is a string or an integer; True and 1.0 are not the arm 1."""
    if isinstance(id, str | int | np.integer) and not isinstance(id, bool):
        return
    advice = f"; write {int(id)}" if isinstance(id, float) and id.is_integer() else ""
    raise ArmError(
        f"arm ids must be strings or integers, got {shorten(id)}, a {type(id).__name__}{advice}"
    )


def real_array(x: Any, is_copied: bool = True) -> np.ndarray:
    """Return a contiguous array of float64; with `is_copied=False`, it may be the user's own.

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
    """Raise TypeError for strings, complex numbers and dates, which NumPy would turn into numbers."""
    kinds = {"U": "strings", "S": "bytes", "c": "complex numbers", "M": "dates", "m": "durations"}
    if array.dtype.kind in kinds:
        example = f", such as {array.flat[0].item()!r}" if array.size else ""
        raise TypeError(f"it has {kinds[array.dtype.kind]}{example}")
    for value in array.flat:
        if isinstance(value, str | bytes | complex | np.complexfloating):
            raise TypeError(f"it has {shorten(value)}, a {type(value).__name__}")


def rewards_of(values: Any, limits: tuple[float, float]) -> np.ndarray:
    """Return rewards as numbers, or raise RewardError; limits are the smallest and the largest valid reward."""
    low, high = limits
    if type(values) is list and len(values) == 1:
        only = values[0]
        if type(only) in (float, int, bool) and low <= only <= high:
            return np.array([only], np.float64)
    try:
        rewards = real_array(values)
    except (TypeError, ValueError):
        rewards = np.array([_number(reward) for reward in values])
    if rewards.ndim != 1:
        raise RewardError(
            f"rewards must be a list of numbers, one for each round, but their shape is {rewards.shape}"
        )
    if not np.isfinite(rewards).all():
        bad = list(values)[int(np.flatnonzero(~np.isfinite(rewards))[0])]
        advice = (
            "convert it with float()" if isinstance(bad, str) else "leave it out, or replace it"
        )
        raise RewardError(f"a reward must be a finite number, got {shorten(bad)}; {advice}")
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
    """Return a reward as a number, NaN if it is not one."""
    try:
        number = real_array(reward)
    except (TypeError, ValueError):
        return np.nan
    return float(number) if number.ndim == 0 else np.nan


def shorten(value: Any) -> str:
    """Return a value for a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


_INFINITE = float("inf")


def check_finite(name: str, value: Any) -> None:
    """Raise SettingError unless this is a finite number."""
    if not (is_real(value) and abs(value) < _INFINITE):
        raise SettingError(f"`{name}` must be a finite number, got {value!r}")


def check_not_negative(name: str, value: Any) -> None:
    """Raise SettingError unless this is a finite number, 0 or more."""
    if not (is_real(value) and 0 <= value < _INFINITE):
        raise SettingError(f"`{name}` must be a finite number, 0 or more, got {value!r}")


def check_positive(name: str, value: Any) -> None:
    """Raise SettingError unless this is a finite number above 0."""
    if not (is_real(value) and 0 < value < _INFINITE):
        raise SettingError(f"`{name}` must be a positive number, got {value!r}")


# What other libraries and papers call a setting.
SYNONYMS = {
    "exploration": ("alpha", "beta", "gamma", "nu", "c", "confidence", "scale", "width"),
    "bias": ("nu", "alpha", "beta", "bias_term"),
    "epsilon": ("eps", "exploration", "rate"),
    "sharpness": ("gamma", "mu"),
    "ridge": (
        "lambda_",
        "lamda",
        "lam",
        "l2",
        "l2_lambda",
        "reg",
        "regularization",
        "weight_decay",
    ),
    "rate": ("lr", "eta", "learning_rate", "step_size"),
    "steps": ("epochs", "iterations", "n_iter"),
    "width": ("hidden", "hidden_size", "units", "hidden_units"),
    "depth": ("layers", "n_layers", "num_layers"),
    "memory": ("window", "buffer", "buffer_size", "history"),
}


def no_such(what: str, name: str, known: Iterable[str], more: str = "") -> str:
    """Return the message for an unknown name, with the nearest known one and all of them.

    >>> no_such("policy", "lin-ucbb", ["lin-ts", "lin-ucb"])
    "there is no policy 'lin-ucbb' (did you mean 'lin-ucb'?); there are lin-ts, lin-ucb"
    """
    known = list(known)
    close = get_close_matches(name, known, n=1, cutoff=0.7)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"there is no {what} {name!r}{hint}; there are {', '.join(known)}{more}"


def unknown_setting(kind: type, name: str) -> str:
    """Return the message for a setting that a class does not have, with a suggestion.

    >>> from rbmle import LinUCB
    >>> unknown_setting(LinUCB, "alpha")
    "LinUCB has no setting 'alpha'; did you mean exploration=…? It has model, exploration"
    >>> unknown_setting(LinUCB, "ridge")
    "LinUCB has no setting 'ridge'; did you mean model=Ridge(ridge=…)? It has model, exploration"
    >>> unknown_setting(LinUCB, "colour")
    "LinUCB has no setting 'colour'; it has model, exploration"
    """
    spelled = list(_spellings(kind))
    known = [field.name for field in fields(kind)]
    close = get_close_matches(name, known, n=1)
    hints = (
        [text for other, text in spelled if other == name]
        or [text for other, text in spelled if name in SYNONYMS.get(other, ())]
        or [f"{other}=…" for other in close]
    )
    hint = f"did you mean {hints[0]}? It" if hints else "it"
    return f"{kind.__name__} has no setting {name!r}; {hint} has {', '.join(known) or 'none'}"


def fixed_setting(policy: Any, name: str, value: Any, settings: Container[str]) -> str:
    """Return what to do instead of setting an attribute of a bandit that has a policy and settings."""
    kind = type(policy)
    parts = dict(list(_spellings(kind))[::-1]) if is_dataclass(kind) else {}
    advice = ""
    if name in parts:
        advice = f"; make another one with {kind.__name__}({parts[name].replace('…', repr(value))})"
    elif name in settings:
        advice = f"; make another one with Bandit(…, {name}={value!r})"
    return f"`{name}` cannot be set on a bandit: its settings are fixed when it is made{advice}"


def _spellings(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the settings of a class, and then those of its parts, each with how it is written."""
    parts = []
    for field in fields(kind):
        yield field.name, f"{field.name}=…"
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if is_dataclass(default) and not isinstance(default, type):
            parts.append((field.name, type(default)))
    for name, part in parts:
        for inner, text in _spellings(part):
            yield inner, f"{name}={part.__name__}({text})"


class Settings:
    """Base of frozen dataclasses of settings: an unknown setting raises SettingError with a suggestion."""

    __slots__ = ()

    def __new__(cls, *unnamed: Any, **settings: Any) -> Self:
        """Raise SettingError for a setting that the class does not have, or one without its name."""
        known = getattr(cls, "__dataclass_fields__", settings)  # `fields` would be slow
        if unnamed:
            names: list[str] = [f.name for f in fields(cls)] if is_dataclass(cls) else []
            advice = f", as in {cls.__name__}({names[-1]}={unnamed[0]!r})" if names else ""
            raise SettingError(
                f"the settings of {cls.__name__} are given by name{advice}; got {unnamed[0]!r} without one"
            )
        for name in settings:
            if name not in known:
                raise SettingError(unknown_setting(cls, name))
        return super().__new__(cls)
