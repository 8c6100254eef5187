"""Studies and their reports: `rbmle reproduce`, `rbmle tune`, `rbmle report` and `rbmle tables`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rbmle.cli.app import COMPARE, command, open_console, print_line
from rbmle.cli.options import (
    DataDir,
    Datasets,
    Drop,
    ExecutorName,
    Jobs,
    Preprocessing,
    SettingsOption,
    Target,
    complete_policy,
    complete_study,
    environments,
    named_policies,
    split_names,
)
from rbmle.cli.running import run_missing
from rbmle.core.checks import no_such
from rbmle.core.errors import SettingError

if TYPE_CHECKING:
    from rbmle.experiments.trial import Trial
    from rbmle.studies.base import Plan
    from rbmle.studies.tuning import Grid

RESULTS = Path("results")
Faithful = Annotated[
    bool,
    typer.Option(
        "--faithful",
        help="Play the policies exactly as the paper prints them. Slow; see docs/evidence/differences.md.",
    ),
]
Warm = Annotated[
    bool,
    typer.Option(
        "--warm",
        help="With --faithful: networks ascend the mean from the last estimate, not the sum from θ₀.",
    ),
]


@command(COMPARE)
def reproduce(
    study: Annotated[
        str,
        typer.Argument(
            autocompletion=complete_study, help="A study of rbmle studies, such as table-1; or all."
        ),
    ],
    quick: Annotated[
        bool,
        typer.Option(
            help="Use fewer seeds and rounds, and only the data that ship with rbmle.",
            show_default=False,
        ),
    ] = False,
    preprocess: Preprocessing = "standard",
    tuned: Annotated[
        Path | None,
        typer.Option(
            help="Constants that rbmle tune wrote.", show_default="those that ship with rbmle"
        ),
    ] = None,
    faithful: Faithful = False,
    warm: Warm = False,
    policy: Annotated[
        str,
        typer.Option(
            autocompletion=complete_policy,
            help="Only these policies of the study, separated by commas.",
            show_default="all",
        ),
    ] = "",
    dataset: Annotated[
        str,
        typer.Option(
            help="Only these datasets of the study, separated by commas.", show_default="all"
        ),
    ] = "",
    seeds: Annotated[
        int,
        typer.Option(
            min=0, help="Trials of each policy on each dataset.", show_default="the study's"
        ),
    ] = 0,
    rounds: Annotated[
        int, typer.Option(min=0, help="Rounds of each trial, at most.", show_default="the study's")
    ] = 0,
    jobs: Jobs = -1,
    executor: ExecutorName = "processes",
    out: Annotated[Path, typer.Option(help="Folder for runs, tables and figures.")] = RESULTS,
    data_dir: DataDir = None,
) -> None:
    """Run a study: a table or figure of the paper beside the published numbers, or one of our own.

    rbmle reproduce table-1 --quick
    rbmle reproduce figure-1 --policy neural-rbmle-ga,neural-ucb --seeds 3
    rbmle reproduce bakeoff
    """
    from rbmle.experiments.summary import summarise
    from rbmle.studies import MEASURED, STUDIES, Plan, Tuned, timing
    from rbmle.studies.base import ENDING, PAIRED
    from rbmle.studies.seed_results import write_trials

    console = open_console()
    names = [*STUDIES, *MEASURED]
    if study not in (*names, "all"):
        raise SettingError(no_such("study", study, [*names, "all"]))
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
        only=tuple(split_names(dataset)),
        count=seeds,
        rounds=rounds,
    )
    folder = out / ("quick" if quick else "paper") / plan.preprocessing
    papers = [name for name in STUDIES if STUDIES[name].is_of_the_paper] + [timing.NAME]
    for name in papers if study == "all" else [study]:
        if name in MEASURED:
            _measure(name, quick, folder, console)
            continue
        chosen = STUDIES[name]
        console.print(f"{name}: {chosen.title}")
        for line in chosen.skipped(plan):
            print_line(line, console)
        place = folder if chosen.is_of_the_paper else folder / name
        summary = summarise(run_missing(chosen.trials(plan), place, executor, jobs, console))
        report, note = place / f"{name}.html", chosen.note(plan, summary)
        chosen.page(summary, report, f"{name}: {chosen.title}", note)
        by_seed = (chosen.write_seeds or write_trials)(summary, place / f"{name}{ENDING}", note)
        _show([*chosen.render(summary, place, note), report, by_seed], console)


@command(COMPARE)
def tune(
    dataset: Datasets = "",
    policy: Annotated[
        str,
        typer.Option(
            autocompletion=complete_policy,
            help="Policies, separated by commas; paper for the seven of the paper.",
        ),
    ] = "paper",
    study: Annotated[
        str,
        typer.Option(
            autocompletion=complete_study,
            help="A table or figure: tune every policy that it compares, on its datasets.",
        ),
    ] = "",
    faithful: Faithful = False,
    warm: Warm = False,
    grid: Annotated[
        str | None,
        typer.Option(
            help="A setting and the values to try, as in exploration=0.01,0.1,1.",
            show_default="the paper's grid for ν",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each trial.")] = 5000,
    seeds: Annotated[
        int, typer.Option(min=1, help="Trials of each value, on seeds that no table reports.")
    ] = 3,
    finalists: Annotated[
        int,
        typer.Option(
            min=0,
            help="Try every value on three seeds, and only this many, the best of them, on all seeds.",
            show_default="all values on all seeds",
        ),
    ] = 0,
    pooled: Annotated[
        bool,
        typer.Option(
            "--pooled", help="Compare the values over all datasets together, and choose none."
        ),
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
    """Choose a setting of each policy on a grid, and record how it was chosen.

    rbmle tune --dataset adult,magic --policy lin-ucb --grid exploration=0.03,0.1,0.3,1
    rbmle tune --study table-1 --finalists 3
    rbmle run --dataset adult --policy lin-ucb --tuned results/tune/tuned.json
    """
    from rbmle.experiments.summary import summarise
    from rbmle.experiments.tables import markdown
    from rbmle.studies import tuning
    from rbmle.studies.base import PAIRED, PAPER_POLICIES, Plan, Tuned
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
            only=tuple(split_names(dataset)),
        )
        tuned_grids, trials = _of_study(study, plan, rounds, seeds)
    else:
        if faithful or not dataset:
            raise SettingError(
                "there is nothing to tune on; name datasets by --dataset, or a study by --study, to which "
                "--faithful belongs"
            )
        names = ",".join(PAPER_POLICIES) if policy == "paper" else policy
        specs = named_policies(names, settings, console)
        tuned_grids = grids(specs, grid)
        if left := [s.name for s in specs if s not in [grid.spec for grid in tuned_grids]]:
            console.print(f"Nothing to tune in {', '.join(left)}.", soft_wrap=True)
        worlds = environments(dataset, target, drop, preprocess, data_dir, console).values()
        trials = tuning_trials(tuned_grids, worlds, rounds, seeds)
    if finalists:
        first = tuning.first_look(trials)
        runs = run_missing(first, out, executor, jobs, console)
        trials = [*first, *tuning.finalists(trials, runs, finalists)]
    summary = summarise(run_missing(trials, out, executor, jobs, console))
    if pooled:
        for grid_tried in tuned_grids:
            table = pooled_table(summary, grid_tried)
            print_line(markdown(table), console)
        return
    for table in grid_tables(summary, tuned_grids):
        print_line(markdown(table), console)
    chosen = choices(summary, tuned_grids)
    if at_edges := edges(chosen):
        console.print(
            f"Warning: at an edge of the grid, so a better one may lie beyond: {', '.join(at_edges)}.",
            soft_wrap=True,
        )
    Tuned(choices=known.choices | chosen).write(path)
    console.print(
        f"The choices are in {path}; give them to rbmle run or rbmle reproduce by --tuned {path}.",
        soft_wrap=True,
    )


@command(COMPARE)
def report(
    folder: Annotated[Path, typer.Argument(help="A folder that run, tune or reproduce wrote.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The page to write.", show_default="report.html in the folder"),
    ] = None,
    all_code: Annotated[
        bool,
        typer.Option(
            "--all-code", help="Also show runs that other versions of the code made, separately."
        ),
    ] = False,
) -> None:
    """Write one self-contained HTML page about the runs in a folder.

    rbmle report results/run
    """
    from rbmle.experiments.code import own_code
    from rbmle.experiments.measures import measure
    from rbmle.experiments.report import write_report
    from rbmle.experiments.store import Store, note_on, of_one_code
    from rbmle.experiments.summary import summarise
    from rbmle.experiments.tables import comparison_table, is_compared, markdown
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
            print_line(text, console)


@command(COMPARE)
def tables(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Results by seed, from rbmle reproduce, to copy into the documentation first."
        ),
    ] = None,
    docs: Annotated[Path, typer.Option(help="Folder of the documentation.")] = Path("docs"),
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; fail if a table is out of date.")
    ] = False,
) -> None:
    """Update the tables of the documentation from its results by seed.

    rbmle tables results/paper/standard/table-1-seeds.json
    rbmle tables --check
    """
    from rbmle.core.files import write_text
    from rbmle.studies.seed_results import find_outdated, take

    if check and files:
        raise SettingError("--check changes nothing; leave out the files")
    for path in take(files or [], docs):
        typer.echo(path)
    pages = find_outdated(docs)
    if check and pages:
        names = ", ".join(map(str, pages))
        raise SettingError(f"tables are out of date in {names}; run rbmle tables")
    for path, text in pages.items():
        typer.echo(write_text(path, text))


def _check_warm(faithful: bool, warm: bool) -> None:
    if warm and not faithful:
        raise SettingError("--warm changes what --faithful plays; give --faithful as well")


def _of_study(
    study: str, plan: "Plan", rounds: int, seeds: int
) -> "tuple[list[Grid], list[Trial]]":
    """Return the grids of the contenders of a study, and their trials."""
    from rbmle.studies import STUDIES
    from rbmle.studies.tuning import contender_grids, contender_trials

    tunable = {name: s.contenders for name, s in STUDIES.items() if s.contenders is not None}
    if study not in tunable:
        raise SettingError(no_such("study to tune", study, tunable))
    chosen = [c for c in plan.select(tunable[study](plan)) if c.constant is not None]
    return contender_grids(chosen), contender_trials(plan, chosen, rounds, seeds)


def _measure(name: str, quick: bool, folder: Path, console: Console) -> None:
    from rbmle.studies import MEASURED

    console.print(f"{name}: {MEASURED[name].title}")
    try:
        _show(MEASURED[name].write(quick, folder, console), console)
    except KeyboardInterrupt:
        console.print(
            f"Stopped. Finished parts are in {folder / name}; run the same command again to continue."
        )
        raise typer.Exit(130) from None


def _show(files: list[Path], console: Console) -> None:
    """Print the first table, and the paths of all files."""
    tables = [file.read_text() for file in files if file.suffix == ".md"]
    for text in tables[:1]:
        _show_table(text, console)
    for file in files:
        print_line(str(file), console)


def _show_table(text: str, console: Console) -> None:
    """Print a Markdown table, rendered if the output is a terminal."""
    from rich.markdown import Markdown

    if console.is_terminal:
        console.print(Markdown(text))
    else:
        print_line(text, console)
