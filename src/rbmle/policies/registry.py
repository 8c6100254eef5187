"""Find policies by what a user writes: neural-ucb:exploration=0.1, or mymodule:MyPolicy.

A name is that of a policy of rbmle (`POLICIES`), of one that needs another library (`RIVALS`, which
`--policy all` leaves out), or of one that an installed package registers by an entry point.
"""

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from rbmle.core import ADAPTERS
from rbmle.core.checks import no_such
from rbmle.core.errors import SettingError
from rbmle.core.policy import Policy
from rbmle.policies import POLICIES, REFERENCES
from rbmle.policies.settings import (
    differences,
    has_setting,
    members_of,
    split,
    with_setting,
    with_value,
)

EVERY = "*"  # instead of the name of a policy
ALL = "all"
GROUP = "rbmle.policies"  # of entry points
RIVALS = ADAPTERS  # policies that need other libraries


@dataclass(frozen=True, slots=True, kw_only=True)
class Specification:
    """A policy by its name, with the settings that differ from the defaults."""

    name: str  # of the registry, of an installed package, or module:Class
    kind: type[Policy[Any]]
    settings: tuple[str, ...] = ()  # key=value; a later one takes precedence

    def policy(self, tuned: Mapping[str, float] | None = None) -> Policy[Any]:
        """Return the policy; explicit settings override tuned values."""
        policy = make_default(self.kind)
        try:
            for key, value in (tuned or {}).items():
                policy = with_value(policy, key, value)
            for setting in self.settings:
                policy = with_setting(policy, setting)
        except SettingError as error:
            raise SettingError(f"{self.name}: {error}") from None
        return policy


def policy_from(spec: "str | type[Policy[Any]] | Policy[Any]") -> Policy[Any]:
    """Return the policy of a name with settings, the default one of a class, or a given one.

    >>> policy_from("neural-ucb:exploration=0.5").exploration
    0.5
    """
    if isinstance(spec, str):
        return parse_policy(spec).policy()
    if isinstance(spec, type):
        return make_default(check_policy_class(spec, spec.__name__))
    if isinstance(spec, Policy):
        return spec
    raise SettingError(
        f"{spec!r} is not a policy; give a name such as 'neural-ucb', a class such as NeuralUCB, or a "
        "policy such as NeuralUCB(exploration=0.1)"
    )


def parse_policy(text: str) -> Specification:
    """Parse a name or module:Class, followed by settings with ':' or spaces between.

    >>> parse_policy("neural-ucb:exploration=1 model.ridge=0.1").settings
    ('exploration=1', 'model.ridge=0.1')
    """
    name, *settings = split(text, ": \t\n") or [""]
    if settings and "=" not in settings[0] and name not in POLICIES:
        path = f"{name}:{settings.pop(0)}"
        kind = _class(path) if path in RIVALS else import_policy(path)
        spec = Specification(name=path, kind=kind, settings=tuple(settings))
    else:
        spec = Specification(name=name, kind=_class(name), settings=tuple(settings))
    spec.policy()  # raises SettingError for an invalid setting
    return spec


def parse_policies(
    text: str, settings: Iterable[str] = ()
) -> tuple[list[Specification], list[str]]:
    """Return the policies of a comma-separated list, and notes on settings that some do not have.

    `settings` are `policy.key=value`, or `*.key=value` for those policies that have the setting.
    """
    everything = [name for name in POLICIES if name not in REFERENCES]
    everything += [policy.name for policy in list_installed()]
    texts = everything if text == ALL else split(text, ",")
    specs = list(dict.fromkeys(parse_policy(text) for text in texts))
    if not specs:
        raise SettingError(f"no policy is named; there are {', '.join(POLICIES)}")
    notes = []
    for setting in settings:
        name, setting_of_it = _split(setting, [spec.name for spec in specs])
        targets = [spec for spec in specs if name in (EVERY, spec.name)]
        if name == EVERY:
            key = setting_of_it.partition("=")[0]
            without = [spec for spec in targets if not has_setting(spec.policy(), key)]
            targets = [spec for spec in targets if spec not in without]
            if not targets:
                names = ", ".join(spec.name for spec in specs)
                raise SettingError(f"none of the policies {names} has a setting {key!r}")
            if without:
                names = ", ".join(dict.fromkeys(spec.name for spec in without))
                notes.append(f"Unchanged, because they have no setting {key!r}: {names}.")
        specs = [_set(spec, setting_of_it) if spec in targets else spec for spec in specs]
    return list(dict.fromkeys(specs)), notes


def policy_named(name: str) -> Policy[Any]:
    """Return a policy that is registered, with its defaults."""
    return make_default(_class(name))


def policy_with(name: str, settings: str) -> Policy[Any]:
    """Return a policy that is registered, with `key=value` settings and spaces between.

    >>> policy_with("neural-ucb", "exploration=0.5 model.ridge=0.1").exploration
    0.5
    """
    return Specification(
        name=name, kind=_class(name), settings=tuple(split(settings, " \t\n"))
    ).policy()


def name_of(policy: Policy[Any]) -> str:
    """Return the name by which `policy_from` finds the class of a policy."""
    ours = next((name for name, kind in POLICIES.items() if kind is type(policy)), None)
    if ours is not None:
        return ours
    path = f"{type(policy).__module__}:{type(policy).__qualname__}"
    if (rival := next((name for name, home in RIVALS.items() if home == path), None)) is not None:
        return rival
    others = (plugin for plugin in list_installed() if plugin.name not in POLICIES)
    return next((plugin.name for plugin in others if plugin.path == path), path)


def settings_of(policy: Policy[Any]) -> str:
    """Return the settings that differ from the defaults, in the form that `policy_with` takes.

    >>> settings_of(policy_with("neural-ucb", "exploration=0.5"))
    'exploration=0.5'
    """
    return " ".join(differences(policy, make_default(type(policy))))


def title_of(kind: type[Policy[Any]]) -> str:
    """Return the title of a policy in tables: its class's `title`, or the name of the class."""
    title = getattr(kind, "title", None)
    return title if isinstance(title, str) else kind.__name__


def _class(name: str) -> type[Policy[Any]]:
    """Return the class that is registered under a name, by rbmle or by an installed package."""
    if name in RIVALS:
        return import_policy(RIVALS[name])
    kind = POLICIES.get(name) or find_installed(name)
    if kind is None:
        others = dict.fromkeys(
            plugin.name for plugin in list_installed() if plugin.name not in POLICIES
        )
        raise SettingError(no_such("policy", name, [*POLICIES, *others]))
    return kind


def _set(spec: Specification, setting: str) -> Specification:
    """Return a specification with one more setting."""
    changed = replace(spec, settings=(*spec.settings, setting))
    changed.policy()
    return changed


def _split(setting: str, names: list[str]) -> tuple[str, str]:
    """Return the name of policy.key=value, and its key=value."""
    key, equals, value = setting.partition("=")
    for name in (*sorted(names, key=len, reverse=True), EVERY):
        if key.startswith(f"{name}.") and equals:
            return name, f"{key.removeprefix(f'{name}.')}={value}"
    name, dot, _ = key.partition(".")
    if not equals or not dot:
        raise SettingError(f"--set {setting} is not understood; write policy.key=value")
    raise SettingError(
        f"--set {setting} is for {name!r}, which is not among the policies "
        f"{', '.join(dict.fromkeys(names))}; add it to --policy, or set one of these"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A policy that an installed package registers."""

    name: str
    path: str  # module:Class
    package: str  # with its version


def list_installed() -> list[Installed]:
    """Return what packages register, by name; two may have one name."""
    policies = [
        Installed(name=point.name, path=point.value.replace(" ", ""), package=_package(point))
        for point in entry_points(group=GROUP)
    ]
    return sorted(set(policies), key=lambda policy: (policy.name, policy.package, policy.path))


def find_installed(name: str) -> type[Policy[Any]] | None:
    """Return the class that a package registers under a name; None if none does."""
    claimants = [policy for policy in list_installed() if policy.name == name]
    if not claimants:
        return None
    if len(claimants) > 1:
        claims = " and ".join(f"{policy.package} ({policy.path})" for policy in claimants)
        raise SettingError(
            f"the policy {name!r} is registered by {claims}; name the one you mean by its "
            "module:Class, or uninstall a package"
        )
    return import_policy(claimants[0].path, f"the policy {name!r} of {claimants[0].package}")


def import_policy(path: str, what: str = "") -> type[Policy[Any]]:
    """Return the class module:Class, or raise SettingError if it cannot be imported or is not a policy."""
    module, _, name = path.partition(":")
    subject = what or f"the policy {path}"
    try:
        value: Any = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
    except Exception as error:  # a module may run any code
        text = " ".join(str(error).split())
        raise SettingError(
            f"{subject} cannot be imported ({type(error).__name__}: {text}); check the name, and that "
            "the module is installed or in the current folder"
        ) from None
    return check_policy_class(value, subject)


def check_policy_class(kind: Any, subject: str) -> type[Policy[Any]]:
    """Return the class of a policy, or raise SettingError that says what it lacks."""
    if not isinstance(kind, type):
        raise SettingError(f"{subject} is a {type(kind).__name__}; expected a class")
    lacking = [name for name in members_of(Policy) if not callable(getattr(kind, name, None))]
    if lacking:
        raise SettingError(
            f"{subject} is not a policy: it has no {', '.join(lacking)}; see docs/how-to/add-a-policy.md"
        )
    is_frozen = is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]  # of every dataclass
    if not is_frozen:
        raise SettingError(
            f"{subject} must be a frozen dataclass, so that its repr and its settings are all that it is; "
            "write @dataclass(frozen=True, kw_only=True) above the class"
        )
    return kind


def make_default(kind: type[Policy[Any]]) -> Policy[Any]:
    """Return a policy with its defaults, or raise SettingError if a setting has none."""
    try:
        return kind()
    except TypeError as error:
        raise SettingError(
            f"{kind.__name__} cannot be made without settings ({error}); give each field a default"
        ) from None


def _package(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else f"{point.dist.name} {point.dist.version}"
