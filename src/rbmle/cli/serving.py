"""The decision service: `rbmle serve` and `rbmle key`."""

import gc
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from rbmle.cli.app import app
from rbmle.cli.extras import require
from rbmle.core.errors import SettingError

SWITCH_SECONDS = 0.001  # after which a thread that computes lets another one on
TRY = (
    'curl -H "Authorization: Bearer $(rbmle key --data {data})" {address}/v1/rank -d \'{{"context": '
    '{{"time": "morning"}}, "actions": [{{"id": "tea"}}, {{"id": "coffee"}}]}}\''
)


@app.command()
def serve(
    config: Annotated[
        Path | None, typer.Option(help="A TOML file; options on the command line take precedence.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Where to listen; 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="8080; 0 for a free one.")] = None,
    data: Annotated[str | None, typer.Option(help="Folder of log, keys and checkpoints.")] = None,
    log: Annotated[
        str | None, typer.Option(help="postgresql://…, else a file in the folder.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="As rbmle policies lists them.")] = None,
    policy_settings: Annotated[
        str | None, typer.Option("--set", help="key=value of the policy, with spaces between.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of the model; random, and kept in the log.")
    ] = None,
    new_model: Annotated[
        bool | None, typer.Option("--new-model", help="Begin another model in an old log.")
    ] = None,
    certificate: Annotated[str | None, typer.Option(help="TLS: a PEM file.")] = None,
    private_key: Annotated[
        str | None, typer.Option(help="TLS: its key, if in another file.")
    ] = None,
    proxies: Annotated[
        str | None, typer.Option(help="Whose X-Forwarded headers are believed.")
    ] = None,
    no_keys: Annotated[
        bool | None, typer.Option("--no-keys", help="Let everybody on this machine ask.")
    ] = None,
) -> None:
    """Decide and learn behind HTTP, with a durable log; RBMLE_KEY sets the first key."""
    gc.disable()  # until all is loaded, which makes objects by the hundred thousand and no cycles
    require("serve")
    from rbmle.service.settings import read_settings

    given = {
        "host": host,
        "port": port,
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
    start, binding = settings.start(), settings.binding()

    from rbmle.service.access.keys import KeyRing
    from rbmle.service.http.app import Application
    from rbmle.service.http.logging import configure_logging
    from rbmle.service.http.server import Server
    from rbmle.service.service import Service

    configure_logging()
    Path(settings.data).mkdir(parents=True, exist_ok=True)
    keys = None if settings.no_keys else KeyRing(settings.keys_path, os.environ.get("RBMLE_KEY"))
    service = Service(start, told=_tell)

    def started(address: str) -> None:
        lines = [f"rbmle serves at {address}, and remembers in {start.log or start.data}"]
        if keys is None:
            lines.append("There are no keys: everybody on this machine may ask.")
            line = TRY.replace('-H "Authorization: Bearer $(rbmle key --data {data})" ', "")
        else:
            lines.append(f"Keys are in {keys.path}, for your eyes only; rbmle key prints one.")
            line = TRY
        lines.append(f"Look at it: {address}/dashboard")
        lines.append(f"Try it: {line.format(data=settings.data, address=address)}")
        _tell("\n".join(lines))

    _spare_the_collector()
    sys.setswitchinterval(SWITCH_SECONDS)
    application = Application(service, keys)
    server = Server(application, binding, started, lambda: application.turns)
    application.stopping = lambda: server.is_stopping
    try:
        server.run()
    finally:
        service.close()


@app.command()
def key(
    data: Annotated[Path, typer.Option(help="Folder of the service.")] = Path("rbmle-data"),
    scope: Annotated[str, typer.Option(help="admin or read.")] = "admin",
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
            f"there is no {place} {scope} key; a scope is admin or read, a place primary or secondary"
        )
    which, where = Scope[scope.upper()], Place[place.upper()]
    ring = KeyRing(path, os.environ.get("RBMLE_KEY"))
    keys = ring.rotate(which, where) if rotate else ring.keys
    typer.echo(getattr(getattr(keys, scope.lower()), where.value))


def _spare_the_collector() -> None:
    """Let Python look for lost cycles seldom: it stops all threads for tens of milliseconds."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def _tell(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
