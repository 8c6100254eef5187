"""The decision service: `rbmle serve`, its parts `rbmle front` and `rbmle learn`, and `rbmle key`."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rbmle.cli.app import app
from rbmle.cli.extras import require
from rbmle.core.errors import SettingError

if TYPE_CHECKING:
    from rbmle.service.settings import Settings

TRY = (
    'curl -H "Authorization: Bearer $(rbmle key --data {data})" {address}/v1/rank -d \'{{"context": '
    '{{"time": "morning"}}, "actions": [{{"id": "tea"}}, {{"id": "coffee"}}]}}\''
)


Config = Annotated[
    Path | None, typer.Option(help="A TOML file; options on the command line take precedence.")
]
Host = Annotated[str | None, typer.Option(help="Where to listen; 127.0.0.1.")]
Port = Annotated[int | None, typer.Option(help="8080; 0 for a free one.")]
Data = Annotated[str | None, typer.Option(help="Folder of log, keys and checkpoints.")]
LogAddress = Annotated[str | None, typer.Option(help="postgresql://…, else a file in the folder.")]
PolicyName = Annotated[str | None, typer.Option(help="As rbmle policies lists them.")]
PolicySettings = Annotated[
    str | None, typer.Option("--set", help="key=value of the policy, with spaces between.")
]
Seed = Annotated[int | None, typer.Option(help="Of the model; random, and kept in the log.")]
NewModel = Annotated[
    bool | None, typer.Option("--new-model", help="Begin another model in an old log.")
]
Certificate = Annotated[str | None, typer.Option(help="TLS: a PEM file.")]
PrivateKey = Annotated[str | None, typer.Option(help="TLS: its key, if in another file.")]
Proxies = Annotated[str | None, typer.Option(help="Whose X-Forwarded headers are believed.")]
NoKeys = Annotated[
    bool | None, typer.Option("--no-keys", help="Let everybody on this machine ask.")
]
Supervised = Annotated[bool, typer.Option("--supervised", hidden=True)]


@app.command()
def serve(
    config: Config = None,
    host: Host = None,
    port: Port = None,
    workers: Annotated[int | None, typer.Option(help="Front ends on the port; 1.")] = None,
    data: Data = None,
    log: LogAddress = None,
    policy: PolicyName = None,
    policy_settings: PolicySettings = None,
    seed: Seed = None,
    new_model: NewModel = None,
    certificate: Certificate = None,
    private_key: PrivateKey = None,
    proxies: Proxies = None,
    no_keys: NoKeys = None,
) -> None:
    """Decide and learn behind HTTP, with a durable log; RBMLE_KEY sets the first key."""
    require("serve")
    from rbmle.service.settings import read_settings

    given = {
        "host": host,
        "port": port,
        "workers": workers,
        "data": data,
        "log": log,
        "policy": policy,
        "policy_settings": policy_settings,
        "seed": seed,
        "new_model": new_model,
        "certificate": certificate,
        "private_key": private_key,
        "proxies": proxies,
        "no_keys": no_keys,
    }
    settings = read_settings(config, given)
    from rbmle.service.supervisor import serve as serve_until_stopped

    raise typer.Exit(serve_until_stopped(settings, lambda address: _welcome(settings, address)))


@app.command()
def front(
    config: Config = None,
    host: Host = None,
    port: Port = None,
    data: Data = None,
    log: LogAddress = None,
    certificate: Certificate = None,
    private_key: PrivateKey = None,
    proxies: Proxies = None,
    no_keys: NoKeys = None,
    supervised: Supervised = False,
) -> None:
    """Decide behind HTTP with the model that a learner publishes, on this machine or another."""
    require("serve")
    from rbmle.service.supervisor import FRONT, run_supervised

    if supervised:
        run_supervised(FRONT)
        return
    from rbmle.service.roles import run_front_end
    from rbmle.service.settings import read_settings

    given = {
        "host": host,
        "port": port,
        "data": data,
        "log": log,
        "certificate": certificate,
        "private_key": private_key,
        "proxies": proxies,
        "no_keys": no_keys,
    }
    settings = read_settings(config, given)
    run_front_end(settings, lambda address: _welcome(settings, address))


@app.command()
def learn(
    config: Config = None,
    data: Data = None,
    log: LogAddress = None,
    policy: PolicyName = None,
    policy_settings: PolicySettings = None,
    seed: Seed = None,
    new_model: NewModel = None,
    supervised: Supervised = False,
) -> None:
    """Learn from a log, and publish models for its front ends; a second learner stands by."""
    require("serve")
    from rbmle.service.supervisor import LEARN, run_supervised

    if supervised:
        run_supervised(LEARN)
        return
    from rbmle.service.log.errors import masked
    from rbmle.service.roles import run_learner
    from rbmle.service.settings import read_settings

    given = {
        "data": data,
        "log": log,
        "policy": policy,
        "policy_settings": policy_settings,
        "seed": seed,
        "new_model": new_model,
    }
    settings = read_settings(config, given)
    where = masked(settings.log or settings.data)
    run_learner(settings, lambda: _tell(f"rbmle learns from {where}"))


def _welcome(settings: "Settings", address: str) -> None:
    """Tell where the service is, and how to try it."""
    from rbmle.service.log.errors import masked

    place = masked(settings.log or settings.data)
    lines = [f"rbmle serves at {address}, and remembers in {place}"]
    line = TRY
    if settings.no_keys:
        lines.append("There are no keys: everybody on this machine may ask.")
        line = TRY.replace('-H "Authorization: Bearer $(rbmle key --data {data})" ', "")
    else:
        lines.append(f"Keys are in {settings.keys_path}, for your eyes only; rbmle key prints one.")
    lines.append(f"Look at it: {address}/dashboard")
    lines.append(f"Try it: {line.format(data=settings.data, address=address)}")
    _tell("\n".join(lines))


@app.command()
def key(
    data: Annotated[Path, typer.Option(help="Folder of the service.")] = Path("rbmle-data"),
    scope: Annotated[str, typer.Option(help="admin, decide or read.")] = "admin",
    place: Annotated[str, typer.Option(help="primary or secondary.")] = "primary",
    rotate: Annotated[bool, typer.Option(help="Make it new first; the other one stays.")] = False,
) -> None:
    """Print a key of a service; a running one follows at once when it is made new."""
    from rbmle.service.access.keys import KeyRing, Place, Scope
    from rbmle.service.settings import KEYS_FILE

    path = data / KEYS_FILE
    if not path.exists():
        raise SettingError(
            f"there are no keys in {data}; rbmle serve makes them at its first start"
        )
    if scope.upper() not in Scope.__members__ or place.upper() not in Place.__members__:
        raise SettingError(
            f"there is no {place} {scope} key; a scope is admin, decide or read, and a place primary "
            "or secondary"
        )
    which, where = Scope[scope.upper()], Place[place.upper()]
    ring = KeyRing(path, os.environ.get("RBMLE_KEY"))
    keys = ring.rotate(which, where) if rotate else ring.keys
    if which not in keys.pairs:
        raise SettingError(
            f"{path} is from before {scope} keys, and cannot be written; make it writable"
        )
    typer.echo(getattr(keys.pairs[which], where.value))


def _tell(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
