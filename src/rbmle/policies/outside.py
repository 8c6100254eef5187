"""Policies from outside: module:Class, and what installed packages register as `rbmle.policies`."""

import importlib
from dataclasses import dataclass, is_dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from rbmle.core.errors import SettingError
from rbmle.core.policy import Policy
from rbmle.policies.settings import promised

GROUP = "rbmle.policies"  # of entry points


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A policy that an installed package registers."""

    name: str
    path: str  # module:Class
    package: str  # with its version


def installed() -> list[Installed]:
    """Return what packages register, by name; two may have one name."""
    found = [
        Installed(name=point.name, path=point.value.replace(" ", ""), package=_package(point))
        for point in entry_points(group=GROUP)
    ]
    return sorted(set(found), key=lambda each: (each.name, each.package, each.path))


def installed_class(name: str) -> type[Policy[Any]] | None:
    """Return the class that a package registers under a name; None if none does."""
    found = [each for each in installed() if each.name == name]
    if not found:
        return None
    if len(found) > 1:
        claims = " and ".join(f"{each.package} ({each.path})" for each in found)
        raise SettingError(
            f"the policy {name!r} is registered by {claims}; name the one you mean by its "
            "module:Class, or uninstall a package"
        )
    return imported(found[0].path, f"the policy {name!r} of {found[0].package}")


def imported(path: str, what: str = "") -> type[Policy[Any]]:
    """Return the class module:Class, or raise SettingError if it is none, or no policy."""
    module, _, name = path.partition(":")
    subject = what or f"the policy {path}"
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:  # a module runs whatever code it likes
        text = " ".join(str(error).split())
        raise SettingError(
            f"{subject} cannot be imported ({type(error).__name__}: {text}); check the name, and that "
            "the module is installed or in the current folder"
        ) from None
    return checked(found, subject)


def checked(kind: Any, subject: str) -> type[Policy[Any]]:
    """Return a class if it is one of policies, or raise SettingError that says what it lacks."""
    if not isinstance(kind, type):
        raise SettingError(f"{subject} is a {type(kind).__name__}; expected a class")
    lacking = [name for name in promised(Policy) if not callable(getattr(kind, name, None))]
    if lacking:
        raise SettingError(
            f"{subject} is not a policy: it has no {', '.join(lacking)}; see docs/adding-a-policy.md"
        )
    is_frozen = is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]  # of every dataclass
    if not is_frozen:
        raise SettingError(
            f"{subject} must be a frozen dataclass, so that its repr and its settings are all that it is; "
            "write @dataclass(frozen=True, kw_only=True) above the class"
        )
    return kind


def made(kind: type[Policy[Any]]) -> Policy[Any]:
    """Return a policy with its defaults, or raise SettingError if a setting has none."""
    try:
        return kind()
    except TypeError as error:
        raise SettingError(
            f"{kind.__name__} cannot be made without settings ({error}); give each field a default"
        ) from None


def _package(point: EntryPoint) -> str:
    """Return the package of an entry point, and its version."""
    return "an unknown package" if point.dist is None else f"{point.dist.name} {point.dist.version}"
