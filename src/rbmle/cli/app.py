"""The command line's frame: its options, and what becomes of mistakes."""

import sys
from importlib.metadata import version as installed
from typing import Annotated

import typer
from rich.console import Console

from rbmle.cli.extras import advice
from rbmle.core.errors import RBMLEError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


def open_console() -> Console:
    """Return a console that prints texts as they are: [brackets] in a name or a formula are no markup."""
    return Console(markup=False)


def _version(wanted: bool) -> None:
    """Print the version, and stop."""
    if wanted:
        typer.echo(f"rbmle {installed('rbmle')}")
        raise typer.Exit


@app.callback()
def main_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Reward-biased maximum likelihood estimation for neural contextual bandits."""


def mistake(error: RBMLEError | ModuleNotFoundError) -> str | None:
    """Return in words what the user has to mend; None if that is not known."""
    if isinstance(error, RBMLEError):
        return str(error)
    return advice((error.name or "").partition(".")[0])


def main() -> None:
    """Run the command line; a mistake gets one line, and the exit code 2."""
    try:
        app()
    except (RBMLEError, ModuleNotFoundError) as error:
        message = mistake(error)
        if message is None:
            raise
        print(f"rbmle: {message}", file=sys.stderr)
        sys.exit(2)
