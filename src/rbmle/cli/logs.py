"""Logs of decisions: `rbmle log export`, `import`, `verify` and `convert`."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rbmle.cli.app import app, open_console
from rbmle.cli.extras import require
from rbmle.core.errors import SettingError
from rbmle.service.log.opening import LOG_FILE

if TYPE_CHECKING:
    from rbmle.evaluation.logs import Log as DecisionLog
    from rbmle.evaluation.logs import Reading
    from rbmle.service.exports.checks import Survey
    from rbmle.service.log.base import Log

SHOWN = 100  # problems; the rest are counted
SELDOM = 500  # records between two looks at the progress

commands = typer.Typer(no_args_is_help=True)
app.add_typer(commands, name="log", help="Export, import, verify or convert logs of decisions.")

DataFolder = Annotated[Path | None, typer.Option("--data", help="The folder of rbmle serve.")]
LogURL = Annotated[
    str | None, typer.Option("--log", help="Where the log is if not there: postgresql://….")
]

Source = Annotated[
    str | None, typer.Option("--from", help="parquet, csv, dsjson or vw; else by the suffix.")
]
SkipBad = Annotated[bool, typer.Option(help="Leave bad rows out, and count them.")]


@commands.command("export")
def export_log(
    out: Annotated[Path, typer.Option(help="The file to write.")],
    data: DataFolder = None,
    format: Annotated[
        str | None, typer.Option(help="parquet or dsjson; else by the file's suffix.")
    ] = None,
    log: LogURL = None,
) -> None:
    """Write the log to a file, one row for each settled decision; a running service is not disturbed.

    Parquet has the columns event_id, time, context, actions, arm, propensity, reward (null if none
    came in time) and more; DSJSON is what Vowpal Wabbit reads.
    """
    with _opened(data, log) as opened:
        from rbmle.service.exports.export import export, format_of

        console = open_console()
        chosen = format_of(out, format)
        _check_place(out, data)
        try:
            with _progress(opened.last(), console) as step:
                done = export(opened, out, chosen, step)
        except OSError as error:
            raise SettingError(f"{out} cannot be written: {error}") from None
        except KeyboardInterrupt:
            _say(f"Stopped. {out} was not written.", console)
            raise typer.Exit(130) from None
        _say(f"{done.rows:,} decisions are in {out}.", console)
        if done.pending:
            _say(f"Pending events, left out until they are settled: {done.pending:,}.", console)


@commands.command("verify")
def verify_log(data: DataFolder = None, log: LogURL = None) -> None:
    """Read all of the log, and tell what is in it and what is wrong: the exit code is then 1."""
    with _opened(data, log) as opened:
        from rbmle.service.exports.checks import survey

        console = open_console()
        try:
            with _progress(opened.last(), console) as step:
                found = survey(opened, data, step)
        except KeyboardInterrupt:
            _say("Stopped. The log was not checked to its end.", console)
            raise typer.Exit(130) from None
        if found.problems:
            for problem in found.problems[:SHOWN]:
                _say(problem, console)
            if len(found.problems) > SHOWN:
                _say(f"There are {len(found.problems) - SHOWN:,} more problems.", console)
            raise typer.Exit(1)
        console.print(_table(found))
        _say("The log is sound.", console)


@commands.command("import")
def import_log(
    log: Annotated[Path, typer.Argument(help="Decisions of another system, or an export.")],
    data: Annotated[Path, typer.Option(help="The folder of the service that begins with them.")],
    source: Source = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings of the service, as rbmle serve takes them.")
    ] = None,
    skip_bad: SkipBad = False,
) -> None:
    """Begin a service with decisions that were made before: it learns them at its first start.

    Each needs a time and the probability of the chosen action, as exports of Personalizer have them.
    """
    require("serve")
    from rbmle.evaluation.logs import Reading
    from rbmle.service.imports import import_decisions
    from rbmle.service.settings import read_settings

    console, reading = open_console(), Reading(skips_bad=skip_bad)
    start = read_settings(config, {"data": str(data)}).start()
    with logged(log, source) as opened, console.status("0 decisions") as status:
        done = import_decisions(
            opened, data, start, reading, lambda done: status.update(f"{done:,} decisions")
        )
    _say(f"{done:,} decisions are in {data}; rbmle serve --data {data} learns them.", console)
    _say_left_out(reading, console)


@commands.command("convert")
def convert_log(
    log: Annotated[Path, typer.Argument(help="The log: a file, or the folder of rbmle serve.")],
    out: Annotated[Path, typer.Argument(help="The file to write.")],
    source: Source = None,
    target: Annotated[
        str | None, typer.Option("--to", help="As --from, of what is written.")
    ] = None,
    skip_bad: SkipBad = False,
) -> None:
    """Write logged decisions in another format: Parquet, CSV, DSJSON or Vowpal Wabbit's text."""
    from rbmle.evaluation.logs import Reading, write_log

    console, reading = open_console(), Reading(skips_bad=skip_bad)
    with logged(log, source) as opened, console.status("0 decisions") as status:
        rows = write_log(
            opened,
            out,
            target,
            reading=reading,
            step=lambda rows: status.update(f"{rows:,} decisions"),
        )
    _say(f"{rows:,} decisions are in {out}.", console)
    _say_left_out(reading, console)


def _say_left_out(reading: "Reading", console: Console) -> None:
    """Tell how many rows were left out, if any were."""
    for count, what in (
        (reading.bad, "bad rows"),
        (reading.unlabelled, "decisions without a label"),
    ):
        if count:
            _say(f"Left out: {count:,} {what}.", console)


@contextmanager
def logged(path: Path, format: str | None) -> Iterator["DecisionLog"]:
    """Yield the decisions of a file, or of the folder of a service."""
    from rbmle.evaluation.logs import open_log

    if not path.is_dir():
        yield open_log(path, format)
        return
    with _opened(path, None) as opened:
        from rbmle.service.exports.logged import ServiceLog

        yield ServiceLog(opened, str(path))


@contextmanager
def _opened(data: Path | None, url: str | None) -> Iterator["Log"]:
    """Yield a log that cannot be written to, or raise an error that says what to give."""
    place = _place(data) if url is None else url
    try:
        from rbmle.service.log import open_log

        log = open_log(place, is_read_only=True)
    except ModuleNotFoundError as error:
        raise SettingError(
            f"{error.name} is not installed; pip install 'rbmle[serve,postgres]'"
        ) from None
    except ValueError as error:
        raise SettingError(f"--log cannot be used: {error}") from None
    with closing(log):
        yield log


def _place(data: Path | None) -> str:
    """Return where the log of a folder is, or raise SettingError if there is none."""
    if data is None:
        raise SettingError("there is no log to read; give --data FOLDER or --log URL")
    if not (data / LOG_FILE).is_file():
        raise SettingError(
            f"there is no log in {data}: it has no {LOG_FILE}; give the folder of rbmle serve"
        )
    return str((data / LOG_FILE).absolute())


def _check_place(out: Path, data: Path | None) -> None:
    """Raise SettingError if a file would take the place of the log, or cannot be one."""
    if out.is_dir():
        raise SettingError(f"{out} is a folder; give the name of a file")
    own = data is not None and out.resolve().parent == data.resolve()
    if own and out.name.startswith(LOG_FILE):
        raise SettingError(f"{out} belongs to the log itself; give another name")


@contextmanager
def _progress(last: int, console: Console) -> Iterator[Callable[[int], None]]:
    """Yield a function that shows how much of the log was read, given a record's number."""
    columns = (
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} records"),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        bar = progress.add_task("", total=last)

        def step(seq: int) -> None:
            if seq % SELDOM == 0:
                progress.update(bar, completed=seq)

        yield step


def _table(found: "Survey") -> Table:
    """Return how many there are of each kind of record, and what became of rewards."""
    counts = found.counts
    table = Table("what", "how many")
    table.columns[1].justify = "right"
    for kind, number in sorted(found.kinds.items()):
        table.add_row(f"{kind} records", f"{number:,}")
    table.add_section()
    for what, number in (
        ("slots with a reward", counts.joined),
        ("slots with the default reward", counts.defaulted),
        ("events pending", found.pending),
        ("events never shown", counts.unactivated),
        ("duplicate rewards", counts.duplicate),
        ("late rewards", counts.late),
        ("rewards without an event", counts.orphan),
        ("rewards whose event may still come", found.early),
        ("activations without an event", found.unknown),
    ):
        table.add_row(what, f"{number:,}")
    return table


def _say(text: str, console: Console) -> None:
    """Print one line as it is."""
    console.print(text, highlight=False, soft_wrap=True)
