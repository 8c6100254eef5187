"""Hints for settings by a name that they do not have: which part has it, or what it is called here."""

from collections.abc import Container, Iterator
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from typing import Any, Self

from rbmle.core.errors import SettingError

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


def unknown_setting(kind: type, name: str) -> str:
    """Return what is wrong with a setting that a class does not have, and what to write.

    >>> from rbmle import LinUCB
    >>> unknown_setting(LinUCB, "alpha")
    "LinUCB has no setting 'alpha'; did you mean exploration=…? It has model, exploration"
    >>> unknown_setting(LinUCB, "ridge")
    "LinUCB has no setting 'ridge'; did you mean model=Ridge(ridge=…)? It has model, exploration"
    """
    spelled = list(_spelled(kind))
    known = [field.name for field in fields(kind)]
    close = get_close_matches(name, known, n=1)
    found = (
        [text for other, text in spelled if other == name]
        or [text for other, text in spelled if name in SYNONYMS.get(other, ())]
        or [f"{other}=…" for other in close]
    )
    hint = f"did you mean {found[0]}? " if found else ""
    return f"{kind.__name__} has no setting {name!r}; {hint}It has {', '.join(known) or 'none'}"


def fixed_setting(policy: Any, name: str, value: Any, settings: Container[str]) -> str:
    """Return what to do instead of setting an attribute of a bandit that has a policy and settings."""
    kind = type(policy)
    parts = dict(list(_spelled(kind))[::-1]) if is_dataclass(kind) else {}
    advice = ""
    if name in parts:
        advice = f"; make another one with {kind.__name__}({parts[name].replace('…', repr(value))})"
    elif name in settings:
        advice = f"; make another one with Bandit(…, {name}={value!r})"
    return f"`{name}` cannot be set on a bandit: its settings are fixed when it is made{advice}"


def _spelled(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the settings of a class, and then those of its parts, each with how it is written."""
    parts = []
    for field in fields(kind):
        yield field.name, f"{field.name}=…"
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if is_dataclass(default) and not isinstance(default, type):
            parts.append((field.name, type(default)))
    for name, part in parts:
        for inner, text in _spelled(part):
            yield inner, f"{name}={part.__name__}({text})"


class Settings:
    """A base for frozen dataclasses: settings that they do not have get a hint."""

    __slots__ = ()

    def __new__(cls, *given: Any, **settings: Any) -> Self:
        """Raise SettingError for a setting that the class does not have, or one without its name."""
        known = getattr(
            cls, "__dataclass_fields__", settings
        )  # `fields` takes longer than all else
        if given:
            names: list[str] = [f.name for f in fields(cls)] if is_dataclass(cls) else []
            advice = f", as in {cls.__name__}({names[-1]}={given[0]!r})" if names else ""
            raise SettingError(
                f"the settings of {cls.__name__} are given by name{advice}; got {given[0]!r} without one"
            )
        for name in settings:
            if name not in known:
                raise SettingError(unknown_setting(cls, name))
        return super().__new__(cls)
