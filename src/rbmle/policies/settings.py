"""Settings as a user types them, such as model.ridge=0.1, checked against the types of fields."""

import ast
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache
from typing import Any, Literal, Union

import rbmle
from rbmle.core.errors import SettingError

LONGEST = 100  # characters of a setting that is shown
UNREADABLE = (ValueError, SyntaxError, TypeError, RecursionError, MemoryError)
MISFIT = object()  # a value that is not of the kind asked for


def with_setting(part: Any, setting: str) -> Any:
    """Return a policy, or a part of one, with one `key=value` setting changed.

    >>> from rbmle import NeuralUCB
    >>> with_setting(NeuralUCB(), "model.likelihood=bernoulli").model.likelihood
    Bernoulli()
    """
    key, equals, text = setting.partition("=")
    if not equals or not all(key.split(".")):
        raise SettingError(f"the setting {_short(setting)} is not understood; write key=value")
    return _change(part, key.strip().split("."), text.strip())


def with_value(part: Any, key: str, value: float) -> Any:
    """Return a policy, or a part of one, with one setting changed to a number."""
    return _change(part, key.split("."), value)


def has_setting(part: Any, key: str) -> bool:
    """Return whether a policy has a setting of this name, such as model.network.width."""
    name, dot, rest = key.partition(".")
    if not is_dataclass(part) or name not in (f.name for f in fields(part)):
        return False
    return not dot or has_setting(getattr(part, name), rest)


def differences(value: Any, usual: Any, path: str = "") -> list[str]:
    """Return the settings in which a value differs from the usual one; several of a part are set together."""
    changed = [f.name for f in fields(usual) if getattr(value, f.name) != getattr(usual, f.name)]
    settings = []
    for name in changed:
        part, other = getattr(value, name), getattr(usual, name)
        is_alike = is_dataclass(part) and type(part) is type(other)
        inner = differences(part, other, f"{path}{name}.") if is_alike else []
        settings += inner if len(inner) == 1 else [f"{path}{name}={part!r}".replace(", ", ",")]
    return settings


def members_of(protocol: type) -> list[str]:
    """Return the names of a protocol's members."""
    return [name for name in vars(protocol) if not name.startswith("_") or name == "__call__"]


def split(text: str, separators: str) -> list[str]:
    """Return the parts of a text between separators, except those in brackets or quotes.

    >>> split('a:b=Memory(keep="window", size=5):c=1', ":")
    ['a', 'b=Memory(keep="window", size=5)', 'c=1']
    """
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in separators and depth == 0:
            parts.append("")
            continue
        depth += (character in "([{") - (character in ")]}") if not quote else 0
        parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _change(part: Any, path: list[str], text: str | float) -> Any:
    """Return a policy, or a part of one, with a setting deeper in it changed, to a text or a number."""
    name, *rest = path
    kind: Any = type(part)
    known = [f.name for f in fields(part)] if is_dataclass(part) else []
    if name not in known:
        raise SettingError(
            f"{kind.__name__} has no setting {_short(name)!r}; it has {', '.join(known) or 'none'}"
        )
    if rest:
        value = _change(getattr(part, name), rest, text)
    else:
        value = _convert(name, text, _hints(kind).get(name, Any))
    try:
        return replace(part, **{name: value})
    except SettingError:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:
        message = f"{kind.__name__} does not take {name}={_short(text)}: {error}"
        raise SettingError(message) from None


def _convert(name: str, text: str | float, hint: Any) -> Any:
    """Return the value of a text, or a number, for a field of this type, or raise SettingError."""
    kinds = _kinds(hint)
    for kind in kinds:
        value = _as(kind, text)
        if value is not MISFIT:
            return value
    expected = " or ".join(dict.fromkeys(_describe(kind) for kind in kinds))
    raise SettingError(f"`{name}` must be {expected}, got {_short(text)}")


def _as(kind: Any, text: str | float) -> Any:
    """Return the value of a text, or a number, as one of this kind, or MISFIT."""
    value = _literal(text) if isinstance(text, str) else text
    if kind is float:
        return MISFIT if isinstance(value, bool) else _number(text)
    if kind is int:
        number = _number(text)
        is_whole = number is not MISFIT and number == number // 1
        return int(number) if is_whole and not isinstance(value, bool) else MISFIT
    if kind is bool:
        return {"true": True, "false": False}.get(str(text).lower(), MISFIT)
    if kind is str:
        return value if isinstance(value, str) else str(text)
    if kind is type(None):
        return None if value is None else MISFIT
    if typing.get_origin(kind) is Literal:
        options = typing.get_args(kind)
        return next((option for option in options if option in (value, text)), MISFIT)
    if isinstance(kind, type) and not typing.get_origin(kind) and kind is not object:
        made = _construct(value) if isinstance(value, str) else value
        return made if _is_of(made, kind) else MISFIT
    return value if value is not None or text == "None" else MISFIT


def _number(text: str | float) -> Any:
    try:
        return float(text)
    except ValueError:
        return MISFIT


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except UNREADABLE:
        return text


def _construct(text: str) -> Any:
    """Return the value of Memory(keep="window", size=50), Bernoulli or bernoulli; else the text."""
    try:
        node = ast.parse(text, mode="eval").body
    except UNREADABLE:
        return text
    match node:
        case ast.Call(func=ast.Name(id=name), args=[], keywords=words) if _class(name):
            kind = _class(name)
            arguments = {str(word.arg): ast.unparse(word.value) for word in words}
        case ast.Name(id=name) if _class(name):
            kind, arguments = _class(name), {}
        case _:
            return text
    hints = _hints(kind)
    if unknown := [key for key in arguments if key not in hints]:
        known = ", ".join(f.name for f in fields(kind)) or "none"
        raise SettingError(f"{kind.__name__} has no setting {unknown[0]!r}; it has {known}")
    if missing := [f.name for f in fields(kind) if _is_needed(f) and f.name not in arguments]:
        raise SettingError(
            f"{kind.__name__} needs {missing[0]}, as in {kind.__name__}({missing[0]}=…)"
        )
    try:
        return kind(**{key: _convert(key, value, hints[key]) for key, value in arguments.items()})
    except SettingError:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:
        raise SettingError(f"{_short(text)} cannot be made: {error}") from None


def _is_needed(part: Any) -> bool:
    return part.init and part.default is MISSING and part.default_factory is MISSING


def _class(name: str) -> Any:
    """Return a class of rbmle that a setting may name, in any case; None for other names."""
    return _classes().get(name.lower())


@cache
def _classes() -> Mapping[str, Any]:
    """Return the values that a setting may name."""
    public = {name: getattr(rbmle, name) for name in rbmle.__all__ if name[0].isupper()}
    return {name.lower(): kind for name, kind in public.items() if _is_value(kind)}


def _is_value(kind: Any) -> bool:
    return isinstance(kind, type) and is_dataclass(kind)


def _is_of(value: Any, kind: type) -> bool:
    """Return whether a value is an instance of a class, or has the members of a protocol."""
    if not getattr(kind, "_is_protocol", False):
        return isinstance(value, kind)
    return all(hasattr(value, name) for name in members_of(kind))


def _kinds(hint: Any) -> list[Any]:
    """Return the kinds of a union, or the kind itself in a list."""
    if typing.get_origin(hint) in (Union, types.UnionType):
        return list(typing.get_args(hint))
    return [hint]


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except (NameError, TypeError, AttributeError):
        return {f.name: Any for f in fields(kind)}


def _describe(kind: Any) -> str:
    """Return in words what a field takes."""
    words = {float: "a number", int: "a whole number", bool: "true or false", str: "a text"}
    if kind in words:
        return words[kind]
    if kind is type(None):
        return "None"
    if typing.get_origin(kind) is Literal:
        *others, last = map(str, typing.get_args(kind))
        return f"{', '.join(others)} or {last}" if others else last
    name = getattr(kind, "__name__", str(kind))
    if not isinstance(kind, type):
        return f"of type {name}"
    fitting = [other.__name__ for other in _classes().values() if _fits(other, kind)]
    return f"a {name}" + (f" ({', '.join(fitting)})" if fitting not in ([], [name]) else "")


def _fits(other: type, kind: type) -> bool:
    """Return whether a class is a subclass of another, or has the members of a protocol."""
    if not getattr(kind, "_is_protocol", False):
        return issubclass(other, kind)
    return all(any(name in vars(base) for base in other.__mro__) for name in members_of(kind))


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
