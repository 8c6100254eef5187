"""Settings that are numbers, and what they may be."""

from typing import Any

from rbmle.core.checks import is_real, whole_number
from rbmle.core.errors import SettingError

_INFINITE = float("inf")


def check_whole(name: str, value: Any) -> None:
    """Raise SettingError unless this is an integer."""
    whole_number(name, value)


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
