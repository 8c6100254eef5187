"""What a setting of the configuration is: how JSON writes it, its range, and what documents say of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rbmle.core.errors import RBMLEError
from rbmle.service.iso8601 import (
    DURATION_PATTERN,
    format_date,
    format_duration,
    parse_date,
    parse_duration,
)


class ConfigurationError(RBMLEError, ValueError):
    """A setting of the service out of its range; `field` is its name."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of values: their type in JSON, and the way from there and back."""

    json: Any
    read: Callable[[Any], Any] = lambda value: value
    write: Callable[[Any], Any] = lambda value: value
    schema: Mapping[str, Any] = field(default_factory=dict)  # beyond the type


NUMBER = Kind(json=float)
WHOLE = Kind(json=int)
FLAG = Kind(json=bool)
DURATION = Kind(
    json=str,
    read=parse_duration,
    write=format_duration,
    schema={"type": "string", "pattern": DURATION_PATTERN},
)
DATE = Kind(
    json=str,
    read=parse_date,
    write=format_date,
    schema={"type": "string", "format": "date-time"},
)


def one_of(members: type[StrEnum]) -> Kind:
    """Return the kind of an enumeration's members."""
    return Kind(
        json=str, read=members, write=lambda member: member.value, schema={"enum": list(members)}
    )


def optional(kind: Kind) -> Kind:
    """Return the kind of values that may be None: never set."""
    return Kind(
        json=kind.json | None,
        read=lambda value: None if value is None else kind.read(value),
        write=lambda value: None if value is None else kind.write(value),
        schema={"anyOf": [dict(kind.schema), {"type": "null"}]},
    )


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the configuration's table, beside its name, type and default."""

    kind: Kind
    low: Any = None  # None: no bound
    high: Any = None  # None: no bound
    range: str = ""  # in words; empty: from `low` to `high`
    about: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)  # in the place of the kind's

    def read(self, name: str, value: Any) -> Any:
        """Return the value that JSON has as this one, or raise ConfigurationError."""
        try:
            return self.kind.read(value)
        except ValueError as error:
            message = str(error)
            if "enum" in self.kind.schema:
                members = ", ".join(self.kind.schema["enum"])
                message = f"the {_words(name)} is {value!r}; it must be one of {members}"
            raise ConfigurationError(name, message) from None

    def check(self, name: str, value: Any) -> None:
        """Raise ConfigurationError for a value out of its range."""
        if value is None:
            return
        is_low = self.low is not None and not value >= self.low
        is_high = self.high is not None and not value <= self.high
        if is_low or is_high:
            shown = self.kind.write(value)
            raise ConfigurationError(
                name, f"the {_words(name)} is {shown}; it must be {self._bounds()}"
            )

    def described(self) -> dict[str, Any]:
        """Return what a JSON schema says of it, besides its type and default."""
        schema, about = dict(self.schema or self.kind.schema), self.about
        if self.kind in (NUMBER, WHOLE):
            bounds = {"minimum": self.low, "maximum": self.high}
            schema |= {name: bound for name, bound in bounds.items() if bound is not None}
        elif self.low is not None:
            bounds_in_words = self._bounds()
            about = bounds_in_words[0].upper() + bounds_in_words[1:]
        return schema | ({"description": about} if about else {})

    def _bounds(self) -> str:
        """Return its range in words."""
        return self.range or f"from {self.kind.write(self.low)} to {self.kind.write(self.high)}"


def _words(name: str) -> str:
    return name.replace("_", " ")
