"""The paper: `rbmle tune`, `rbmle reproduce` and `rbmle report`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from rbmle.cli.app import app
from rbmle.cli.options import DataDir, ExecutorName, Jobs, Preprocessing, listed
from rbmle.cli.running import run_missing
from rbmle.core.errors import SettingError

RESULTS = Path("results")


@app.command()
def reproduce(
    study: Annotated[str, typer.Argument(help="table-1, …, figure-4, or all.")],
    quick: Annotated[bool, typer.Option(help="Fewer seeds and rounds, from shipped data.")] = False,
    preprocess: Preprocessing = "standard",
    tuned: Annotated[
        Path | None, typer.Option(help="Constants that rbmle tune wrote; else the defaults.")
    ] = None,
    jobs: Jobs = -1,
    executor: ExecutorName = "processes",
    out: Annotated[Path, typer.Option(help="Folder for runs, tables and figures.")] = RESULTS,
    data_dir: DataDir = None,
) -> None:
    """Run a table or figure of the paper, and write it beside the published one."""
    from rbmle.experiments.report import write_report
    from rbmle.experiments.summary import summarise
    from rbmle.studies import PAPER, STUDIES, Plan, Tuned

    console = Console()
    names = [*STUDIES, "table-3"]
    if study not in (*names, "all"):
        raise SettingError(f"there is no study {study!r}; there are {', '.join(names)} and all")
    constants = Tuned() if tuned is None else Tuned.read(tuned)
    plan = Plan(quick=quick, preprocessing=preprocess, data_dir=data_dir, tuned=constants)
    folder = out / ("quick" if quick else "paper") / preprocess
    for name in names if study == "all" else [study]:
        if name == "table-3":
            _table_3(quick, folder, console)
            continue
        chosen = STUDIES[name]
        console.print(f"{name}: {chosen.title}")
        summary = summarise(run_missing(chosen.trials(plan), folder, executor, jobs, console))
        files = chosen.render(summary, folder)
        report = folder / f"{name}.html"
        write_report(summary, report, published=PAPER, title=f"{name}: {chosen.title}")
        tables = [file for file in files if file.suffix == ".md"]
        if tables:
            console.print(tables[0].read_text(), markup=False)
        for file in (*files, report):
            console.print(str(file), markup=False, highlight=False, soft_wrap=True)


@app.command()
def tune(
    dataset: Annotated[str, typer.Option(help="Names of datasets, with commas between.")],
    policy: Annotated[str, typer.Option(help="Names of policies, or 'paper'.")] = "paper",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each trial.")] = 5000,
    seeds: Annotated[int, typer.Option(min=1, help="Trials of each, on seeds not reported.")] = 2,
    preprocess: Preprocessing = "standard",
    jobs: Jobs = -1,
    executor: ExecutorName = "processes",
    out: Annotated[Path, typer.Option(help="Folder for runs and tuned.json.")] = RESULTS / "tune",
    data_dir: DataDir = None,
) -> None:
    """Choose the constant of each policy on the paper's grid, and record it."""
    from rbmle.environments import Classification
    from rbmle.experiments.summary import summarise
    from rbmle.experiments.tables import markdown, mean_table
    from rbmle.experiments.trial import Trial
    from rbmle.studies.base import POLICIES
    from rbmle.studies.tuned import CONSTANTS, FIRST_SEED, Tuned, grid

    console = Console()
    names = [
        name for name in (POLICIES if policy == "paper" else listed(policy)) if name in CONSTANTS
    ]
    if not names:
        raise SettingError(f"{policy} has no constant to tune; there are {', '.join(CONSTANTS)}")
    worlds = [
        Classification(dataset=name, preprocessing=preprocess, data_dir=data_dir)
        for name in listed(dataset)
    ]
    trials = [
        Trial(
            policy=value,
            name=shown,
            environment=world,
            horizon=min(rounds, world.rows),
            seed=FIRST_SEED + seed,
        )
        for world in worlds
        for _, shown, value in grid(names)
        for seed in range(seeds)
    ]
    summary = summarise(run_missing(trials, out, executor, jobs, console))
    console.print(markdown(mean_table(summary)), markup=False)
    path = out / "tuned.json"
    known = Tuned.read(path) if path.exists() else Tuned()
    known.with_best(summary).write(path)
    console.print(f"The best constants are in {path}; give them to rbmle reproduce --tuned {path}.")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A folder that run, tune or reproduce wrote.")],
    out: Annotated[Path | None, typer.Option(help="The page; report.html in the folder.")] = None,
) -> None:
    """Write one self-contained page of all runs in a folder."""
    from rbmle.experiments.report import write_report
    from rbmle.experiments.store import Store
    from rbmle.experiments.summary import summarise
    from rbmle.studies import PAPER

    if not (folder / "runs").is_dir():
        raise SettingError(f"{folder} has no runs in it; give a folder that rbmle run wrote")
    path = out or folder / "report.html"
    summary = summarise(Store(folder=folder / "runs").all())
    write_report(summary, path, published=PAPER, title="rbmle: all runs of a folder")
    Console().print(f"The report is in {path}.")


def _table_3(quick: bool, folder: Path, console: Console) -> None:
    """Measure and print Table 3."""
    from rbmle.core.files import write_text
    from rbmle.studies.table_3 import timings

    console.print("table-3: computation time of a round, on Covertype's shape")
    table = Table("policy", "rounds", "t_step, ms", "t_Z, ms", "paper: t_step", "paper: t_Z")
    lines = ["| policy | rounds | t_step, ms | t_Z, ms | paper: t_step, ms | paper: t_Z, ms |"]
    lines.append("|---|---:|---:|---:|---:|---:|")
    for row in timings(quick):
        cells = (
            row.policy,
            f"{row.rounds:,}",
            f"{row.step:.2f}",
            "–" if row.Z is None else f"{row.Z:.2f}",
            f"{row.published_step:,.0f}",
            "–" if row.published_Z is None else f"{row.published_Z:,.0f}",
        )
        table.add_row(*cells)
        lines.append(f"| {' | '.join(cells)} |")
    console.print(table)
    console.print(str(write_text(folder / "table-3.md", "\n".join(lines) + "\n")), markup=False)
