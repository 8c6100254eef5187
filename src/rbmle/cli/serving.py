"""The decision service: `rbmle serve`, its parts `rbmle front` and `rbmle learn`, and `rbmle key`."""

import os
from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rbmle.cli.app import app, mistake
from rbmle.cli.extras import require
from rbmle.core.errors import RBMLEError, SettingError

if TYPE_CHECKING:
    from rbmle.service.settings import Settings

TRY = (
    'curl -H "Authorization: Bearer $(rbmle key --scope decide --data {data})" {address}/v1/rank '
    '-d \'{{"context": {{"time": "morning"}}, "actions": [{{"id": "tea"}}, {{"id": "coffee"}}]}}\''
)
LOG_VARIABLE = "RBMLE_LOG"
LOG_SHOWN = (
    "the password in --log can be read by every user of this machine, in the list of processes; set "
    f"{LOG_VARIABLE} instead, or keep the password in PGPASSWORD, ~/.pgpass or the file of --config"
)


def _option(kind: type, help: str, *names: str) -> Any:
    return Annotated[kind | None, typer.Option(*names, help=help)]


# Names are those of the settings.
_EVERYWHERE = {
    "config": _option(Path, "A TOML file; options on the command line take precedence."),
    "data": _option(str, "Folder of log, keys and checkpoints."),
    "log": _option(str, "postgresql://…, else a file in the folder; RBMLE_LOG hides a password."),
}
_LISTENING = {
    "host": _option(str, "Where to listen; 127.0.0.1."),
    "port": _option(int, "8080; 0 for a free one."),
    "certificate": _option(str, "TLS: a PEM file."),
    "private_key": _option(str, "TLS: its key, if in another file."),
    "proxies": _option(str, "Whose X-Forwarded headers are trusted."),
    "no_keys": _option(bool, "Take requests without a key; on 127.0.0.1 only.", "--no-keys"),
}
_LEARNING = {
    "policy": _option(str, "As rbmle policies lists them."),
    "policy_settings": _option(str, "key=value of the policy, with spaces between.", "--set"),
    "seed": _option(int, "Of the model; random, and kept in the log."),
    "new_model": _option(bool, "Begin another model in an old log.", "--new-model"),
}
_WORKERS = {"workers": _option(int, "Front ends on the port; 1.")}
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
        app.command(function.__name__, help=function.__doc__)(run)
        return function

    return decorate


@_command(_EVERYWHERE, _LISTENING, _WORKERS, _LEARNING)
def serve(given: Given) -> None:
    """Decide and learn behind HTTP, with a durable log; RBMLE_KEY sets the first key."""
    settings = _settings(given)
    from rbmle.service.supervisor import serve as serve_until_stopped

    raise typer.Exit(serve_until_stopped(settings, lambda address: _welcome(settings, address)))


@_command(_EVERYWHERE, _LISTENING, _SUPERVISED)
def front(given: Given) -> None:
    """Decide behind HTTP with the model that a learner publishes, on this machine or another."""
    from rbmle.service.supervisor import FRONT, run_supervised

    if given.pop("supervised"):
        run_supervised(FRONT)
        return
    from rbmle.service.roles import run_front_end

    settings = _settings(given)
    run_front_end(settings, lambda address: _welcome(settings, address))


@_command(_EVERYWHERE, _LEARNING, _SUPERVISED)
def learn(given: Given) -> None:
    """Learn from a log, and publish models for its front ends; a second learner stands by."""
    from rbmle.service.supervisor import LEARN, run_supervised

    if given.pop("supervised"):
        run_supervised(LEARN)
        return
    from rbmle.service.log.errors import masked
    from rbmle.service.roles import run_learner

    settings = _settings(given)
    where = masked(settings.log or settings.data)
    run_learner(settings, lambda: _tell(f"rbmle learns from {where}"))


def _settings(given: Given) -> "Settings":
    from rbmle.service.log.errors import masked
    from rbmle.service.settings import read_settings

    address = given["log"]
    if address is None:
        given["log"] = os.environ.get(LOG_VARIABLE)
    elif masked(address) != address:
        _warn(LOG_SHOWN)
    return read_settings(given.pop("config"), given)


def _welcome(settings: "Settings", address: str) -> None:
    """Tell where the service is, and how to try it."""
    from rbmle.service.log.errors import masked

    place = masked(settings.log or settings.data)
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


@app.command()
def key(
    data: Annotated[Path, typer.Option(help="Folder of the service.")] = Path("rbmle-data"),
    scope: Annotated[str, typer.Option(help="admin, decide or read.")] = "admin",
    place: Annotated[
        str | None, typer.Option(help="primary or secondary; else one that works.")
    ] = None,
    rotate: Annotated[
        bool, typer.Option(help="Make it new first, the primary one if none is named.")
    ] = False,
) -> None:
    """Print a key of a service; a running one follows at once when it is made new."""
    from rbmle.service.access import keys

    path = data / keys.KEYS_FILE
    if not path.exists():
        raise SettingError(
            f"there are no keys in {data}; rbmle serve makes them at its first start"
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
        found = keys.rotate(path, which, where)
    else:
        found = keys.load_keys(path)
    typer.echo(found.key(which, where, os.environ.get("RBMLE_KEY")))


def _tell(message: str) -> None:
    from rbmle.service.http.logging import tell

    tell(message)


def _warn(message: str) -> None:
    import structlog

    structlog.get_logger().warning(message)
