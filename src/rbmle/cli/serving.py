"""The decision service: `rbmle serve`, its parts `rbmle front` and `rbmle learn`, and `rbmle key`."""

import json
import os
from collections.abc import Callable
from contextlib import closing
from inspect import Parameter, Signature
from pathlib import Path
from shlex import quote
from textwrap import fill
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import typer
from msgspec.structs import fields, replace

from rbmle.cli.app import SERVE, command, mistake
from rbmle.cli.extras import require
from rbmle.cli.options import complete_policy
from rbmle.core.errors import RBMLEError, SettingError
from rbmle.service.settings import (
    SETTINGS,
    FeatureSettings,
    ServeSettings,
    ServiceConfiguration,
    descriptions,
    read_settings,
)

TRY = (
    'curl -H "Authorization: Bearer $(rbmle key --scope decide --data {data})" {address}/v1/rank '
    '-d \'{{"context": {{"time": "morning"}}, "actions": [{{"id": "tea"}}, {{"id": "coffee"}}]}}\''
)
CONFIG_HEADER = (
    "# All settings of `rbmle serve`. Keep the lines that you change in a file, and start the service with\n"
    "# `rbmle serve --config FILE`. A line that begins with # shows a default."
)
LOG_VARIABLE = "RBMLE_LOG"
LOG_SHOWN = (
    "the password in --log can be read by every user of this machine, in the list of processes; set "
    f"{LOG_VARIABLE} instead, or keep the password in PGPASSWORD, ~/.pgpass or the file of --config"
)


def _option(kind: type, help: str, *names: str, **more: Any) -> Any:
    return Annotated[kind | None, typer.Option(*names, help=help.replace("`", ""), **more)]


def _options(*names: str) -> dict[str, Any]:
    """Return options for some settings of the service, described as in its table of settings."""
    hints, about = get_type_hints(ServeSettings), descriptions(ServeSettings)
    defaults = {field.name: field.default for field in fields(ServeSettings)}
    options = {}
    for name in names:
        kind = next(kind for kind in get_args(hints[name]) or [hints[name]] if kind is not NoneType)
        default = "" if defaults[name] in (None, "", False) else f" Default: {defaults[name]}."
        flags = [_FLAGS[name]] if name in _FLAGS else []
        more = _MORE.get(name, {})
        options[name] = _option(kind, about[name] + default, *flags, **more)
    return options


_FLAGS = {"no_keys": "--no-keys", "new_model": "--new-model", "policy_settings": "--set"}
# Settings are written behind the name of the policy; --set, which earlier releases had, still works.
_MORE: dict[str, dict[str, Any]] = {
    "policy": {"autocompletion": complete_policy},
    "policy_settings": {"hidden": True},
}
_EVERYWHERE = {
    "config": _option(Path, "A TOML file; options on the command line take precedence."),
    **_options("data", "log"),
}
_LISTENING = _options("host", "port", "certificate", "private_key", "proxies", "no_keys")
_LEARNING = _options("policy", "policy_settings", "seed", "new_model")
_PRINTING = {
    "print_config": _option(
        bool, "Print all settings as TOML, with the defaults, and stop.", "--print-config"
    )
}
_WORKERS = _options("workers")
_SUPERVISED = {"supervised": Annotated[bool | None, typer.Option("--supervised", hidden=True)]}

Given = dict[str, Any]  # options by name; None: not given


def _command(*groups: Given) -> Callable[[Callable[[Given], None]], Callable[[Given], None]]:
    """Make a command of a function that takes what is given of some options."""

    def decorate(function: Callable[[Given], None]) -> Callable[[Given], None]:
        def run(**given: Any) -> None:
            require("serve")
            from rbmle.service.http.logging import take_standard_error, tell_mistake

            take_standard_error()
            try:
                function(given)
            except (RBMLEError, ModuleNotFoundError) as error:
                message = mistake(error)
                if message is None:
                    raise
                tell_mistake(message)
                raise typer.Exit(2) from None

        options = [option for group in groups for option in group.items()]
        run.__signature__ = Signature(  # type: ignore[attr-defined]  # what typer reads
            [
                Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
                for name, kind in options
            ]
        )
        run.__doc__ = function.__doc__
        command(SERVE, function.__name__)(run)
        return function

    return decorate


@_command(_EVERYWHERE, _LISTENING, _WORKERS, _LEARNING, _PRINTING)
def serve(given: Given) -> None:
    """Serve decisions over HTTP and learn from rewards, with a durable log.

    The policy may have settings behind its name; they change the service's tuned settings one by one. The
    environment variable RBMLE_KEY sets the first key.

    rbmle serve --data my-service
    rbmle serve --policy neural-rbmle-pc:bias=0.0001 --port 8000 --workers 2
    rbmle serve --config serve.toml --print-config
    """
    is_printed = given.pop("print_config")
    settings = _settings(given)
    if is_printed:
        typer.echo(config_text(settings), nl=False)
        return
    from rbmle.service.supervisor import serve as serve_until_stopped

    raise typer.Exit(serve_until_stopped(settings, lambda address: _welcome(settings, address)))


@_command(_EVERYWHERE, _LISTENING, _SUPERVISED)
def front(given: Given) -> None:
    """Serve decisions with the model that a learner publishes, on this machine or another.

    rbmle front --log postgresql://rbmle@db/rbmle --data front-1
    """
    from rbmle.service.supervisor import FRONT, run_supervised

    if given.pop("supervised"):
        run_supervised(FRONT)
        return
    from rbmle.service.processes import run_front_end

    settings = _settings(given)
    run_front_end(settings, lambda address: _welcome(settings, address))


@_command(_EVERYWHERE, _LEARNING, _SUPERVISED)
def learn(given: Given) -> None:
    """Learn from a log and publish models for its front ends. A second learner is a standby.

    rbmle learn --log postgresql://rbmle@db/rbmle --data learner
    """
    from rbmle.service.supervisor import LEARN, run_supervised

    if given.pop("supervised"):
        run_supervised(LEARN)
        return
    from rbmle.service.log.base import mask_passwords
    from rbmle.service.processes import run_learner

    settings = _settings(given)
    where = mask_passwords(settings.log or settings.data)
    run_learner(settings, lambda: _tell(f"rbmle learns from {where}"))


@command(SERVE)
def configure(
    settings: Annotated[
        list[str] | None,
        typer.Argument(help="What to change, as in holdout=0.05; nothing: show the configuration."),
    ] = None,
    data: Annotated[Path, typer.Option(help="Folder of the service.")] = Path("rbmle-data"),
    log: Annotated[
        str | None,
        typer.Option(envvar=LOG_VARIABLE, help="A log in PostgreSQL: postgresql://…."),
    ] = None,
) -> None:
    """Change the configuration of a service, or show it. A running service follows within a second or two.

    rbmle configure holdout=0.05 --data my-service
    """
    from rbmle.service.log import LOG_FILE, open_log
    from rbmle.service.model.settings import change_configuration, settings_of

    place = log or str(data / LOG_FILE)
    if log is None and not (data / LOG_FILE).exists():
        raise SettingError(f"there is no log in {data}; rbmle serve creates it at its first start")
    with closing(open_log(place, is_read_only=not settings)) as opened:
        if settings:
            change_configuration(opened, dict(map(_change, settings)))
        configuration = settings_of(opened).configuration
    for name, value in ({} if configuration is None else configuration.to_json()).items():
        typer.echo(f"{name} = {_toml(value)}")


def _change(text: str) -> tuple[str, Any]:
    """Return the name and the value of a change; a value that is no JSON is a text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise SettingError(
            f"{text!r} is no change of a setting; write name=value, as in holdout=0.05"
        )
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _settings(given: Given) -> ServeSettings:
    from rbmle.service.log.base import mask_passwords

    address = given["log"]
    if address is None:
        given["log"] = os.environ.get(LOG_VARIABLE)
    elif mask_passwords(address) != address:
        _warn(LOG_SHOWN)
    return _split_policy(read_settings(given.pop("config"), given))


def _split_policy(settings: ServeSettings) -> ServeSettings:
    """Move settings that stand behind the name of the policy to `policy_settings`."""
    if "=" not in (settings.policy or ""):
        return settings
    from rbmle.policies.registry import parse_policy

    specification = parse_policy(settings.policy or "")
    texts = [*specification.settings, settings.policy_settings]
    return replace(settings, policy=specification.name, policy_settings=" ".join(texts).strip())


def config_text(settings: ServeSettings) -> str:
    """Return settings as TOML, each with its description; those without a value are comments."""
    from rbmle.service.log.base import mask_passwords

    about, lines, tables = descriptions(ServeSettings), [CONFIG_HEADER], []
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        if name == "log" and value is not None:
            value = mask_passwords(value)
        if name in ("features", "configuration"):
            tables.append(_table(name, value, _toml_comment(about[name])))
        else:
            shown = f"# {name} =" if value is None else f"{name} = {_toml(value)}"
            lines.append(f"{_toml_comment(about[name])}\n{shown}")
    return "\n\n".join([*lines, *tables]) + "\n"


def _table(name: str, values: Any, comment: str) -> str:
    """Return a table with all its keys; those that the user did not set are comments with the default."""
    if name == "features":
        about = descriptions(FeatureSettings)
        defaults = {key: getattr(FeatureSettings(), key) for key in about}
        if values is not None:
            values = {key: getattr(values, key) for key in about}
    else:
        about = {key: setting.description for key, setting in SETTINGS.items()}
        defaults = ServiceConfiguration().to_json()
    values = {key: value for key, value in (values or {}).items() if value is not None}
    parts = [f"{comment}\n{'' if values else '# '}[{name}]"]
    for key in [*defaults, *(key for key in values if key not in defaults)]:
        default = defaults.get(key)
        shown = f"# {key} = {'' if default is None else _toml(default)}".rstrip()
        if key in values:
            shown = f"{key} = {_toml(values[key])}"
        parts.append(f"{_toml_comment(about.get(key, 'Not a known key.'))}\n{shown}")
    return "\n\n".join(parts)


def _toml_comment(text: str) -> str:
    return fill(text.replace("**", ""), 100, initial_indent="# ", subsequent_indent="# ")


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)  # texts, numbers, truth values and lists are alike


def _welcome(settings: ServeSettings, address: str) -> None:
    from rbmle.service.log.base import mask_passwords

    place = mask_passwords(settings.log or settings.data)
    lines = [f"rbmle serves at {address}, and its log is in {place}"]
    trial = TRY
    if settings.no_keys:
        lines.append("Keys are off: anyone on this machine may call it.")
        trial = TRY.replace(
            '-H "Authorization: Bearer $(rbmle key --scope decide --data {data})" ', ""
        )
    else:
        lines.append(
            f"Keys are in {settings.keys_path}, readable by you alone; `rbmle key` prints one."
        )
    lines.append(f"Dashboard: {address}/dashboard")
    lines.append(f"Try it: {trial.format(data=quote(settings.data), address=address)}")
    for line in lines:
        _tell(line)


@command(SERVE)
def key(
    data: Annotated[Path, typer.Option(help="Folder of the service.")] = Path("rbmle-data"),
    scope: Annotated[
        str, typer.Option(help="What the key allows: admin, decide or read.")
    ] = "admin",
    place: Annotated[
        str | None,
        typer.Option(help="primary or secondary.", show_default="one that works"),
    ] = None,
    rotate: Annotated[
        bool,
        typer.Option(
            help="Replace the key first: the primary one, unless --place says otherwise.",
            show_default=False,
        ),
    ] = False,
) -> None:
    """Print a key of a service, or replace it; a running service uses the new key at once.

    rbmle key --scope decide
    rbmle key --scope admin --place secondary --rotate
    """
    from rbmle.service.access import keys

    path = data / keys.KEYS_FILE
    if not path.exists():
        raise SettingError(
            f"there are no keys in {data}; rbmle serve creates them at its first start"
        )
    places = keys.Place.__members__
    if scope.upper() not in keys.Scope.__members__ or (place and place.upper() not in places):
        raise SettingError(
            f"there is no {place or ''} {scope} key; a scope is admin, decide or read, and a place primary "
            "or secondary"
        )
    which, where = keys.Scope[scope.upper()], keys.Place[place.upper()] if place else None
    if rotate:
        where = where or keys.Place.PRIMARY
        ring = keys.rotate(path, which, where)
    else:
        ring = keys.load_keys(path)
    typer.echo(ring.key(which, where, os.environ.get("RBMLE_KEY")))


def _tell(message: str) -> None:
    from rbmle.service.http.logging import tell

    tell(message)


def _warn(message: str) -> None:
    import structlog

    structlog.get_logger().warning(message)
