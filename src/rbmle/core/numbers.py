"""Settings that are numbers, and what they may be."""

from rbmle.core.errors import SettingError


def check_finite(name: str, value: float) -> None:
    """Raise SettingError unless a number is finite."""
    if not abs(value) < float("inf"):
        raise SettingError(f"`{name}` must be a finite number, got {value}")


def check_not_negative(name: str, value: float) -> None:
    """Raise SettingError unless a number is finite, and 0 or more."""
    if not 0 <= value < float("inf"):
        raise SettingError(f"`{name}` must be a finite number, 0 or more, got {value}")


def check_positive(name: str, value: float) -> None:
    """Raise SettingError unless a number is finite, and above 0."""
    if not 0 < value < float("inf"):
        raise SettingError(f"`{name}` must be a positive number, got {value}")
