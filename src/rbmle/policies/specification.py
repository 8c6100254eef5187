"""From what a user writes to a policy: neural-ucb:exploration=0.1, or mymodule:MyPolicy."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from rbmle.core.errors import SettingError
from rbmle.core.policy import Policy
from rbmle.policies import POLICIES, REFERENCES
from rbmle.policies.outside import checked, imported, installed, installed_class, made
from rbmle.policies.rivals import RIVALS
from rbmle.policies.settings import differences, has_setting, split, with_setting

EVERY = "*"  # in the place of a policy's name
ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Specification:
    """A policy by its name, and the settings that are not as by default."""

    name: str  # of the registry, of an installed package, or module:Class
    kind: type[Policy[Any]]
    settings: tuple[str, ...] = ()  # key=value; a later one stands before an earlier

    def policy(self, tuned: Iterable[str] = ()) -> Policy[Any]:
        """Return the policy; what is tuned yields to what is set."""
        policy = made(self.kind)
        for setting in (*tuned, *self.settings):
            try:
                policy = with_setting(policy, setting)
            except SettingError as error:
                raise SettingError(f"{self.name}: {error}") from None
        return policy


def policy_from(spec: "str | type[Policy[Any]] | Policy[Any]") -> Policy[Any]:
    """Return the policy that a name with settings means, that a class makes, or that is given.

    >>> policy_from("neural-ucb:exploration=0.5").exploration
    0.5
    """
    if isinstance(spec, str):
        return specified(spec).policy()
    if isinstance(spec, type):
        return made(checked(spec, spec.__name__))
    if isinstance(spec, Policy):
        return spec
    raise SettingError(
        f"{spec!r} is not a policy; give a name such as 'neural-ucb', a class such as NeuralUCB, or a "
        "policy such as NeuralUCB(exploration=0.1)"
    )


def specified(text: str) -> Specification:
    """Return what a text means: a name or module:Class, then settings with ':' or spaces between.

    >>> specified("neural-ucb:exploration=1 model.ridge=0.1").settings
    ('exploration=1', 'model.ridge=0.1')
    """
    name, *settings = split(text, ": \t\n") or [""]
    if settings and "=" not in settings[0] and name not in POLICIES:
        path = f"{name}:{settings.pop(0)}"
        kind = _class(path) if path in RIVALS else imported(path)
        spec = Specification(name=path, kind=kind, settings=tuple(settings))
    else:
        spec = Specification(name=name, kind=_class(name), settings=tuple(settings))
    spec.policy()  # a mistake in a setting is found here
    return spec


def specifications(
    text: str, settings: Iterable[str] = ()
) -> tuple[list[Specification], list[str]]:
    """Return the policies of a list with commas between, and notes on what was not set.

    `settings` are `policy.key=value`, or `*.key=value` for those policies that have the setting.
    """
    everything = [name for name in POLICIES if name not in REFERENCES]
    everything += [each.name for each in installed()]
    texts = everything if text == ALL else split(text, ",")
    specs = list(dict.fromkeys(specified(each) for each in texts))
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
                notes.append(f"--set {setting} leaves as they are, without that setting: {names}.")
        specs = [_set(spec, setting_of_it) if spec in targets else spec for spec in specs]
    return list(dict.fromkeys(specs)), notes


def policy_named(name: str) -> Policy[Any]:
    """Return a policy that is registered, with its defaults."""
    return made(_class(name))


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
    others = (each for each in installed() if each.name not in POLICIES)
    return next((each.name for each in others if each.path == path), path)


def settings_of(policy: Policy[Any]) -> str:
    """Return the settings that `policy_with` makes a policy of: what is not as by default.

    >>> settings_of(policy_with("neural-ucb", "exploration=0.5"))
    'exploration=0.5'
    """
    return " ".join(differences(policy, made(type(policy))))


def title_of(kind: type[Policy[Any]]) -> str:
    """Return how a policy is called in tables: its class's `title`, or the name of the class."""
    title = getattr(kind, "title", None)
    return title if isinstance(title, str) else kind.__name__


def _class(name: str) -> type[Policy[Any]]:
    """Return the class that is registered under a name, by rbmle or by an installed package."""
    if name in RIVALS:
        return imported(RIVALS[name])
    kind = POLICIES.get(name) or installed_class(name)
    if kind is None:
        others = dict.fromkeys(each.name for each in installed() if each.name not in POLICIES)
        raise SettingError(
            f"there is no policy {name!r}; there are {', '.join([*POLICIES, *others])}"
        )
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
