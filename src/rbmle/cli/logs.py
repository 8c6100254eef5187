"""Logs: `rbmle log export`, `import`, `verify`, `convert` and `salvage`; `rbmle backup` and `rbmle restore`."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
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
app.add_typer(
    commands, name="log", help="Export, import, verify, convert or salvage logs of decisions."
)

DataFolder = Annotated[Path | None, typer.Option("--data", help="The folder of rbmle serve.")]
LogURL = Annotated[
    str | None,
    typer.Option(
        "--log", envvar="RBMLE_LOG", help="Where the log is if not there: postgresql://…."
    ),
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


@commands.command("salvage")
def salvage_log(
    out: Annotated[Path, typer.Option(help="The folder to make, with what can be saved.")],
    data: DataFolder = None,
    log: LogURL = None,
) -> None:
    """Make a new folder with all records before the first damaged one, and tell what is lost.

    The damaged log stays as it is. If there is a backup, restore that one instead, or compare both.
    """
    from rbmle.service.exports.salvage import salvage

    with _opened(data, log) as opened:
        console = Console()
        with _progress(_size(opened), console) as step:
            found = salvage(opened, data, out, step)
        if not found.problem:
            _say(f"All {found.kept:,} records are sound; {out} was not made.", console)
            return
        _say(f"Damaged: {found.problem}.", console)
        if not found.kept:
            _say(f"No record can be read before that; {out} was not made.", console)
            raise typer.Exit(1)
        until = datetime.fromtimestamp((found.kept_until or 0) / 1_000, UTC).isoformat()
        _say(f"Kept: the records 1 to {found.kept:,}, until {until}; they are in {out}.", console)
        if found.lost is None:
            _say("Lost: all after that; how many there were cannot be read.", console)
        else:
            after = (
                ""
                if found.sound is None
                else f"; {found.sound:,} of them are sound, but come after"
            )
            _say(f"Lost: {found.lost:,} records{after}.", console)


@app.command("backup")
def back_up_service(
    out: Annotated[Path, typer.Option(help="The file to write; it holds the keys.")],
    data: DataFolder = None,
    log: LogURL = None,
    config: Annotated[
        Path | None, typer.Option(help="The TOML file of the service, to back it up as well.")
    ] = None,
) -> None:
    """Write all that a service is made of to one file: log, keys, checkpoints, what is published.

    The service may run meanwhile: the backup has all that was acknowledged before it began.
    """
    require("serve")
    from rbmle.service.exports.backup import back_up
    from rbmle.service.log.opening import open_publications
    from rbmle.service.settings import DATA, read_settings

    if config is not None:
        settings = read_settings(config, {"data": None if data is None else str(data), "log": log})
        data, log = Path(settings.data), settings.log
    data = Path(DATA) if data is None and log is None else data
    with _opened(data, log) as opened:
        console = Console()
        _check_place(out, data)
        publications = open_publications(log if log is not None else _place(data))
        try:
            with closing(publications), _progress(opened.last(), console) as step:
                done = back_up(opened, publications, data, out, settings=config, step=step)
        except OSError as error:
            raise SettingError(f"{out} cannot be written: {error}") from None
        except KeyboardInterrupt:
            _say(f"Stopped. {out} was not written.", console)
            raise typer.Exit(130) from None
        size = out.stat().st_size / 1_000_000
        files = ", ".join(done.files) or "no file"
        _say(f"{done.rows:,} records and {files} are in {out} ({size:,.1f} MB).", console)
        _say("It holds what the service holds, keys included; only you can read it.", console)


@app.command("restore")
def restore_service(
    backup: Annotated[Path, typer.Argument(help="A file of rbmle backup.")],
    data: Annotated[Path | None, typer.Option(help="The folder to make.")] = None,
    log: Annotated[
        str | None,
        typer.Option(
            "--log", envvar="RBMLE_LOG", help="postgresql://…; else a file in the folder."
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Move a folder that is there aside; delete a log in PostgreSQL."
        ),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Read all of the backup, and make nothing.")
    ] = False,
) -> None:
    """Make the folder of a service, and its log, from a backup; all of it is checked first."""
    require("serve")
    from rbmle.service.exports import backup as backups

    console = Console()
    if check == (data is not None):
        raise SettingError("give --data, the folder to make, or --check")
    try:
        with _progress(0, console) as step:
            if data is None:
                done, aside = backups.check(backup, step), None
            else:
                done, aside = backups.restore(backup, data, log, overwrites=overwrite, step=step)
    except OSError as error:
        raise SettingError(f"{error.filename or backup}: {error.strerror or error}") from None
    taken = datetime.fromtimestamp(done.time / 1_000, UTC).isoformat(timespec="seconds")
    files = ", ".join(done.files) or "no file"
    _say(f"The backup of {taken} is whole: {done.rows:,} records, and {files}.", console)
    if data is not None:
        _say(f"They are in {data}; rbmle serve --data {data} goes on from there.", console)
    if aside is not None:
        _say(f"What was there before is in {aside}; delete it when you no longer need it.", console)


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


def _size(log: "Log") -> int:
    """Return how many records a log has, 0 if it is too damaged to tell."""
    from rbmle.service.log.errors import LogError

    try:
        return log.last()
    except LogError:
        return 0


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
