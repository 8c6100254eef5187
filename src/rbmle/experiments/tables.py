"""Tables, as Markdown, LaTeX or HTML rows: means, deviations, published numbers, ranks, wins and losses."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rbmle.experiments.measures import (
    CLOSE,
    FEW,
    SIGNIFICANT,
    Measures,
    Ranks,
    is_level,
    ranks,
    seed_p_value,
)
from rbmle.experiments.summary import (
    VARIANT_MARK,
    VARIANT_NOTE,
    Cell,
    Problem,
    Summary,
    policy_title,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A cell of a table as it is shown."""

    text: str = "–"
    note: str = ""  # beside it, smaller
    is_best: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """The content of a table, without a format."""

    caption: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Entry, ...]], ...]

    @property
    def legend(self) -> str:
        """Return the caption, and what the mark of some policies means."""
        titles = (*self.columns, *(title for title, _ in self.rows))
        is_marked = any(VARIANT_MARK in title for title in titles)
        return f"{self.caption} {VARIANT_NOTE}" if is_marked else self.caption


def markdown(table: ReportTable) -> str:
    """Return a table in Markdown, and its caption below."""

    def escape_text(text: str) -> str:
        return re.sub(r"([\\`*_|<>\[\]&~$])", r"\\\1", " ".join(text.split()))

    def show_entry(entry: Entry) -> str:
        text = escape_text(entry.text)
        note = f" ({escape_text(entry.note)})" if entry.note else ""
        return (f"**{text}**" if entry.is_best else text) + note

    head = [escape_text(text) for text in (table.corner, *table.columns)]
    rows = [[escape_text(title), *map(show_entry, entries)] for title, entries in table.rows]
    rule = ["---"] + ["---:"] * len(table.columns)
    lines = [f"| {' | '.join(row)} |" for row in [head, rule, *rows]]
    return "\n".join([*lines, "", escape_text(table.legend), ""])


def latex(table: ReportTable) -> str:
    """Return a table in LaTeX; it needs no package."""

    def show_entry(entry: Entry) -> str:
        text = latex_text(entry.text)
        note = f" {{\\scriptsize({latex_text(entry.note)})}}" if entry.note else ""
        return (f"\\textbf{{{text}}}" if entry.is_best else text) + note

    head = [f"\\textbf{{{latex_text(text)}}}" for text in (table.corner, *table.columns)]
    rows = [[latex_text(title), *map(show_entry, entries)] for title, entries in table.rows]
    return "\n".join(
        [
            "\\begin{table}",
            f"\\caption{{{latex_text(table.legend)}}}",
            "\\centering",
            f"\\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
            "\\hline",
            " & ".join(head) + r" \\ \hline",
            *(" & ".join(row) + r" \\" for row in rows),
            "\\hline",
            "\\end{tabular}",
            "\\end{table}\n",
        ]
    )


LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "–": "--",
        "−": "$-$",
        "±": r"$\pm$",
        "†": r"\dag{}",
    }
    | {special: f"\\{special}" for special in "&%$#_{}"}
)


def latex_text(text: str) -> str:
    r"""Return text that LaTeX prints as it is: `A_B & 5 %` becomes `A\_B \& 5 \%`."""
    return " ".join(text.split()).translate(LATEX)


Statistic = Literal["mean", "std"]
DIGITS: dict[Statistic, int] = {"mean": 1, "std": 2}  # after the point, as in the paper
Measure = Callable[[Cell], tuple[float | None, float | None]]  # a number, and its standard error
Numbers = Mapping[str, Mapping[str, float]]  # by policy, then by dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperResults:
    """Published regrets by policy and dataset, after the dataset's horizon."""

    source: str  # one word, as in "paper 313.1"
    means: Numbers
    stds: Numbers
    horizons: Mapping[str, int]
    policy: str  # the proposed one, which should win

    def has(self, problem: Problem) -> bool:
        """Return whether a problem is a published one; a user's file is not, whatever its name."""
        return problem.dataset in self.horizons and "target" not in problem.details


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
    beside = "" if published is None else _caption_note(published)
    seeds = [len(cell.seeds) for cell in summary.cells]
    level = (
        "all within 1 % of it"
        if min(seeds, default=0) < FEW
        else "every policy that is not significantly worse (Wilcoxon, p ≥ 0.05)"
    )
    error = ", ± its standard error" if max(seeds, default=0) > 1 else ""
    table = _table(
        summary,
        lambda cell: _with_error(cell, rounds or cell.problem.horizon),
        digits=DIGITS["mean"],
        is_best=lambda cell, best: is_level(cell, best, rounds or cell.problem.horizon),
        caption=f"{when}{error}. In bold the best of each column and {level}.{beside}",
        corner="Mean final regret" if rounds is None else f"Mean regret at {rounds:,}",
    )
    return table if published is None else _beside(table, summary, published, "mean")


def std_table(summary: Summary, published: PaperResults | None = None) -> ReportTable:
    """Return the paper's table 2; with `published` each number has that of others beside it.

    No number is in bold: a small deviation by itself is not a merit, and Uniform often has the smallest.
    """
    beside = "" if published is None else _caption_note(published)
    table = _table(
        summary,
        lambda cell: (cell.std, None),
        digits=DIGITS["std"],
        is_best=lambda _cell, _best: False,
        caption=f"Standard deviation of the final regret over seeds, with divisor n − 1.{beside}",
        corner="Std. of final regret",
    )
    return table if published is None else _beside(table, summary, published, "std")


def defeats(summary: Summary, policy: str, problems: Sequence[Problem] | None = None) -> list[str]:
    """Return a sentence for each problem where a policy is neither best nor within 1 % of it.

    It says so if the difference is not significant over the seeds.
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
                f"{_doubt(seed_p_value(cell, best, problem.horizon))}."
            )
    return lines


def _doubt(p: float | None) -> str:
    return (
        "" if p is None or p < SIGNIFICANT else f"; the difference is not significant (p = {p:.2f})"
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
    """Return whether a policy was played for as many rounds as a published number."""
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
    """Return a table with a number for each cell; those that tie with the smallest of a column are bold."""
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
    rows = []
    for policy, (title, entries) in zip(summary.policies, table.rows, strict=True):
        noted = []
        for problem, entry in zip(summary.problems, entries, strict=True):
            cell = summary.cell(problem, policy)
            note = "" if cell is None else _note(cell, published, what)
            noted.append(replace(entry, note=note))
        rows.append((title, tuple(noted)))
    return replace(table, rows=tuple(rows))


def _caption_note(published: PaperResults) -> str:
    return f" Below it the {published.source}'s number, and the difference of ours."


def _note(cell: Cell, published: PaperResults, what: Statistic) -> str:
    """Return the note beside one of our numbers; empty if we played fewer rounds than published."""
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
    """Return our number and the published one, after as many rounds."""
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
    """Return the mean after some rounds and its standard error; None for each that is not known."""
    std = _at(cell, rounds, "std")
    return _at(cell, rounds, "mean"), None if std is None else std / len(cell.seeds) ** 0.5


def _text(number: float, error: float | None, digits: int) -> str:
    return f"{number:.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")


def _difference(ours: float, theirs: float) -> str:
    """Return by how much ours is larger, in percent if theirs is above 0."""
    if ours == theirs:
        return ", the same"
    if theirs <= 0:
        return ""
    percent = f"{100 * (ours / theirs - 1):.1f}"
    return f", {'less than 0.1' if percent == '0.0' else percent} % more"


def standings(summary: Summary, problems: Sequence[Problem]) -> list[str]:
    """Return a sentence for each problem: the best policy, those that tie with it, and the others in order."""
    lines = []
    for problem in problems:
        cells = sorted((c for c in summary.cells if c.problem == problem), key=lambda c: c.mean)
        best = cells[0]
        level = [cell for cell in cells if cell.mean <= best.mean * (1 + CLOSE)]
        behind = cells[len(level) :]
        names = _and([policy_title(cell.policy) for cell in level])
        if len(level) == 1:
            first = f"{names} is best, with a mean regret of {best.mean:,.1f}"
        else:
            first = f"{names} are best, with mean regrets within 1 % of {best.mean:,.1f}"
        others = "".join(f", {_behind(cell, best)}" for cell in behind)
        more = f"; then{others.removeprefix(',')}" if behind else ""
        lines.append(f"{summary.title(problem)}: {first}{more}.")
    return lines


def _behind(cell: Cell, best: Cell) -> str:
    """Return a policy with its distance to the best, in percent if the best is above 0."""
    title = policy_title(cell.policy)
    if best.mean <= 0:
        return f"{title} {cell.mean:,.1f}"
    ratio = cell.mean / best.mean
    return (
        f"{title} (+{100 * (ratio - 1):,.0f} %)" if ratio < 10 else f"{title} ({ratio:,.0f} times)"
    )


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


DIAGONAL = Entry(text="·")


def is_compared(measures: Measures) -> bool:
    """Return whether there are two policies, and two problems that all of them have played."""
    is_whole = ~np.isnan(measures.regrets).any(axis=0)
    return len(measures.policies) > 1 and int(is_whole.sum()) > 1


def policy_ranks(measures: Measures) -> Ranks:
    return ranks(measures.policies, measures.regrets)


def comparison_table(measures: Measures) -> ReportTable:
    """Return a row for each policy, the one with most wins − losses first."""
    mean_ranks, net, relative = policy_ranks(measures), measures.net, measures.relative
    won, lost = measures.wins.sum(axis=1), measures.wins.sum(axis=0)
    ratios, errors = measures.relative_to(measures.order[0])
    rows = []
    for at in measures.order:
        entries = (
            Entry(text=_with_sign(net[at]), is_best=net[at] == net.max()),
            Entry(text=_with_sign(measures.loose_net[at])),
            Entry(text=f"{won[at]:,}"),
            Entry(text=f"{lost[at]:,}"),
            Entry(text=f"{relative[at]:.3f}", is_best=relative[at] == relative.min()),
            Entry(text=_ratio_with_error(ratios[at], errors[at])),
            Entry(text=f"{mean_ranks.means[at]:.2f}"),
            Entry(text=f"{measures.stuck[at]:,} of {measures.trials[at]:,}"),
            Entry(text=f"{measures.milliseconds[at]:.3f}"),
        )
        rows.append((policy_title(measures.policies[at]), entries))
    count = len(measures.problems)
    return ReportTable(
        caption=(
            f"{len(measures.policies)} policies on {count} problems. Significant wins and losses (two-sided "
            "p < 0.05) are counted over all other policies and problems; beside them wins − losses at the "
            "level of earlier tables, p < 0.166. Regret is relative to the best of each problem, as a "
            "geometric mean; relative to the first policy it has its standard error over datasets. A trial "
            "is stuck if its regret is over twice the median of all policies' means. Ranks are over "
            f"{mean_ranks.problems} problems; a difference below {mean_ranks.difference:.2f} is not "
            "significant."
        ),
        corner="Policy",
        columns=(
            "Wins − losses",
            "at p < 0.166",
            "Wins",
            "Losses",
            "Regret / best",
            "Regret / first",
            "Mean rank",
            "Stuck",
            "CPU ms / round",
        ),
        rows=tuple(rows),
    )


def _with_sign(number: int) -> str:
    return f"{number:+d}".replace("-", "−")


def _ratio_with_error(ratio: float, error: float) -> str:
    return f"{ratio:.3f}" if np.isnan(error) else f"{ratio:.3f} ± {error:.3f}"


def pairs_table(measures: Measures) -> ReportTable:
    """Return wins–losses of each row against each column, in bold where a row has more wins."""
    wins, order = measures.wins, measures.order
    rows = []
    for row in order:
        entries = [
            DIAGONAL
            if row == column
            else Entry(
                text=f"{wins[row, column]}–{wins[column, row]}",
                is_best=bool(wins[row, column] > wins[column, row]),
            )
            for column in order
        ]
        rows.append((policy_title(measures.policies[row]), tuple(entries)))
    return ReportTable(
        caption="Problems that the row wins significantly – loses; in bold where it wins more.",
        corner="Row against column",
        columns=tuple(policy_title(measures.policies[at]) for at in order),
        rows=tuple(rows),
    )


def loss_table(measures: Measures, summary: Summary) -> ReportTable:
    """Return the progressive validation loss of each policy, with a row for each problem."""
    order, losses = measures.order, measures.losses
    rows = []
    for at, problem in enumerate(measures.problems):
        column = losses[:, at]
        best = np.nanmin(column) if not np.isnan(column).all() else np.nan
        entries = [
            Entry() if np.isnan(x) else Entry(text=f"{x:.4f}", is_best=bool(x == best))
            for x in column[order]
        ]
        rows.append((f"{summary.title(problem)}, {problem.horizon:,} rounds", tuple(entries)))
    return ReportTable(
        caption="Progressive validation loss, mean over seeds; the smallest of each row in bold.",
        corner="Problem",
        columns=tuple(policy_title(measures.policies[at]) for at in order),
        rows=tuple(rows),
    )
