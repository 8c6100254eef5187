"""Logs: `rbmle log export`, `import`, `verify`, `erase` and more; `rbmle backup` and `rbmle restore`."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rbmle.cli.app import JUDGE, SERVE, Command, app, command, help_text, open_console, print_line
from rbmle.cli.extras import require
from rbmle.core.errors import SettingError
from rbmle.service.log import LOG_FILE

if TYPE_CHECKING:
    from rbmle.evaluation.logs import DecisionLog, LogReading
    from rbmle.service.exports.checks import LogSummary
    from rbmle.service.log.base import Log

SHOWN = 100  # problems; the rest are counted
SELDOM = 500  # records between two updates of the progress bar

commands = typer.Typer(no_args_is_help=True)
app.add_typer(
    commands,
    name="log",
    help="Export, import, convert, verify or repair logs of decisions.",
    rich_help_panel=JUDGE,
)


def log_command(name: str) -> Callable[[Command], Command]:
    """Make a function a command of `rbmle log`."""

    def decorate(function: Command) -> Command:
        commands.command(name, help=help_text(function.__doc__))(function)
        return function

    return decorate


DataFolder = Annotated[Path | None, typer.Option("--data", help="The folder of rbmle serve.")]
LogURL = Annotated[
    str | None,
    typer.Option("--log", envvar="RBMLE_LOG", help="A log in PostgreSQL: postgresql://…."),
]

Source = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="Format of the log: parquet, csv, dsjson or vw.",
        show_default="by the file's suffix",
    ),
]
SkipBad = Annotated[bool, typer.Option(help="Skip bad rows and count them.", show_default=False)]


@log_command("export")
def export_log(
    out: Annotated[Path, typer.Option(help="The file to write.")],
    data: DataFolder = None,
    format: Annotated[
        str | None,
        typer.Option(help="parquet or dsjson.", show_default="by the file's suffix"),
    ] = None,
    log: LogURL = None,
) -> None:
    """Write the log of a service to a file, one row per settled decision, while it may be running.

    Parquet has the columns event_id, time, context, actions, arm, propensity, reward (null if none came in
    time) and more; DSJSON is what Vowpal Wabbit reads.

    rbmle log export --data my-service --out log.parquet
    """
    with _open_service_log(data, log) as opened:
        from rbmle.evaluation.logs import format_of
        from rbmle.service.exports.export import SUFFIXES, export

        console = open_console()
        chosen = format_of(out, format, SUFFIXES)
        _check_place(out, data)
        try:
            with _progress(opened.last(), console) as step:
                done = export(opened, out, chosen, step)
        except OSError as error:
            raise SettingError(f"{out} cannot be written: {error}") from None
        except KeyboardInterrupt:
            print_line(f"Stopped. {out} was not written.", console)
            raise typer.Exit(130) from None
        print_line(f"{done.rows:,} decisions are in {out}.", console)
        if done.pending:
            print_line(
                f"Pending events, left out until they are settled: {done.pending:,}.", console
            )


@log_command("verify")
def verify_log(data: DataFolder = None, log: LogURL = None) -> None:
    """Check every record of a log and count them. The exit code is 1 if something is wrong.

    rbmle log verify --data my-service
    """
    with _open_service_log(data, log) as opened:
        from rbmle.service.exports.checks import check_log

        console = open_console()
        try:
            with _progress(opened.last(), console) as step:
                summary = check_log(opened, data, step)
        except KeyboardInterrupt:
            print_line("Stopped. The log was not checked to its end.", console)
            raise typer.Exit(130) from None
        if summary.problems:
            for problem in summary.problems[:SHOWN]:
                print_line(problem, console)
            if len(summary.problems) > SHOWN:
                print_line(f"There are {len(summary.problems) - SHOWN:,} more problems.", console)
            raise typer.Exit(1)
        console.print(_table(summary))
        print_line("The log is sound.", console)


@log_command("import")
def import_log(
    log: Annotated[Path, typer.Argument(help="Decisions of another system, or an export.")],
    data: Annotated[Path, typer.Option(help="The folder of the new service.")],
    source: Source = None,
    config: Annotated[
        Path | None, typer.Option(help="The TOML file of the service, as rbmle serve takes it.")
    ] = None,
    skip_bad: SkipBad = False,
) -> None:
    """Start a new service from earlier decisions: it learns from them at its first start.

    Each decision needs a time and the probability of the chosen action, as exports of Personalizer have them.

    rbmle log import personalizer.json --from dsjson --data my-service
    """
    require("serve")
    from rbmle.evaluation.logs import LogReading
    from rbmle.service.exports.import_log import import_decisions
    from rbmle.service.learner.start import Start
    from rbmle.service.settings import read_settings

    console, reading = open_console(), LogReading(skips_bad=skip_bad)
    start = Start.of(read_settings(config, {"data": str(data)}))
    with open_decisions(log, source) as opened, console.status("0 decisions") as status:
        done = import_decisions(
            opened, data, start, reading, lambda done: status.update(f"{done:,} decisions")
        )
    print_line(f"{done:,} decisions are in {data}; rbmle serve --data {data} learns them.", console)
    _say_left_out(reading, console)


@log_command("convert")
def convert_log(
    log: Annotated[Path, typer.Argument(help="The log: a file, or the folder of rbmle serve.")],
    out: Annotated[Path, typer.Argument(help="The file to write.")],
    source: Source = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="Format to write: parquet, csv, dsjson or vw.",
            show_default="by the file's suffix",
        ),
    ] = None,
    skip_bad: SkipBad = False,
) -> None:
    """Write logged decisions in another format: Parquet, CSV, DSJSON or Vowpal Wabbit's text.

    rbmle log convert log.dsjson log.parquet
    """
    from rbmle.evaluation.logs import LogReading, write_log

    console, reading = open_console(), LogReading(skips_bad=skip_bad)
    with open_decisions(log, source) as opened, console.status("0 decisions") as status:
        rows = write_log(
            opened,
            out,
            target,
            reading=reading,
            step=lambda rows: status.update(f"{rows:,} decisions"),
        )
    print_line(f"{rows:,} decisions are in {out}.", console)
    _say_left_out(reading, console)


@log_command("erase")
def erase_events(
    where: Annotated[
        list[str] | None,
        typer.Option(help="A feature and its value: user.id=u7. All that are given have to match."),
    ] = None,
    event: Annotated[list[str] | None, typer.Option(help="The id of an event.")] = None,
    data: DataFolder = None,
    log: LogURL = None,
    older: Annotated[
        str | None,
        typer.Option(
            help="keep or forget what the model learned of records that retention has deleted."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count what would be erased.")
    ] = False,
    wait: Annotated[
        bool, typer.Option(help="Wait until the learner of a running service has the new model.")
    ] = True,
) -> None:
    """Remove a person's events from the log, and make the model again as if it had never seen them.

    The service may be running: it keeps its current model until the new one is ready. Backups, and
    logs of other programs, are not changed.

    rbmle log erase --where user.id=u7 --data my-service --dry-run
    rbmle log erase --where user.id=u7 --data my-service
    """
    require("serve")
    from rbmle.service.dashboard.words import count_of
    from rbmle.service.exports import erasing
    from rbmle.service.log import open_publications
    from rbmle.service.model.private import FeatureHasher, key_of

    if not where and not event:
        raise SettingError("there is nothing to look for; give --where user.id=u7 or --event ID")
    if older not in (None, *erasing.Older):
        raise SettingError(f"--older is {older!r}; give keep or forget")
    key = key_of(data)
    hasher = None if key is None else FeatureHasher(key)
    conditions = [erasing.Condition.parse(text) for text in where or ()]
    search = erasing.EventSearch(conditions, hasher)
    with _open_service_log(data, log, is_read_only=dry_run) as opened:
        console, place = open_console(), log if log is not None else _place(data)
        with _progress(opened.last(), console) as step:
            done = erasing.erase(
                opened,
                search,
                event or (),
                older=None if older is None else erasing.Older(older),
                is_dry_run=dry_run,
                step=step,
            )
        if where and not done.events and hasher is None:
            print_line(
                "There is no key of private features here, so hashed values were not looked for; give "
                "--data, or set RBMLE_FEATURE_KEY.",
                console,
            )
        what = f"{count_of(done.events, 'event')} with {count_of(done.records, 'record')}"
        if done.deleted:
            print_line(
                f"Retention has deleted the records up to {done.deleted:,}; these cannot be searched.",
                console,
            )
        if dry_run:
            print_line(f"{what} would be erased; nothing was changed.", console)
            return
        print_line(f"Erased: {what}.", console)
        if not done.records and older != erasing.Older.FORGET:
            return
        with (
            closing(open_publications(place)) as publications,
            _progress(opened.last(), console) as step,
        ):
            if erasing.rebuild(opened, data, publications, step):
                print_line("The model is made again without them.", console)
                return
            if wait:
                erasing.wait_for_learner(opened, publications, step)
        state = "has made" if wait else "makes"
        print_line(f"The learner {state} the model again without them.", console)


@log_command("compact")
def compact_log(data: DataFolder = None, log: LogURL = None) -> None:
    """Return the space of deleted records to the system; stop the service first.

    A log that this version began returns its space by itself, except in PostgreSQL.

    rbmle log compact --data my-service
    """
    with _open_service_log(data, log, is_read_only=False) as opened:
        console, before, lease = open_console(), opened.size(), opened.lease()
        if not lease.take():
            raise SettingError("a service uses this log; stop it first")
        try:
            opened.compact()
        finally:
            lease.release()
        print_line(
            f"The log took {before / 1e6:,.1f} MB, and takes {opened.size() / 1e6:,.1f} MB now.",
            console,
        )


@log_command("salvage")
def salvage_log(
    out: Annotated[Path, typer.Option(help="The folder to create, with what can be saved.")],
    data: DataFolder = None,
    log: LogURL = None,
) -> None:
    """Copy all records before the first damaged one to a new folder, and say what is lost.

    The damaged log stays as it is. If there is a backup, restore that instead, or compare both.

    rbmle log salvage --data my-service --out my-service-2
    """
    from rbmle.service.exports.backup import salvage

    with _open_service_log(data, log) as opened:
        console = Console()
        with _progress(_size(opened), console) as step:
            salvaged = salvage(opened, data, out, step)
        if not salvaged.problem:
            print_line(f"All {salvaged.kept:,} records are sound; {out} was not made.", console)
            return
        print_line(f"Damaged: {salvaged.problem}.", console)
        if not salvaged.kept:
            print_line(f"No record can be read before that; {out} was not made.", console)
            raise typer.Exit(1)
        until = datetime.fromtimestamp((salvaged.kept_until or 0) / 1_000, UTC).isoformat()
        print_line(
            f"Kept: the records 1 to {salvaged.kept:,}, until {until}; they are in {out}.", console
        )
        if salvaged.lost == 0:
            print_line("Lost: nothing.", console)
        elif salvaged.lost is None:
            print_line("Lost: all after that; how many there were cannot be read.", console)
        else:
            after = (
                ""
                if salvaged.sound is None
                else f"; {salvaged.sound:,} of them are sound, but come after"
            )
            print_line(f"Lost: {salvaged.lost:,} records{after}.", console)


@command(SERVE, "backup")
def back_up_service(
    out: Annotated[Path, typer.Option(help="The file to write; it holds the keys.")],
    data: DataFolder = None,
    log: LogURL = None,
    config: Annotated[
        Path | None, typer.Option(help="The TOML file of the service, to back it up as well.")
    ] = None,
) -> None:
    """Write everything a service consists of to one file: log, keys, checkpoints, published models.

    The service may keep running: the backup has everything that was acknowledged before it started.

    rbmle backup --data my-service --out my-service.backup
    """
    require("serve")
    from rbmle.service.exports.backup import back_up
    from rbmle.service.log import open_publications
    from rbmle.service.settings import DATA, read_settings

    if config is not None:
        settings = read_settings(config, {"data": None if data is None else str(data), "log": log})
        data, log = Path(settings.data), settings.log
    data = Path(DATA) if data is None and log is None else data
    with _open_service_log(data, log) as opened:
        console = Console()
        _check_place(out, data)
        publications = open_publications(log if log is not None else _place(data))
        try:
            with closing(publications), _progress(opened.last(), console) as step:
                done = back_up(opened, publications, data, out, settings=config, step=step)
        except OSError as error:
            raise SettingError(f"{out} cannot be written: {error}") from None
        except KeyboardInterrupt:
            print_line(f"Stopped. {out} was not written.", console)
            raise typer.Exit(130) from None
        size = out.stat().st_size / 1_000_000
        files = ", ".join(done.files) or "no file"
        print_line(f"{done.rows:,} records and {files} are in {out} ({size:,.1f} MB).", console)
        print_line("It contains the keys of the service; only you can read it.", console)


@command(SERVE, "restore")
def restore_service(
    backup: Annotated[Path, typer.Argument(help="A file of rbmle backup.")],
    data: Annotated[Path | None, typer.Option(help="The folder to create.")] = None,
    log: Annotated[
        str | None,
        typer.Option(
            "--log",
            envvar="RBMLE_LOG",
            help="Put the log into PostgreSQL: postgresql://….",
            show_default="a file in the folder",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Move an existing folder aside; delete an existing log in PostgreSQL.",
        ),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the backup, all of it.")
    ] = False,
) -> None:
    """Create the folder of a service, and its log, from a backup, which is checked first.

    rbmle restore my-service.backup --data my-service
    """
    require("serve")
    from rbmle.service.exports import backup as backups

    console = Console()
    if check == (data is not None):
        raise SettingError("give --data, the folder to create, or --check")
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
    print_line(f"The backup of {taken} is whole: {done.rows:,} records, and {files}.", console)
    if data is not None:
        print_line(f"They are in {data}; rbmle serve --data {data} continues from there.", console)
    if aside is not None:
        print_line(
            f"What was there before is in {aside}; delete it when you no longer need it.", console
        )


def _say_left_out(reading: "LogReading", console: Console) -> None:
    for count, what in (
        (reading.bad, "bad rows"),
        (reading.unlabelled, "decisions without a label"),
    ):
        if count:
            print_line(f"Left out: {count:,} {what}.", console)


@contextmanager
def open_decisions(path: Path, format: str | None) -> Iterator["DecisionLog"]:
    """Yield the decisions of a file, or of the folder of a service."""
    from rbmle.evaluation.logs import open_log

    if not path.is_dir():
        yield open_log(path, format)
        return
    with _open_service_log(path, None) as opened:
        from rbmle.service.exports.export import ServiceLog

        yield ServiceLog(opened, str(path))


@contextmanager
def _open_service_log(
    data: Path | None, url: str | None, *, is_read_only: bool = True
) -> Iterator["Log"]:
    """Open a log; raise SettingError that says which option to give."""
    place = _place(data) if url is None else url
    try:
        from rbmle.service.log import open_log

        log = open_log(place, is_read_only=is_read_only)
    except ModuleNotFoundError as error:
        raise SettingError(
            f"{error.name} is not installed; pip install 'rbmle[serve,postgres]'"
        ) from None
    except ValueError as error:
        raise SettingError(f"--log cannot be used: {error}") from None
    with closing(log):
        yield log


def _place(data: Path | None) -> str:
    """Return the path of the log in a folder; raise SettingError if there is none."""
    if data is None:
        raise SettingError("there is no log to read; give --data FOLDER or --log URL")
    if not (data / LOG_FILE).is_file():
        raise SettingError(
            f"there is no log in {data}: it has no {LOG_FILE}; give the folder of rbmle serve"
        )
    return str((data / LOG_FILE).absolute())


def _check_place(out: Path, data: Path | None) -> None:
    """Raise SettingError if a file would replace the log, or is a folder."""
    if out.is_dir():
        raise SettingError(f"{out} is a folder; give the name of a file")
    is_in_folder = data is not None and out.resolve().parent == data.resolve()
    if is_in_folder and out.name.startswith(LOG_FILE):
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
    """Return the number of records of a log; 0 if it is too damaged to read that."""
    from rbmle.service.log.base import LogError

    try:
        return log.last()
    except LogError:
        return 0


def _table(summary: "LogSummary") -> Table:
    """Return a table of the records of each kind, and of what happened to rewards."""
    counts = summary.counts
    table = Table("what", "how many")
    table.columns[1].justify = "right"
    for kind, number in sorted(summary.kinds.items()):
        table.add_row(f"{kind} records", f"{number:,}")
    table.add_section()
    for what, number in (
        ("slots with a reward", counts.joined),
        ("slots with the default reward", counts.defaulted),
        ("events pending", summary.pending),
        ("events never shown", counts.unactivated),
        ("duplicate rewards", counts.duplicate),
        ("late rewards", counts.late),
        ("rewards without an event", counts.orphan),
        ("rewards whose event may still come", summary.early),
        ("activations without an event", summary.unknown),
    ):
        table.add_row(what, f"{number:,}")
    return table
