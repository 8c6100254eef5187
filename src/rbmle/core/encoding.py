"""How the features that a user gives become numbers: by place, by name, or by another kind of encoder."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rbmle.core.checks import is_real, listed, real_array, whole_number
from rbmle.core.contexts import LARGEST
from rbmle.core.errors import ContextError, SettingError
from rbmle.core.frames import columns_of, index_of
from rbmle.core.policy import IgnoresContexts, has
from rbmle.core.types import ArmId, Contexts, Moments, Scales

RUNNING = "running"  # scaling by the mean and the deviation of what was learned
_SHOWN = 8  # names in a message


@runtime_checkable
class Encoder(Protocol):
    """What turns features into numbers: a frozen dataclass, whose settings are part of a bandit.

    It remembers nothing: the same features become the same numbers, whatever was encoded before. What it
    returns are arrays, sparse matrices or `Contexts`, as a bandit that was given a number of features
    takes them. It is told the arms whose features these are if contexts are per arm, and None if not.
    """

    @property
    def size(self) -> int:
        """Return the number of features that come out."""
        ...

    def row(self, x: Any, arm: ArmId | None) -> Any:
        """Return one vector of features; raise ContextError."""
        ...

    def rows(self, X: Any, arms: Sequence[ArmId] | None) -> Any:
        """Return several vectors, one for each arm or round; raise ContextError."""
        ...


@runtime_checkable
class Scaling(Protocol):
    """An encoder that scales features by what was learned of them; the bandit keeps that."""

    def start(self) -> Scales | Moments | None:
        """Return what is known before any data; None if it remembers nothing."""
        ...


class ChecksUse(Protocol):
    """An encoder with settings by which it cannot read features itself."""

    def check_usable(self) -> None:
        """Raise SettingError for such settings."""
        ...


@dataclass(frozen=True, slots=True)
class Encoded:
    """The encoder of a bandit that gets contexts from its caller, who has read the features already."""

    encoder: int | Encoder


@runtime_checkable
class ScalesContexts(Scaling, Protocol):
    """An encoder whose contexts are as the user gave them, and are scaled where the policy sees them."""

    @property
    def seen(self) -> int:
        """Return the number of features that the policy sees."""
        ...

    def scaled(self, contexts: Contexts, scales: Any, *, is_learning: bool = False) -> Contexts:
        """Return what the policy sees. If it is learning, the scales follow each row after it was scaled."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Features that are known by their place alone."""

    size: int

    def row(self, x: Any, arm: ArmId | None) -> Any:
        """Return the vector as it is; raise ContextError for a series with names."""
        self._check(index_of(x, needs_names=False), "series")
        return x

    def rows(self, X: Any, arms: Sequence[ArmId] | None) -> Any:
        """Return the vectors as they are; raise ContextError for a data frame with names."""
        self._check(columns_of(X), "data frame")
        return X

    def _check(self, names: list[Any] | None, what: str) -> None:
        if names is not None and names != list(range(len(names))):
            raise ContextError(
                f"the {what} has the names {_listed(names)}, but this bandit was made with "
                f"features={self.size} and knows none, so their order could be any; make it with "
                f"features=[{_listed(names)}], or give x.to_numpy() if the order is right"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Features that are known by name, whatever their order: in dictionaries, series and data frames.

    Arrays have no names, and are taken in the order of these.

    >>> Names(names=("age", "income")).row({"income": 2.5, "age": 31}, None)
    array([31. ,  2.5])
    """

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raise SettingError for names that are none."""
        if not self.names or not all(isinstance(name, str) for name in self.names):
            raise SettingError(
                f"`features` must be at least one name, and names must be strings, got {list(self.names)!r}"
            )
        if len(set(self.names)) < len(self.names):
            raise SettingError(f"`features` must be names that differ, got {list(self.names)!r}")

    @property
    def size(self) -> int:
        """Return the number of features."""
        return len(self.names)

    def row(self, x: Any, arm: ArmId | None) -> Any:
        """Return the numbers of a dictionary or a series in the order of the names; others as they are."""
        if not isinstance(x, Mapping):
            index = index_of(x, needs_names=True)
            if index is None:
                return x
            x = dict(zip(index, x.to_numpy(), strict=True))
        if len(x) != len(self.names) or not all(name in x for name in self.names):
            raise self._mismatch(x)
        return self._numbers([x[name] for name in self.names])

    def rows(self, X: Any, arms: Sequence[ArmId] | None) -> Any:
        """Return the numbers of a data frame in the order of the names, or of each row; others as they are."""
        columns = columns_of(X)
        if columns is None:
            return [self.row(x, None) for x in X] if isinstance(X, list | tuple) else X
        if {*columns} != {*self.names}:
            raise self._mismatch(columns)
        places = {name: place for place, name in enumerate(columns)}
        return self._numbers(X.to_numpy()[:, [places[name] for name in self.names]])

    def _mismatch(self, given: Iterable[Any]) -> ContextError:
        """Return the error of other names than these."""
        given = list(given)
        missing = [name for name in self.names if name not in given]
        unknown = [name for name in given if name not in self.names]
        parts = [("missing", missing), ("not a feature of this bandit", unknown)]
        wrong = "; ".join(f"{what}: {_listed(names)}" for what, names in parts if names)
        return ContextError(
            f"the features given are not those of the bandit ({wrong}); give {_listed(self.names)} and "
            "no others"
        )

    def _numbers(self, values: Any) -> np.ndarray:
        """Return an array, or raise ContextError with the name of what is no number."""
        try:
            numbers = real_array(values)
        except (TypeError, ValueError):
            numbers = None
        if numbers is not None and (np.abs(numbers) <= LARGEST).all():
            return numbers
        rows = values if isinstance(values, np.ndarray) else [values]
        named = (pair for row in rows for pair in zip(self.names, row, strict=True))
        name, value = next(pair for pair in named if not _is_number(pair[1]))
        raise ContextError(
            f"feature {name!r} is {_short(value)}, but a finite number of at most {LARGEST:g} in size is "
            "expected; replace missing values, scale large ones, and for categories make the bandit with "
            "features=Hashing()"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoFeatures:
    """No features: all that is known of a round is that it came, so every context is the number 1.

    >>> NoFeatures().row(None, None), NoFeatures().rows(2, None).tolist()
    ([1.0], [[1.0], [1.0]])
    """

    @property
    def size(self) -> int:
        """Return 1."""
        return 1

    def row(self, x: Any, arm: ArmId | None) -> Any:
        """Return the number 1; raise ContextError for a context."""
        if x is None:
            return [1.0]
        raise ContextError(
            f"this bandit was made without features, but the context {_short(x)} was given; leave it out, or "
            "make the bandit with features=…"
        )

    def rows(self, X: Any, arms: Sequence[ArmId] | None) -> Any:
        """Return a number 1 for each of X rounds."""
        if isinstance(X, int | np.integer) and not isinstance(X, bool) and X >= 0:
            return np.ones((int(X), 1))
        raise ContextError(
            f"this bandit was made without features, so many rounds are given as their number, got {_short(X)}"
        )


def encoder_for(
    features: int | Iterable[str] | Encoder | Encoded | None, policy: object, scaling: str | None
) -> Encoder:
    """Return the encoder of features, which a policy that ignores contexts can do without."""
    if scaling not in {None, RUNNING}:
        raise SettingError(f"`scaling` must be {RUNNING!r} or None, got {scaling!r}")
    ignores_contexts = has(policy, IgnoresContexts)
    if features is None and ignores_contexts:
        return NoFeatures()
    if scaling is not None and isinstance(features, Encoder | Encoded):
        raise SettingError(
            f"`scaling` is for a number of features or their names, but {features!r} was given, which says "
            "itself what becomes of numbers; leave `scaling` out"
        )
    if isinstance(features, Encoded):
        return encoder_of(features.encoder)
    encoder = encoder_of(features)
    if has(encoder, ChecksUse):
        encoder.check_usable()
    if scaling is None or ignores_contexts:
        return encoder
    running: Encoder = import_module("rbmle.features.running").Running(of=encoder)
    return running


def encoder_of(features: int | Iterable[str] | Encoder | None) -> Encoder:
    """Return the encoder of a number of features, or of their names; raise SettingError."""
    if isinstance(features, Encoder):
        return features
    if isinstance(features, Iterable) and not isinstance(features, str):
        return Names(names=tuple(listed("features", features)))
    if isinstance(features, str) or features is None:
        raise SettingError(
            "`features` must be a number of features, a list of their names or an encoder such as "
            f"Hashing(), got {features!r}"
        )
    return Places(size=whole_number("features", features, least=1))


def _is_number(x: Any) -> bool:
    """Return whether this is a number that can be learned from."""
    return (is_real(x) or isinstance(x, bool | np.bool_)) and bool(abs(float(x)) <= LARGEST)


def _short(value: Any) -> str:
    """Return a value for a message."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _listed(names: Sequence[Any]) -> str:
    """Return the first names in words."""
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown}, … ({len(names) - _SHOWN} more)"
