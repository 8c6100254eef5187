"""Tables of a summary, and beside the numbers that others published."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rbmle.experiments.paired import CLOSE, FEW, SIGNIFICANT, is_level, p_value
from rbmle.experiments.report_table import Entry, ReportTable
from rbmle.experiments.summary import Cell, Problem, Summary, policy_title

OURS = "neural-rbmle-ga"  # the policy that should win

Statistic = Literal["mean", "std"]
DIGITS: dict[Statistic, int] = {"mean": 1, "std": 2}  # after the point, as in the paper
Measure = Callable[[Cell], tuple[float | None, float | None]]  # a number, and its standard error
Numbers = Mapping[str, Mapping[str, float]]  # by policy, then by dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperResults:
    """Regrets that others report: by policy and dataset, after the dataset's horizon."""

    source: str  # one word, as in "paper 313.1"
    means: Numbers
    stds: Numbers
    horizons: Mapping[str, int]

    def has(self, problem: Problem) -> bool:
        """Say whether a problem is a published one; a user's file is none, whatever its name."""
        return problem.dataset in self.horizons and "target" not in dict(problem.details)


def mean_table(
    summary: Summary, published: PaperResults | None = None, rounds: int | None = None
) -> ReportTable:
    """Return the paper's table 1; with `published` each number has that of others beside it.

    `rounds` asks for the regret after so many rounds; problems with fewer have no number.
    """
    if published is not None and rounds is not None:
        raise ValueError(
            f"published numbers are those of the last round; leave out rounds={rounds}"
        )
    when = "Mean final regret" if rounds is None else f"Mean regret after {rounds:,} rounds"
    beside = "" if published is None else _announced(published)
    seeds = [len(cell.seeds) for cell in summary.cells]
    level = (
        "within 1 % of it"
        if min(seeds, default=0) < FEW
        else "that Wilcoxon's test over seeds does not tell from it (p ≥ 0.05)"
    )
    error = ", ± its standard error" if max(seeds, default=0) > 1 else ""
    table = _table(
        summary,
        lambda cell: _with_error(cell, rounds or cell.problem.horizon),
        digits=DIGITS["mean"],
        is_best=lambda cell, best: is_level(cell, best, rounds or cell.problem.horizon),
        caption=f"{when}{error}. In bold the best of each column and all {level}.{beside}",
        corner="Mean final regret" if rounds is None else f"Mean regret at {rounds:,}",
    )
    return table if published is None else _beside(table, summary, published, "mean")


def std_table(summary: Summary, published: PaperResults | None = None) -> ReportTable:
    """Return the paper's table 2; with `published` each number has that of others beside it.

    No number is in bold: a small deviation alone is no merit, and Uniform often has the smallest.
    """
    beside = "" if published is None else _announced(published)
    table = _table(
        summary,
        lambda cell: (cell.std, None),
        digits=DIGITS["std"],
        is_best=lambda _cell, _best: False,
        caption=f"Standard deviation of the final regret over seeds, with divisor n − 1.{beside}",
        corner="Std. of final regret",
    )
    return table if published is None else _beside(table, summary, published, "std")


def defeats(
    summary: Summary, policy: str = OURS, problems: Sequence[Problem] | None = None
) -> list[str]:
    """Return a sentence for each problem where a policy is neither best nor within 1 % of it.

    It says so where the seeds do not tell the two apart, whatever their means.
    """
    lines = []
    ours = policy_title(policy)
    for problem in summary.problems if problems is None else problems:
        where = summary.title(problem)
        best = min((c for c in summary.cells if c.problem == problem), key=lambda c: c.mean)
        cell = min(summary.variants(problem, policy), key=lambda c: c.mean, default=None)
        if cell is None:
            lines.append(f"{where}: {ours} was not played.")
        elif cell.mean > best.mean * (1 + CLOSE):
            lines.append(
                f"{where}: {policy_title(best.policy)} has {best.mean:.1f}, "
                f"{policy_title(cell.policy)} {cell.mean:.1f}{_difference(cell.mean, best.mean)}"
                f"{_doubt(p_value(cell, best, problem.horizon))}."
            )
    return lines


def _doubt(p: float | None) -> str:
    """Return that a difference may be chance, if so."""
    return (
        "" if p is None or p < SIGNIFICANT else f"; the seeds do not tell them apart (p = {p:.2f})"
    )


def unbeaten(summary: Summary, published: PaperResults) -> list[str]:
    """Return a sentence for each published number that the same policy does not beat here."""
    lines = []
    for what, digits in DIGITS.items():
        for cell in summary.cells:
            ours, theirs = _pair(cell, published, what)
            if ours is not None and theirs is not None and ours >= theirs:
                lines.append(
                    f"{summary.title(cell.problem)}, {policy_title(cell.policy)}: {what} "
                    f"{ours:.{digits}f}, {published.source} {theirs:.{digits}f}"
                    f"{_difference(ours, theirs)}."
                )
    return lines


def is_comparable(summary: Summary, published: PaperResults) -> bool:
    """Say whether there is a number that was played for as many rounds as a published one."""
    pairs = [_pair(cell, published, what) for cell in summary.cells for what in DIGITS]
    return any(ours is not None and theirs is not None for ours, theirs in pairs)


def incomparable(summary: Summary, published: PaperResults) -> list[Problem]:
    """Return the problems of published datasets that were played for fewer rounds."""
    return [
        problem
        for problem in summary.problems
        if published.has(problem) and problem.horizon < published.horizons[problem.dataset]
    ]


def _table(
    summary: Summary,
    measure: Measure,
    digits: int,
    is_best: Callable[[Cell, Cell], bool],
    caption: str,
    corner: str,
) -> ReportTable:
    """Return a table of one number of each cell; in bold what is as good as the smallest of a column."""
    columns = []
    for problem in summary.problems:
        cells = [summary.cell(problem, policy) for policy in summary.policies]
        numbers = {
            cell.policy: (number, error)
            for cell in cells
            if cell is not None
            for number, error in [measure(cell)]
            if number is not None
        }
        best = min(
            (cell for cell in cells if cell is not None and cell.policy in numbers),
            key=lambda cell: numbers[cell.policy][0],
            default=None,
        )
        columns.append(
            [
                Entry()
                if cell is None or best is None or cell.policy not in numbers
                else Entry(text=_text(*numbers[cell.policy], digits), is_best=is_best(cell, best))
                for cell in cells
            ]
        )
    titles = [policy_title(policy) for policy in summary.policies]
    rows = zip(titles, zip(*columns, strict=True), strict=True)
    names = tuple(summary.title(problem) for problem in summary.problems)
    return ReportTable(caption=caption, corner=corner, columns=names, rows=tuple(rows))


def _beside(
    table: ReportTable, summary: Summary, published: PaperResults, what: Statistic
) -> ReportTable:
    """Return the table with published numbers as notes."""
    rows = []
    for policy, (title, entries) in zip(summary.policies, table.rows, strict=True):
        noted = []
        for problem, entry in zip(summary.problems, entries, strict=True):
            cell = summary.cell(problem, policy)
            note = "" if cell is None else _note(cell, published, what)
            noted.append(replace(entry, note=note))
        rows.append((title, tuple(noted)))
    return replace(table, rows=tuple(rows))


def _announced(published: PaperResults) -> str:
    """Return what a caption says of notes."""
    return f" Below it the {published.source}'s number, and how much ours differs."


def _note(cell: Cell, published: PaperResults, what: Statistic) -> str:
    """Return the note of a number of ours; nothing if fewer rounds were played than published."""
    ours, theirs = _pair(cell, published, what)
    if ours is None or theirs is None:
        return ""
    digits = DIGITS[what]
    horizon = published.horizons[cell.problem.dataset]
    there = f"ours at {horizon:,} {ours:.{digits}f}, " if horizon < cell.problem.horizon else ""
    percent = f", {100 * (ours / theirs - 1):+.1f} %".replace("-", "−") if theirs else ""
    return f"{there}{published.source} {theirs:.{digits}f}{percent}"


def _pair(
    cell: Cell, published: PaperResults, what: Statistic
) -> tuple[float | None, float | None]:
    """Return our number and theirs after as many rounds as they played."""
    if not published.has(cell.problem):
        return None, None
    numbers, dataset = published.means if what == "mean" else published.stds, cell.problem.dataset
    return _at(cell, published.horizons[dataset], what), numbers.get(cell.policy, {}).get(dataset)


def _at(cell: Cell, rounds: int, what: Statistic) -> float | None:
    """Return mean or deviation after some rounds; None if fewer were played."""
    if rounds > cell.problem.horizon:
        return None
    mean, std = cell.at(rounds)
    return mean if what == "mean" else std


def _with_error(cell: Cell, rounds: int) -> tuple[float | None, float | None]:
    """Return the mean after some rounds and its standard error; None if fewer were played, or one run was."""
    std = _at(cell, rounds, "std")
    return _at(cell, rounds, "mean"), None if std is None else std / len(cell.seeds) ** 0.5


def _text(number: float, error: float | None, digits: int) -> str:
    """Return a number, with its error if that is known."""
    return f"{number:.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")


def _difference(ours: float, theirs: float) -> str:
    """Return by how much ours is larger, in percent where that means something."""
    if ours == theirs:
        return ", the same"
    if theirs <= 0:
        return ""
    percent = f"{100 * (ours / theirs - 1):.1f}"
    return f", {'less than 0.1' if percent == '0.0' else percent} % more"
