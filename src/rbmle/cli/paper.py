"""The paper: `rbmle tune`, `rbmle reproduce` and `rbmle report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rbmle.cli.app import app, open_console
from rbmle.cli.options import (
    DataDir,
    Datasets,
    Drop,
    ExecutorName,
    Jobs,
    Preprocessing,
    SettingsOption,
    Target,
    environments,
    listed,
    named_policies,
)
from rbmle.cli.running import run_missing
from rbmle.core.errors import SettingError

if TYPE_CHECKING:
    from rbmle.experiments.trial import Trial
    from rbmle.studies.plan import Plan
    from rbmle.studies.tuning import Grid

RESULTS = Path("results")
Faithful = Annotated[
    bool, typer.Option("--faithful", help="Policies as printed: slow, see docs/differences.md.")
]
Warm = Annotated[
    bool,
    typer.Option(
        "--warm",
        help="With --faithful: ascend the mean from the last estimate, not the sum from θ₀.",
    ),
]


@app.command()
def reproduce(
    study: Annotated[
        str,
        typer.Argument(
            help="table-1, …, figure-4, all of these, bakeoff, everyday, section-3, riverswim, classical, "
            "pessimism."
        ),
    ],
    quick: Annotated[bool, typer.Option(help="Fewer seeds and rounds, from shipped data.")] = False,
    preprocess: Preprocessing = "standard",
    tuned: Annotated[
        Path | None, typer.Option(help="Constants that rbmle tune wrote; else those that ship.")
    ] = None,
    faithful: Faithful = False,
    warm: Warm = False,
    policy: Annotated[str, typer.Option(help="Policies, with commas between; else all.")] = "",
    dataset: Annotated[str, typer.Option(help="Datasets, with commas between; else all.")] = "",
    seeds: Annotated[int, typer.Option(min=0, help="Trials of each; 0: as many as usual.")] = 0,
    rounds: Annotated[int, typer.Option(min=0, help="Of a trial; 0: as many as usual.")] = 0,
    jobs: Jobs = -1,
    executor: ExecutorName = "processes",
    out: Annotated[Path, typer.Option(help="Folder for runs, tables and figures.")] = RESULTS,
    data_dir: DataDir = None,
) -> None:
    """Run a table or figure of the paper beside the published one, or a study of our own."""
    from rbmle.experiments.summary import summarise
    from rbmle.studies import MEASURED, STUDIES, Plan, Tuned, table_3
    from rbmle.studies.measurements import ENDING
    from rbmle.studies.plan import PAIRED
    from rbmle.studies.seed_results import write_trials

    console = open_console()
    names = [*STUDIES, *MEASURED]
    if study not in (*names, "all"):
        raise SettingError(f"there is no study {study!r}; there are {', '.join(names)} and all")
    constants = Tuned.shipped() if tuned is None else Tuned.read(tuned)
    is_of_the_paper = study in STUDIES and STUDIES[study].is_of_the_paper
    is_narrowed = study in STUDIES and (is_of_the_paper or STUDIES[study].is_narrowed)
    if faithful and not is_of_the_paper:
        raise SettingError(
            f"--faithful is for a table or figure of the paper; leave it out for {study}"
        )
    if (dataset or rounds) and not is_narrowed:
        raise SettingError(
            "--dataset and --rounds are for a table or figure of the paper, and for everyday rewards; leave "
            f"them out for {study}"
        )
    _check_warm(faithful, warm)
    if (policy or seeds) and study not in STUDIES:
        raise SettingError(
            f"--policy and --seeds are for one study of policies; leave them out for {study}"
        )
    plan = Plan(
        quick=quick,
        preprocessing=PAIRED if faithful else preprocess,
        data_dir=data_dir,
        tuned=constants,
        is_faithful=faithful,
        is_warm=warm,
        policies=policy,
        only=tuple(listed(dataset)),
        count=seeds,
        rounds=rounds,
    )
    folder = out / ("quick" if quick else "paper") / plan.preprocessing
    papers = [name for name in STUDIES if STUDIES[name].is_of_the_paper] + [table_3.NAME]
    for name in papers if study == "all" else [study]:
        if name in MEASURED:
            _measure(name, quick, folder, console)
            continue
        chosen = STUDIES[name]
        console.print(f"{name}: {chosen.title}")
        for line in chosen.skipped(plan):
            console.print(line, highlight=False, soft_wrap=True)
        place = folder if chosen.is_of_the_paper else folder / name
        summary = summarise(run_missing(chosen.trials(plan), place, executor, jobs, console))
        report, note = place / f"{name}.html", chosen.note(plan, summary)
        chosen.page(summary, report, f"{name}: {chosen.title}", note)
        by_seed = write_trials(summary, place / f"{name}{ENDING}", note)
        _show([*chosen.render(summary, place, note), report, by_seed], console)


@app.command()
def tables(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Results by seed that reproduce wrote, to be put into the folder."),
    ] = None,
    docs: Annotated[Path, typer.Option(help="Folder of the documentation.")] = Path("docs"),
    check: Annotated[
        bool,
        typer.Option("--check", help="Change nothing; fail if a table is not as it should be."),
    ] = False,
) -> None:
    """Write the tables in the documentation from its results by seed."""
    from rbmle.core.files import write_text
    from rbmle.studies.seed_results import outdated, take

    if check and files:
        raise SettingError("--check changes nothing; leave out the files")
    for path in take(files or [], docs):
        typer.echo(path)
    pages = outdated(docs)
    if check and pages:
        names = ", ".join(map(str, pages))
        raise SettingError(
            f"tables are not made of the results by seed in {names}; run rbmle tables"
        )
    for path, text in pages.items():
        typer.echo(write_text(path, text))


@app.command()
def tune(
    dataset: Datasets = "",
    policy: Annotated[
        str, typer.Option(help="Policies with commas between, or 'paper'.")
    ] = "paper",
    study: Annotated[
        str, typer.Option(help="A table or figure: the constant of all that it compares.")
    ] = "",
    faithful: Faithful = False,
    warm: Warm = False,
    grid: Annotated[
        str | None, typer.Option(help="A setting and what to try: exploration=0.01,0.1,1.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each trial.")] = 5000,
    seeds: Annotated[int, typer.Option(min=1, help="Trials of each, on seeds not reported.")] = 3,
    finalists: Annotated[
        int, typer.Option(min=0, help="Values that have all seeds, the best on three; 0: all.")
    ] = 0,
    pooled: Annotated[
        bool,
        typer.Option("--pooled", help="Compare values over all datasets together; choose none."),
    ] = False,
    target: Target = None,
    drop: Drop = "",
    preprocess: Preprocessing = "standard",
    settings: SettingsOption = None,
    jobs: Jobs = -1,
    executor: ExecutorName = "processes",
    out: Annotated[Path, typer.Option(help="Folder for runs and tuned.json.")] = RESULTS / "tune",
    data_dir: DataDir = None,
) -> None:
    """Choose the constant of each policy on the paper's grid, and record how it was chosen."""
    from rbmle.experiments.report_table import markdown
    from rbmle.experiments.summary import summarise
    from rbmle.studies import tuning
    from rbmle.studies.paper_policies import POLICIES
    from rbmle.studies.plan import PAIRED, Plan
    from rbmle.studies.tuned import Tuned
    from rbmle.studies.tuning import (
        choices,
        edges,
        grid_tables,
        grids,
        pooled_table,
        tuning_trials,
    )

    console = open_console()
    _check_warm(faithful, warm)
    path = out / "tuned.json"
    known = Tuned.read(path) if path.exists() else Tuned()
    if study:
        if grid or settings or target or drop:
            raise SettingError(
                "--study has policies, settings and grids of its own; leave out --grid, --set, --target "
                "and --drop"
            )
        plan = Plan(
            preprocessing=PAIRED if faithful else preprocess,
            data_dir=data_dir,
            is_faithful=faithful,
            is_warm=warm,
            policies="" if policy == "paper" else policy,
            only=tuple(listed(dataset)),
        )
        tried, trials = _of_study(study, plan, rounds, seeds)
    else:
        if faithful or not dataset:
            raise SettingError(
                "there is nothing to tune on; name datasets by --dataset, or a study by --study, to which "
                "--faithful belongs"
            )
        names = ",".join(POLICIES) if policy == "paper" else policy
        specs = named_policies(names, settings, console)
        tried = grids(specs, grid)
        if left := [spec.name for spec in specs if spec not in [each.spec for each in tried]]:
            console.print(f"Nothing to tune in {', '.join(left)}.", soft_wrap=True)
        worlds = environments(dataset, target, drop, preprocess, data_dir, console).values()
        trials = tuning_trials(tried, worlds, rounds, seeds)
    if finalists:
        first = tuning.first_look(trials)
        runs = run_missing(first, out, executor, jobs, console)
        trials = [*first, *tuning.finalists(trials, runs, finalists)]
    summary = summarise(run_missing(trials, out, executor, jobs, console))
    if pooled:
        for grid_tried in tried:
            table = pooled_table(summary, grid_tried)
            console.print(markdown(table), markup=False, highlight=False, soft_wrap=True)
        return
    for table in grid_tables(summary, tried):
        console.print(markdown(table), highlight=False, soft_wrap=True)
    found = choices(summary, tried)
    if at_edges := edges(found):
        console.print(
            f"Warning: at an edge of the grid, so a better one may lie beyond: {', '.join(at_edges)}.",
            soft_wrap=True,
        )
    Tuned(choices=known.choices | found).write(path)
    console.print(
        f"The choices are in {path}; give them to rbmle run or rbmle reproduce by --tuned {path}.",
        soft_wrap=True,
    )


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A folder that run, tune or reproduce wrote.")],
    out: Annotated[Path | None, typer.Option(help="The page; report.html in the folder.")] = None,
    all_code: Annotated[
        bool, typer.Option("--all-code", help="Show runs of all code there is, each by itself.")
    ] = False,
) -> None:
    """Write one self-contained page of the runs in a folder, those of the current code."""
    from rbmle.experiments.code import own_code
    from rbmle.experiments.comparison import comparison_table, is_compared
    from rbmle.experiments.measures import measure
    from rbmle.experiments.report import write_report
    from rbmle.experiments.report_table import markdown
    from rbmle.experiments.selection import note_on, of_one_code
    from rbmle.experiments.store import Store
    from rbmle.experiments.summary import summarise
    from rbmle.studies import PAPER

    if not (folder / "runs").is_dir():
        raise SettingError(f"{folder} has no runs in it; give a folder that rbmle run wrote")
    console, path = open_console(), out or folder / "report.html"
    runs = list(Store(folder=folder / "runs").all())
    selection = of_one_code(runs, own_code())
    note = "" if all_code else note_on(selection, folder)
    shown = summarise(runs if all_code else selection.used)
    write_report(shown, path, published=PAPER, title="rbmle: all runs of a folder", note=note)
    if is_compared(measures := measure(shown)):
        _show_table(markdown(comparison_table(measures)), console)
    for text in (note, f"The report is in {path}."):
        if text:
            console.print(text, highlight=False, soft_wrap=True)


def _check_warm(faithful: bool, warm: bool) -> None:
    """Raise SettingError for --warm without --faithful."""
    if warm and not faithful:
        raise SettingError("--warm is one reading of the paper as printed; give --faithful too")


def _of_study(
    study: str, plan: "Plan", rounds: int, seeds: int
) -> "tuple[list[Grid], list[Trial]]":
    """Return the grids of what a study compares, and their trials."""
    from rbmle.studies import STUDIES
    from rbmle.studies.tuning import contender_grids, contender_trials

    contenders = STUDIES[study].contenders if study in STUDIES else None
    if contenders is None:
        tunable = [name for name, each in STUDIES.items() if each.contenders is not None]
        raise SettingError(
            f"there is nothing to tune in a study {study!r}; there are {', '.join(tunable)}"
        )
    chosen = [each for each in plan.chosen(contenders(plan)) if each.constant is not None]
    return contender_grids(chosen), contender_trials(plan, chosen, rounds, seeds)


def _measure(name: str, quick: bool, folder: Path, console: Console) -> None:
    """Measure what a study lacks, and show it."""
    from rbmle.studies import MEASURED

    console.print(f"{name}: {MEASURED[name].title}")
    try:
        _show(MEASURED[name].write(quick, folder, console), console)
    except KeyboardInterrupt:
        console.print(
            f"Stopped. What was finished is in {folder / name}; type the same command to go on."
        )
        raise typer.Exit(130) from None


def _show(files: list[Path], console: Console) -> None:
    """Print the first table there is, set if someone looks at it, and where all files are."""
    tables = [file.read_text() for file in files if file.suffix == ".md"]
    for text in tables[:1]:
        _show_table(text, console)
    for file in files:
        console.print(str(file), highlight=False, soft_wrap=True)


def _show_table(text: str, console: Console) -> None:
    """Print a table in Markdown, set if someone looks at it."""
    from rich.markdown import Markdown

    if console.is_terminal:
        console.print(Markdown(text))
    else:
        console.print(text, highlight=False, soft_wrap=True)
