"""What a study is: the trials of one table or figure, and how they are shown."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from rbmle.experiments.report import write_report
from rbmle.experiments.report_table import ReportTable
from rbmle.experiments.summary import Summary
from rbmle.experiments.trial import Trial
from rbmle.studies.contender import Contender
from rbmle.studies.plan import Plan
from rbmle.studies.published import PAPER


def paper_page(summary: Summary, path: Path, title: str, note: str) -> None:
    """Write a report with the published numbers beside ours."""
    write_report(summary, path, published=PAPER, title=title, note=note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One table or figure, of the paper or of our own."""

    name: str
    title: str
    trials: Callable[[Plan], list[Trial]]
    render: Callable[[Summary, Path, str], list[Path]]  # writes files with a note, and returns them
    page: Callable[[Summary, Path, str, str], None] = paper_page  # with a title and a note
    note: Callable[[Plan, Summary], str] = Plan.note
    skipped: Callable[[Plan], list[str]] = lambda _: []  # a line for all that cannot be played
    is_of_the_paper: bool = True  # the others have a folder of their own, and are not among `all`
    is_narrowed: bool = False  # takes --dataset and --rounds, as those of the paper do
    contenders: Callable[[Plan], list[Contender]] | None = None  # to tune; None: there is nothing


def paper_study(
    name: str,
    title: str,
    contenders: Callable[[Plan], list[Contender]],
    render: Callable[[Summary, Path, str], list[Path]],
    tried: Callable[[Plan], list[Contender]] | None = None,
) -> Study:
    """Return a study of the paper, whose trials are those of its contenders; they, or `tried`, can be tuned."""
    return Study(
        name=name,
        title=title,
        trials=lambda plan: plan.trials(contenders(plan)),
        render=render,
        contenders=tried or contenders,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A study that has no trials of policies, and measures for itself."""

    title: str
    # Measures, quickly if the first is True, writes files, and returns them.
    write: Callable[[bool, Path, Console], list[Path]]


def noted(table: ReportTable, note: str) -> ReportTable:
    """Return a table with a note at the end of its caption."""
    return replace(table, caption=f"{table.caption} {note}")
