"""The command line's frame: groups of commands, the version, and one line for each mistake."""

import sys
from collections.abc import Callable
from importlib.metadata import version as installed_version
from inspect import cleandoc
from textwrap import indent
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console

from rbmle.cli.extras import advice
from rbmle.core.errors import RBMLEError

Command = TypeVar("Command", bound=Callable[..., Any])
# The groups of commands, in the order in which `rbmle --help` shows them.
COMPARE, JUDGE, SERVE, INSPECT = (
    "Compare policies on data",
    "Judge policies on a log",
    "Serve decisions over HTTP",
    "Inspect",
)

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


def open_console() -> Console:
    """Return a console without markup, so that [brackets] in a name or a formula are printed."""
    return Console(markup=False)


def print_line(text: str, console: Console | None = None) -> None:
    """Print a line without colours or line breaks."""
    (console or open_console()).print(text, highlight=False, soft_wrap=True)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rbmle {installed_version('rbmle')}")
        raise typer.Exit


def help_text(docstring: str | None) -> str:
    """Return the help of a command: paragraphs on one line each, and examples as they are typed."""
    return "\n\n".join(
        "\b\nExamples:\n" + indent(paragraph, "  ")
        if paragraph.startswith("rbmle ")
        else " ".join(paragraph.split())
        for paragraph in cleandoc(docstring or "").split("\n\n")
    )


def command(group: str, name: str | None = None) -> Callable[[Command], Command]:
    """Make a function a command of a group."""

    def decorate(function: Command) -> Command:
        app.command(name, help=help_text(function.__doc__), rich_help_panel=group)(function)
        return function

    return decorate


def _main_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Choose one of several actions for each user, and learn from the reward.

    Compare contextual bandits on labelled data, judge them on logged decisions, or serve decisions over HTTP.

    rbmle run --dataset adult --policy neural-rbmle-ga,lin-ucb
    rbmle evaluate log.parquet --policy uniform,lin-ucb:exploration=0.5
    rbmle serve --data my-service

    Settings of a policy follow its name, as in lin-ucb:exploration=0.5; rbmle policies NAME lists them.
    """


app.callback(help=help_text(_main_options.__doc__))(_main_options)


def mistake(error: RBMLEError | ModuleNotFoundError) -> str | None:
    """Return the message for a user's mistake; None if the error is not one."""
    if isinstance(error, RBMLEError):
        return str(error)
    return advice((error.name or "").partition(".")[0])


def main() -> None:
    """Run the command line; a mistake is reported in one line, with the exit code 2."""
    try:
        app(prog_name="rbmle")
    except (RBMLEError, ModuleNotFoundError) as error:
        message = mistake(error)
        if message is None:
            raise
        print(f"rbmle: {message}", file=sys.stderr)
        sys.exit(2)
