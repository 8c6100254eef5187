"""From what a user types to policies: names, and settings such as neural-ucb.model.ridge=0.1."""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import rbmle
from rbmle.core.errors import SettingError
from rbmle.core.policy import Policy
from rbmle.policies import POLICIES

LONGEST = 100  # of a setting that is shown
EVERY = "*"  # in the place of a policy's name


def policies(names: Iterable[str], settings: Iterable[str] = ()) -> dict[str, Policy[Any]]:
    """Return policies by name, with `policy.key=value` settings applied.

    >>> policies(["neural-ucb"], ["neural-ucb.exploration=0.5"])["neural-ucb"].exploration
    0.5
    """
    chosen = {name: policy_named(name) for name in names}
    for setting in settings:
        name, path, value = _split(setting)
        targets = list(chosen) if name == EVERY else [name]
        for target in targets:
            if target not in chosen:
                raise SettingError(
                    f"--set {setting} is for {target!r}, which is not among the policies "
                    f"{', '.join(chosen)}; add it to --policy, or set one of these"
                )
            chosen[target] = with_setting(chosen[target], path, value)
    return chosen


def with_setting(policy: Any, path: list[str], value: Any) -> Any:
    """Return a policy, or a part of one, with one setting changed."""
    name, *rest = path
    known = [f.name for f in fields(policy)] if is_dataclass(policy) else []
    if name not in known:
        raise SettingError(
            f"{type(policy).__name__} has no setting {name!r}; it has {', '.join(known) or 'none'}"
        )
    inner = with_setting(getattr(policy, name), rest, value) if rest else value
    return replace(policy, **{name: inner})


def policy_named(name: str) -> Policy[Any]:
    """Return a policy with its defaults."""
    if name not in POLICIES:
        raise SettingError(f"there is no policy {name!r}; there are {', '.join(POLICIES)}")
    return POLICIES[name]()


def policy_with(name: str, settings: str) -> Policy[Any]:
    """Return a policy with `key=value` settings, with spaces between.

    >>> policy_with("neural-ucb", "exploration=0.5 model.ridge=0.1").exploration
    0.5
    """
    policy = policy_named(name)
    for setting in settings.split():
        try:
            _, path, value = _split(f"{name}.{setting}")
            policy = with_setting(policy, path, value)
        except (TypeError, ValueError, RecursionError, MemoryError) as error:
            raise SettingError(
                f"{name} cannot have {setting[:LONGEST]}: {type(error).__name__} {error}"
            ) from None
    return policy


def name_of(policy: Policy[Any]) -> str:
    """Return the name under which a policy is known."""
    return next(name for name, kind in POLICIES.items() if kind is type(policy))


def settings_of(policy: Policy[Any]) -> str:
    """Return the settings that `policy_with` makes a policy of: what is not as by default.

    >>> settings_of(policy_with("neural-ucb", "exploration=0.5"))
    'exploration=0.5'
    """
    return " ".join(_differences(policy, policy_named(name_of(policy))))


def _differences(value: Any, usual: Any, path: str = "") -> list[str]:
    """Return settings that make a value of the usual one; several parts are set as one."""
    changed = [f.name for f in fields(usual) if getattr(value, f.name) != getattr(usual, f.name)]
    found = []
    for name in changed:
        part, other = getattr(value, name), getattr(usual, name)
        inner = _differences(part, other, f"{path}{name}.") if _is_alike(part, other) else []
        found += inner if len(inner) == 1 else [f"{path}{name}={part!r}".replace(", ", ",")]
    return found


def _is_alike(part: Any, other: Any) -> bool:
    return is_dataclass(part) and type(part) is type(other)


def _split(setting: str) -> tuple[str, list[str], Any]:
    """Return the policy's name, the path to the setting, and its value."""
    left, equals, right = setting.partition("=")
    name, *path = left.split(".")
    if not equals or not path:
        raise SettingError(f"--set {setting} is not understood; write policy.key=value")
    return name, path, _value(right)


def _value(text: str) -> Any:
    """Return a number, a string, a truth value, or one of our own values such as Bernoulli()."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        pass
    try:
        return _made(ast.parse(text, mode="eval").body)
    except (ValueError, SyntaxError, TypeError):
        return text


def _made(node: ast.expr) -> Any:
    """Return the value of a call such as Memory(keep="window", size=50), of our own names only."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[], keywords=words) if name in _names():
            return _names()[name](**{str(word.arg): _made(word.value) for word in words})
        case ast.Constant(value=value):
            return value
    raise ValueError(ast.dump(node))


def _names() -> Mapping[str, Any]:
    """Return the classes that a setting may name."""
    return {name: getattr(rbmle, name) for name in rbmle.__all__ if name[0].isupper()}
